// One queue or stream.
import { createSignal, For, Match, Show, Switch, type JSX } from "solid-js";
import { deleteQueue, pauseQueue, purgeQueue } from "../lib/actions";
import * as format from "../lib/format";
import { get, seg, withQuery, type ApiError } from "../lib/http";
import { poll } from "../lib/poll";
import { go, place, query, setQuery, to } from "../lib/route";
import { Samples } from "../lib/samples";
import { numberOf, type Consumer, type Queue } from "../lib/types";
import { Args, Badge, Facts, Link, Num, Panel, Problem, State, Tile } from "../ui/bits";
import { Chart, type Line } from "../ui/chart";
import { Ask } from "../ui/dialog";
import { Text } from "../ui/fields";
import { Findings, type Finding } from "../ui/findings";
import { Table } from "../ui/table";
import { Bindings } from "./bindings";
import { Effective } from "./effective";
import { MessagesPage } from "./messages";
import { Publish } from "./publish";
import { Features } from "./queues";
import { StreamBrowser } from "./stream-browser";
import { UnackedMessages } from "./unacked";

const RATES = ["publish", "deliver_get", "ack", "redeliver"];
const TABS: [string, string][] = [["", "At a glance"], ["messages", "Messages"], ["unacked", "Unacknowledged"], ["publish", "Publish"], ["bindings", "Bindings"], ["consumers", "Consumers"]];

export function QueuePage() {
  const [, vhost = "", name = ""] = place().path;
  const path = `/api/queues/${seg(vhost)}/${seg(name)}`;
  const samples = new Samples();
  const look = poll(
    () => path,
    async (path, signal) => {
      const first = samples.length === 0;
      const range = first ? { lengths_age: 600, lengths_incr: 5, msg_rates_age: 600, msg_rates_incr: 5 } : {};
      const queue = await get<Queue>(withQuery(path, range), { signal });
      const all = queue as unknown as Record<string, unknown>;
      const lengths = ["messages_ready", "messages_unacknowledged"];
      if (first) samples.seed(Object.fromEntries([...lengths.map((key) => [key, [all, key]]), ...RATES.map((key) => [key, [queue.message_stats, key]])]));
      samples.add(Date.now(), Object.fromEntries([...lengths.map((key) => [key, Number(all[key] ?? 0)]), ...RATES.map((key) => [key, numberOf(queue.message_stats, key)])]));
      return queue;
    },
    { always: true },
  );
  return (
    <Show when={look.data()} fallback={<Show when={look.error()} fallback={<div class="loading">Loading…</div>}><Gone error={look.error()!} retry={look.refresh} name={name} /></Show>}>
      {(queue) => (
        <>
          <header class="page-head">
            <div>
              <p class="crumbs">
                <Link to={to([queue().type === "stream" ? "streams" : "queues"])}>{queue().type === "stream" ? "Streams" : "Queues"}</Link> in {vhost}
              </p>
              <h1>{name}</h1>
              <Features queue={queue()} /> <State of={queue().state} />
            </div>
            <Actions queue={queue()} refresh={look.refresh} />
          </header>
          <Show when={look.error()?.problem === "missing"}>
            <Gone error={look.error()!} retry={look.refresh} name={name} />
          </Show>
          <nav class="tabs" aria-label="Parts of this page">
            <For each={TABS}>
              {([tab, text]) => (
                <button type="button" aria-current={query("tab") === tab ? "page" : undefined} onClick={() => setQuery({ tab }, false)}>
                  {text}
                </button>
              )}
            </For>
          </nav>
          <Switch fallback={<Glance queue={queue()} samples={samples} />}>
            <Match when={query("tab") === "messages" && queue().type === "stream"}>
              <StreamBrowser queue={queue()} />
            </Match>
            <Match when={query("tab") === "messages"}>
              <MessagesPage queue={queue()} changed={look.refresh} />
            </Match>
            <Match when={query("tab") === "unacked"}>
              <UnackedMessages queue={queue()} />
            </Match>
            <Match when={query("tab") === "publish"}>
              <Panel title="Publish to this queue">
                <Publish vhost={vhost} exchange="" routingKey={name} done={look.refresh} />
              </Panel>
            </Match>
            <Match when={query("tab") === "bindings"}>
              <Bindings vhost={vhost} queue={name} />
            </Match>
            <Match when={query("tab") === "consumers"}>
              <Consumers list={queue().consumer_details ?? []} queue={name} />
            </Match>
          </Switch>
        </>
      )}
    </Show>
  );
}

const Gone = (props: { error: ApiError; retry: () => void; name: string }) => (
  <>
    <p class="crumbs"><Link to={to(["queues"])}>Queues</Link></p>
    <h1>{props.name}</h1>
    <Problem error={props.error} retry={props.retry} />
  </>
);

