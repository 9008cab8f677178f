// Policies and operator policies.
import { createSignal, For, Show } from "solid-js";
import { deletePolicy, putPolicy } from "../lib/actions";
import { exact, plural } from "../lib/format";
import { seg, send, type Action } from "../lib/http";
import { poll } from "../lib/poll";
import { query, setQuery, vhost } from "../lib/route";
import { isAdministrator, isPolicymaker } from "../lib/session";
import type { Policy } from "../lib/types";
import { Args, Badge, Button, Code, Empty, literal, Num } from "../ui/bits";
import { Ask, Do } from "../ui/dialog";
import { Entries, entriesValue, Select, Text, toEntries, wrongEntry, type Entry } from "../ui/fields";
import { List, type Column } from "../ui/list";
import { VhostField } from "../ui/vhost-field";

const KNOWN: Record<string, Entry["type"]> = {
  "message-ttl": "number", expires: "number", "max-length": "number", "max-length-bytes": "number", overflow: "text", "dead-letter-exchange": "text",
  "dead-letter-routing-key": "text", "delivery-limit": "number", "consumer-timeout": "number", "max-age": "text", "stream-max-segment-size-bytes": "number", "alternate-exchange": "text",
};
const APPLY_TO: [string, string][] = [["queues", "queues of all types"], ["classic_queues", "classic queues"], ["quorum_queues", "quorum queues"], ["streams", "streams"], ["exchanges", "exchanges"], ["all", "queues and exchanges"]];

export function Policies() {
  const operator = () => query("kind") === "operator";
  const [form, setForm] = createSignal<Policy | "new">();
  const [version, setVersion] = createSignal(0);
  const changed = () => setVersion(version() + 1);
  const may = () => (operator() ? isAdministrator() : isPolicymaker());
  const columns: Column<Policy>[] = [
    { id: "name", label: "Name", needs: [], sort: "name", cell: (one) => <Show when={may()} fallback={<b>{one.name}</b>}><button type="button" class="link" onClick={() => setForm(one)}>{one.name}</button></Show> },
    { id: "vhost", label: "Vhost", needs: ["vhost"], sort: "vhost", cell: (one) => one.vhost },
    { id: "pattern", label: "Pattern", needs: ["pattern"], sort: "pattern", cell: (one) => <code>{one.pattern}</code> },
    { id: "apply", label: "Applies to", needs: ["apply-to"], sort: "apply-to", cell: (one) => <Badge>{one["apply-to"]}</Badge> },
    { id: "priority", label: "Priority", needs: ["priority"], sort: "priority", number: true, cell: (one) => <Num of={one.priority} /> },
    { id: "definition", label: "Definition", needs: ["definition"], cell: (one) => <Args of={one.definition} /> },
    {
      id: "act", label: "", needs: [], cell: (one) => (
        <Show when={may()}>
          <Ask label="Delete…" kind="quiet" title={`Delete ${one.name}`} verb="Delete" danger done={changed} told={`${one.name} is deleted.`} actions={[deletePolicy(operator(), one.vhost, one.name)]}>
            <p>It stops applying at once. Queues it kept short may grow.</p>
          </Ask>
        </Show>
      ),
    },
  ];
  const path = () => {
    const kind = operator() ? "operator-policies" : "policies";
    return vhost() === undefined ? `/api/${kind}` : `/api/${kind}/${seg(vhost()!)}`;
  };
  return (
    <>
      <header class="page-head">
        <h1>{operator() ? "Operator policies" : "Policies"}</h1>
        <Show when={may()}><Button kind="main" data-key="add" onClick={() => setForm("new")}>Add a policy</Button></Show>
      </header>
      <nav class="tabs" aria-label="Kinds of policies">
        <button type="button" aria-current={operator() ? undefined : "page"} onClick={() => setQuery({ kind: undefined, page: undefined }, false)}>Policies</button>
        <button type="button" aria-current={operator() ? "page" : undefined} onClick={() => setQuery({ kind: "operator", page: undefined }, false)}>Operator policies</button>
      </nav>
      <Show when={`${path()} ${version()}`} keyed>
        <List<Policy>
          name="policies" path={path()} needs={["name", "vhost", "pattern", "apply-to", "priority", "definition"]} columns={columns} row={(one) => `${one.vhost} ${one.name}`}
          empty={<Empty title="There are no policies"><p>A policy gives queues and exchanges settings by their names, and can be changed at any time. For example a limit for all queues whose names begin with “tmp.”:</p><Code text={`pattern ^tmp\\.   applies to queues   definition max-length: 10000`} /></Empty>}
        />
      </Show>
      <Show when={form()} keyed>{(which) => <PolicyForm operator={operator()} policy={which === "new" ? undefined : which} close={() => setForm(undefined)} done={changed} />}</Show>
    </>
  );
}

