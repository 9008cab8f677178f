// Bindings of a queue or an exchange: what leads there, and new ones.
import { createSignal, Show } from "solid-js";
import { bind, unbind } from "../lib/actions";
import { exchangeSeg, get, seg, type Action } from "../lib/http";
import { poll } from "../lib/poll";
import { to } from "../lib/route";
import type { Binding, Page } from "../lib/types";
import { Args, Button, Link, Panel, Problem } from "../ui/bits";
import { Ask, Do } from "../ui/dialog";
import { Entries, entriesValue, Select, Text, type Entry } from "../ui/fields";
import { Table } from "../ui/table";

const SHOWN = 200;

interface Props {
  vhost: string;
  queue?: string;
  exchange?: string;
  /** Of an exchange: from it, or to it. */
  side?: "source" | "destination";
}

export function Bindings(props: Props) {
  const [adding, setAdding] = createSignal(false);
  const path = () =>
    props.queue !== undefined ? `/api/queues/${seg(props.vhost)}/${seg(props.queue)}/bindings` : `/api/exchanges/${seg(props.vhost)}/${exchangeSeg(props.exchange ?? "")}/bindings/${props.side}`;
  const look = poll(() => `${path()}?page=1&page_size=${SHOWN}`, async (path, signal) => {
    const answer = await get<Page<Binding> | Binding[]>(path, { signal });
    return Array.isArray(answer) ? { items: answer.slice(0, SHOWN), total_count: answer.length } : answer;
  }, { slower: 2 });
  const outgoing = () => props.side === "source";
  const title = () => (props.queue !== undefined ? "What leads here" : outgoing() ? "Where it leads" : "What leads here");
  return (
    <Panel
      title={title()} flush
      aside={<Show when={!(props.exchange === "")}><Button data-key="add" onClick={() => setAdding(true)}>Add a binding</Button></Show>}
    >
      <Show when={look.error()}><Problem error={look.error()!} retry={look.refresh} /></Show>
      <Show when={look.data()}>
        {(data) => (
          <>
            <Table
              label={title()} rows={data().items} empty={<p>No bindings.</p>}
              columns={[
                outgoing()
                  ? { label: "To", cell: (one) => <Link to={to([`${one.destination_type}s`, one.vhost, one.destination])}>{one.destination}</Link> }
                  : { label: "From", cell: (one) => <Link to={to(["exchanges", one.vhost, one.source])}>{one.source || "(default exchange)"}</Link> },
                { label: "Kind", cell: (one) => (outgoing() ? one.destination_type : "exchange") },
                { label: "Routing key", cell: (one) => <span class="mono">{one.routing_key || <span class="muted">empty</span>}</span> },
                { label: "Arguments", cell: (one) => <Args of={one.arguments} /> },
                {
                  label: "", cell: (one) => (
                    <Show when={one.source !== ""} fallback={<span class="muted">always there</span>}>
                      <Ask label="Remove…" kind="quiet" title="Remove this binding" verb="Remove" danger actions={[unbind(one)]} done={look.refresh} told="The binding is removed.">
                        <p>Messages with the key <b class="mono">{one.routing_key || "(empty)"}</b> no longer go from <b>{one.source}</b> to <b>{one.destination}</b>. Messages that are there stay.</p>
                      </Ask>
                    </Show>
                  ),
                },
              ]}
            />
            <Show when={data().total_count > SHOWN}>
              <p class="muted pad">The first {SHOWN} of {data().total_count}.</p>
            </Show>
          </>
        )}
      </Show>
      <AddBinding {...props} open={adding()} close={() => setAdding(false)} done={look.refresh} />
    </Panel>
  );
}

function AddBinding(props: Props & { open: boolean; close: () => void; done: () => void }) {
  const [other, setOther] = createSignal("");
  const [type, setType] = createSignal("queue");
  const [key, setKey] = createSignal("");
  const [entries, setEntries] = createSignal<Entry[]>([]);
  const outgoing = () => props.side === "source";
  const actions = (): Action[] => {
    const args = entriesValue(entries());
    if (other() === "" || "wrong" in args) return [];
    const body = { routing_key: key(), arguments: args.value };
    if (outgoing()) return [bind(props.vhost, props.exchange ?? "", type(), other(), body)];
    if (props.queue !== undefined) return [bind(props.vhost, other(), "queue", props.queue, body)];
    return [bind(props.vhost, other(), "exchange", props.exchange ?? "", body)];
  };
  return (
    <Do title="Add a binding" open={props.open} close={props.close} actions={actions()} verb="Add" done={props.done} told="The binding is there.">
      <Text label={outgoing() ? "To" : "From exchange"} value={other()} set={setOther} autofocus required />
      <Show when={outgoing()}>
        <Select label="Which is" value={type()} set={setType} options={["queue", "exchange"]} />
      </Show>
      <Text label="Routing key" value={key()} set={setKey} hint="In topic exchanges, * matches one word and # any number of words." />
      <Entries label="Arguments" entries={entries()} set={setEntries} known={{ "x-match": "text" }} />
    </Do>
  );
}