function Actions(props: { queue: Queue; refresh: () => void }) {
  const { vhost, name } = props.queue;
  const isStream = () => props.queue.type === "stream";
  const messages = () => props.queue.messages;
  /** A purge takes along what waits for another try; one of the first few does not. */
  const waiting = () => props.queue.messages_ready + (props.queue.messages_delayed ?? 0);
  const [first, setFirst] = createSignal("");
  /** How many of them; `undefined` for all, `null` if that is no number. */
  const purged = () => (first().trim() === "" ? undefined : /^[1-9]\d{0,14}$/.test(first().trim()) ? Number(first()) : null);
  return (
    <div class="actions">
      <Pause queue={props.queue} refresh={props.refresh} />
      <Show when={!isStream()}>
        <Ask
          label="Purge…" title={`Purge ${name}`} verb="Purge" danger kind="plain" actions={purged() === null ? [] : [purgeQueue(vhost, name, purged() ?? undefined)]} done={props.refresh} told={`${name} is purged.`}
          typed={messages() > 0 ? name : undefined} disabled={waiting() === 0} why={waiting() === 0 ? "Nothing waits in it" : undefined}
        >
          <p>{purged() ? `The first ${format.plural(Math.min(purged()!, props.queue.messages_ready), "message")}` : `The ${format.plural(waiting(), "message")}`} that wait in it are destroyed. Those that consumers hold stay.</p>
          <Text label="Only the first" inputmode="numeric" value={first()} set={setFirst} placeholder="all" hint="A number; leave empty for all ready messages." />
        </Ask>
      </Show>
      <Ask
        label="Delete…" title={`Delete ${name}`} verb="Delete" danger actions={[deleteQueue(vhost, name)]} typed={messages() > 0 ? name : undefined} told={`${name} is deleted.`}
        done={(answers) => answers.length > 0 && go(to([isStream() ? "streams" : "queues"]))}
      >
        <p>
          {messages() > 0 ? `Its ${format.plural(messages(), "message")} are destroyed.` : "It is empty: no message is lost."}
          {props.queue.consumers > 0 ? ` Its ${format.plural(props.queue.consumers, "consumer")} are told that it is gone.` : ""} Its bindings go with it.
        </p>
      </Ask>
    </div>
  );
}

function Pause(props: { queue: Queue; refresh: () => void }) {
  const isPaused = () => props.queue.state === "paused";
  const verb = () => (isPaused() ? "Resume" : "Pause");
  return (
    <Ask
      label={`${verb()}…`} kind="plain" title={`${verb()} ${props.queue.name}`} verb={verb()} told={isPaused() ? `${props.queue.name} goes on.` : `${props.queue.name} is paused.`}
      actions={[pauseQueue(props.queue.vhost, props.queue.name, !isPaused())]} done={props.refresh}
    >
      <p>{isPaused() ? "Its consumers get messages again." : "It takes messages, and clients get none of them until it is resumed. What they hold, they can still acknowledge. No message is lost."}</p>
    </Ask>
  );
}

/** Why its messages wait, if they do. */
function Diagnosis(props: { queue: Queue }) {
  const path = () => `/api/queues/${seg(props.queue.vhost)}/${seg(props.queue.name)}/diagnosis`;
  const look = poll(path, (path, signal) => get<Finding[]>(path, { signal }), { slower: 2 });
  return (
    <Show when={(look.data() ?? []).length > 0}>
      <section class="attention" aria-label="Why messages wait">
        <Findings list={look.data()!} />
      </section>
    </Show>
  );
}

/** How many bytes its messages have, and how many of them survive a restart or are in memory. */
function Contents(props: { queue: Queue }) {
  const bytes = (of?: number) => (of === undefined ? <span class="muted">not known</span> : <span title={`${format.exact(of)} bytes`}>{format.bytes(of)}</span>);
  const messages = (count: number | undefined, of?: number) => <>{format.plural(count ?? 0, "message")}, {bytes(of)}</>;
  const facts = (): [string, JSX.Element][] => [
    ["All bodies", bytes(props.queue.message_bytes)],
    ["Waiting", bytes(props.queue.message_bytes_ready)],
    ["Unacknowledged", bytes(props.queue.message_bytes_unacknowledged)],
    ["Persistent", messages(props.queue.messages_persistent, props.queue.message_bytes_persistent)],
    ["In memory", messages(props.queue.messages_ram, props.queue.message_bytes_ram)],
  ];
  return (
    <Show when={props.queue.messages_persistent !== undefined}>
      <Panel title="Size of its messages"><Facts of={facts()} /></Panel>
    </Show>
  );
}

