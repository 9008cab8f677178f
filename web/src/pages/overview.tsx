// The first page: what needs attention, then how much there is and how fast it goes.
import { createMemo, For, Show, type JSX } from "solid-js";
import * as format from "../lib/format";
import { get, withQuery } from "../lib/http";
import { isSilent, poll } from "../lib/poll";
import { node, overview, pulseError, pulseRefresh, samples } from "../lib/pulse";
import { to, vhost } from "../lib/route";
import { isMonitor } from "../lib/session";
import { rateOf, type Connection, type Page } from "../lib/types";
import { Badge, Code, Empty, Link, Num, Panel, Problem, Tile, type Tone } from "../ui/bits";
import { Chart, type Line } from "../ui/chart";
import { Findings, type Finding } from "../ui/findings";
import { SyncTime } from "../ui/sync-time";

export function Overview() {
  return (
    <>
      <header class="page-head">
        <h1>Overview</h1>
      </header>
      <Show when={pulseError() && !overview()}>
        <Problem error={pulseError()!} retry={pulseRefresh} />
      </Show>
      <Show when={overview()} fallback={<Show when={!pulseError()}><div class="loading">Loading…</div></Show>}>
        <Attention />
        <Totals />
        <Charts />
        <FirstSteps />
        <Listeners />
      </Show>
    </>
  );
}

interface Matter {
  tone: Tone;
  what: string;
  text: JSX.Element;
}

// In the order of their names, blocked connections come first and running ones last.
const CONNECTIONS = withQuery("/api/connections", { page: 1, page_size: 20, sort: "state", columns: "name,state,user" });

function Attention() {
  const asked = () => ({ vhost: vhost() });
  const said = poll(() => (isMonitor() ? asked() : undefined), ({ vhost }, signal) => get<Finding[]>("/api/attention", { signal, vhost }), { slower: 3 });
  const connections = poll(asked, ({ vhost }, signal) => get<Page<Connection>>(CONNECTIONS, { signal, vhost }), { slower: 3 });
  const matters = createMemo(() => [...ofNode(), ...ofRates(), ...ofConnections(connections.data()?.items)]);
  const findings = () => said.data() ?? [];
  const known = () => connections.data() !== undefined && (said.data() !== undefined || !isMonitor());
  return (
    <section class="attention" aria-label="What needs attention">
      <Show when={said.error()}>{(error) => <Problem error={error()} retry={said.refresh} />}</Show>
      <Show
        when={matters().length + findings().length > 0}
        fallback={
          <Show when={known() && !isSilent()}>
            <p class="all-well">
              <i aria-hidden="true" /> Nothing needs attention.
            </p>
          </Show>
        }
      >
        <h2>Needs attention</h2>
        <Show when={matters().length > 0}>
          <ul>
            <For each={matters()}>
              {(matter) => (
                <li class={matter.tone}>
                  <Badge tone={matter.tone}>{matter.what}</Badge>
                  <span>{matter.text}</span>
                </li>
              )}
            </For>
          </ul>
        </Show>
        <Show when={findings().length > 0}><Findings list={findings()} /></Show>
      </Show>
    </section>
  );
}

/** What the broker does not say by itself. */
function ofNode(): Matter[] {
  const one = node();
  if (!one || one.fd_total === 0 || one.fd_used / one.fd_total <= 0.8) return [];
  return [{ tone: "warn", what: "descriptors", text: <>{format.exact(one.fd_used)} of {format.exact(one.fd_total)} file descriptors are open.</> }];
}

function ofRates(): Matter[] {
  const stats = overview()?.message_stats;
  const [dropped, returned] = [rateOf(stats, "drop_unroutable"), rateOf(stats, "return_unroutable")];
  const matters: Matter[] = [];
  if (dropped > 0) matters.push({ tone: "warn", what: "dropped", text: <>{format.rate(dropped)} messages go to no queue and are dropped: no binding takes their routing key.</> });
  if (returned > 0) matters.push({ tone: "info", what: "returned", text: <>{format.rate(returned)} mandatory messages go to no queue and are returned to their publishers.</> });
  return matters;
}

function ofConnections(list: Connection[] | undefined): Matter[] {
  const held = (list ?? []).filter((one) => ["blocked", "blocking", "flow"].includes(one.state));
  return held.map((one) => ({
    tone: one.state === "blocked" ? "bad" : "info",
    what: one.state,
    text: <><Link to={to(["connections", one.name])}>{one.name}</Link> of {one.user} {one.state === "flow" ? "is slowed down: it publishes faster than the broker accepts." : "may not publish."}</>,
  }));
}

