// Why a queue behaves as it does: what its arguments, its policy and its operator policy say, and which of them counts.
import { Show } from "solid-js";
import { get, seg } from "../lib/http";
import { poll } from "../lib/poll";
import { to } from "../lib/route";
import type { Policy, Queue } from "../lib/types";
import { Badge, Link, literal, Panel } from "../ui/bits";
import { Table } from "../ui/table";

interface Line {
  name: string;
  value: string;
  origin: string;
  instead: string;
}

export function Effective(props: { queue: Queue }) {
  const policy = ask(() => props.queue, "policies", () => props.queue.policy);
  const operator = ask(() => props.queue, "operator-policies", () => props.queue.operator_policy);
  const lines = () => explain(props.queue, policy.data()?.definition, operator.data()?.definition);
  return (
    <Panel
      title="Effective settings" flush
      aside={
        <span class="badges">
          <Show when={props.queue.policy}><Link to={to(["policies"], { name: props.queue.policy! })}>policy {props.queue.policy}</Link></Show>
          <Show when={props.queue.operator_policy}><Link to={to(["policies"], { kind: "operator", name: props.queue.operator_policy! })}>operator policy {props.queue.operator_policy}</Link></Show>
        </span>
      }
    >
      <Table
        label="Effective settings" rows={lines()} empty={<p>No limit, no time to live, no dead letters: neither its arguments nor a policy sets any.</p>}
        columns={[
          { label: "Setting", cell: (line) => <span class="mono">{line.name}</span> },
          { label: "Value", cell: (line) => <b class="mono">{line.value}</b> },
          { label: "Set by", cell: (line) => <Badge tone={line.origin === "argument" ? "plain" : "info"}>{line.origin}</Badge> },
          { label: "Overrides", cell: (line) => <span class="muted">{line.instead}</span> },
        ]}
      />
    </Panel>
  );
}

/** A policy by its name; nothing where the user may not see it. */
function ask(queue: () => Queue, kind: string, name: () => string | null | undefined) {
  const path = () => (name() ? `/api/${kind}/${seg(queue().vhost)}/${seg(name()!)}` : undefined);
  return poll(path, (path, signal) => get<Policy>(path, { signal }).catch(() => undefined), { slower: 12 });
}

const OWN = ["x-queue-type", "x-max-priority"];

export function explain(queue: Queue, policy: Record<string, unknown> = {}, operator: Record<string, unknown> = {}): Line[] {
  const effective = (Array.isArray(queue.effective_policy_definition) ? {} : queue.effective_policy_definition) ?? {};
  const args = Object.fromEntries(Object.entries(queue.arguments ?? {}).filter(([name]) => !OWN.includes(name)).map(([name, value]) => [name.replace(/^x-/, ""), value]));
  const names = [...new Set([...Object.keys(args), ...Object.keys(effective)])].sort();
  return names.map((name) => {
    const said: [string, unknown][] = [];
    if (name in args) said.push(["argument", args[name]]);
    if (name in operator) said.push(["operator policy", operator[name]]);
    if (name in policy) said.push(["policy", policy[name]]);
    if (!(name in operator) && !(name in policy) && name in effective) said.push(["policy", effective[name]]);
    // An operator's numbers are upper bounds: the least of what is said counts.
    const least = name in operator && said.every(([, value]) => typeof value === "number");
    const counts = least ? said.reduce((one, other) => (Number(other[1]) < Number(one[1]) ? other : one)) : said[0]!;
    const others = said.filter((one) => one !== counts).map(([origin, value]) => `${literal(value)} (${origin})`);
    return { name, value: literal(counts[1]), origin: counts[0], instead: others.join(", ") };
  });
}