function Glance(props: { queue: Queue; samples: Samples }) {
  const line = (key: string, label: string, colour: string, dashed?: boolean): Line => ({ label, colour, dashed, values: props.samples.rates(key) });
  const level = (key: string, label: string, colour: string): Line => ({ label, colour, values: props.samples.values(key) });
  /** So many messages the reader that is furthest behind has still to get. */
  const furthest = () => (props.queue.consumer_details ?? []).reduce<number | undefined>((most, one) => (one.offset_lag === undefined ? most : Math.max(most ?? 0, one.offset_lag)), undefined);
  const facts = (): [string, ReturnType<typeof Args>][] => [
    ["Arguments", <Args of={props.queue.arguments} />],
    ["Exclusive to", <Show when={props.queue.owner_pid_details} fallback={<span class="muted">{props.queue.exclusive ? "a connection of another user" : "no connection"}</span>}>{(owner) => <Link to={to(["connections", owner().name])}>{owner().name}</Link>}</Show>],
  ];
  return (
    <>
      <Diagnosis queue={props.queue} />
      <div class="tiles">
        <Tile label="waiting"><Num of={props.queue.messages_ready} /></Tile>
        <Tile label="unacknowledged"><Num of={props.queue.messages_unacknowledged} /></Tile>
        <Show when={props.queue.messages_delayed}><Tile label="wait for another try"><Num of={props.queue.messages_delayed} /></Tile></Show>
        <Tile label="consumers"><Num of={props.queue.consumers} /></Tile>
        <Tile label="published in all"><Num of={numberOf(props.queue.message_stats, "publish")} /></Tile>
        <Tile label="delivered in all"><Num of={numberOf(props.queue.message_stats, "deliver_get")} /></Tile>
        <Show when={furthest() !== undefined} fallback={<Tile label="delivered again"><Num of={numberOf(props.queue.message_stats, "redeliver")} /></Tile>}>
          <Tile label="largest lag"><Num of={furthest()} /></Tile>
        </Show>
      </div>
      <div class="charts">
        <Chart title="Messages in it" times={props.samples.times()} format={format.count} whole exact={format.exact} lines={[level("messages_ready", "waiting", "c1"), level("messages_unacknowledged", "unacknowledged", "c5")]} />
        <Chart
          title="Messages per second" times={props.samples.times()} format={format.rate} exact={(value) => `${value.toFixed(3)} per second`}
          lines={[line("publish", "published", "c1"), line("deliver_get", "delivered", "c2"), line("ack", "acknowledged", "c3"), line("redeliver", "redelivered", "c6", true)]}
        />
      </div>
      <div class="columns">
        <Panel title="How it was declared"><Facts of={facts()} /></Panel>
        <Effective queue={props.queue} />
        <Contents queue={props.queue} />
      </div>
    </>
  );
}

/** Says of a consumer that it gets no more for now. */
export const PrefetchFull = (props: { of: Consumer }) => (
  <Show when={props.of.prefetch_count > 0 && props.of.messages_unacknowledged >= props.of.prefetch_count}><Badge tone="warn" title="It gets no more until it acknowledges some">prefetch full</Badge></Show>
);

/** How far behind the end of its stream a reader is. */
export const Behind = (props: { of: Consumer }) => (
  <Show when={props.of.offset_lag !== undefined}><span title={`It gets offset ${format.exact(props.of.offset ?? 0)} next`}><Num of={props.of.offset_lag} /></span></Show>
);

/** The channel of a consumer, for who sees its connection. */
export const ChannelOf = (props: { of: Consumer }) => (
  <Show when={props.of.channel_details} fallback={<span class="muted">of another user</span>}>{(channel) => <Link to={to(["channels", channel().name])}>{channel().name}</Link>}</Show>
);

export function Consumers(props: { list: Consumer[]; queue?: string }) {
  return (
    <Panel title={`Consumers (${props.list.length})`} flush>
      <Table
        label="Consumers" rows={props.list}
        empty={<p>No consumers. With pika: <code>channel.basic_consume("{props.queue ?? "tasks"}", on_message)</code></p>}
        columns={[
          { label: "Tag", cell: (one) => <span class="mono">{one.consumer_tag}</span> },
          { label: "Channel", cell: (one) => <ChannelOf of={one} /> },
          { label: "User", cell: (one) => one.channel_details?.user },
          { label: "Acknowledges", cell: (one) => (one.ack_required ? "yes" : <Badge tone="warn" title="Automatic acknowledgement: delivered messages are lost if the consumer fails">no</Badge>) },
          { label: "Prefetch", number: true, cell: (one) => (one.prefetch_count === 0 ? "no limit" : <Num of={one.prefetch_count} />) },
          { label: "Unacked", number: true, cell: (one) => <Num of={one.messages_unacknowledged} /> },
          ...(props.list.some((one) => one.offset_lag !== undefined) ? [{ label: "Behind", number: true, cell: (one: Consumer) => <Behind of={one} /> }] : []),
          { label: "", cell: (one) => <span class="badges"><Show when={one.active} fallback={<Badge title="Another one is active">waits</Badge>}><Badge tone="good">active</Badge></Show><PrefetchFull of={one} /><Show when={one.exclusive}><Badge>exclusive</Badge></Show></span> },
          { label: "Arguments", cell: (one) => <Args of={one.arguments} /> },
        ]}
      />
    </Panel>
  );
}
