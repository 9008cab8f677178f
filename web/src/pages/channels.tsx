// Channels, and one of them.
import { createSignal, For, Show } from "solid-js";
import { closeChannel } from "../lib/actions";
import * as format from "../lib/format";
import { get, seg, withQuery } from "../lib/http";
import { poll } from "../lib/poll";
import { go, place, to } from "../lib/route";
import { Samples } from "../lib/samples";
import { numberOf, rateOf, type Channel } from "../lib/types";
import { Badge, Empty, Facts, Link, Num, Panel, Problem, State } from "../ui/bits";
import { Chart } from "../ui/chart";
import { Ask } from "../ui/dialog";
import { Text } from "../ui/fields";
import { List, type Column } from "../ui/list";
import { ascii } from "./connections";
import { Consumers } from "./queue";

const Mode = (props: { channel: Channel }) => (
  <span class="badges">
    <Show when={props.channel.confirm}><Badge title="Publishing is confirmed">confirms</Badge></Show>
    <Show when={props.channel.transactional}><Badge title="With transactions">tx</Badge></Show>
  </span>
);

const COLUMNS: Column<Channel>[] = [
  { id: "name", label: "Channel", needs: [], sort: "name", cell: (one) => <Link to={to(["channels", one.name])}>{one.name}</Link> },
  { id: "vhost", label: "Vhost", needs: ["vhost"], sort: "vhost", cell: (one) => one.vhost },
  { id: "user", label: "User", needs: ["user"], sort: "user", cell: (one) => one.user },
  { id: "state", label: "State", needs: ["state"], sort: "state", cell: (one) => <State of={one.state} /> },
  { id: "mode", label: "Mode", needs: ["confirm", "transactional"], cell: (one) => <Mode channel={one} /> },
  { id: "consumers", label: "Consumers", needs: ["consumer_count"], sort: "consumer_count", number: true, cell: (one) => <Num of={one.consumer_count} /> },
  { id: "prefetch", label: "Prefetch", needs: ["prefetch_count"], sort: "prefetch_count", number: true, cell: (one) => <Num of={one.prefetch_count} /> },
  { id: "unacked", label: "Unacked", hint: "Delivered over it and not acknowledged yet", needs: ["messages_unacknowledged"], sort: "messages_unacknowledged", number: true, cell: (one) => <Num of={one.messages_unacknowledged} /> },
  { id: "unconfirmed", label: "Unconfirmed", needs: ["messages_unconfirmed"], sort: "messages_unconfirmed", number: true, cell: (one) => <Num of={one.messages_unconfirmed} /> },
  { id: "publish", label: "Published", needs: ["message_stats.publish_details.rate"], sort: "message_stats.publish_details.rate", number: true, cell: (one) => <Num of={rateOf(one.message_stats, "publish")} as="rate" /> },
  { id: "deliver", label: "Delivered", needs: ["message_stats.deliver_get_details.rate"], sort: "message_stats.deliver_get_details.rate", number: true, cell: (one) => <Num of={rateOf(one.message_stats, "deliver_get")} as="rate" /> },
  { id: "ack", label: "Acked", needs: ["message_stats.ack_details.rate"], sort: "message_stats.ack_details.rate", number: true, extra: true, cell: (one) => <Num of={rateOf(one.message_stats, "ack")} as="rate" /> },
];

export const Channels = () => (
  <>
    <header class="page-head"><h1>Channels</h1></header>
    <List<Channel> name="channels" path="/api/channels" needs={["name"]} columns={COLUMNS} row={(one) => one.name} bulk={(rows, done) => <CloseChannels names={rows.map((one) => one.name)} done={done} />} empty={<Empty title="No channel is open"><p>A client opens at least one when it works: its connection is shown under Connections before that.</p></Empty>} />
  </>
);

/** Closes channels; their connections stay. */
export function CloseChannels(props: { names: string[]; done: () => void }) {
  const [reason, setReason] = createSignal("");
  return (
    <Ask label="Close…" title={`Close ${format.plural(props.names.length, "channel")}`} verb="Close" danger done={props.done} told="Closed." actions={props.names.map((name) => closeChannel(name, ascii(reason())))}>
      <p>Unacknowledged messages return to their queues, and consumers end. The connection stays; many clients recover from a lost connection, but open no closed channel again.</p>
      <Text label="Reason (sent to the client)" value={reason()} set={setReason} placeholder="Closed via management plugin" />
      <ul class="preview"><For each={props.names.slice(0, 100)}>{(name) => <li><span class="mono">{name}</span></li>}</For></ul>
    </Ask>
  );
}

const RATES = ["publish", "confirm", "deliver_get", "ack"];

export function ChannelPage() {
  const name = place().path[1] ?? "";
  const samples = new Samples();
  const look = poll(() => `/api/channels/${seg(name)}`, async (path, signal) => {
    const first = samples.length === 0;
    const one = await get<Channel>(withQuery(path, first ? { msg_rates_age: 600, msg_rates_incr: 5 } : {}), { signal });
    if (first) samples.seed(Object.fromEntries(RATES.map((key) => [key, [one.message_stats, key]])));
    samples.add(Date.now(), { ...Object.fromEntries(RATES.map((key) => [key, numberOf(one.message_stats, key)])), unacked: one.messages_unacknowledged, unconfirmed: one.messages_unconfirmed });
    return one;
  });
  const rates = (key: string, label: string, colour: string) => ({ label, colour, values: samples.rates(key) });
  return (
    <Show when={look.data()} fallback={<Show when={look.error()} fallback={<div class="loading">Loading…</div>}><p class="crumbs"><Link to={to(["channels"])}>Channels</Link></p><h1>{name}</h1><Problem error={look.error()!} /></Show>}>
      {(one) => (
        <>
          <header class="page-head">
            <div>
              <p class="crumbs"><Link to={to(["channels"])}>Channels</Link> of <Link to={to(["connections", one().connection_details.name])}>{one().connection_details.name}</Link></p>
              <h1>Channel {one().number}</h1>
              <State of={one().state} /> <Mode channel={one()} />
            </div>
            <div class="actions"><CloseChannels names={[one().name]} done={() => go(to(["connections", one().connection_details.name]))} /></div>
          </header>
          <Show when={look.error()}>{(error) => <Problem error={error()} retry={look.refresh} />}</Show>
          <div class="charts">
            <Chart title="Messages per second" times={samples.times()} format={format.rate} lines={[rates("publish", "published", "c1"), rates("deliver_get", "delivered", "c2"), rates("ack", "acknowledged", "c3"), rates("confirm", "confirmed", "c4")]} />
            <Chart title="On the way" times={samples.times()} format={format.count} whole exact={format.exact} lines={[{ label: "unacknowledged", colour: "c5", values: samples.values("unacked") }, { label: "unconfirmed", colour: "c4", values: samples.values("unconfirmed") }]} />
          </div>
          <Panel title="Settings">
            <Facts of={[["User", one().user], ["Vhost", one().vhost], ["Prefetch of each consumer", one().prefetch_count === 0 ? "no limit" : <Num of={one().prefetch_count} />], ["Prefetch of the channel", one().global_prefetch_count === 0 ? "no limit" : <Num of={one().global_prefetch_count} />]]} />
          </Panel>
          <Consumers list={one().consumer_details ?? []} />
        </>
      )}
    </Show>
  );
}
