// What is reached from some exchanges: bindings, dead letters, alternate exchanges.
import { exchangeSeg, get, seg, withQuery } from "./http";
import type { Arguments, Binding, Exchange, Page, Policy, Queue } from "./types";

/** Bounds of a picture: more cannot be read. */
export const EXCHANGES_MAX = 30;
const BINDINGS_MAX = 100;
export const NODES_MAX = 150;
const STEPS_MAX = 4;
const NAMES_AT_ONCE = 50;

const POLICIES_MAX = 20;

/** Where messages go that a queue rejects or drops, or that an exchange can't route. */
export interface Detour {
  kind: "dead letters" | "alternate exchange";
  from: { kind: "exchange" | "queue"; name: string };
  to: { kind: "exchange" | "queue"; name: string };
  /** The routing key that they get. */
  key: string;
}

export interface Seen {
  bindings: Binding[];
  detours: Detour[];
  exchanges: Map<string, Exchange>;
  queues: Map<string, Queue>;
  isCut: boolean;
}

export async function bindingsOf(vhost: string, exchange: string, side: "source" | "destination", signal: AbortSignal): Promise<{ items: Binding[]; isCut: boolean }> {
  const path = `/api/exchanges/${seg(vhost)}/${exchangeSeg(exchange)}/bindings/${side}`;
  const answer = await get<Binding[] | Page<Binding>>(withQuery(path, { page: 1, page_size: BINDINGS_MAX }), { signal });
  const [items, total] = Array.isArray(answer) ? [answer.slice(0, BINDINGS_MAX), answer.length] : [answer.items, answer.total_count];
  return { items, isCut: total > items.length };
}

const escaped = (name: string): string => name.replace(/[\\^$.*+?()[\]{}|#-]/g, "\\$&");

/** What is drawn, by name: all of a kind with one request. */
async function named<T extends { name: string }>(kind: string, vhost: string, names: string[], columns: string, signal: AbortSignal): Promise<Map<string, T>> {
  const wanted = [...new Set(names)].slice(0, NODES_MAX);
  const list: T[] = [];
  // So many that the address stays short.
  for (let from = 0; from < wanted.length; from += NAMES_AT_ONCE) {
    const some = wanted.slice(from, from + NAMES_AT_ONCE);
    const path = withQuery(`/api/${kind}/${seg(vhost)}`, { page: 1, page_size: some.length, use_regex: true, name: `^(${some.map(escaped).join("|")})$`, columns });
    list.push(...(await get<Page<T>>(path, { signal })).items);
  }
  return new Map(list.map((one) => [one.name, one]));
}

const text = (value: unknown): string | undefined => (typeof value === "string" ? value : undefined);

/** The default exchange leads to the queue that the key names; without a key it depends on the message. */
function deadLettersOf(queue: Queue): Detour | undefined {
  const policy = queue.effective_policy_definition;
  const exchange = text(queue.arguments["x-dead-letter-exchange"]) ?? text(policy?.["dead-letter-exchange"]);
  if (exchange === undefined) return undefined;
  const key = text(queue.arguments["x-dead-letter-routing-key"]) ?? text(policy?.["dead-letter-routing-key"]) ?? "";
  const to = exchange === "" && key !== "" ? ({ kind: "queue", name: key } as const) : ({ kind: "exchange", name: exchange } as const);
  return { kind: "dead letters", from: { kind: "queue", name: queue.name }, to, key };
}

/** The definitions of the policies that apply to exchanges; a list of exchanges has their names only. */
async function policiesOf(vhost: string, exchanges: Exchange[], known: Map<string, Arguments>, signal: AbortSignal): Promise<void> {
  const names = [...new Set(exchanges.flatMap((one) => one.policy ?? []))].filter((name) => !known.has(name));
  await Promise.all(
    names.slice(0, Math.max(0, POLICIES_MAX - known.size)).map(async (name) => {
      // A user who may not read policies still gets the picture.
      const policy = await get<Policy>(`/api/policies/${seg(vhost)}/${seg(name)}`, { signal }).catch(() => undefined);
      known.set(name, policy?.definition ?? {});
    }),
  );
}

function alternateOf(exchange: Exchange, policies: Map<string, Arguments>): Detour | undefined {
  const name = text(exchange.arguments["alternate-exchange"]) ?? text(policies.get(exchange.policy ?? "")?.["alternate-exchange"]);
  if (name === undefined) return undefined;
  return { kind: "alternate exchange", from: { kind: "exchange", name: exchange.name }, to: { kind: "exchange", name }, key: "" };
}

const EXCHANGE_COLUMNS = "name,type,arguments,policy,message_stats.publish_in_details.rate";
const QUEUE_COLUMNS = "name,messages,arguments,effective_policy_definition,message_stats.publish_details.rate,message_stats.deliver_get_details.rate";

/** Step by step. */
export async function walk(vhost: string, starts: string[], signal: AbortSignal): Promise<Seen> {
  const seen: Seen = { bindings: [], detours: [], exchanges: new Map(), queues: new Map(), isCut: false };
  const known = new Set<string>();
  const policies = new Map<string, Arguments>();
  let [next, queueNames]: [string[], string[]] = [starts, []];
  for (let step = 0; step < STEPS_MAX && next.length + queueNames.length > 0 && seen.bindings.length < NODES_MAX * 2; step += 1) {
    next.forEach((name) => known.add(name));
    const found = await Promise.all(next.slice(0, EXCHANGES_MAX).map((name) => bindingsOf(vhost, name, "source", signal)));
    seen.isCut ||= next.length > EXCHANGES_MAX || found.some((one) => one.isCut);
    const fresh = found.flatMap((one) => one.items);
    seen.bindings.push(...fresh);
    const reached = fresh.filter((one) => one.destination_type === "queue").map((one) => one.destination);
    const newQueues = [...queueNames, ...reached].filter((name) => !seen.queues.has(name));
    const [exchanges, queues] = await Promise.all([
      named<Exchange>("exchanges", vhost, next, EXCHANGE_COLUMNS, signal),
      named<Queue>("queues", vhost, newQueues, QUEUE_COLUMNS, signal),
    ]);
    exchanges.forEach((one, name) => seen.exchanges.set(name, one));
    queues.forEach((one, name) => seen.queues.set(name, one));
    await policiesOf(vhost, [...exchanges.values()], policies, signal);
    const detours = [...[...exchanges.values()].map((one) => alternateOf(one, policies)), ...[...queues.values()].map(deadLettersOf)].filter((one) => one !== undefined);
    seen.detours.push(...detours);
    const targets = [...fresh.map((one) => ({ kind: one.destination_type, name: one.destination })), ...detours.map((one) => one.to)];
    // What leaves the default exchange is not one of its bindings alone: it reaches every queue.
    next = [...new Set(targets.filter((one) => one.kind === "exchange" && one.name !== "").map((one) => one.name))].filter((name) => !known.has(name));
    queueNames = detours.filter((one) => one.to.kind === "queue").map((one) => one.to.name);
  }
  return seen;
}