function Totals() {
  const objects = () => overview()!.object_totals;
  const totals = () => overview()!.queue_totals;
  return (
    <div class="tiles">
      <Tile label="waiting" to={to(["queues"], { sort: "messages_ready", desc: "1" })}><Num of={Number(totals()?.messages_ready ?? 0)} /></Tile>
      <Tile label="unacked" to={to(["queues"], { sort: "messages_unacknowledged", desc: "1" })}><Num of={Number(totals()?.messages_unacknowledged ?? 0)} /></Tile>
      <Tile label="published"><Num of={rateOf(overview()!.message_stats, "publish")} as="rate" /></Tile>
      <Tile label="delivered"><Num of={rateOf(overview()!.message_stats, "deliver_get")} as="rate" /></Tile>
      <Tile label="queues" to={to(["queues"])}><Num of={objects().queues} /></Tile>
      <Tile label="connections" to={to(["connections"])}><Num of={objects().connections} /></Tile>
      <Tile label="channels" to={to(["channels"])}><Num of={objects().channels} /></Tile>
      <Show when={objects().consumers !== undefined}>
        <Tile label="consumers" to={to(["consumers"])}><Num of={objects().consumers} /></Tile>
      </Show>
    </div>
  );
}

const rates = (pairs: [string, string, string, boolean?][]): Line[] => pairs.map(([key, label, colour, dashed]) => ({ label, colour, dashed, values: samples.rates(key) }));
const levels = (pairs: [string, string, string, boolean?][]): Line[] => pairs.map(([key, label, colour, dashed]) => ({ label, colour, dashed, values: samples.values(key) }));

function Charts() {
  const exactRate = (value: number) => `${value.toFixed(3)} per second`;
  const exactBytes = (value: number) => `${format.exact(value)} bytes`;
  return (
    <div class="charts">
      <Chart
        title="Messages per second" times={samples.times()} format={format.rate} exact={exactRate}
        lines={rates([["publish", "published", "c1"], ["deliver_get", "delivered", "c2"], ["ack", "acknowledged", "c3"], ["confirm", "confirmed", "c4", true], ["redeliver", "redelivered", "c5", true], ["drop_unroutable", "dropped", "c6", true]])}
      />
      <Chart title="Messages in queues" times={samples.times()} format={format.count} whole exact={format.exact} lines={levels([["messages_ready", "waiting", "c1"], ["messages_unacknowledged", "unacknowledged", "c5"]])} />
      <Show when={isMonitor()}>
        <Chart title="Memory of messages" times={samples.times()} format={format.bytes} binary exact={exactBytes} lines={levels([["mem_used", "used", "c4"], ["mem_limit", "limit", "c6", true]])} />
        <Chart title="Free disk" times={samples.times()} format={format.bytes} binary exact={exactBytes} lines={levels([["disk_free", "free", "c3"]])} />
        <SyncTime />
      </Show>
      <Chart
        title="Connections and queues per second" times={samples.times()} format={format.rate} exact={exactRate}
        lines={rates([["connection_created", "connections opened", "c1"], ["connection_closed", "connections closed", "c1", true], ["channel_created", "channels opened", "c4"], ["queue_created", "queues made", "c3"], ["queue_deleted", "queues deleted", "c6", true]])}
      />
    </div>
  );
}

/** Where to begin while no client is connected. */
function FirstSteps() {
  const amqp = () => overview()?.listeners?.find((one) => one.protocol === "amqp");
  const address = () => `amqp://guest:guest@${location.hostname}:${amqp()?.port ?? 5672}/%2F`;
  const none = () => overview()!.object_totals.connections === 0 && overview()!.object_totals.queues === 0;
  return (
    <Show when={none()}>
      <Empty title="No connections yet">
        <p>A first message, with Python's pika:</p>
        <Code
          text={`import pika\nconnection = pika.BlockingConnection(pika.URLParameters("${address()}"))\nchannel = connection.channel()\nchannel.queue_declare("hello", durable=True)\nchannel.basic_publish("", "hello", b"Hello!")`}
        />
      </Empty>
    </Show>
  );
}

function Listeners() {
  const look = poll(() => (isMonitor() ? "/api/overview?columns=listeners&disable_stats=true" : undefined), (path, signal) => get<{ listeners?: { protocol: string; ip_address: string; port: number; tls: boolean }[] }>(path, { signal }), { slower: 60 });
  return (
    <Show when={look.data()?.listeners}>
      <Panel title="Where clients connect">
        <div class="listeners">
          <For each={look.data()!.listeners}>
            {(one) => (
              <span>
                <Badge tone={one.tls ? "good" : "plain"}>{one.protocol}</Badge> <span class="mono">{one.ip_address.includes(":") ? `[${one.ip_address}]` : one.ip_address}:{one.port}</span>
              </span>
            )}
          </For>
        </div>
      </Panel>
    </Show>
  );
}
