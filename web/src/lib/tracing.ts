// Following messages: the broker copies what is published and delivered in a vhost to `amq.rabbitmq.trace`; a queue
// for a while takes the copies, and the page takes them from there.
import { bind, deleteQueue, purgeQueue, putQueue } from "./actions";
import { get, seg, send, withQuery, type Action } from "./http";
import type { Vhost } from "./types";

const EXCHANGE = "amq.rabbitmq.trace";
/** Copies that wait for the page at most; the oldest go first. */
const COPIES_MAX = 20_000;
/** Copies that one request reads, and requests in a row until the page is drawn again. */
const TAKEN = 500;
const ROUNDS_MAX = 2 * (COPIES_MAX / TAKEN);
/** Copies that no page takes, and their queue, go after so long. */
const UNUSED_MS = 300_000;

export interface Death {
  queue: string;
  reason: string;
  exchange: string;
  "routing-keys": string[];
  count: number;
  time: number;
}

/** What happened to a message. */
export interface Step {
  nth: number;
  at: number;
  what: "published" | "delivered";
  id: string;
  exchange: string;
  keys: string[];
  /** Those that it went to, or the one that it came from. */
  queues: string[];
  redelivered: boolean;
  user: string;
  connection: string;
  channel: number;
  deaths: Death[];
}

export function freshName(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(6));
  return `courser.trace.${[...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("")}`;
}

const setTracing = (vhost: Vhost, on: boolean): Action => {
  const { name, description, tags, default_queue_type } = vhost;
  // What is not said would be forgotten.
  return { method: "PUT", path: `/api/vhosts/${seg(name)}`, body: { description, tags, default_queue_type, tracing: on } };
};

export const begin = (vhost: Vhost, queue: string): Action[] => [
  putQueue(vhost.name, queue, { durable: false, auto_delete: false, arguments: { "x-expires": UNUSED_MS, "x-max-length": COPIES_MAX, "x-message-ttl": UNUSED_MS } }),
  bind(vhost.name, EXCHANGE, "queue", queue, { routing_key: "#" }),
  setTracing(vhost, true),
];

export const end = (vhost: Vhost, queue: string): Action[] => [setTracing(vhost, false), ...(queue ? [deleteQueue(vhost.name, queue)] : [])];

interface Copy {
  number: string;
  routing_key: string;
  published_ms: number | null;
  properties: { headers?: Record<string, unknown> };
}

/**
 * Takes the copies that wait, until none is left. They are read first, as a read says when each came, and purged when they
 * are here. One call at a time: a purge is by count, so two would remove what neither has read.
 */
export async function take(vhost: string, queue: string, signal: AbortSignal, here: (steps: Step[]) => void): Promise<void> {
  const path = withQuery(`/api/queues/${seg(vhost)}/${seg(queue)}/messages`, { count: TAKEN, truncate: 0 });
  for (let round = 0; round < ROUNDS_MAX; round += 1) {
    const { messages, next } = await get<{ messages: Copy[]; next: number | null }>(path, { signal });
    here(messages.map(stepOf));
    if (messages.length > 0) await send(purgeQueue(vhost, queue, messages.length));
    if (messages.length === 0 || next === null) return;
  }
}

function stepOf(copy: Copy): Step {
  const known = copy.properties.headers ?? {};
  const properties = (known["properties"] ?? {}) as { message_id?: string; headers?: Record<string, unknown> };
  const deaths = properties.headers?.["x-death"];
  const isPublished = copy.routing_key.startsWith("publish.");
  return {
    nth: Number(copy.number),
    at: copy.published_ms ?? Date.now(),
    what: isPublished ? "published" : "delivered",
    id: properties.message_id ?? "",
    exchange: String(known["exchange_name"] ?? ""),
    keys: (known["routing_keys"] as string[] | undefined) ?? [],
    queues: isPublished ? ((known["routed_queues"] as string[] | undefined) ?? []) : [copy.routing_key.slice("deliver.".length)],
    redelivered: known["redelivered"] === 1,
    user: String(known["user"] ?? ""),
    connection: String(known["connection"] ?? ""),
    channel: Number(known["channel"] ?? 0),
    deaths: Array.isArray(deaths) ? deaths.filter(isDeath) : [],
  };
}

/** Whether it is an entry as brokers write them: publishers can send any x-death. */
function isDeath(entry: unknown): entry is Death {
  const { queue, reason } = (entry ?? {}) as Partial<Death>;
  return typeof queue === "string" && typeof reason === "string";
}

/** Steps as they come in. Each has a number, so those that never came are known. */
export interface Log {
  /** The last ones. */
  steps: Step[];
  /** How many came before these. */
  older: number;
  /** How many never came, as more waited than the queue holds, or another page took them. */
  missing: number;
  /** The number of the first step after the last gap. */
  wholeFrom: number;
}

export const EMPTY_LOG: Log = { steps: [], older: 0, missing: 0, wholeFrom: 0 };

/** Steps that are kept: the browser's memory is bounded. */
const STEPS_MAX = COPIES_MAX;

/** Adds steps behind `last`, the number of the one before them. */
export function logged(log: Log, fresh: Step[], last: number | undefined): Log {
  let { missing, wholeFrom } = log;
  let before = last;
  for (const { nth } of fresh) {
    if (before !== undefined && nth > before + 1) {
      missing += nth - before - 1;
      wholeFrom = nth;
    }
    before = nth;
  }
  const all = [...log.steps, ...fresh];
  const steps = all.slice(-STEPS_MAX);
  return { steps, older: log.older + all.length - steps.length, missing, wholeFrom };
}

/** What is known of one message, by its id. */
export interface Story {
  id: string;
  steps: Step[];
}

export function stories(steps: Step[]): Story[] {
  const byId = new Map<string, Step[]>();
  for (const step of steps) {
    if (step.id === "") continue;
    const known = byId.get(step.id);
    if (known) known.push(step);
    else byId.set(step.id, [step]);
  }
  return [...byId].map(([id, steps]) => ({ id, steps }));
}

/** The ends that a step tells of for the first time. */
export function newDeaths(step: Step, before: Step[]): Death[] {
  const told = new Map(before.flatMap((one) => one.deaths.map((death) => [`${death.queue}\n${death.reason}`, death.count] as const)));
  return step.deaths.filter((death) => (told.get(`${death.queue}\n${death.reason}`) ?? 0) < death.count).reverse();
}
