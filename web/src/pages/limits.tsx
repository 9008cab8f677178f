// Limits of vhosts and of users.
import { createSignal, Show } from "solid-js";
import { deleteLimit, putLimit } from "../lib/actions";
import { get } from "../lib/http";
import { poll } from "../lib/poll";
import { vhost } from "../lib/route";
import { isAdministrator } from "../lib/session";
import { Button, Num, Panel, Problem } from "../ui/bits";
import { Ask, Do } from "../ui/dialog";
import { Select, Text } from "../ui/fields";
import { Table } from "../ui/table";
import { VhostField } from "../ui/vhost-field";

interface Limits {
  vhost?: string;
  user?: string;
  value: Record<string, number>;
}

const NAMES = { vhost: ["max-connections", "max-queues"], user: ["max-connections", "max-channels"] };

export const Limits = () => (
  <>
    <header class="page-head"><h1>Limits</h1></header>
    <LimitsOf kind="vhost" />
    <Show when={isAdministrator()}><LimitsOf kind="user" /></Show>
  </>
);

function LimitsOf(props: { kind: "vhost" | "user" }) {
  const [adding, setAdding] = createSignal(false);
  const [who, setWho] = createSignal(props.kind === "vhost" ? (vhost() ?? "/") : "");
  const [name, setName] = createSignal("max-connections");
  const [value, setValue] = createSignal("");
  const look = poll(() => `/api/${props.kind}-limits`, (path, signal) => get<Limits[]>(path, { signal }), { slower: 3 });
  const rows = () => (look.data() ?? []).flatMap((one) => Object.entries(Array.isArray(one.value) ? {} : one.value).map(([name, value]) => ({ who: one[props.kind] ?? "", name, value })));
  const number = () => (/^\s*\d+\s*$/.test(value()) ? Number(value()) : undefined);
  const title = () => (props.kind === "vhost" ? "Vhost limits" : "User limits");
  return (
    <Panel title={title()} flush aside={<Show when={isAdministrator()}><Button data-key={props.kind === "vhost" ? "add" : undefined} onClick={() => setAdding(true)}>Set a limit</Button></Show>}>
      <Show when={look.error()}>{(error) => <Problem error={error()} retry={look.refresh} />}</Show>
      <Table
        label={title()} rows={rows()} empty={<p>No limits are set.</p>}
        columns={[
          { label: props.kind === "vhost" ? "Vhost" : "User", cell: (one) => one.who },
          { label: "Limit", cell: (one) => <span class="mono">{one.name}</span> },
          { label: "Value", number: true, cell: (one) => <Num of={one.value} /> },
          { label: "", cell: (one) => <Show when={isAdministrator()}><Ask label="Remove…" kind="quiet" title={`Remove ${one.name} of ${one.who}`} verb="Remove" actions={[deleteLimit(props.kind, one.who, one.name)]} done={look.refresh}><p>Without it, only the limits of the broker apply.</p></Ask></Show> },
        ]}
      />
      <Do title="Set a limit" open={adding()} close={() => setAdding(false)} verb="Set" done={look.refresh} told="The limit applies now." actions={who() && number() !== undefined ? [putLimit(props.kind, who(), name(), number()!)] : []}>
        <Show when={props.kind === "vhost"} fallback={<Text label="User" value={who()} set={setWho} autofocus required />}><VhostField value={who()} set={setWho} /></Show>
        <div class="two">
          <Select label="Limit" value={name()} set={setName} options={NAMES[props.kind]} />
          <Text label="Value" type="number" min="0" value={value()} set={setValue} required />
        </div>
      </Do>
    </Panel>
  );
}
