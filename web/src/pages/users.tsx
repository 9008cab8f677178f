// Users.
import { createSignal, For, Show } from "solid-js";
import { deleteUser, putUser } from "../lib/actions";
import { plural } from "../lib/format";
import type { Action } from "../lib/http";
import { go, hash, to } from "../lib/route";
import { user as self } from "../lib/session";
import type { UserRow } from "../lib/types";
import { Badge, Button, Empty, Link } from "../ui/bits";
import { Ask, Do } from "../ui/dialog";
import { Check, Text } from "../ui/fields";
import { List, type Column } from "../ui/list";

const COLUMNS: Column<UserRow>[] = [
  { id: "name", label: "Name", needs: [], sort: "name", cell: (one) => <Link to={to(["users", one.name])}>{one.name}</Link> },
  { id: "tags", label: "Tags", needs: ["tags"], cell: (one) => <span class="badges"><For each={one.tags ?? []} fallback={<span class="muted" title="It may not use this page">none</span>}>{(tag) => <Badge tone={tag === "administrator" ? "info" : "plain"}>{tag}</Badge>}</For></span> },
  { id: "limits", label: "Limits", needs: ["limits"], cell: (one) => Object.entries(Array.isArray(one.limits) ? {} : (one.limits ?? {})).map(([name, value]) => `${name}: ${value}`).join(", ") },
  { id: "hash", label: "Password kept as", needs: ["hashing_algorithm"], extra: true, cell: (one) => one.hashing_algorithm ?? "" },
];

export const TAGS: [string, string][] = [
  ["management", "see and change its own things here"],
  ["policymaker", "make policies in its vhosts"],
  ["monitoring", "see everybody's connections, and the node"],
  ["administrator", "everything"],
];

export function Users() {
  const [adding, setAdding] = createSignal(false);
  return (
    <>
      <header class="page-head">
        <h1>Users</h1>
        <Button kind="main" data-key="add" onClick={() => setAdding(true)}>Add a user</Button>
      </header>
      <List<UserRow>
        name="users" path="/api/users" everywhere needs={["name"]} columns={COLUMNS} row={(one) => one.name} empty={<Empty title="There are no users">No client can log in.</Empty>}
        bulk={(rows, done) => {
          const others = () => rows.filter((one) => one.name !== self()?.name);
          return (
            <Ask label="Delete…" title={`Delete ${plural(others().length, "user")}`} verb="Delete" danger done={done} told="Deleted." actions={others().map((one) => deleteUser(one.name))}>
              <p>Their permissions go with them, and their connections are closed.{others().length < rows.length ? " You yourself stay." : ""}</p>
              <ul class="preview"><For each={others()}>{(one) => <li>{one.name}</li>}</For></ul>
            </Ask>
          );
        }}
      />
      <UserForm open={adding()} close={() => setAdding(false)} />
    </>
  );
}

export function UserForm(props: { open: boolean; close: () => void; user?: UserRow; done?: () => void }) {
  const [name, setName] = createSignal(props.user?.name ?? "");
  const [password, setPassword] = createSignal("");
  const [keep, setKeep] = createSignal(false);
  const [tags, setTags] = createSignal<string[]>(props.user?.tags ?? []);
  const set = (tag: string, on: boolean) => setTags(on ? [...tags(), tag] : tags().filter((one) => one !== tag));
  const actions = (): Action[] => {
    if (name() === "" || (!keep() && password() === "")) return [];
    // The command never shows the password that is typed.
    return [putUser(name(), { ...(keep() ? { password_hash: "" } : { password: password() }), tags: tags().join(",") })];
  };
  return (
    <Do
      title={props.user ? `Change ${props.user.name}` : "Add a user"} open={props.open} close={props.close} actions={actions()} verb={props.user ? "Change" : "Add"} told={`${name()} is ${props.user ? "changed" : "there"}.`} secret={password()}
      done={(answers) => (props.done ? props.done() : answers.length > 0 && go(hash(["users", name()])))}
    >
      <Show when={!props.user}><Text label="Name" value={name()} set={setName} autofocus required /></Show>
      <Text label={props.user ? "New password" : "Password"} type="password" autocomplete="new-password" value={password()} set={setPassword} disabled={keep()} />
      <Check checked={keep()} set={setKeep}>no password: it logs in with a certificate only</Check>
      <fieldset class="plain-set">
        <legend>May, over HTTP and here</legend>
        <For each={TAGS}>{([tag, what]) => <Check checked={tags().includes(tag)} set={(on) => set(tag, on)}><b>{tag}</b>: {what}</Check>}</For>
      </fieldset>
    </Do>
  );
}
