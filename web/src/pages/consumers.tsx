// Consumers.
import { Show } from "solid-js";
import { seg } from "../lib/http";
import { to, vhost } from "../lib/route";
import type { Consumer } from "../lib/types";
import { Args, Badge, Code, Empty, Link, Num } from "../ui/bits";
import { List, type Column } from "../ui/list";
import { Behind, ChannelOf, PrefetchFull } from "./queue";

const COLUMNS: Column<Consumer>[] = [
  { id: "tag", label: "Tag", needs: ["consumer_tag"], sort: "consumer_tag", cell: (one) => <span class="mono">{one.consumer_tag}</span> },
  { id: "queue", label: "Queue", needs: ["queue"], sort: "queue.name", cell: (one) => <Link to={to(["queues", one.queue.vhost, one.queue.name])}>{one.queue.name}</Link> },
  { id: "vhost", label: "Vhost", needs: ["queue"], sort: "queue.vhost", cell: (one) => one.queue.vhost },
  { id: "channel", label: "Channel", needs: ["channel_details"], sort: "channel_details.name", cell: (one) => <ChannelOf of={one} /> },
  { id: "user", label: "User", needs: ["channel_details"], sort: "channel_details.user", cell: (one) => one.channel_details?.user },
  { id: "ack", label: "Acknowledges", needs: ["ack_required"], sort: "ack_required", cell: (one) => (one.ack_required ? "yes" : <Badge tone="warn" title="Automatic acknowledgement: delivered messages are lost if the consumer fails">no</Badge>) },
  { id: "prefetch", label: "Prefetch", needs: ["prefetch_count"], sort: "prefetch_count", number: true, cell: (one) => (one.prefetch_count === 0 ? "no limit" : <Num of={one.prefetch_count} />) },
  { id: "unacked", label: "Unacked", needs: ["messages_unacknowledged"], sort: "messages_unacknowledged", number: true, cell: (one) => <Num of={one.messages_unacknowledged} /> },
  { id: "behind", label: "Behind", hint: "Messages that a reader of a stream has still to get", needs: ["offset", "offset_lag"], sort: "offset_lag", number: true, extra: true, cell: (one) => <Behind of={one} /> },
  { id: "state", label: "State", needs: ["active", "exclusive", "prefetch_count", "messages_unacknowledged"], sort: "active", cell: (one) => <span class="badges"><Badge tone={one.active ? "good" : "plain"}>{one.active ? "active" : "waits"}</Badge><PrefetchFull of={one} /><Show when={one.exclusive}><Badge>exclusive</Badge></Show></span> },
  { id: "arguments", label: "Arguments", needs: ["arguments"], extra: true, cell: (one) => <Args of={one.arguments} /> },
];

export const Consumers = () => (
  <>
    <header class="page-head"><h1>Consumers</h1></header>
    <List<Consumer>
      name="consumers" path={vhost() === undefined ? "/api/consumers" : `/api/consumers/${seg(vhost()!)}`} needs={["consumer_tag", "queue", "channel_details"]} columns={COLUMNS} searched="tag or queue" text={(one) => `${one.consumer_tag} ${one.queue.name}`} row={(one) => `${one.channel_details?.name} ${one.consumer_tag}`}
      empty={<Empty title="No consumers"><p>With pika:</p><Code text={`channel.basic_consume("tasks", on_message)\nchannel.start_consuming()`} /></Empty>}
    />
  </>
);
