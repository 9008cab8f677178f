// Vhosts, and one of them.
import { createSignal, Show } from "solid-js";
import { deletePermission, deleteVhost, protectVhost, putPermission, putVhost } from "../lib/actions";
import * as format from "../lib/format";
import { get, seg } from "../lib/http";
import { poll } from "../lib/poll";
import { go, hash, place, to } from "../lib/route";
import { isAdministrator } from "../lib/session";
import { rateOf, type Permission, type Vhost } from "../lib/types";
import { Badge, Button, Empty, Facts, Link, Num, Panel, Problem, Tile } from "../ui/bits";
import { Ask, Do } from "../ui/dialog";
import { Select, Text } from "../ui/fields";
import { List, type Column } from "../ui/list";
import { Table } from "../ui/table";
import { PermissionForm } from "./permission-form";

const COLUMNS: Column<Vhost>[] = [
  { id: "name", label: "Name", needs: [], sort: "name", cell: (one) => <Link to={to(["vhosts", one.name])}>{one.name}</Link> },
  { id: "description", label: "Description", needs: ["description"], sort: "description", cell: (one) => one.description },
  { id: "tags", label: "Tags", needs: ["tags"], extra: true, cell: (one) => (one.tags ?? []).join(", ") },
  { id: "type", label: "Default queue type", hint: "The type of queues that are declared without one", needs: ["default_queue_type"], sort: "default_queue_type", cell: (one) => <Badge>{one.default_queue_type}</Badge> },
  { id: "ready", label: "Waiting", needs: ["messages_ready"], sort: "messages_ready", number: true, cell: (one) => <Num of={one.messages_ready} /> },
  { id: "unacked", label: "Unacked", needs: ["messages_unacknowledged"], sort: "messages_unacknowledged", number: true, cell: (one) => <Num of={one.messages_unacknowledged} /> },
  { id: "in", label: "In", needs: ["message_stats.publish_details.rate"], sort: "message_stats.publish_details.rate", number: true, cell: (one) => <Num of={rateOf(one.message_stats, "publish")} as="rate" /> },
  { id: "out", label: "Out", needs: ["message_stats.deliver_get_details.rate"], sort: "message_stats.deliver_get_details.rate", number: true, cell: (one) => <Num of={rateOf(one.message_stats, "deliver_get")} as="rate" /> },
  { id: "protected", label: "Protected", needs: ["protected_from_deletion"], extra: true, cell: (one) => (one.protected_from_deletion ? "yes" : "no") },
];

export function Vhosts() {
  const [adding, setAdding] = createSignal(false);
  return (
    <>
      <header class="page-head">
        <h1>Vhosts</h1>
        <Show when={isAdministrator()}><Button kind="main" data-key="add" onClick={() => setAdding(true)}>Add a vhost</Button></Show>
      </header>
      <List<Vhost> name="vhosts" path="/api/vhosts" everywhere needs={["name"]} columns={COLUMNS} row={(one) => one.name} empty={<Empty title="You have no access to any vhost">Ask an administrator for permissions.</Empty>} />
      <VhostForm open={adding()} close={() => setAdding(false)} />
    </>
  );
}

function VhostForm(props: { open: boolean; close: () => void; vhost?: Vhost; done?: () => void }) {
  const [name, setName] = createSignal(props.vhost?.name ?? "");
  const [description, setDescription] = createSignal(props.vhost?.description ?? "");
  const [tags, setTags] = createSignal((props.vhost?.tags ?? []).join(","));
  const [type, setType] = createSignal(props.vhost?.default_queue_type ?? "classic");
  const actions = () => (name() === "" ? [] : [putVhost(name(), { description: description(), tags: tags(), default_queue_type: type() })]);
  return (
    <Do
      title={props.vhost ? `Change ${props.vhost.name}` : "Add a vhost"} open={props.open} close={props.close} actions={actions()} verb={props.vhost ? "Change" : "Add"} told={`${name()} is ${props.vhost ? "changed" : "there"}.`}
      done={(answers) => (props.done ? props.done() : answers.length > 0 && go(hash(["vhosts", name()])))}
    >
      <Show when={!props.vhost}><Text label="Name" value={name()} set={setName} autofocus required /></Show>
      <Text label="Description" value={description()} set={setDescription} />
      <Text label="Tags, separated by commas" value={tags()} set={setTags} />
      <Select label="Default queue type" value={type()} set={setType} options={["classic", "quorum", "stream"]} />
    </Do>
  );
}

