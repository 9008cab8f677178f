// One user: tags, password, permissions, limits.
import { createSignal, For, Show } from "solid-js";
import { checkAccess, deletePermission, deleteTopicPermission, deleteUser, putPermission, putTopicPermission } from "../lib/actions";
import { get, seg, send } from "../lib/http";
import { poll } from "../lib/poll";
import { go, hash, place, to } from "../lib/route";
import { user as self } from "../lib/session";
import type { Permission, TopicPermission, UserRow } from "../lib/types";
import { Badge, Button, Facts, Link, Panel, Problem } from "../ui/bits";
import { AsCommand, Ask, Do } from "../ui/dialog";
import { Select, Text } from "../ui/fields";
import { Table } from "../ui/table";
import { VhostField } from "../ui/vhost-field";
import { PermissionForm } from "./permission-form";
import { UserForm } from "./users";

const pattern = (text: string) => <code>{text || <span class="muted">nothing</span>}</code>;

export function UserPage() {
  const name = place().path[1] ?? "";
  const [changing, setChanging] = createSignal(false);
  const look = poll(() => `/api/users/${seg(name)}`, (path, signal) => get<UserRow>(path, { signal }), { slower: 3 });
  return (
    <Show when={look.data()} fallback={<Show when={look.error()} fallback={<div class="loading">Loading…</div>}><p class="crumbs"><Link to={to(["users"])}>Users</Link></p><h1>{name}</h1><Problem error={look.error()!} /></Show>}>
      {(one) => (
        <>
          <header class="page-head">
            <div>
              <p class="crumbs"><Link to={to(["users"])}>Users</Link></p>
              <h1>{name}</h1>
              <span class="badges"><For each={one().tags}>{(tag) => <Badge tone={tag === "administrator" ? "info" : "plain"}>{tag}</Badge>}</For></span>
            </div>
            <div class="actions">
              <Button onClick={() => setChanging(true)}>Change…</Button>
              <Ask label="Delete…" title={`Delete ${name}`} verb="Delete" danger disabled={name === self()?.name} why={name === self()?.name ? "That is you" : undefined} actions={[deleteUser(name)]} told={`${name} is deleted.`} done={(answers) => answers.length > 0 && go(hash(["users"]))}>
                <p>Its permissions go with it, and its connections are closed.</p>
              </Ask>
            </div>
          </header>
          <Show when={look.error()}>{(error) => <Problem error={error()} retry={look.refresh} />}</Show>
          <Panel title="Login"><Facts of={[["Password kept as", one().hashing_algorithm ?? <span class="muted">not known here</span>], ["Limits", <Link to={to(["limits"])}>on their page</Link>]]} /></Panel>
          <Permissions user={name} />
          <TopicPermissions user={name} />
          <AccessCheck user={name} />
          <UserForm open={changing()} close={() => setChanging(false)} user={one()} done={look.refresh} />
        </>
      )}
    </Show>
  );
}

function Permissions(props: { user: string }) {
  const [adding, setAdding] = createSignal(false);
  const look = poll(() => `/api/users/${seg(props.user)}/permissions`, (path, signal) => get<Permission[]>(path, { signal }), { slower: 3 });
  return (
    <Panel title="Where it may go" flush aside={<Button onClick={() => setAdding(true)}>Set permissions</Button>}>
      <Table
        label="Permissions" rows={look.data() ?? []} empty={<p>No access to any vhost.</p>}
        columns={[
          { label: "Vhost", cell: (one) => <Link to={hash(["vhosts", one.vhost])}>{one.vhost}</Link> },
          { label: "Configure", cell: (one) => pattern(one.configure) },
          { label: "Write", cell: (one) => pattern(one.write) },
          { label: "Read", cell: (one) => pattern(one.read) },
          { label: "", cell: (one) => <Ask label="Clear…" kind="quiet" title={`Clear the permissions in ${one.vhost}`} verb="Clear" danger actions={[deletePermission(one.vhost, one.user)]} done={look.refresh}><p>{one.user} may no longer enter {one.vhost}.</p></Ask> },
        ]}
      />
      <PermissionForm open={adding()} close={() => setAdding(false)} user={props.user} done={look.refresh} action={putPermission} />
    </Panel>
  );
}

