// Messages: a line for each, which opens to all of it.
import { createSignal, For, Show, type JSX } from "solid-js";
import * as format from "../lib/format";
import { now } from "../lib/clock";
import { download } from "../lib/save";
import type { Message } from "../lib/types";
import { Badge, Button, Facts, literal, Num, Time } from "./bits";
import { chosenColumns, ColumnChoice, type Choosable } from "./columns";

export const SHOWN_BYTES = 50_000;
const PREVIEW_CHARS = 80;

export interface Line {
  message: Message;
  /** What tells it from the others. */
  id: string;
  position: number;
  /** When it was published, where that is known. */
  at?: number;
  /** Where its payload is as a file. */
  file?: string;
}

interface Column extends Choosable {
  cell: (line: Line) => JSX.Element;
  number?: boolean;
  /** Cut where it does not fit. */
  cut?: boolean;
}

const property = (line: Line, name: string): unknown => (Array.isArray(line.message.properties) ? undefined : (line.message.properties as Record<string, unknown>)[name]);

const ofProperty = (id: string, label: string, number = false): Column => ({
  id, label, number, cut: !number, extra: true,
  cell: (line) => <Show when={property(line, id) !== undefined}><Cut text={literal(property(line, id))} /></Show>,
});

const Cut = (props: { text: string; class?: string }) => <span class={props.class} title={props.text}>{props.text}</span>;

const COLUMNS: Column[] = [
  { id: "position", label: "Position", number: true, cell: (line) => format.exact(line.position) },
  { id: "exchange", label: "Exchange", cut: true, cell: (line) => <Show when={line.message.exchange} fallback={<span class="muted">(default)</span>}><Cut text={line.message.exchange} /></Show> },
  { id: "key", label: "Routing key", cut: true, cell: (line) => <Show when={line.message.routing_key} fallback={<span class="muted">(empty)</span>}><Cut text={line.message.routing_key} class="mono" /></Show> },
  { id: "bytes", label: "Size", number: true, cell: (line) => <Num of={line.message.payload_bytes} as="bytes" /> },
  { id: "age", label: "Age", hint: "Time since it was published, where the broker stores that", number: true, cell: (line) => <Age at={line.at} /> },
  { id: "payload", label: "Payload", hint: "The first characters", cell: (line) => <span class="mono">{preview(line.message)}</span> },
  ofProperty("message_id", "Message ID"),
  ofProperty("correlation_id", "Correlation ID"),
  ofProperty("content_type", "Content type"),
  ofProperty("priority", "Priority", true),
  ofProperty("headers", "Headers"),
  { id: "redelivered", label: "Redelivered", extra: true, cell: (line) => (line.message.redelivered ? "yes" : "") },
];

const Age = (props: { at?: number }) => (
  <Show when={props.at} fallback={<span class="muted">–</span>}>
    {(at) => <time dateTime={format.iso(at())} title={`${format.utc(at())} · ${new Date(at()).toLocaleString()} here`}>{format.duration(now() - at())}</time>}
  </Show>
);

function preview(message: Message): JSX.Element {
  if (message.payload === "") return <span class="muted">(empty)</span>;
  if (message.payload_encoding === "base64") return <span class="muted">(binary) {message.payload.slice(0, PREVIEW_CHARS / 2)}</span>;
  return message.payload.slice(0, PREVIEW_CHARS * 2).replace(/\s+/g, " ").slice(0, PREVIEW_CHARS);
}

interface Props<T> {
  messages: T[];
  line: (message: T) => Line;
  label: string;
  /** Bytes of each payload that were asked for. */
  shownBytes?: number;
  marked?: string[];
  mark?: (id: string, on: boolean) => void;
}

