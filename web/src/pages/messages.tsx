// What is in a queue: look at messages, or take them out.
import { createSignal, For, Show } from "solid-js";
import { getMessages } from "../lib/actions";
import * as format from "../lib/format";
import { ApiError, send } from "../lib/http";
import type { Message, Queue } from "../lib/types";
import { Badge, Button, Facts, literal, Num, Panel, Problem } from "../ui/bits";
import { AsCommand } from "../ui/dialog";
import { Select, Text } from "../ui/fields";

const COUNT_MAX = 100;
const SHOWN_BYTES = 50_000;

const MODES: [string, string][] = [
  ["ack_requeue_true", "look, and put back"],
  ["ack_requeue_false", "take out: they are gone"],
  ["reject_requeue_false", "reject: to the dead letters"],
];

export function Messages(props: { queue: Queue; changed: () => void }) {
  const [count, setCount] = createSignal("10");
  const [mode, setMode] = createSignal("ack_requeue_true");
  const [messages, setMessages] = createSignal<Message[]>();
  const [error, setError] = createSignal<ApiError>();
  const [busy, setBusy] = createSignal(false);
  const [filter, setFilter] = createSignal("");
  const action = () =>
    getMessages(props.queue.vhost, props.queue.name, { count: Math.max(1, Math.min(COUNT_MAX, Number(count()) || 1)), ackmode: mode(), encoding: "auto", truncate: SHOWN_BYTES });
  const take = async (event: Event) => {
    event.preventDefault();
    setBusy(true);
    setError(undefined);
    try {
      setMessages(await send<Message[]>(action()));
      props.changed();
    } catch (failed) {
      if (!(failed instanceof ApiError)) throw failed;
      setError(failed);
    } finally {
      setBusy(false);
    }
  };
  const shown = () => (messages() ?? []).filter((one) => filter() === "" || JSON.stringify(one).toLowerCase().includes(filter().toLowerCase()));
  const destroys = () => mode() !== "ack_requeue_true";
  return (
    <Panel title="Messages">
      <form class="inline" onSubmit={take}>
        <Text label={`How many (up to ${COUNT_MAX})`} type="number" min="1" max={COUNT_MAX} value={count()} set={setCount} />
        <Select label="And then" value={mode()} set={setMode} options={MODES} />
        <button type="submit" class={`button ${destroys() ? "danger" : "main"}`} disabled={busy()}>
          {busy() ? "…" : destroys() ? "Take messages" : "Look at messages"}
        </button>
      </form>
      <p class="muted small">
        {destroys() ? "What is taken out is no longer in the queue." : "They go back to their place. They are marked as redelivered, and a delivery limit counts that."} What consumers hold is not seen.
      </p>
      <AsCommand actions={[action()]} />
      <Show when={error()}>{(error) => <Problem error={error()} />}</Show>
      <Show when={messages()}>
        <div class="list-tools">
          <b>{messages()!.length === 0 ? "Nothing waits in the queue." : format.plural(messages()!.length, "message")}</b>
          <span class="grow" />
          <Show when={messages()!.length > 0}>
            <input type="search" aria-label="Search in these messages" placeholder="Search in these" value={filter()} onInput={(event) => setFilter(event.currentTarget.value)} />
            <Button onClick={() => download(`${props.queue.name}.json`, JSON.stringify(messages(), null, 2))}>Download</Button>
          </Show>
        </div>
        <ol class="messages">
          <For each={shown()}>{(message, nth) => <MessageCard message={message} nth={nth() + 1} />}</For>
        </ol>
      </Show>
    </Panel>
  );
}

export function MessageCard(props: { message: Message; nth: number }) {
  const [raw, setRaw] = createSignal(false);
  const headers = () => Object.entries(props.message.properties.headers ?? {});
  const properties = () => Object.entries(Array.isArray(props.message.properties) ? {} : props.message.properties).filter(([name]) => name !== "headers");
  const pretty = () => {
    if (props.message.payload_encoding !== "string") return undefined;
    try {
      const value: unknown = JSON.parse(props.message.payload);
      return typeof value === "object" ? JSON.stringify(value, null, 2) : undefined;
    } catch {
      return undefined;
    }
  };
  const facts = (): [string, string][] => [
    ...properties().map(([name, value]): [string, string] => [name, name === "timestamp" ? `${literal(value)} (${format.utc(Number(value) * 1000)})` : literal(value)]),
    ...headers().map(([name, value]): [string, string] => [`header ${name}`, literal(value)]),
  ];
  const text = () => (!raw() && pretty()) || props.message.payload;
  return (
    <li class="message">
      <header>
        <span class="muted">{props.nth}</span>
        <span>
          <b>{props.message.exchange || "(default exchange)"}</b> <span class="muted">with key</span> <b class="mono">{props.message.routing_key || "(empty)"}</b>
        </span>
        <span class="grow" />
        <Show when={props.message.redelivered}><Badge tone="warn">redelivered</Badge></Show>
        <Show when={props.message.payload_encoding === "base64"}><Badge title="It is no UTF-8">base64</Badge></Show>
        <Num of={props.message.payload_bytes} as="bytes" />
        <Show when={pretty()}><Button kind="quiet" onClick={() => setRaw(!raw())}>{raw() ? "as JSON" : "as it is"}</Button></Show>
        <Button kind="quiet" onClick={() => download(`message-${props.nth}`, bytes(props.message))}>Save</Button>
      </header>
      <pre tabindex="0">{text() || " "}</pre>
      <Show when={props.message.payload_bytes > SHOWN_BYTES}><p class="muted small">Only the first {format.bytes(SHOWN_BYTES)} are shown.</p></Show>
      <Show when={facts().length > 0}><Facts of={facts()} /></Show>
    </li>
  );
}

function bytes(message: Message): BlobPart {
  if (message.payload_encoding === "string") return message.payload;
  return Uint8Array.from(atob(message.payload), (char) => char.charCodeAt(0));
}

export function download(name: string, content: BlobPart): void {
  const address = URL.createObjectURL(new Blob([content]));
  const link = document.createElement("a");
  link.href = address;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}
