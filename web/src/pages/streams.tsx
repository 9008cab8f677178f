// Streams: queues that keep what was read.
import { createSignal } from "solid-js";
import { rateOf, type Queue } from "../lib/types";
import { to } from "../lib/route";
import { Args, Button, Code, Empty, Link, Num } from "../ui/bits";
import { List, type Column } from "../ui/list";
import { AddQueue } from "./queues";

const COLUMNS: Column<Queue>[] = [
  { id: "name", label: "Name", needs: [], sort: "name", cell: (one) => <Link to={to(["streams", one.vhost, one.name])}>{one.name}</Link> },
  { id: "vhost", label: "Vhost", needs: [], sort: "vhost", cell: (one) => one.vhost },
  { id: "messages", label: "Messages", needs: ["messages"], sort: "messages", number: true, cell: (one) => <Num of={one.messages} /> },
  { id: "consumers", label: "Readers", needs: ["consumers"], sort: "consumers", number: true, cell: (one) => <Num of={one.consumers} /> },
  { id: "in", label: "In", needs: ["message_stats.publish_details.rate"], sort: "message_stats.publish_details.rate", number: true, cell: (one) => <Num of={rateOf(one.message_stats, "publish")} as="rate" /> },
  { id: "out", label: "Out", needs: ["message_stats.deliver_get_details.rate"], sort: "message_stats.deliver_get_details.rate", number: true, cell: (one) => <Num of={rateOf(one.message_stats, "deliver_get")} as="rate" /> },
  { id: "arguments", label: "Retention", needs: ["arguments"], cell: (one) => <Args of={Object.fromEntries(Object.entries(one.arguments).filter(([name]) => name !== "x-queue-type"))} empty="no limit" /> },
];

export function Streams() {
  const [adding, setAdding] = createSignal(false);
  return (
    <>
      <header class="page-head">
        <h1>Streams</h1>
        <Button kind="main" data-key="add" onClick={() => setAdding(true)}>Add a stream</Button>
      </header>
      <List<Queue>
        name="streams" path="/api/queues" query={{ type: "stream" }} needs={["name", "vhost"]} columns={COLUMNS} row={(one) => `${one.vhost} ${one.name}`}
        empty={<Empty title="There is no stream"><p>With pika:</p><Code text={`channel.queue_declare("log", durable=True, arguments={"x-queue-type": "stream"})`} /></Empty>}
      />
      <AddQueue open={adding()} close={() => setAdding(false)} type="stream" />
    </>
  );
}
