// Lines that come as things happen: the newest on top, so many of them, held on demand.
import { createMemo, createSignal, For, onCleanup, Show, type JSX } from "solid-js";
import { follow, type Sent } from "../lib/events";
import { exact, plural } from "../lib/format";
import { query, setQuery } from "../lib/route";
import { download } from "../lib/save";
import { Badge, Button, Empty, Problem } from "./bits";

/** Lines that are kept: the browser's memory is bounded. */
const LINES_MAX = 1000;
/** Lines come together, so that a flood of them does not draw the page thousands of times. */
const TOGETHER_MS = 200;

export interface Line<T> {
  nth: number;
  of: T;
}

interface Props<T> {
  path: string;
  /** What one that was sent is; nothing if it is of no interest here. */
  read: (sent: Sent) => T | undefined;
  /** What the search looks at. */
  text: (one: T) => string;
  columns: { label: string; cell: (one: T) => JSX.Element }[];
  name: string;
  /** The broker sends what there was lately each time that somebody connects. */
  replays?: boolean;
  tools?: JSX.Element;
  empty: JSX.Element;
}

export function Live<T>(props: Props<T>) {
  const [lines, setLines] = createSignal<Line<T>[]>([]);
  const [isHeld, setHeld] = createSignal(false);
  const [missed, setMissed] = createSignal(0);
  const [waiting, setWaiting] = createSignal(0);
  let fresh: Line<T>[] = [];
  let last = 0;
  let timer: ReturnType<typeof setTimeout> | undefined;

  const show = () => {
    timer = undefined;
    setWaiting(fresh.length);
    if (isHeld()) return;
    const come = fresh;
    fresh = [];
    setWaiting(0);
    setLines((before) => [...come.reverse(), ...before].slice(0, LINES_MAX));
  };
  const hear = (events: Sent[]) => {
    for (const sent of events) {
      if (sent.event === "missed") {
        setMissed((before) => before + Number(sent.data["missed"] ?? 0));
        continue;
      }
      const one = props.read(sent);
      if (one !== undefined) fresh.push({ nth: ++last, of: one });
    }
    if (fresh.length > LINES_MAX) fresh.splice(0, fresh.length - LINES_MAX);
    timer ??= setTimeout(show, TOGETHER_MS);
  };
  const opened = () => {
    if (!props.replays) return;
    fresh = [];
    setLines([]);
  };
  const { isLive, error, again } = follow(props.path, hear, opened);
  onCleanup(() => clearTimeout(timer));
  const hold = (on: boolean) => {
    setHeld(on);
    if (!on) show();
  };
  const found = createMemo(() => {
    const words = query("name").toLowerCase().split(/\s+/).filter(Boolean);
    return words.length === 0 ? lines() : lines().filter((line) => words.every((word) => props.text(line.of).toLowerCase().includes(word)));
  });
  const save = () => download(`${props.name}.json`, found().map((line) => JSON.stringify(line.of)).join("\n") + "\n");

  return (
    <div class="list">
      <div class="list-tools">
        <div class="search">
          <input type="search" data-key="search" aria-label={`Search the ${props.name} below`} placeholder={`Search the ${props.name} below  /`} value={query("name")} spellcheck={false} onInput={(event) => setQuery({ name: event.currentTarget.value })} />
        </div>
        {props.tools}
        <span class="grow" />
        <Badge tone={isLive() ? "good" : "warn"}>{isLive() ? "live" : error() ? "stopped" : "connecting"}</Badge>
        <Button aria-pressed={isHeld()} onClick={() => hold(!isHeld())}>{isHeld() ? `Go on${waiting() > 0 ? ` (${exact(waiting())})` : ""}` : "Hold"}</Button>
        <Button onClick={() => setLines([])}>Clear</Button>
        <Button disabled={found().length === 0} onClick={save}>Save</Button>
      </div>
      <Show when={error()}>{(error) => <Problem error={error()} retry={again} />}</Show>
      <Show when={missed() > 0}>
        <p class="muted" role="status">{plural(missed(), "line")} more than this page could take in time: they are not shown.</p>
      </Show>
      <Show when={found().length > 0} fallback={<Show when={lines().length > 0} fallback={<Show when={!error()}>{props.empty}</Show>}><Empty title="Nothing matches">Of {plural(lines().length, "line")}, none has “{query("name")}”.</Empty></Show>}>
        <div class="table-box" tabindex="0" role="region" aria-label={`${props.name}, newest first`}>
          <table class="table cards">
            <thead><tr><For each={props.columns}>{(column) => <th>{column.label}</th>}</For></tr></thead>
            <tbody>
              <For each={found()}>{(line) => <tr><For each={props.columns}>{(column) => <td data-label={column.label}>{column.cell(line.of)}</td>}</For></tr>}</For>
            </tbody>
          </table>
        </div>
        <p class="muted small">{plural(found().length, "line")}{lines().length === LINES_MAX ? `; of older ones, no more than ${exact(LINES_MAX)} are kept` : ""}.</p>
      </Show>
    </div>
  );
}
