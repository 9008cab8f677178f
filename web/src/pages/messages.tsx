// What is in a queue: look at messages as they lie there, search them, move them, or take them out.
import { createMemo, createSignal, Show } from "solid-js";
import { getMessages, moveMessages } from "../lib/actions";
import * as format from "../lib/format";
import { ApiError, get, SEARCH_MS_MAX, seg, send, withQuery } from "../lib/http";
import { poll } from "../lib/poll";
import { query, setQuery } from "../lib/route";
import { download } from "../lib/save";
import type { Message, Queue } from "../lib/types";
import { Button, Empty, Panel, Problem } from "../ui/bits";
import { Ask, AsCommand } from "../ui/dialog";
import { Check, Select, Text } from "../ui/fields";
import { Messages, SHOWN_BYTES } from "../ui/messages";

const SHOWN = 20;
const TAKEN_MAX = 100;

export interface Peeked extends Message {
  offset: number;
  number: string;
  published_ms?: number;
}

interface Peek {
  messages: Peeked[];
  looked_at: number;
  next: number | null;
}

export function MessagesPage(props: { queue: Queue; changed: () => void }) {
  const [marked, setMarked] = createSignal<string[]>([]);
  const path = () => `/api/queues/${seg(props.queue.vhost)}/${seg(props.queue.name)}/messages`;
  const asked = createMemo(() => withQuery(path(), { offset: query("offset") || undefined, count: SHOWN, contains: query("contains"), header: query("header"), truncate: SHOWN_BYTES }));
  // Looked at when asked for: reading them again and again would cost the broker, and they would run away.
  const [version, setVersion] = createSignal(0);
  const look = poll(() => ({ path: asked(), version: version() }), ({ path }, signal) => get<Peek>(path, { signal, limitMs: SEARCH_MS_MAX }), { once: true });
  const again = () => {
    setMarked([]);
    setVersion(version() + 1);
    props.changed();
  };
  const find = (values: Record<string, string | undefined>) => setQuery({ offset: undefined, ...values });
  const mark = (number: string, on: boolean) => setMarked(on ? [...marked(), number] : marked().filter((one) => one !== number));
  return (
    <>
      <Panel
        title="Messages" class="messages-panel"
        aside={
          <>
            <Move queue={props.queue} numbers={marked()} done={again} />
            <Button onClick={again}>Refresh</Button>
          </>
        }
      >
        <form class="inline" onSubmit={(event) => { event.preventDefault(); again(); }}>
          <Text label="Payload contains" value={query("contains")} set={() => {}} onChange={(event) => find({ contains: event.currentTarget.value })} />
          <Text label="Header: name, or name:value" value={query("header")} set={() => {}} onChange={(event) => find({ header: event.currentTarget.value })} />
          <Text label="From position" type="number" min="0" value={query("offset")} set={() => {}} onChange={(event) => setQuery({ offset: event.currentTarget.value })} />
          <button type="submit" class="button main">Search</button>
        </form>
        <p class="muted small">Browsing changes nothing: order, counters and the redelivered flag stay as they are. Unacknowledged messages are on a separate page.</p>
        <Show when={look.error()}>{(error) => <Problem error={error()} retry={again} />}</Show>
        <Show when={look.data()}>
          {(data) => (
            <>
              <Show when={data().messages.length > 0} fallback={<Empty title={data().next === null ? "No messages" : "None found so far"}><p>{format.plural(data().looked_at, "message")} searched.</p></Empty>}>
                <Messages
                  label="Messages in the queue" messages={data().messages} marked={marked()} mark={mark}
                  line={(message) => ({ message, id: message.number, position: message.offset, at: message.published_ms, file: withQuery(`.${path()}/${message.offset}`, { number: message.number }) })}
                />
              </Show>
              <div class="pager">
                <Show when={query("offset")}><Button onClick={() => setQuery({ offset: undefined })}>First page</Button></Show>
                <Show when={data().next !== null}><Button onClick={() => setQuery({ offset: data().next! })}>Next ›</Button></Show>
                <span class="grow" />
                <Show when={data().messages.length > 0}><Button onClick={() => download(`${props.queue.name}.json`, JSON.stringify(data().messages, null, 2))}>Download</Button></Show>
              </div>
            </>
          )}
        </Show>
        <AsCommand actions={[{ method: "GET", path: asked() }]} />
      </Panel>
      <Take queue={props.queue} done={again} />
    </>
  );
}

interface Moved {
  moved: number;
  without_place: number;
  forbidden: number;
  partial: boolean;
}

