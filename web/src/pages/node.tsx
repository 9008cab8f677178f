// The node: the process that the broker is, and what it uses.
import { For, Show } from "solid-js";
import * as format from "../lib/format";
import { get, seg } from "../lib/http";
import { poll } from "../lib/poll";
import { node, overview, pulseError, pulseRefresh, samples } from "../lib/pulse";
import { Badge, Facts, Num, Panel, Problem } from "../ui/bits";
import { Chart } from "../ui/chart";
import { SyncTime } from "../ui/sync-time";
import { Table } from "../ui/table";

type Memory = Record<string, number | string | Record<string, number>>;

const CHECKS: [string, string][] = [
  ["alarms", "Memory and disk are not short"],
  ["virtual-hosts", "All vhosts run"],
];

export function NodePage() {
  const exactBytes = (value: number) => `${format.exact(value)} bytes`;
  return (
    <>
      <header class="page-head"><h1>Node</h1></header>
      <Show when={node()} fallback={<Show when={pulseError()} fallback={<div class="loading">Loading…</div>}><Problem error={pulseError()!} retry={pulseRefresh} /></Show>}>
        {(one) => (
          <>
            <div class="columns">
              <Panel title={one().name}>
                <Facts
                  of={[
                    ["Up for", <span title={format.utc(Date.now() - one().uptime)}>{format.duration(one().uptime)}</span>], ["Courser", overview()?.product_version], ["Answers as", `RabbitMQ ${overview()?.rabbitmq_version}`],
                    ["Process", one().os_pid], ["Processors", one().processors], ["Data", <span class="mono">{one().db_dir}</span>],
                  ]}
                />
              </Panel>
              <Panel title="What it uses">
                <Gauge label="memory of messages" used={one().mem_used} of={one().mem_limit} write={format.bytes} alarm={one().mem_alarm} />
                <Gauge label="file descriptors" used={one().fd_used} of={one().fd_total} write={format.count} />
                <Gauge label="connections" used={one().proc_used} of={one().proc_total} write={format.count} />
                <p class="gauge-line">free on disk <b title={exactBytes(one().disk_free)}>{format.bytes(one().disk_free)}</b> <Show when={one().disk_free_alarm}><Badge tone="bad">too little</Badge></Show></p>
              </Panel>
            </div>
            <Checks />
            <Certificates />
            <div class="charts">
              <Chart title="Memory of messages" times={samples.times()} format={format.bytes} binary exact={exactBytes} lines={[{ label: "used", colour: "c4", values: samples.values("mem_used") }, { label: "limit", colour: "c6", dashed: true, values: samples.values("mem_limit") }]} />
              <Chart title="Free disk" times={samples.times()} format={format.bytes} binary exact={exactBytes} lines={[{ label: "free", colour: "c3", values: samples.values("disk_free") }]} />
              <Chart title="Syncs of the journal per second" times={samples.times()} format={format.rate} lines={[{ label: "syncs", colour: "c2", values: samples.rates("syncs") }]} />
              <SyncTime />
              <Chart title="Open file descriptors" times={samples.times()} format={format.count} whole lines={[{ label: "open", colour: "c2", values: samples.values("fd_used") }]} />
            </div>
            <MemoryParts name={one().name} />
          </>
        )}
      </Show>
    </>
  );
}

function Gauge(props: { label: string; used: number; of: number; write: (value: number) => string; alarm?: boolean }) {
  const part = () => (props.of > 0 ? Math.min(1, props.used / props.of) : 0);
  return (
    <div class="gauge" title={`${format.exact(props.used)} of ${format.exact(props.of)}`}>
      <span>{props.label}</span>
      <b>{props.write(props.used)} of {props.write(props.of)}</b>
      <meter min="0" max="1" high={0.8} optimum={0} value={part()} aria-label={props.label} classList={{ full: props.alarm }} />
    </div>
  );
}

function Checks() {
  const look = poll(() => "checks", (_, signal) => Promise.all(CHECKS.map(async ([path, text]) => {
    try {
      await get(`/api/health/checks/${path}`, { signal });
      return { text, wrong: "" };
    } catch (failed) {
      return { text, wrong: (failed as Error).message };
    }
  })), { slower: 3 });
  return (
    <Panel title="Checks">
      <ul class="checks">
        <For each={look.data() ?? []}>{(one) => <li><Badge tone={one.wrong ? "bad" : "good"}>{one.wrong ? "no" : "yes"}</Badge> {one.text} <span class="muted">{one.wrong}</span></li>}</For>
      </ul>
    </Panel>
  );
}

interface Certificate {
  path: string;
  use: string;
  hosts: string[];
  subject: string;
  alternative_names: string[];
  issuer: string;
  not_before_ms: number;
  not_after_ms: number;
  expires_in_s: number;
}

/** Days before the end in which a certificate is shown as urgent. */
const SOON_S = 30 * 86_400;

function Certificates() {
  const look = poll(() => "/api/certificates", (path, signal) => get<Certificate[]>(path, { signal }), { slower: 12 });
  const ends = (one: Certificate) => (one.expires_in_s <= 0 ? <Badge tone="bad" title={format.utc(one.not_after_ms)}>expired</Badge> : <Badge tone={one.expires_in_s < SOON_S ? "warn" : "good"} title={format.utc(one.not_after_ms)}>in {format.duration(one.expires_in_s * 1000)}</Badge>);
  return (
    <Panel title="Certificates" flush>
      <Show when={look.error()}>{(error) => <Problem error={error()} retry={look.refresh} />}</Show>
      <Show when={look.data()}>
        {(list) => (
          <Table
            label="Certificates" rows={list()} empty={<p>There are none: nothing is served over TLS. With <code>tls</code> in the settings, clients connect safely over networks.</p>}
            columns={[
              { label: "Use", cell: (one) => <span>{one.use.replaceAll("_", " ")} {one.hosts.length > 0 ? <small class="muted">{one.hosts.join(", ")}</small> : ""}</span> },
              { label: "Subject", cell: (one) => <span class="two-lines">{one.subject}<small>{one.alternative_names.join(", ")}</small></span> },
              { label: "Issued by", cell: (one) => one.issuer },
              { label: "Ends", cell: (one) => ends(one) },
              { label: "File", cell: (one) => <span class="mono">{one.path}</span> },
            ]}
          />
        )}
      </Show>
      <p class="muted small pad">The files are read anew when they change; while new ones are not good, the old ones stay.</p>
    </Panel>
  );
}

function MemoryParts(props: { name: string }) {
  const look = poll(() => `/api/nodes/${seg(props.name)}/memory`, (path, signal) => get<{ memory: Memory }>(path, { signal }), { slower: 3 });
  const texts: Record<string, string> = { binary: "messages, and what clients make the broker hold", other_system: "the rest of the process" };
  const rows = () => Object.entries(look.data()?.memory ?? {}).filter((one): one is [string, number] => typeof one[1] === "number" && one[1] > 0);
  return (
    <Panel title="What memory is for" flush>
      <Table label="What memory is for" rows={rows()} empty={<p>Not known.</p>} columns={[{ label: "Part", cell: ([name]) => texts[name] ?? name.replaceAll("_", " ") }, { label: "Bytes", number: true, cell: ([, value]) => <Num of={value} as="bytes" /> }]} />
    </Panel>
  );
}