export function Messages<T>(props: Props<T>) {
  const columns = chosenColumns("messages", () => COLUMNS);
  const [opened, setOpened] = createSignal<string[]>([]);
  const isOpen = (id: string) => opened().includes(id);
  const toggle = (id: string) => setOpened(isOpen(id) ? opened().filter((one) => one !== id) : [...opened(), id]);
  const ids = () => props.messages.map((message) => props.line(message).id);
  const areAllOpen = () => ids().every(isOpen);
  const click = (event: MouseEvent, id: string) => {
    // What is marked with the pointer is to be copied.
    if ((event.target as HTMLElement).closest("a, button, input") || getSelection()?.toString()) return;
    toggle(id);
  };
  const span = () => columns.visible().length + (props.mark ? 1 : 0);
  return (
    <div class="list">
      <div class="list-tools">
        <span class="muted">{format.plural(props.messages.length, "message")}</span>
        <span class="grow" />
        <Button kind="quiet" onClick={() => setOpened(areAllOpen() ? [] : ids())}>{areAllOpen() ? "Collapse all" : "Expand all"}</Button>
        <ColumnChoice columns={COLUMNS} chosen={columns} />
      </div>
      <div class="table-box" tabindex="0" role="region" aria-label={props.label}>
        <table class="table messages">
          <thead>
            <tr>
              <Show when={props.mark}><th class="mark"><span class="unseen">Selected</span></th></Show>
              <For each={columns.visible()}>{(column) => <th classList={{ number: column.number }} title={column.hint}>{column.label}</th>}</For>
            </tr>
          </thead>
          <tbody>
            <For each={props.messages}>
              {(message) => {
                const line = () => props.line(message);
                return (
                  <>
                    <tr class="message-row" classList={{ open: isOpen(line().id), marked: props.marked?.includes(line().id) }} onClick={(event) => click(event, line().id)}>
                      <Show when={props.mark}>
                        <td class="mark">
                          <input type="checkbox" aria-label={`Select message ${line().position}`} checked={props.marked?.includes(line().id)} onChange={(event) => props.mark!(line().id, event.currentTarget.checked)} />
                        </td>
                      </Show>
                      <For each={columns.visible()}>
                        {(column) => (
                          <td class={column.id} classList={{ number: column.number, cut: column.cut }}>
                            <Show when={column.id === "position"} fallback={column.cell(line())}>
                              <button type="button" class="link" aria-expanded={isOpen(line().id)} aria-label={`Message ${line().position}`} onClick={() => toggle(line().id)}>{column.cell(line())}</button>
                            </Show>
                          </td>
                        )}
                      </For>
                    </tr>
                    <Show when={isOpen(line().id)}>
                      <tr class="opened"><td colSpan={span()}><Card line={line()} shownBytes={props.shownBytes ?? SHOWN_BYTES} /></td></tr>
                    </Show>
                  </>
                );
              }}
            </For>
          </tbody>
        </table>
      </div>
    </div>
  );
}

function Card(props: { line: Line; shownBytes: number }) {
  const [raw, setRaw] = createSignal(false);
  const message = () => props.line.message;
  const headers = () => Object.entries(message().properties.headers ?? {});
  const properties = () => Object.entries(Array.isArray(message().properties) ? {} : message().properties).filter(([name]) => name !== "headers");
  const pretty = () => {
    if (message().payload_encoding !== "string") return undefined;
    try {
      const value: unknown = JSON.parse(message().payload);
      return typeof value === "object" ? JSON.stringify(value, null, 2) : undefined;
    } catch {
      return undefined;
    }
  };
  const facts = (): [string, string][] => [
    ...properties().map(([name, value]): [string, string] => [name, name === "timestamp" ? `${literal(value)} (${format.timestamp(Number(value))})` : literal(value)]),
    ...headers().map(([name, value]): [string, string] => [`header ${name}`, literal(value)]),
  ];
  const text = () => (!raw() && pretty()) || message().payload;
  return (
    <div class="message">
      <header>
        <span>
          <b>{message().exchange || "(default exchange)"}</b> <span class="muted">with key</span> <b class="mono">{message().routing_key || "(empty)"}</b>
        </span>
        <Show when={props.line.at}>{(at) => <span class="muted"><Time at={at()} /></span>}</Show>
        <span class="grow" />
        <Show when={message().redelivered}><Badge tone="warn">redelivered</Badge></Show>
        <Show when={message().payload_encoding === "base64"}><Badge title="The payload is not valid UTF-8">base64</Badge></Show>
        <Num of={message().payload_bytes} as="bytes" />
        <Show when={pretty()}><Button kind="quiet" onClick={() => setRaw(!raw())}>{raw() ? "Formatted" : "Raw"}</Button></Show>
        <Show when={props.line.file} fallback={<Button kind="quiet" onClick={() => download(`message-${props.line.position}`, bytes(message()))}>Save</Button>}>
          <a class="button quiet" href={props.line.file} download="">Save</a>
        </Show>
      </header>
      <pre tabindex="0">{text() || " "}</pre>
      <Show when={message().payload_bytes > props.shownBytes}><p class="muted small pad">Only the first {format.bytes(props.shownBytes)} are shown.</p></Show>
      <Show when={facts().length > 0}><Facts of={facts()} /></Show>
    </div>
  );
}

function bytes(message: Message): BlobPart {
  if (message.payload_encoding === "string") return message.payload;
  return Uint8Array.from(atob(message.payload), (char) => char.charCodeAt(0));
}
