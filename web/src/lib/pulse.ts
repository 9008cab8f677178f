// How the broker is as a whole. It is asked for as long as a user is logged in, also while the tab is hidden, so that
// the charts of the overview have no holes.
import { createRoot, createSignal } from "solid-js";
import { get, withQuery } from "./http";
import { poll, type Polled } from "./poll";
import { Samples } from "./samples";
import { isMonitor } from "./session";
import { numberOf, type Node, type Overview } from "./types";

const FIELDS: (keyof Node)[] = [
  "name", "uptime", "mem_used", "mem_limit", "mem_alarm", "disk_free", "disk_free_limit", "disk_free_alarm", "fd_used", "fd_total",
  "proc_used", "proc_total", "processors", "os_pid", "db_dir", "running", "io_sync_count", "io_sync_avg_time",
];
export const MESSAGE_RATES = ["publish", "confirm", "deliver_get", "ack", "redeliver", "drop_unroutable", "return_unroutable", "get_empty"];
const CHURN = ["connection_created", "connection_closed", "channel_created", "channel_closed", "queue_created", "queue_deleted"];
const DEPTHS = ["messages_ready", "messages_unacknowledged"];

export let samples = new Samples();

interface Pulse {
  overview: Overview;
  node?: Node;
}

const [current, setCurrent] = createSignal<Polled<Pulse>>();
let stop = () => {};

async function ask(signal: AbortSignal): Promise<Pulse> {
  const first = samples.length === 0;
  const range = first ? { age: 600, incr: 5 } : {};
  const path = withQuery("/api/overview", {
    columns: "cluster_name,node,product_version,rabbitmq_version,message_stats,churn_rates,queue_totals,object_totals",
    msg_rates_age: range.age, msg_rates_incr: range.incr, lengths_age: range.age, lengths_incr: range.incr,
  });
  const nodes = withQuery("/api/nodes", { columns: FIELDS.join(",") });
  const [overview, all] = await Promise.all([get<Overview>(path, { signal }), isMonitor() ? get<Node[]>(nodes, { signal }) : []]);
  const node = all.find((one) => one.name === overview.node) ?? all[0];
  const { message_stats: messages, churn_rates: churn, queue_totals: totals } = overview;
  if (first) {
    const of = (names: string[], stats: Record<string, unknown> | undefined) => names.map((name) => [name, [stats, name]] as const);
    samples.seed(Object.fromEntries([...of(MESSAGE_RATES, messages), ...of(CHURN, churn), ...of(DEPTHS, totals)]) as never);
  }
  const values = (names: string[], stats: Record<string, unknown> | undefined) => names.map((name) => [name, numberOf(stats, name)]);
  samples.add(Date.now(), {
    ...Object.fromEntries([...values(MESSAGE_RATES, messages), ...values(CHURN, churn), ...values(DEPTHS, totals)]),
    ...(node && { mem_used: node.mem_used, mem_limit: node.mem_limit, disk_free: node.disk_free, fd_used: node.fd_used, syncs: node.io_sync_count, sync_ms: node.io_sync_count * node.io_sync_avg_time }),
  });
  return { overview, node };
}

export function startPulse(): void {
  stop();
  samples = new Samples();
  createRoot((dispose) => {
    const pulse = poll(() => "now", (_, signal) => ask(signal), { always: true });
    setCurrent(() => pulse);
    stop = () => {
      dispose();
      setCurrent(undefined);
    };
  });
}

export const stopPulse = (): void => stop();
export const overview = (): Overview | undefined => current()?.data()?.overview;
export const node = (): Node | undefined => current()?.data()?.node;
export const pulseError = () => current()?.error();
export const pulseRefresh = () => current()?.refresh();
