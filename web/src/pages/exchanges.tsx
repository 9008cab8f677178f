// Exchanges.
import { createSignal, For, Show } from "solid-js";
import { deleteExchange, putExchange } from "../lib/actions";
import { plural } from "../lib/format";
import type { Action } from "../lib/http";
import { go, to, vhost } from "../lib/route";
import { rateOf, type Exchange } from "../lib/types";
import { Args, Badge, Button, Code, Empty, Link, Num } from "../ui/bits";
import { Ask, Do } from "../ui/dialog";
import { Check, Entries, entriesValue, Select, Text, type Entry } from "../ui/fields";
import { List, type Column } from "../ui/list";
import { VhostField } from "../ui/vhost-field";

const TYPES = ["direct", "topic", "fanout", "headers", "x-consistent-hash", "x-random", "x-local-random", "x-modulus-hash", "x-recent-history", "x-delayed-message"];
const ARGUMENTS: Record<string, Entry["type"]> = { "alternate-exchange": "text", "x-delayed-type": "text", "hash-header": "text", "hash-property": "text", "x-recent-history-length": "number" };

export const exchangeName = (name: string): string => name || "(default exchange)";

const COLUMNS: Column<Exchange>[] = [
  { id: "name", label: "Name", needs: [], sort: "name", cell: (one) => <Link to={to(["exchanges", one.vhost, one.name])}>{exchangeName(one.name)}</Link> },
  { id: "vhost", label: "Vhost", needs: [], sort: "vhost", cell: (one) => one.vhost },
  { id: "type", label: "Type", needs: ["type", "durable", "auto_delete", "internal"], sort: "type", cell: (one) => <ExchangeFeatures exchange={one} /> },
  { id: "policy", label: "Policy", needs: ["policy"], sort: "policy", cell: (one) => <Show when={one.policy}><Link to={to(["policies"], { name: one.policy })}>{one.policy}</Link></Show> },
  { id: "in", label: "In", hint: "Published to it per second", needs: ["message_stats.publish_in_details.rate"], sort: "message_stats.publish_in_details.rate", number: true, cell: (one) => <Num of={rateOf(one.message_stats, "publish_in")} as="rate" /> },
  { id: "out", label: "Out", hint: "Routed from it to queues per second", needs: ["message_stats.publish_out_details.rate"], sort: "message_stats.publish_out_details.rate", number: true, cell: (one) => <Num of={rateOf(one.message_stats, "publish_out")} as="rate" /> },
  { id: "arguments", label: "Arguments", needs: ["arguments"], extra: true, cell: (one) => <Args of={one.arguments} /> },
];

export const ExchangeFeatures = (props: { exchange: Exchange }) => (
  <span class="badges">
    <Badge>{props.exchange.type}</Badge>
    <Show when={!props.exchange.durable}><Badge title="Deleted on restart (not durable)">transient</Badge></Show>
    <Show when={props.exchange.auto_delete}><Badge title="Deleted with its last binding">auto-delete</Badge></Show>
    <Show when={props.exchange.internal}><Badge title="Only other exchanges may publish to it">internal</Badge></Show>
  </span>
);

const isBuiltIn = (one: Exchange) => one.name === "" || one.name.startsWith("amq.");

export function Exchanges() {
  const [adding, setAdding] = createSignal(false);
  return (
    <>
      <header class="page-head">
        <h1>Exchanges</h1>
        <Button kind="main" data-key="add" onClick={() => setAdding(true)}>Add an exchange</Button>
      </header>
      <List<Exchange>
        name="exchanges" path="/api/exchanges" needs={["name", "vhost"]} columns={COLUMNS} row={(one) => `${one.vhost} ${one.name}`}
        empty={<Empty title="There are no exchanges"><p>With pika:</p><Code text={`channel.exchange_declare("orders", "topic", durable=True)`} /></Empty>}
        bulk={(rows, done) => <Bulk rows={rows.filter((one) => !isBuiltIn(one))} done={done} />}
      />
      <AddExchange open={adding()} close={() => setAdding(false)} />
    </>
  );
}

const Bulk = (props: { rows: Exchange[]; done: () => void }) => (
  <Ask label="Delete…" title={`Delete ${plural(props.rows.length, "exchange")}`} verb="Delete" danger done={props.done} told="Deleted." actions={props.rows.map((one) => deleteExchange(one.vhost, one.name))}>
    <p>{props.rows.length === 0 ? "Those that every vhost has can't be deleted." : "Their bindings go with them. No message is lost, but what is published to them afterwards closes its channel."}</p>
    <ul class="preview"><For each={props.rows.slice(0, 100)}>{(one) => <li><span class="mono">{one.name}</span> <small>{one.vhost}</small></li>}</For></ul>
  </Ask>
);

function AddExchange(props: { open: boolean; close: () => void }) {
  const [where, setWhere] = createSignal(vhost() ?? "/");
  const [name, setName] = createSignal("");
  const [type, setType] = createSignal("topic");
  const [durable, setDurable] = createSignal(true);
  const [autoDelete, setAutoDelete] = createSignal(false);
  const [internal, setInternal] = createSignal(false);
  const [entries, setEntries] = createSignal<Entry[]>([]);
  const actions = (): Action[] => {
    const args = entriesValue(entries());
    if ("wrong" in args || name() === "") return [];
    return [putExchange(where(), name(), { type: type(), durable: durable(), auto_delete: autoDelete(), internal: internal(), arguments: args.value })];
  };
  return (
    <Do title="Add an exchange" open={props.open} close={props.close} actions={actions()} verb="Add" told={`${name()} is there.`} done={(answers) => answers.length > 0 && go(to(["exchanges", where(), name()]))}>
      <Text label="Name" value={name()} set={setName} autofocus required />
      <div class="two">
        <VhostField value={where()} set={setWhere} />
        <Select label="Type" value={type()} set={setType} options={TYPES} />
      </div>
      <Check checked={durable()} set={setDurable}>durable: it survives a restart</Check>
      <Check checked={autoDelete()} set={setAutoDelete}>deleted with its last binding</Check>
      <Check checked={internal()} set={setInternal}>internal: only other exchanges publish to it</Check>
      <Entries label="Arguments" entries={entries()} set={setEntries} known={ARGUMENTS} />
    </Do>
  );
}
