// A picture of exchanges, queues, and what leads from one to another.
import { Graph, layout } from "@dagrejs/dagre";
import { createMemo, createSignal, For, onMount, Show } from "solid-js";
import * as format from "../lib/format";
import { to } from "../lib/route";
import { NODES_MAX, type Detour, type Seen } from "../lib/topology";
import { rateOf, type Queue } from "../lib/types";
import { exchangeName } from "../pages/exchanges";
import { Button } from "./bits";

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

type EdgeKind = "binding" | Detour["kind"];

/** Smaller, the shape can't be seen; and the names can't be read. */
const ZOOM_MIN = 0.3;
const ZOOM_READABLE = 0.7;
const ZOOM_MAX = 2;
/** How each looks in the legend, for each kind of edge. */
const KINDS: Record<EdgeKind, string> = { binding: "plain", "dead letters": "c6 dashed", "alternate exchange": "c5 dashed" };

interface Edge {
  kind: EdgeKind;
  points: { x: number; y: number }[];
  label: string;
  x: number;
  y: number;
}

const idOf = (kind: string, name: string) => `${kind} ${name}`;
const cut = (text: string, chars: number) => (text.length > chars ? `${text.slice(0, chars - 1)}…` : text);

function arrange(seen: Seen, start?: string) {
  const graph = new Graph({ multigraph: true });
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
  const keys = new Map<string, { kind: EdgeKind; from: string; to: string; keys: string[] }>();
  let isCut = seen.isCut;
  const bindings = seen.bindings.map((one) => ({
    kind: "binding" as const, key: one.routing_key, from: { kind: "exchange" as const, name: one.source }, to: { kind: one.destination_type, name: one.destination },
  }));
  for (const { kind, from, to, key } of [...bindings, ...seen.detours]) {
    if (!add(from.kind, from.name) || !add(to.kind, to.name)) {
      isCut = true;
      continue;
    }
    const ends = { kind, from: idOf(from.kind, from.name), to: idOf(to.kind, to.name) };
    const edge = keys.get(JSON.stringify(ends)) ?? { ...ends, keys: [] };
    edge.keys.push(key);
    keys.set(JSON.stringify(ends), edge);
  }
  for (const edge of keys.values()) {
    const label = labelOf(edge.keys);
    graph.setEdge({ v: edge.from, w: edge.to, name: edge.kind }, { kind: edge.kind, label, width: 6.4 * label.length + 8, height: 16, labelpos: "c" });
  }
  layout(graph);
  const placed = [...boxes.values()].map((box): Box => ({ ...box, ...(graph.node(box.id) as { x: number; y: number }) }));
  const edges = graph.edges().map((edge) => graph.edge(edge) as unknown as Edge);
  const { width = 0, height = 0 } = graph.graph() as { width?: number; height?: number };
  return { boxes: placed, edges, width, height, isCut };
}

const noteOf = (queue: Queue) => `${format.count(queue.messages)} · ${format.rate(rateOf(queue.message_stats, "publish"))} in, ${format.rate(rateOf(queue.message_stats, "deliver_get"))} out`;

const labelOf = (keys: string[]) => (keys.length === 1 ? cut(keys[0]!, 22) : `${cut(keys[0]!, 14)} +${keys.length - 1}`);

export function Picture(props: { seen: Seen; vhost: string; start?: string }) {
  let box!: HTMLDivElement;
  const [zoom, setZoom] = createSignal(1);
  const drawn = createMemo(() => arrange(props.seen, props.start));
  const kinds = () => (Object.keys(KINDS) as EdgeKind[]).filter((kind) => drawn().edges.some((edge) => edge.kind === kind));
  // How high the box may get, not how high it is: that follows the picture.
  const fit = (least: number) => setZoom(Math.min(1, Math.max(least, Math.min(box.clientWidth / drawn().width, parseFloat(getComputedStyle(box).maxHeight) / drawn().height))));
  const zoomBy = (step: number) => setZoom(Math.min(ZOOM_MAX, Math.max(ZOOM_MIN, zoom() + step)));
  // At first as large as it fits; after that the reader chooses.
  onMount(() => requestAnimationFrame(() => fit(ZOOM_READABLE)));
  const address = (box: Box) => to([`${box.kind}s`, props.vhost, box.name]);
  const path = (edge: Edge) => edge.points.map((point, nth) => `${nth === 0 ? "M" : "L"}${point.x.toFixed(1)} ${point.y.toFixed(1)}`).join("");
  return (
    <div class="picture">
      <div class="picture-tools">
        <span class="muted">{format.plural(drawn().boxes.length, "box")}, {format.plural(props.seen.bindings.length, "binding")}{drawn().isCut ? "; more than can be drawn: narrow it by name" : ""}</span>
        <span class="grow" />
        <Show when={kinds().length > 1}>
          <ul class="legend" aria-label="Kinds of edges">
            <For each={kinds()}>{(kind) => <li><i class={`swatch ${KINDS[kind]}`} aria-hidden="true" /><span>{kind}</span></li>}</For>
          </ul>
        </Show>
        <Button kind="quiet" onClick={() => fit(ZOOM_MIN)}>Fit</Button>
        <Button kind="quiet" aria-label="Smaller" onClick={() => zoomBy(-0.2)}>−</Button>
        <Button kind="quiet" aria-label="Larger" onClick={() => zoomBy(0.2)}>+</Button>
      </div>
      <div class="picture-box" ref={box} tabindex="0" role="region" aria-label="The picture; each box leads to its exchange or queue">
        <svg width={drawn().width * zoom()} height={drawn().height * zoom()} viewBox={`0 0 ${drawn().width} ${drawn().height}`}>
          <defs>
            <marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto-start-reverse"><path d="M0 0L8 4L0 8z" /></marker>
          </defs>
          <For each={drawn().edges}>
            {(edge) => (
              <g class={`edge ${edge.kind.replace(" ", "-")}`}>
                <Show when={edge.kind !== "binding"}><title>{edge.kind}</title></Show>
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
