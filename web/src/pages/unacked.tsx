// Who holds messages unacknowledged, and for how long.
import { createSignal, Show } from "solid-js";
import { closeChannel, closeConnection } from "../lib/actions";
import * as format from "../lib/format";
import { get, seg, withQuery } from "../lib/http";
import { poll } from "../lib/poll";
import { query, setQuery, to } from "../lib/route";
import type { Page, Queue } from "../lib/types";
import { Badge, Button, Link, Num, Panel, Problem } from "../ui/bits";
import { Ask } from "../ui/dialog";
import { Select } from "../ui/fields";
import { Table } from "../ui/table";

const SIZE = 50;

interface Unacked {
  delivery_tag: number;
  since_ms: number | null;
  age_ms: number | null;
  consumer_tag: string | null;
  user?: string;
  channel_details?: { name: string; connection_name: string };
  exchange?: string;
  routing_key?: string;
  payload_bytes?: number;
  redelivered?: boolean;
}

const REASON = "Its unacknowledged messages are returned";

/** Messages that a client holds go back with its channel or its connection. */
function GiveBack(props: { channel: string; connection: string; user: string; done: () => void }) {
  const [what, setWhat] = createSignal("connection");
  const isChannel = () => what() === "channel";
  return (
    <Ask
      label="Return…" kind="quiet" title="Return messages to the queue" verb={`Close the ${what()}`} danger told="They are back in their queues." done={props.done}
      actions={[isChannel() ? closeChannel(props.channel, REASON) : closeConnection(props.connection, REASON)]}
    >
      <Select label="Close" value={what()} set={setWhat} options={[["connection", "the connection"], ["channel", "only the channel"]]} />
      <p>
        <b class="mono">{isChannel() ? props.channel : props.connection}</b> of {props.user} is closed: whatever it holds unacknowledged, of this queue and others, goes back and is delivered again.{" "}
        {isChannel() ? "Its connection and other channels go on. Many clients open no closed channel again." : "Most clients connect again by themselves."}
      </p>
    </Ask>
  );
}

export function UnackedMessages(props: { queue: Queue }) {
  const page = () => Math.max(1, Number(query("page")) || 1);
  const path = () => withQuery(`/api/queues/${seg(props.queue.vhost)}/${seg(props.queue.name)}/unacked`, { page: page(), page_size: SIZE });
  const look = poll(path, (path, signal) => get<Page<Unacked>>(path, { signal }));
  return (
    <Panel title="Delivered, and not acknowledged yet: oldest first" flush>
      <Show when={look.error()}>{(error) => <Problem error={error()} retry={look.refresh} />}</Show>
      <Show when={look.data()}>
        {(data) => (
          <>
            <Table
              label="Unacknowledged messages" rows={data().items} empty={<p>No unacknowledged messages.</p>}
              columns={[
                { label: "For", number: true, cell: (one) => (one.age_ms === null ? <span class="muted">not known</span> : <b title={format.utc(one.since_ms ?? 0)}>{format.duration(one.age_ms)}</b>) },
                { label: "Consumer", cell: (one) => one.consumer_tag ?? <span class="muted">got it without one</span> },
                { label: "Channel", cell: (one) => <Show when={one.channel_details} fallback={<span class="muted">of another user</span>}>{(channel) => <Link to={to(["channels", channel().name])}>{channel().name}</Link>}</Show> },
                { label: "User", cell: (one) => one.user ?? "" },
                { label: "Routing key", cell: (one) => <span class="mono">{one.routing_key ?? ""}</span> },
                { label: "Size", number: true, cell: (one) => <Show when={one.payload_bytes !== undefined}><Num of={one.payload_bytes} as="bytes" /></Show> },
                { label: "", cell: (one) => <Show when={one.channel_details}>{(channel) => <GiveBack channel={channel().name} connection={channel().connection_name} user={one.user ?? ""} done={look.refresh} />}</Show> },
                { label: "Delivery", number: true, cell: (one) => <span class="badges"><Show when={one.redelivered}><Badge tone="warn">again</Badge></Show><Num of={one.delivery_tag} /></span> },
              ]}
            />
            <Show when={data().page_count > 1}>
              <div class="pager pad">
                <span>{format.exact(data().total_count)} in all</span><span class="grow" />
                <Button disabled={page() <= 1} onClick={() => setQuery({ page: page() - 1 })}>‹ Previous</Button>
                <Button disabled={page() >= data().page_count} onClick={() => setQuery({ page: page() + 1 })}>Next ›</Button>
              </div>
            </Show>
          </>
        )}
      </Show>
    </Panel>
  );
}
