// What is in a stream: from an offset or a time on, searched, or as it comes.
import { createMemo, createSignal, Show } from "solid-js";
import * as format from "../lib/format";
import { get, SEARCH_MS_MAX, seg, withQuery, type Query } from "../lib/http";
import { live } from "../lib/live";
import { poll } from "../lib/poll";
import { query, setQuery } from "../lib/route";
import { download } from "../lib/save";
import type { Queue } from "../lib/types";
import { Button, Empty, Panel, Problem } from "../ui/bits";
import { AsCommand } from "../ui/dialog";
import { Select, Text } from "../ui/fields";
import { LiveSwitches } from "../ui/live";
import { Messages, SHOWN_BYTES, type Line } from "../ui/messages";
import type { Peeked } from "./messages";

const SHOWN = 20;
/** Messages of the live tail that are kept: the browser's memory is bounded. */
const TAIL_MAX = 200;
const TAIL_BYTES = 4096;

interface StreamPage {
  messages: Peeked[];
  looked_at: number;
  next: number;
  first_offset: number;
  next_offset: number;
}

const PLACES: [string, string][] = [["", "the first message"], ["last", "the last messages"], ["offset", "an offset"], ["time", "a time"], ["live", "what comes from now on"]];

export function StreamBrowser(props: { queue: Queue }) {
  const path = () => `/api/queues/${seg(props.queue.vhost)}/${seg(props.queue.name)}`;
  const place = () => (query("live") ? "live" : query("time") ? "time" : query("offset") === "last" ? "last" : query("offset") ? "offset" : "");
  const begin = (place: string) =>
    setQuery({
      live: place === "live" ? "1" : undefined,
      time: place === "time" ? local(Date.now() - 3_600_000) : undefined,
      offset: place === "last" ? "last" : place === "offset" ? "0" : undefined,
    });
  const search = () => ({ contains: query("contains"), header: query("header") });
  return (
    <>
      <form class="inline" onSubmit={(event) => event.preventDefault()}>
        <Select label="Begin with" value={place()} set={begin} options={PLACES} />
        <Show when={place() === "offset"}><Text label="Offset" inputmode="numeric" value={query("offset")} set={() => {}} onChange={(event) => setQuery({ offset: /^\d+$/.test(event.currentTarget.value) ? event.currentTarget.value : "0" })} /></Show>
        <Show when={place() === "time"}><Text label="Time, here" type="datetime-local" step="1" value={query("time")} set={() => {}} onChange={(event) => setQuery({ time: event.currentTarget.value })} /></Show>
        <Text label="Payload contains" value={query("contains")} set={() => {}} onChange={(event) => setQuery({ contains: event.currentTarget.value })} />
        <Text label="Header: name, or name:value" value={query("header")} set={() => {}} onChange={(event) => setQuery({ header: event.currentTarget.value })} />
      </form>
      <Show when={place() === "live"} fallback={<Pages path={path()} name={props.queue.name} search={search()} />}>
        <Show when={withQuery(`${path()}/tail`, { ...search(), truncate: TAIL_BYTES })} keyed>{(tail) => <Tail path={tail} messages={`.${path()}/messages`} />}</Show>
      </Show>
    </>
  );
}

const lineOf = (message: Peeked, files: string): Line => ({ message, id: String(message.offset), position: message.offset, at: message.published_ms, file: `${files}/${message.offset}` });

/** As a field for a time has it. */
function local(ms: number): string {
  const here = new Date(ms - new Date(ms).getTimezoneOffset() * 60_000);
  return here.toISOString().slice(0, 19);
}

function Pages(props: { path: string; name: string; search: { contains: string; header: string } }) {
  const [version, setVersion] = createSignal(0);
  const from = () => {
    const time = query("time") ? Date.parse(query("time")) : NaN;
    return Number.isNaN(time) ? { offset: query("offset") || "first" } : { timestamp_ms: time };
  };
  const address = (from: Query) => withQuery(`${props.path}/messages`, { ...from, count: SHOWN, ...props.search, truncate: SHOWN_BYTES });
  const asked = createMemo(() => address(from()));
  // Looked at when asked for: reading them again and again would cost the broker, and they would run away.
  const look = poll(() => ({ path: asked(), version: version() }), async ({ path }, signal) => {
    if (query("offset") !== "last") return get<StreamPage>(path, { signal, limitMs: SEARCH_MS_MAX });
    // The last page, not the last message alone: where it begins, the stream has to say first.
    const { first_offset, next_offset } = await get<StreamPage>(withQuery(`${props.path}/messages`, { offset: "next", count: 1, truncate: 0 }), { signal });
    return get<StreamPage>(address({ offset: Math.max(first_offset, next_offset - SHOWN) }), { signal, limitMs: SEARCH_MS_MAX });
  }, { once: true });
  const to = (offset: number) => setQuery({ offset, time: undefined });
  const earlier = (data: StreamPage) => Math.max(data.first_offset, (data.messages[0]?.offset ?? data.next) - SHOWN);
  return (
    <Panel title="Messages" class="messages-panel" aside={<Button onClick={() => setVersion(version() + 1)}>Refresh</Button>}>
      <Show when={look.error()}>{(error) => <Problem error={error()} retry={look.refresh} />}</Show>
      <Show when={look.data()}>
        {(data) => (
          <>
            <p class="muted small">{data().next_offset > data().first_offset ? `The stream holds the offsets ${format.exact(data().first_offset)} to ${format.exact(data().next_offset - 1)}.` : "The stream is empty."} Browsing changes nothing.</p>
            <Show when={data().messages.length > 0} fallback={<Empty title={data().next >= data().next_offset || data().looked_at === 0 ? "No messages" : "None found so far"}><p>{format.plural(data().looked_at, "message")} searched.</p></Empty>}>
              <Messages label="Messages in the stream" messages={data().messages} line={(message) => lineOf(message, `.${props.path}/messages`)} />
            </Show>
            <div class="pager">
              <Button disabled={(data().messages[0]?.offset ?? data().next) <= data().first_offset} onClick={() => to(earlier(data()))}>‹ Earlier</Button>
              <Button disabled={data().next >= data().next_offset} onClick={() => to(data().next)}>Later ›</Button>
              <span class="grow" />
              <Show when={data().messages.length > 0}><Button onClick={() => download(`${props.name}.json`, JSON.stringify(data().messages, null, 2))}>Download</Button></Show>
            </div>
          </>
        )}
      </Show>
      <AsCommand actions={[{ method: "GET", path: asked() }]} />
    </Panel>
  );
}

/** Messages as they come, the newest on top. */
function Tail(props: { path: string; messages: string }) {
  const coming = live<Peeked>(props.path, { read: (sent) => sent.data as unknown as Peeked, most: TAIL_MAX });
  return (
    <Panel title="Messages as they come" class="messages-panel" aside={<LiveSwitches of={coming} />}>
      <Show when={coming.error()}>{(error) => <Problem error={error()} retry={coming.again} />}</Show>
      <Show when={coming.missed() > 0}><p class="muted" role="status">{format.plural(coming.missed(), "message")} more than this page could take in time: they are in the stream.</p></Show>
      <Show when={coming.items().length > 0} fallback={<Empty title="Nothing has come yet"><p>What is published from now on appears here; of each, the first {format.bytes(TAIL_BYTES)}.</p></Empty>}>
        <Messages label="Messages as they come" messages={coming.items()} line={(message) => lineOf(message, props.messages)} shownBytes={TAIL_BYTES} />
      </Show>
      <AsCommand actions={[{ method: "GET", path: props.path }]} />
    </Panel>
  );
}
