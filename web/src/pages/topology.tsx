// Exchanges, queues and the bindings between them, as a picture.
import { Graph, layout } from "@dagrejs/dagre";
import { createMemo, createSignal, For, onCleanup, Show } from "solid-js";
import { after } from "../lib/clock";
import * as format from "../lib/format";
import { exchangeSeg, get, seg, withQuery } from "../lib/http";
import { poll } from "../lib/poll";
import { query, setQuery, to, vhost } from "../lib/route";
import { rateOf, type Binding, type Exchange, type Page, type Queue } from "../lib/types";
import { Button, Code, Empty, Panel, Problem } from "../ui/bits";
import { VhostField } from "../ui/vhost-field";
import { exchangeName } from "./exchanges";

/** Bounds of a picture: nobody can read more. */
const EXCHANGES_MAX = 30;
const BINDINGS_MAX = 100;
const NODES_MAX = 150;
const STEPS_MAX = 4;
const NAMES_AT_ONCE = 50;
const SECOND_LOOK_MS = 4000;

interface Seen {
  bindings: Binding[];
  exchanges: Map<string, Exchange>;
  queues: Map<string, Queue>;
  isCut: boolean;
}

async function bindingsOf(vhost: string, exchange: string, side: "source" | "destination", signal: AbortSignal): Promise<{ items: Binding[]; isCut: boolean }> {
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

/** What is reached from some exchanges, step by step. */
async function walk(vhost: string, starts: string[], signal: AbortSignal): Promise<Seen> {
  const known = new Set(starts);
  const bindings: Binding[] = [];
  let isCut = false;
  let next = starts;
  for (let step = 0; step < STEPS_MAX && next.length > 0 && bindings.length < NODES_MAX * 2; step += 1) {
    const found = await Promise.all(next.slice(0, EXCHANGES_MAX).map((name) => bindingsOf(vhost, name, "source", signal)));
    isCut ||= next.length > EXCHANGES_MAX || found.some((one) => one.isCut);
    const fresh = found.flatMap((one) => one.items);
    bindings.push(...fresh);
    next = [...new Set(fresh.filter((one) => one.destination_type === "exchange").map((one) => one.destination))].filter((name) => !known.has(name));
    next.forEach((name) => known.add(name));
  }
  const reached = bindings.filter((one) => one.destination_type === "queue").map((one) => one.destination);
  const [exchanges, queues] = await Promise.all([
    named<Exchange>("exchanges", vhost, [...known], "name,type,message_stats.publish_in_details.rate", signal),
    named<Queue>("queues", vhost, reached, "name,messages,message_stats.publish_details.rate,message_stats.deliver_get_details.rate", signal),
  ]);
  return { bindings, exchanges, queues, isCut };
}

/** What leads to an exchange, and what it leads to. */
export function Around(props: { vhost: string; exchange: string }) {
  const look = poll(
    () => `${props.vhost}\n${props.exchange}`,
    async (_, signal) => {
      const sources = props.exchange === "" ? { items: [], isCut: false } : await bindingsOf(props.vhost, props.exchange, "destination", signal);
      const reached = await walk(props.vhost, [props.exchange], signal);
      return { ...reached, bindings: [...sources.items.filter((one) => one.source !== ""), ...reached.bindings], isCut: reached.isCut || sources.isCut };
    },
    { slower: 3 },
  );
  return (
    <Panel title="Topology" flush>
      <Show when={look.error()}>{(error) => <Problem error={error()} retry={look.refresh} />}</Show>
      <Show when={look.data()}>{(seen) => <Picture seen={seen() as Seen} vhost={props.vhost} start={props.exchange} />}</Show>
    </Panel>
  );
}

export function TopologyPage() {
  const where = () => vhost() ?? "/";
  const look = poll(
    () => ({ vhost: where(), name: query("name") }),
    async ({ vhost, name }, signal) => {
      const path = withQuery(`/api/exchanges/${seg(vhost)}`, { page: 1, page_size: EXCHANGES_MAX, name: name || undefined, sort: "message_stats.publish_in", sort_reverse: true, columns: "name" });
      const list = await get<Page<Exchange>>(path, { signal });
      const starts = list.items.map((one) => one.name).filter((one) => one !== "");
      const seen = await walk(vhost, starts, signal);
      return { ...seen, isCut: seen.isCut || list.filtered_count > list.items.length };
    },
    { slower: 6 },
  );
  // Rates begin with the second look: it should not be long in coming.
  onCleanup(after(SECOND_LOOK_MS, look.refresh));
  const isBare = () => look.data()?.bindings.length === 0;
  return (
    <>
      <header class="page-head">
        <h1>Topology</h1>
        <div class="inline tight">
          <VhostField value={where()} set={(value) => setQuery({ vhost: value })} />
        </div>
      </header>
      <div class="list-tools">
        <div class="search">
          <input type="search" data-key="search" aria-label="Exchanges by name" placeholder="Exchanges by name  /" value={query("name")} onChange={(event) => setQuery({ name: event.currentTarget.value })} />
        </div>
        <Button onClick={look.refresh}>Draw again</Button>
      </div>
      <Show when={look.error()}>{(error) => <Problem error={error()} retry={look.refresh} />}</Show>
      <Show when={isBare()}>
        <Empty title="Nothing is bound here">
          <p>Messages reach queues through bindings. With pika:</p>
          <Code text={`channel.queue_bind("invoices", "orders", "order.paid")`} />
        </Empty>
      </Show>
      <Show when={look.data() && !isBare()}>
        <div class="panel flush">
          <Picture seen={look.data() as Seen} vhost={where()} />
        </div>
      </Show>
    </>
  );
}

interface Box {
  id: string;
  kind: "exchange" | "queue";
  name: string;
  note: string;
  x: number;
  y: number;
  width: number;
  height: number;
}

interface Edge {
  points: { x: number; y: number }[];
  label: string;
  count: number;
  x: number;
  y: number;
}

const idOf = (kind: string, name: string) => `${kind} ${name}`;
const cut = (text: string, chars: number) => (text.length > chars ? `${text.slice(0, chars - 1)}…` : text);

function arrange(seen: Seen, start?: string) {
  const graph = new Graph({ multigraph: false });
  graph.setGraph({ rankdir: "LR", nodesep: 14, ranksep: 90, marginx: 16, marginy: 16 });
  graph.setDefaultEdgeLabel(() => ({}));
  const boxes = new Map<string, Omit<Box, "x" | "y">>();
  const add = (kind: Box["kind"], name: string) => {
    const id = idOf(kind, name);
    if (boxes.has(id) || boxes.size >= NODES_MAX) return boxes.has(id);
    const exchange = kind === "exchange" ? seen.exchanges.get(name) : undefined;
    const queue = kind === "queue" ? seen.queues.get(name) : undefined;
    const note = exchange ? `${exchange.type} · ${format.rate(rateOf(exchange.message_stats, "publish_in"))} in` : queue ? noteOf(queue) : kind;
    const width = Math.max(110, Math.min(230, 24 + 7.2 * Math.max(cut(name || "(default exchange)", 28).length, note.length * 0.85)));
    boxes.set(id, { id, kind, name, note, width, height: 42 });
    graph.setNode(id, { width, height: 42 });
    return true;
  };
  if (start !== undefined) add("exchange", start);
  const keys = new Map<string, { from: string; to: string; keys: string[] }>();
  let isCut = seen.isCut;
  for (const one of seen.bindings) {
    const [from, to] = [idOf("exchange", one.source), idOf(one.destination_type, one.destination)];
    if (!add("exchange", one.source) || !add(one.destination_type, one.destination)) {
      isCut = true;
      continue;
    }
    const edge = keys.get(`${from}\n${to}`) ?? { from, to, keys: [] };
    edge.keys.push(one.routing_key);
    keys.set(`${from}\n${to}`, edge);
  }
  for (const edge of keys.values()) {
    const label = labelOf(edge.keys);
    graph.setEdge(edge.from, edge.to, { label, count: edge.keys.length, width: 6.4 * label.length + 8, height: 16, labelpos: "c" });
  }
  layout(graph);
  const placed = [...boxes.values()].map((box): Box => ({ ...box, ...(graph.node(box.id) as { x: number; y: number }) }));
  const edges = graph.edges().map((edge) => graph.edge(edge) as unknown as Edge);
  const { width = 0, height = 0 } = graph.graph() as { width?: number; height?: number };
  return { boxes: placed, edges, width, height, isCut };
}

const noteOf = (queue: Queue) => `${format.count(queue.messages)} · ${format.rate(rateOf(queue.message_stats, "publish"))} in, ${format.rate(rateOf(queue.message_stats, "deliver_get"))} out`;

const labelOf = (keys: string[]) => (keys.length === 1 ? cut(keys[0]!, 22) : `${cut(keys[0]!, 14)} +${keys.length - 1}`);

function Picture(props: { seen: Seen; vhost: string; start?: string }) {
  const [zoom, setZoom] = createSignal(1);
  const drawn = createMemo(() => arrange(props.seen, props.start));
  const address = (box: Box) => to([`${box.kind}s`, props.vhost, box.name]);
  const path = (edge: Edge) => edge.points.map((point, nth) => `${nth === 0 ? "M" : "L"}${point.x.toFixed(1)} ${point.y.toFixed(1)}`).join("");
  return (
    <div class="picture">
      <div class="picture-tools">
        <span class="muted">{format.plural(drawn().boxes.length, "box")}, {format.plural(props.seen.bindings.length, "binding")}{drawn().isCut ? "; more than can be drawn: narrow it by name" : ""}</span>
        <span class="grow" />
        <Button kind="quiet" aria-label="Smaller" onClick={() => setZoom(Math.max(0.4, zoom() - 0.2))}>−</Button>
        <Button kind="quiet" aria-label="Larger" onClick={() => setZoom(Math.min(2, zoom() + 0.2))}>+</Button>
      </div>
      <div class="picture-box" tabindex="0" role="region" aria-label="The picture; each box leads to its exchange or queue">
        <svg width={drawn().width * zoom()} height={drawn().height * zoom()} viewBox={`0 0 ${drawn().width} ${drawn().height}`}>
          <defs>
            <marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto-start-reverse"><path d="M0 0L8 4L0 8z" /></marker>
          </defs>
          <For each={drawn().edges}>
            {(edge) => (
              <g class="edge">
                <path d={path(edge)} marker-end="url(#arrow)" />
                <Show when={edge.label}>
                  <rect class="edge-back" x={edge.x - edge.label.length * 3.2 - 3} y={edge.y - 8} width={edge.label.length * 6.4 + 6} height="16" rx="3" />
                  <text x={edge.x} y={edge.y + 3.5}>{edge.label}</text>
                </Show>
              </g>
            )}
          </For>
          <For each={drawn().boxes}>
            {(box) => (
              <g class={`box ${box.kind}${box.kind === "exchange" && box.name === props.start ? " start" : ""}`}>
              <a href={address(box)}>
                <title>{box.name || "(default exchange)"}</title>
                <rect x={box.x - box.width / 2} y={box.y - box.height / 2} width={box.width} height={box.height} rx={box.kind === "exchange" ? 20 : 5} />
                <text class="box-name" x={box.x} y={box.y - 2}>{cut(exchangeName(box.name), 28)}</text>
                <text class="box-note" x={box.x} y={box.y + 13}>{box.note}</text>
              </a></g>
            )}
          </For>
        </svg>
      </div>
    </div>
  );
}
