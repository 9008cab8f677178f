// Connections.
import { createSignal, For, Show } from "solid-js";
import { closeConnection } from "../lib/actions";
import { plural } from "../lib/format";
import { to } from "../lib/route";
import type { Connection } from "../lib/types";
import { Badge, Code, Empty, Link, Num, State, Time } from "../ui/bits";
import { Ask } from "../ui/dialog";
import { Text } from "../ui/fields";
import { List, type Column } from "../ui/list";

export const clientOf = (one: Connection): string => {
  const { product, version } = one.client_properties ?? {};
  return [product, version].filter(Boolean).join(" ");
};

const COLUMNS: Column<Connection>[] = [
  { id: "name", label: "Name", needs: ["user_provided_name"], sort: "name", cell: (one) => <span class="two-lines"><Link to={to(["connections", one.name])}>{one.user_provided_name ?? one.name}</Link><Show when={one.user_provided_name}><small>{one.name}</small></Show></span> },
  { id: "vhost", label: "Vhost", needs: ["vhost"], sort: "vhost", cell: (one) => one.vhost },
  { id: "user", label: "User", needs: ["user"], sort: "user", cell: (one) => one.user },
  { id: "state", label: "State", needs: ["state"], sort: "state", cell: (one) => <State of={one.state} /> },
  { id: "tls", label: "TLS", needs: ["ssl"], sort: "ssl", cell: (one) => (one.ssl ? <Badge tone="good">TLS</Badge> : <span class="muted">no</span>) },
  { id: "channels", label: "Channels", needs: ["channels"], sort: "channels", number: true, cell: (one) => <Num of={one.channels} /> },
  { id: "received", label: "From client", needs: ["recv_oct_details.rate"], sort: "recv_oct_details.rate", number: true, cell: (one) => <><Num of={one.recv_oct_details?.rate} as="bytes" />/s</> },
  { id: "sent", label: "To client", needs: ["send_oct_details.rate"], sort: "send_oct_details.rate", number: true, cell: (one) => <><Num of={one.send_oct_details?.rate} as="bytes" />/s</> },
  { id: "client", label: "Client", needs: ["client_properties"], cell: (one) => clientOf(one) },
  { id: "since", label: "Since", needs: ["connected_at"], sort: "connected_at", number: true, cell: (one) => <Time at={one.connected_at} /> },
  { id: "protocol", label: "Protocol", needs: ["protocol"], extra: true, cell: (one) => one.protocol },
];

export function Connections() {
  return (
    <>
      <header class="page-head"><h1>Connections</h1></header>
      <List<Connection>
        name="connections" path="/api/connections" needs={["name"]} columns={COLUMNS} row={(one) => one.name}
        empty={<Empty title="No connections"><p>With pika:</p><Code text={`pika.BlockingConnection(pika.URLParameters("amqp://USER:PASSWORD@${location.hostname}:5672/%2F"))`} /></Empty>}
        bulk={(rows, done) => <CloseMany rows={rows} done={done} />}
      />
    </>
  );
}

export function CloseMany(props: { rows: Connection[]; done: () => void }) {
  const [reason, setReason] = createSignal("");
  return (
    <Ask label="Close…" title={`Close ${plural(props.rows.length, "connection")}`} verb="Close" danger done={props.done} told="Closed." actions={props.rows.map((one) => closeConnection(one.name, ascii(reason())))}>
      <p>Their unacknowledged messages return to the queues. Most clients reconnect automatically.</p>
      <Text label="Reason (sent to the client)" value={reason()} set={setReason} placeholder="Closed via management plugin" />
      <ul class="preview"><For each={props.rows.slice(0, 100)}>{(one) => <li><span class="mono">{one.name}</span></li>}</For></ul>
    </Ask>
  );
}

/** Headers hold no other characters. */
export const ascii = (text: string): string => text.replace(/[^\x20-\x7e]/g, "?");