/** Moves what is marked, what the search finds, or all. */
function Move(props: { queue: Queue; numbers: string[]; done: () => void }) {
  const [to, setTo] = createSignal("queue");
  const [name, setName] = createSignal("");
  const [key, setKey] = createSignal("");
  const [all, setAll] = createSignal(false);
  const [trial, setTrial] = createSignal<{ of: string; moved: Moved } | ApiError>();
  const place = () => (to() === "origin" ? "origin" : to() === "queue" ? { queue: name() } : { exchange: name(), ...(key() && { routing_key: key() }) });
  const body = () => {
    const search = { contains: query("contains") || undefined, header: query("header") || undefined };
    return { to: place(), ...(all() || props.numbers.length === 0 ? search : { numbers: props.numbers }) };
  };
  const action = (dryRun: boolean) => moveMessages(props.queue.vhost, props.queue.name, { ...body(), ...(dryRun && { dry_run: true }) });
  const filled = () => to() === "origin" || name() !== "" || to() === "exchange";
  const tried = () => {
    const one = trial();
    return one && !(one instanceof ApiError) && one.of === JSON.stringify(body()) ? one.moved : undefined;
  };
  const attempt = async () => {
    const of = JSON.stringify(body());
    try {
      setTrial({ of, moved: await send<Moved>(action(true)) });
    } catch (failed) {
      if (!(failed instanceof ApiError)) throw failed;
      setTrial(failed);
    }
  };
  const what = () => (!all() && props.numbers.length > 0 ? `${format.plural(props.numbers.length, "message")} selected` : query("contains") || query("header") ? "all messages that the search finds" : "all ready messages");
  return (
    <Ask label="Move…" title={`Move messages out of ${props.queue.name}`} verb="Move" kind="plain" told="Moved." done={props.done} actions={filled() && (tried()?.moved ?? 0) > 0 ? [action(false)] : []}>
      <p>Messages: {what()}.</p>
      <Show when={props.numbers.length > 0}><Check checked={all()} set={setAll}>not only those selected</Check></Show>
      <Select label="Destination" value={to()} set={setTo} options={[["queue", "to a queue"], ["exchange", "to an exchange"], ["origin", "back to where each one died (from x-death)"]]} />
      <Show when={to() !== "origin"}><Text label={to() === "queue" ? "Queue" : "Exchange"} value={name()} set={setName} autofocus /></Show>
      <Show when={to() === "exchange"}><Text label="Routing key, if not its own" value={key()} set={setKey} /></Show>
      <div class="inline tight"><Button disabled={!filled()} onClick={attempt}>Dry run</Button></div>
      <Show when={trial() instanceof ApiError}><Problem error={trial() as ApiError} /></Show>
      <Show when={tried()} fallback={<p class="muted small">A dry run counts the messages that would move. They move together: a crash neither loses nor duplicates them.</p>}>
        {(moved) => (
          <p role="status">
            <b>{format.plural(moved().moved, "message")}</b> would move{moved().without_place > 0 ? `; ${format.exact(moved().without_place)} cannot be routed and stay` : ""}
            {moved().forbidden > 0 ? `; ${format.exact(moved().forbidden)} stay because you may not write there` : ""}{moved().partial ? "; there are more than one request moves" : ""}.
          </p>
        )}
      </Show>
    </Ask>
  );
}

const MODES: [string, string][] = [
  ["ack_requeue_false", "acknowledge: they are removed"],
  ["reject_requeue_false", "reject: they are dead-lettered"],
  ["ack_requeue_true", "requeue: they return, marked as redelivered"],
];

/** Takes messages as a consumer does. */
function Take(props: { queue: Queue; done: () => void }) {
  const [count, setCount] = createSignal("1");
  const [mode, setMode] = createSignal("ack_requeue_false");
  const [taken, setTaken] = createSignal<Message[]>();
  const action = () => getMessages(props.queue.vhost, props.queue.name, { count: Math.max(1, Math.min(TAKEN_MAX, Number(count()) || 1)), ackmode: mode(), encoding: "auto", truncate: SHOWN_BYTES });
  const done = (answers: unknown[]) => {
    if (answers.length > 0) setTaken(answers[0] as Message[]);
    props.done();
  };
  return (
    <Panel title="Get messages" aside={
      <Ask label="Get…" title={`Get messages from ${props.queue.name}`} verb="Get" danger kind="plain" actions={[action()]} done={done}>
        <Text label={`Count, ${TAKEN_MAX} at most`} type="number" min="1" max={TAKEN_MAX} value={count()} set={setCount} />
        <Select label="Acknowledgement" value={mode()} set={setMode} options={MODES} />
      </Ask>
    }>
      <Show when={taken()} fallback={<p class="muted small">Gets messages from the head of the queue with basic.get.</p>}>
        {(list) => (
          <>
            <div class="list-tools"><b>{list().length === 0 ? "The queue was empty." : `${format.plural(list().length, "message")} received`}</b><span class="grow" /><Button onClick={() => download(`${props.queue.name}.json`, JSON.stringify(list(), null, 2))}>Download</Button></div>
            <Messages label="Messages received" messages={list()} line={(message) => ({ message, id: String(list().indexOf(message)), position: list().indexOf(message) + 1 })} />
          </>
        )}
      </Show>
    </Panel>
  );
}