function PolicyForm(props: { operator: boolean; policy?: Policy; close: () => void; done: () => void }) {
  const [where, setWhere] = createSignal(props.policy?.vhost ?? vhost() ?? "/");
  const [name, setName] = createSignal(props.policy?.name ?? "");
  const [pattern, setPattern] = createSignal(props.policy?.pattern ?? "");
  const [apply, setApply] = createSignal(props.policy?.["apply-to"] ?? "queues");
  const [priority, setPriority] = createSignal(String(props.policy?.priority ?? 0));
  const [entries, setEntries] = createSignal<Entry[]>(props.policy ? toEntries({ ...props.policy.definition }) : [{ key: "max-length", type: "number", value: "" }]);
  const draft = (): Policy | undefined => {
    const definition = entriesValue(entries());
    if ("wrong" in definition || name() === "" || Object.keys(definition.value).length === 0) return undefined;
    return { vhost: where(), name: name(), pattern: pattern(), "apply-to": apply(), priority: Math.trunc(Number(priority())) || 0, definition: definition.value };
  };
  const actions = (): Action[] => {
    const one = draft();
    if (!one) return [];
    const { vhost, name, ...body } = one;
    return [putPolicy(props.operator, vhost, name, body)];
  };
  return (
    <Do title={props.policy ? `Change ${props.policy.name}` : props.operator ? "Add an operator policy" : "Add a policy"} open wide close={props.close} actions={actions()} verb={props.policy ? "Change" : "Add"} done={props.done} told="The policy applies now.">
      <div class="two">
        <Show when={!props.policy}><Text label="Name" value={name()} set={setName} autofocus required /></Show>
        <Show when={!props.policy}><VhostField value={where()} set={setWhere} /></Show>
      </div>
      <div class="three">
        <Text label="Pattern" value={pattern()} set={setPattern} class="mono" placeholder="^orders\." hint="A regular expression for names." />
        <Select label="Applies to" value={apply()} set={setApply} options={APPLY_TO} />
        <Text label="Priority" type="number" value={priority()} set={setPriority} hint="The highest priority applies." />
      </div>
      <Entries label="Definition" entries={entries()} set={setEntries} known={KNOWN} />
      <Show when={wrongEntry(entries())}>{(wrong) => <p class="wrong">{wrong()}</p>}</Show>
      <Show when={draft()}>{(policy) => <Preview operator={props.operator} policy={policy()} />}</Show>
    </Do>
  );
}

interface Changes {
  matching_queues: number;
  changed_queues: number;
  queues: { name: string; policy_before: string | null; policy_after: string | null; before: Record<string, unknown>; after: Record<string, unknown> }[];
  changed_exchanges: number;
  exchanges: { name: string; policy_before: string | null; policy_after: string | null }[];
}

/** What the policy would change, as the broker works it out. */
function Preview(props: { operator: boolean; policy: Policy }) {
  const asked = () => {
    const { vhost, ...body } = props.policy;
    return { method: "POST" as const, path: `/api/${props.operator ? "operator-policy" : "policy"}-preview/${seg(vhost)}`, body };
  };
  const look = poll(() => JSON.stringify(asked()), (action, signal) => send<Changes>(JSON.parse(action) as Action, { signal }), { once: true });
  const changed = (one: Changes["queues"][number]) => {
    const names = [...new Set([...Object.keys(one.before), ...Object.keys(one.after)])];
    const differs = names.filter((name) => JSON.stringify(one.before[name]) !== JSON.stringify(one.after[name]));
    return differs.map((name) => `${name}: ${literal(one.before[name] ?? "none")} → ${literal(one.after[name] ?? "none")}`).join(", ");
  };
  return (
    <div class="matching">
      <Show when={look.error()}>{(error) => <p class="wrong">{error().message}</p>}</Show>
      <Show when={!look.error() && look.data()}>
        {(data) => (
          <>
            <p class="muted">
              {plural(data().matching_queues, "queue")} {data().matching_queues === 1 ? "has" : "have"} such a name; {exact(data().changed_queues)} would change{data().changed_exchanges > 0 ? `, and ${plural(data().changed_exchanges, "exchange")}` : ""}.
            </p>
            <ul class="preview">
              <For each={data().queues} fallback={<li class="muted">no queue changes now; the policy applies to queues declared later</li>}>
                {(one) => <li><b>{one.name}</b> <small>{changed(one)}{one.policy_before && one.policy_before !== one.policy_after ? `; instead of ${one.policy_before}` : ""}</small></li>}
              </For>
              <For each={data().exchanges}>{(one) => <li><b>{one.name}</b> <small>exchange</small></li>}</For>
            </ul>
          </>
        )}
      </Show>
    </div>
  );
}