function TopicPermissions(props: { user: string }) {
  const [adding, setAdding] = createSignal(false);
  const [vhost, setVhost] = createSignal("/");
  const [exchange, setExchange] = createSignal("amq.topic");
  const [write, setWrite] = createSignal(".*");
  const [read, setRead] = createSignal(".*");
  const look = poll(() => `/api/users/${seg(props.user)}/topic-permissions`, (path, signal) => get<TopicPermission[]>(path, { signal }), { slower: 3 });
  return (
    <Panel title="Which routing keys of topic exchanges" flush aside={<Button onClick={() => setAdding(true)}>Set topic permissions</Button>}>
      <Table
        label="Topic permissions" rows={look.data() ?? []} empty={<p>All, wherever it has write or read permission.</p>}
        columns={[
          { label: "Vhost", cell: (one) => one.vhost },
          { label: "Exchange", cell: (one) => one.exchange },
          { label: "Write", cell: (one) => pattern(one.write) },
          { label: "Read", cell: (one) => pattern(one.read) },
          { label: "", cell: (one) => <Ask label="Clear…" kind="quiet" title="Clear the topic permissions" verb="Clear" danger actions={[deleteTopicPermission(one.vhost, one.user, one.exchange)]} done={look.refresh}><p>Then every routing key of {one.exchange} is allowed again.</p></Ask> },
        ]}
      />
      <Do title="Set topic permissions" open={adding()} close={() => setAdding(false)} verb="Set" done={look.refresh} actions={exchange() ? [putTopicPermission(vhost(), props.user, { exchange: exchange(), write: write(), read: read() })] : []}>
        <VhostField value={vhost()} set={setVhost} />
        <Text label="Exchange" value={exchange()} set={setExchange} />
        <Text label="Routing keys that it may publish with" value={write()} set={setWrite} class="mono" hint="A regular expression." />
        <Text label="Routing keys that it may bind with" value={read()} set={setRead} class="mono" />
      </Do>
    </Panel>
  );
}

/** Asks the code that decides, as if the user tried. */
function AccessCheck(props: { user: string }) {
  const [vhost, setVhost] = createSignal("/");
  const [right, setRight] = createSignal("write");
  const [resource, setResource] = createSignal("queue");
  const [name, setName] = createSignal("");
  const [key, setKey] = createSignal("");
  const [answer, setAnswer] = createSignal<{ allowed: boolean; because: string }>();
  const action = () => checkAccess({ user: props.user, vhost: vhost(), right: right(), resource: resource(), name: name(), ...(key() && { routing_key: key() }) });
  const ask = async (event: Event) => {
    event.preventDefault();
    const answered = await send<{ allowed: boolean; because: string }>(action()).catch((error: Error) => ({ allowed: false, because: error.message }));
    setAnswer(answered);
  };
  return (
    <Panel title={`May ${props.user} do that?`}>
      <form class="publish-main" onSubmit={ask}>
        <div class="inline">
          <VhostField value={vhost()} set={setVhost} />
          <Select label="Right" value={right()} set={setRight} options={["configure", "write", "read"]} />
          <Select label="Resource" value={resource()} set={setResource} options={["queue", "exchange"]} />
          <Text label="Resource name" value={name()} set={setName} />
          <Show when={resource() === "exchange"}><Text label="Routing key" value={key()} set={setKey} /></Show>
          <button type="submit" class="button main">Ask</button>
        </div>
        <div role="status"><Show when={answer()}>{(answer) => <p><Badge tone={answer().allowed ? "good" : "bad"}>{answer().allowed ? "yes" : "no"}</Badge> {answer().because}</p>}</Show></div>
        <AsCommand actions={[action()]} />
      </form>
    </Panel>
  );
}
