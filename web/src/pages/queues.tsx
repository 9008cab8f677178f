// Queues: a list, what can be done with many of them, and a form for a new one.
import { createSignal, For, Show } from "solid-js";
import { deleteQueue, pauseQueue, purgeQueue, putQueue } from "../lib/actions";
import * as format from "../lib/format";
import type { Action } from "../lib/http";
import { go, to, vhost } from "../lib/route";
import { rateOf, type Queue } from "../lib/types";
import { Args, Badge, Button, Code, Empty, Link, Num, State } from "../ui/bits";
import { Ask, Do } from "../ui/dialog";
import { Check, Entries, entriesValue, Select, Text, wrongEntry, type Entry } from "../ui/fields";
import { List, type Column } from "../ui/list";
import { VhostField } from "../ui/vhost-field";

export const QUEUE_ARGUMENTS: Record<string, Entry["type"]> = {
  "x-message-ttl": "number", "x-expires": "number", "x-max-length": "number", "x-max-length-bytes": "number", "x-overflow": "text",
  "x-dead-letter-exchange": "text", "x-dead-letter-routing-key": "text", "x-max-priority": "number", "x-single-active-consumer": "yes/no",
  "x-delivery-limit": "number", "x-consumer-timeout": "number", "x-max-age": "text", "x-stream-max-segment-size-bytes": "number",
  "x-message-deduplication": "yes/no",
};

export const queueAddress = (queue: { vhost: string; name: string; type?: string }) => to([queue.type === "stream" ? "streams" : "queues", queue.vhost, queue.name]);

const COLUMNS: Column<Queue>[] = [
  { id: "name", label: "Name", needs: ["type"], sort: "name", cell: (queue) => <Link to={queueAddress(queue)}>{queue.name}</Link> },
  { id: "vhost", label: "Vhost", needs: [], sort: "vhost", cell: (queue) => queue.vhost },
  { id: "type", label: "Type", needs: ["type", "durable", "exclusive", "auto_delete"], sort: "type", cell: (queue) => <Features queue={queue} /> },
  { id: "policy", label: "Policy", needs: ["policy"], sort: "policy", cell: (queue) => <Show when={queue.policy}><Link to={to(["policies"], { name: queue.policy! })}>{queue.policy}</Link></Show> },
  { id: "state", label: "State", needs: ["state"], sort: "state", extra: true, cell: (queue) => <State of={queue.state} /> },
  { id: "ready", label: "Waiting", needs: ["messages_ready"], sort: "messages_ready", number: true, cell: (queue) => <Num of={queue.messages_ready} /> },
  { id: "unacked", label: "Unacked", hint: "Delivered and not acknowledged yet", needs: ["messages_unacknowledged"], sort: "messages_unacknowledged", number: true, cell: (queue) => <Num of={queue.messages_unacknowledged} /> },
  { id: "delayed", label: "Delayed", hint: "Came back, and wait for another try", needs: ["messages_delayed"], sort: "messages_delayed", number: true, extra: true, cell: (queue) => <Show when={queue.messages_delayed !== undefined}><Num of={queue.messages_delayed} /></Show> },
  { id: "messages", label: "Total", needs: ["messages"], sort: "messages", number: true, extra: true, cell: (queue) => <Num of={queue.messages} /> },
  { id: "consumers", label: "Consumers", needs: ["consumers"], sort: "consumers", number: true, cell: (queue) => <Num of={queue.consumers} /> },
  { id: "in", label: "In", hint: "Published to it per second", needs: ["message_stats.publish_details.rate"], sort: "message_stats.publish_details.rate", number: true, cell: (queue) => <Num of={rateOf(queue.message_stats, "publish")} as="rate" /> },
  { id: "out", label: "Out", hint: "Delivered or got per second", needs: ["message_stats.deliver_get_details.rate"], sort: "message_stats.deliver_get_details.rate", number: true, cell: (queue) => <Num of={rateOf(queue.message_stats, "deliver_get")} as="rate" /> },
  { id: "ack", label: "Acked", hint: "Acknowledged per second", needs: ["message_stats.ack_details.rate"], sort: "message_stats.ack_details.rate", number: true, extra: true, cell: (queue) => <Num of={rateOf(queue.message_stats, "ack")} as="rate" /> },
  { id: "arguments", label: "Arguments", needs: ["arguments"], extra: true, cell: (queue) => <Args of={queue.arguments} /> },
];

export function Features(props: { queue: Queue }) {
  return (
    <span class="badges">
      <Badge>{props.queue.type}</Badge>
      <Show when={!props.queue.durable}><Badge title="Deleted on restart (not durable)">transient</Badge></Show>
      <Show when={props.queue.exclusive}><Badge title="Used by one connection, and gone with it">exclusive</Badge></Show>
      <Show when={props.queue.auto_delete}><Badge title="Deleted with its last consumer">auto-delete</Badge></Show>
    </span>
  );
}

