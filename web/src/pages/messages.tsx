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
            <Button onClick={again}>Look again</Button>
          </>
        }
      >
        <form class="inline" onSubmit={(event) => { event.preventDefault(); again(); }}>
          <Text label="The payload has" value={query("contains")} set={() => {}} onChange={(event) => find({ contains: event.currentTarget.value })} />
          <Text label="A header: name, or name:value" value={query("header")} set={() => {}} onChange={(event) => find({ header: event.currentTarget.value })} />
          <Text label="From position" type="number" min="0" value={query("offset")} set={() => {}} onChange={(event) => setQuery({ offset: event.currentTarget.value })} />
          <button type="submit" class="button main">Look</button>
        </form>
        <p class="muted small">Browsing changes nothing: order, counters and the redelivered flag stay as they are. Unacknowledged messages are on a separate page.</p>
        <Show when={look.error()}>{(error) => <Problem error={error()} retry={again} />}</Show>
        <Show when={look.data()}>
          {(data) => (
            <>
              <Show when={data().messages.length > 0} fallback={<Empty title={data().next === null ? "Nothing is there" : "Not found so far"}><p>{format.plural(data().looked_at, "message")} looked at.</p></Empty>}>
                <Messages
                  label="Messages in the queue" messages={data().messages} marked={marked()} mark={mark}
                  line={(message) => ({ message, id: message.number, position: message.offset, at: message.published_ms, file: withQuery(`.${path()}/${message.offset}`, { number: message.number }) })}
                />
              </Show>
              <div class="pager">
                <Show when={query("offset")}><Button onClick={() => setQuery({ offset: undefined })}>From the beginning</Button></Show>
                <Show when={data().next !== null}><Button onClick={() => setQuery({ offset: data().next! })}>Further ›</Button></Show>
                <span class="grow" />
                <Show when={data().messages.length > 0}><Button onClick={() => download(`${props.queue.name}.json`, JSON.stringify(data().messages, null, 2))}>Download these</Button></Show>
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
  const what = () => (!all() && props.numbers.length > 0 ? `${format.plural(props.numbers.length, "message")} that are marked` : query("contains") || query("header") ? "all that the search finds" : "all that wait");
  return (
    <Ask label="Move…" title={`Move messages out of ${props.queue.name}`} verb="Move" kind="plain" told="Moved." done={props.done} actions={filled() && (tried()?.moved ?? 0) > 0 ? [action(false)] : []}>
      <p>What moves: {what()}.</p>
      <Show when={props.numbers.length > 0}><Check checked={all()} set={setAll}>not only those that are marked</Check></Show>
      <Select label="Where to" value={to()} set={setTo} options={[["queue", "to a queue"], ["exchange", "to an exchange"], ["origin", "back to where each one died (from x-death)"]]} />
      <Show when={to() !== "origin"}><Text label={to() === "queue" ? "Queue" : "Exchange"} value={name()} set={setName} autofocus /></Show>
      <Show when={to() === "exchange"}><Text label="Routing key, if not its own" value={key()} set={setKey} /></Show>
      <div class="inline tight"><Button disabled={!filled()} onClick={attempt}>Try, without a change</Button></div>
      <Show when={trial() instanceof ApiError}><Problem error={trial() as ApiError} /></Show>
      <Show when={tried()} fallback={<p class="muted small">A trial says how many would move. They move together: a crash neither loses nor doubles them.</p>}>
        {(moved) => (
          <p role="status">
            <b>{format.plural(moved().moved, "message")}</b> would move{moved().without_place > 0 ? `; ${moved().without_place} have no place to go and stay` : ""}
            {moved().forbidden > 0 ? `; ${moved().forbidden} stay because you may not write there` : ""}{moved().partial ? "; there are more than one request moves" : ""}.
          </p>
        )}
      </Show>
    </Ask>
  );
}

const MODES: [string, string][] = [
  ["ack_requeue_false", "take them out: they are gone"],
  ["reject_requeue_false", "reject them: to the dead letters"],
  ["ack_requeue_true", "put them back, marked as redelivered"],
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
    <Panel title="Take messages" aside={
      <Ask label="Take…" title={`Take messages from ${props.queue.name}`} verb="Take" danger kind="plain" actions={[action()]} done={done}>
        <Text label={`How many, ${TAKEN_MAX} at most`} type="number" min="1" max={TAKEN_MAX} value={count()} set={setCount} />
        <Select label="And then" value={mode()} set={setMode} options={MODES} />
      </Ask>
    }>
      <Show when={taken()} fallback={<p class="muted small">Takes messages from the head of the queue, as a consumer would.</p>}>
        {(list) => (
          <>
            <div class="list-tools"><b>{list().length === 0 ? "Nothing waited." : `${format.plural(list().length, "message")} taken`}</b><span class="grow" /><Button onClick={() => download(`${props.queue.name}.json`, JSON.stringify(list(), null, 2))}>Download</Button></div>
            <Messages label="Messages taken" messages={list()} line={(message) => ({ message, id: String(list().indexOf(message)), position: list().indexOf(message) + 1 })} />
          </>
        )}
      </Show>
    </Panel>
  );
}
