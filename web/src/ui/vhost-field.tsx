// A vhost for what is made.
import { get } from "../lib/http";
import { poll } from "../lib/poll";
import type { Page, Vhost } from "../lib/types";
import { Select } from "./fields";

export function VhostField(props: { value: string; set: (value: string) => void }) {
  const names = poll(() => "/api/vhosts?page=1&page_size=500&columns=name&disable_stats=true", (path, signal) => get<Page<Vhost>>(path, { signal }), { slower: 120 });
  const options = () => [...new Set([props.value, ...(names.data()?.items.map((one) => one.name) ?? [])])];
  return <Select label="Vhost" value={props.value} set={props.set} options={options()} />;
}
