// A table of what comes as it comes.
import { createMemo, For, Show, type JSX } from "solid-js";
import type { Reading, Sent } from "../lib/events";
import { exact, plural } from "../lib/format";
import { live, type Live } from "../lib/live";
import { query, setQuery } from "../lib/route";
import { download } from "../lib/save";
import { Badge, Button, Empty, Problem, type Tone } from "./bits";

const LINES_MAX = 1000;
const TONES: Record<Reading, Tone> = { connecting: "warn", live: "good", stopped: "bad" };

interface Props<T> {
  path: string;
  read: (sent: Sent) => T;
  /** What the search looks at. */
  text: (one: T) => string;
  columns: { label: string; cell: (one: T) => JSX.Element }[];
  name: string;
  /** The broker sends what there was lately to each page that connects. */
  replays?: boolean;
  tools?: JSX.Element;
  empty: JSX.Element;
}

/** Whether it is live, and buttons that hold and clear it. */
export function LiveSwitches<T>(props: { of: Live<T> }) {
  return (
    <>
      <Badge tone={TONES[props.of.reading()]}>{props.of.reading()}</Badge>
      <Button aria-pressed={props.of.isHeld()} onClick={() => props.of.hold(!props.of.isHeld())}>
        {props.of.isHeld() ? `Continue${props.of.waiting() > 0 ? ` (${exact(props.of.waiting())})` : ""}` : "Hold"}
      </Button>
      <Button onClick={props.of.clear}>Clear</Button>
    </>
  );
}

export function LiveTable<T>(props: Props<T>) {
  const lines = live<T>(props.path, { read: props.read, most: LINES_MAX, replays: props.replays });
  const found = createMemo(() => {
    const words = query("name").toLowerCase().split(/\s+/).filter(Boolean);
    return words.length === 0 ? lines.items() : lines.items().filter((one) => words.every((word) => props.text(one).toLowerCase().includes(word)));
  });
  const save = () => download(`${props.name}.json`, found().map((one) => JSON.stringify(one)).join("\n") + "\n");
  const nothing = () => (
    <Show when={lines.items().length > 0} fallback={<Show when={!lines.error()}>{props.empty}</Show>}>
      <Empty title="Nothing matches">None of {plural(lines.items().length, "line")} contains “{query("name")}”.</Empty>
    </Show>
  );
  return (
    <div class="list">
      <div class="list-tools">
        <div class="search">
          <input type="search" data-key="search" aria-label={`Search the ${props.name} below`} placeholder={`Search the ${props.name} below  /`} value={query("name")} spellcheck={false} onInput={(event) => setQuery({ name: event.currentTarget.value })} />
        </div>
        {props.tools}
        <span class="grow" />
        <LiveSwitches of={lines} />
        <Button disabled={found().length === 0} onClick={save}>Save</Button>
      </div>
      <Show when={lines.error()}>{(error) => <Problem error={error()} retry={lines.again} />}</Show>
      <Show when={lines.missed() > 0}>
        <p class="muted" role="status">{plural(lines.missed(), "line")} more than this page could take in time: they are not shown.</p>
      </Show>
      <Show when={found().length > 0} fallback={nothing()}>
        <div class="table-box" tabindex="0" role="region" aria-label={`${props.name}, newest first`}>
          <table class="table cards">
            <thead><tr><For each={props.columns}>{(column) => <th>{column.label}</th>}</For></tr></thead>
            <tbody>
              <For each={found()}>{(one) => <tr><For each={props.columns}>{(column) => <td data-label={column.label}>{column.cell(one)}</td>}</For></tr>}</For>
            </tbody>
          </table>
        </div>
        <p class="muted small">{plural(found().length, "line")}{lines.items().length === LINES_MAX ? `; of older ones, no more than ${exact(LINES_MAX)} are kept` : ""}.</p>
      </Show>
    </div>
  );
}
