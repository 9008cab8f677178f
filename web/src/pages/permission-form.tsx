// A form for permissions, with the usual ones at hand.
import { createSignal, For, Show } from "solid-js";
import type { Action } from "../lib/http";
import { Button } from "../ui/bits";
import { Do } from "../ui/dialog";
import { Text } from "../ui/fields";
import { VhostField } from "../ui/vhost-field";

interface Rights {
  configure: string;
  write: string;
  read: string;
}

const USUAL: [string, Rights][] = [
  ["everything", { configure: ".*", write: ".*", read: ".*" }],
  ["publish and consume", { configure: "", write: ".*", read: ".*" }],
  ["publish only", { configure: "", write: ".*", read: "" }],
  ["consume only", { configure: "", write: "", read: ".*" }],
  ["enter only", { configure: "", write: "", read: "" }],
];

interface Props {
  open: boolean;
  close: () => void;
  user?: string;
  vhost?: string;
  action: (vhost: string, user: string, rights: Rights) => Action;
  done: () => void;
}

export function PermissionForm(props: Props) {
  const [user, setUser] = createSignal(props.user ?? "");
  const [vhost, setVhost] = createSignal(props.vhost ?? "/");
  const [rights, setRights] = createSignal<Rights>(USUAL[0]![1]);
  const set = (part: Partial<Rights>) => setRights({ ...rights(), ...part });
  return (
    <Do title="Set permissions" open={props.open} close={props.close} actions={user() ? [props.action(vhost(), user(), rights())] : []} verb="Set" done={props.done} told="The permissions apply now.">
      <div class="two">
        <Show when={!props.user}><Text label="User" value={user()} set={setUser} autofocus required /></Show>
        <Show when={!props.vhost}><VhostField value={vhost()} set={setVhost} /></Show>
      </div>
      <div class="inline tight" role="group" aria-label="The usual ones">
        <For each={USUAL}>{([name, usual]) => <Button onClick={() => setRights(usual)}>{name}</Button>}</For>
      </div>
      <Text label="Configure: create and delete" value={rights().configure} set={(configure) => set({ configure })} class="mono" hint="Regular expressions for names. Empty matches nothing." />
      <Text label="Write: publish, and bind queues" value={rights().write} set={(write) => set({ write })} class="mono" />
      <Text label="Read: consume, get, purge, and bind exchanges" value={rights().read} set={(read) => set({ read })} class="mono" />
    </Do>
  );
}