export function Queues() {
  const [adding, setAdding] = createSignal(false);
  return (
    <>
      <header class="page-head">
        <h1>Queues</h1>
        <Button kind="main" data-key="add" onClick={() => setAdding(true)}>Add a queue</Button>
      </header>
      <List<Queue>
        name="queues" path="/api/queues" needs={["name", "vhost", "messages"]} columns={COLUMNS} row={(queue) => `${queue.vhost} ${queue.name}`}
        empty={
          <Empty title="There are no queues">
            <p>Programs declare them, or you add one here. With pika:</p>
            <Code text={`channel.queue_declare("tasks", durable=True)`} />
          </Empty>
        }
        bulk={(rows, done) => <Bulk rows={rows} done={done} />}
      />
      <AddQueue open={adding()} close={() => setAdding(false)} />
    </>
  );
}

function Bulk(props: { rows: Queue[]; done: () => void }) {
  const [onlyEmpty, setOnlyEmpty] = createSignal(true);
  const [onlyUnused, setOnlyUnused] = createSignal(false);
  const waiting = () => props.rows.reduce((sum, queue) => sum + (queue.messages ?? 0), 0);
  const affected = () => props.rows.filter((queue) => !onlyEmpty() || queue.messages === 0);
  const purged = () => props.rows.filter((queue) => queue.type !== "stream");
  const deletions = (): Action[] => affected().map((queue) => deleteQueue(queue.vhost, queue.name, { empty: onlyEmpty(), unused: onlyUnused() }));
  const destroyed = () => affected().reduce((sum, queue) => sum + queue.messages, 0);
  const [isPaused, setPaused] = createSignal(true);
  return (
    <>
      <Ask
        label="Pause…" title={`${isPaused() ? "Pause" : "Resume"} ${format.plural(props.rows.length, "queue")}`} verb={isPaused() ? "Pause" : "Resume"} kind="plain" done={props.done} told={isPaused() ? "Paused." : "Resumed."}
        actions={props.rows.map((queue) => pauseQueue(queue.vhost, queue.name, isPaused()))}
      >
        <Select label="What to do" value={isPaused() ? "pause" : "resume"} set={(what) => setPaused(what === "pause")} options={[["pause", "pause: clients get nothing"], ["resume", "resume"]]} />
        <Preview rows={props.rows} />
      </Ask>
      <Ask
        label="Purge…" title={`Purge ${format.plural(purged().length, "queue")}`} verb="Purge" danger kind="plain" done={props.done} told="Purged."
        actions={purged().map((queue) => purgeQueue(queue.vhost, queue.name))} typed={waiting() > 0 ? "purge" : undefined}
      >
        <p>What waits in these queues is destroyed: about {format.plural(waiting(), "message")}.</p>
        <Preview rows={purged()} />
      </Ask>
      <Ask
        label="Delete…" title={`Delete ${format.plural(affected().length, "queue")}`} verb="Delete" danger done={props.done} told="Deleted."
        actions={deletions()} typed={destroyed() > 0 ? "delete" : undefined}
      >
        <Check checked={onlyEmpty()} set={setOnlyEmpty}>only those that are empty</Check>
        <Check checked={onlyUnused()} set={setOnlyUnused}>only those without consumers: the broker refuses others</Check>
        <p>{destroyed() > 0 ? `With them, about ${format.plural(destroyed(), "message")} are destroyed.` : affected().length > 0 ? "No message is lost." : "None of them is empty."}</p>
        <Preview rows={affected()} />
      </Ask>
    </>
  );
}

const Preview = (props: { rows: Queue[] }) => (
  <ul class="preview">
    <For each={props.rows.slice(0, 100)}>
      {(queue) => (
        <li>
          <span class="mono">{queue.name}</span> <small>{queue.vhost}</small> <Num of={queue.messages} />
        </li>
      )}
    </For>
  </ul>
);

export function AddQueue(props: { open: boolean; close: () => void; type?: string }) {
  const [where, setWhere] = createSignal(vhost() ?? "/");
  const [name, setName] = createSignal("");
  const [type, setType] = createSignal(props.type ?? "classic");
  const [durable, setDurable] = createSignal(true);
  const [autoDelete, setAutoDelete] = createSignal(false);
  const [entries, setEntries] = createSignal<Entry[]>([]);
  const plain = () => type() === "classic";
  const args = () => entriesValue(entries());
  const actions = (): Action[] => {
    const known = args();
    if ("wrong" in known || name() === "") return [];
    const body = { durable: !plain() || durable(), auto_delete: plain() && autoDelete(), arguments: { "x-queue-type": type(), ...known.value } };
    return [putQueue(where(), name(), body)];
  };
  return (
    <Do
      title={props.type === "stream" ? "Add a stream" : "Add a queue"} open={props.open} close={props.close} actions={actions()} verb="Add" told={`${name()} is there.`}
      done={(answers) => answers.length > 0 && go(queueAddress({ vhost: where(), name: name(), type: type() }))}
    >
      <Text label="Name" value={name()} set={setName} autofocus required />
      <div class="two">
        <VhostField value={where()} set={setWhere} />
        <Select label="Type" value={type()} set={setType} options={["classic", "quorum", "stream"]} />
      </div>
      <Show when={plain()}>
        <Check checked={durable()} set={setDurable}>durable: it and its persistent messages survive a restart</Check>
        <Check checked={autoDelete()} set={setAutoDelete}>deleted with its last consumer</Check>
      </Show>
      <Entries label="Arguments" entries={entries()} set={setEntries} known={QUEUE_ARGUMENTS} />
      <Show when={wrongEntry(entries())}>{(wrong) => <p class="wrong">{wrong()}</p>}</Show>
    </Do>
  );
}