export function VhostPage() {
  const name = place().path[1] ?? "";
  const [changing, setChanging] = createSignal(false);
  const look = poll(() => `/api/vhosts/${seg(name)}`, (path, signal) => get<Vhost>(path, { signal }));
  const inside = (path: string) => hash([path], { vhost: name });
  return (
    <Show when={look.data()} fallback={<Show when={look.error()} fallback={<div class="loading">Loading…</div>}><p class="crumbs"><Link to={to(["vhosts"])}>Vhosts</Link></p><h1>{name}</h1><Problem error={look.error()!} /></Show>}>
      {(one) => (
        <>
          <header class="page-head">
            <div>
              <p class="crumbs"><Link to={to(["vhosts"])}>Vhosts</Link></p>
              <h1>{name}</h1>
              <span class="badges"><Show when={one().protected_from_deletion}><Badge tone="info">protected</Badge></Show></span>
            </div>
            <div class="actions">
              <Button onClick={() => setChanging(true)}>Change…</Button>
              <Ask label={one().protected_from_deletion ? "Allow deletion…" : "Protect…"} title={one().protected_from_deletion ? "Allow its deletion" : "Protect it from deletion"} verb={one().protected_from_deletion ? "Allow" : "Protect"} actions={[protectVhost(name, !one().protected_from_deletion)]} done={look.refresh}>
                <p>{one().protected_from_deletion ? "Then it can be deleted again." : "It cannot be deleted until that is allowed again."}</p>
              </Ask>
              <Ask
                label="Delete…" title={`Delete ${name}`} verb="Delete" danger disabled={one().protected_from_deletion} why={one().protected_from_deletion ? "It is protected" : undefined}
                actions={[deleteVhost(name)]} typed={one().messages > 0 ? name : undefined} told={`${name} is deleted.`} done={(answers) => answers.length > 0 && go(hash(["vhosts"]))}
              >
                <p>Everything in it goes: queues, exchanges, policies, permissions, connections{one().messages > 0 ? `, and ${format.plural(one().messages, "message")}` : ""}.</p>
              </Ask>
            </div>
          </header>
          <Show when={look.error()}>{(error) => <Problem error={error()} retry={look.refresh} />}</Show>
          <div class="tiles">
            <Tile label="waiting" to={hash(["queues"], { vhost: name, sort: "messages_ready", desc: "1" })}><Num of={one().messages_ready} /></Tile>
            <Tile label="unacknowledged"><Num of={one().messages_unacknowledged} /></Tile>
            <Tile label="published"><Num of={rateOf(one().message_stats, "publish")} as="rate" /></Tile>
            <Tile label="delivered"><Num of={rateOf(one().message_stats, "deliver_get")} as="rate" /></Tile>
          </div>
          <p class="go-on">
            In it: <Link to={inside("queues")}>queues</Link>, <Link to={inside("exchanges")}>exchanges</Link>, <Link to={inside("connections")}>connections</Link>, <Link to={inside("policies")}>policies</Link>, <Link to={inside("topology")}>topology</Link>
          </p>
          <Panel title="Properties">
            <Facts of={[["Description", one().description || <span class="muted">none</span>], ["Tags", (one().tags ?? []).join(", ") || <span class="muted">none</span>], ["Default queue type", one().default_queue_type]]} />
          </Panel>
          <VhostPermissions vhost={name} />
          <VhostForm open={changing()} close={() => setChanging(false)} vhost={one()} done={look.refresh} />
        </>
      )}
    </Show>
  );
}

function VhostPermissions(props: { vhost: string }) {
  const [adding, setAdding] = createSignal(false);
  const look = poll(() => `/api/vhosts/${seg(props.vhost)}/permissions`, (path, signal) => get<Permission[]>(path, { signal }), { slower: 3 });
  const pattern = (text: string) => <code>{text || <span class="muted">nothing</span>}</code>;
  return (
    <Panel title="Permissions" flush aside={<Button onClick={() => setAdding(true)}>Set permissions</Button>}>
      <Show when={look.error()}>{(error) => <Problem error={error()} />}</Show>
      <Table
        label="Permissions" rows={look.data() ?? []} empty={<p>Administrators only, read-only.</p>}
        columns={[
          { label: "User", cell: (one) => <Link to={to(["users", one.user])}>{one.user}</Link> },
          { label: "Configure", cell: (one) => pattern(one.configure) },
          { label: "Write", cell: (one) => pattern(one.write) },
          { label: "Read", cell: (one) => pattern(one.read) },
          { label: "", cell: (one) => <Ask label="Clear…" kind="quiet" title={`Clear the permissions of ${one.user}`} verb="Clear" danger actions={[deletePermission(one.vhost, one.user)]} done={look.refresh}><p>{one.user} may no longer enter {one.vhost}.</p></Ask> },
        ]}
      />
      <PermissionForm open={adding()} close={() => setAdding(false)} vhost={props.vhost} done={look.refresh} action={putPermission} />
    </Panel>
  );
}
