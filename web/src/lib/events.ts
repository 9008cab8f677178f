// Server-sent events. They are read with `fetch`, so that a refusal is heard, as the browser's own reader tells none.
import { createSignal, onCleanup, type Accessor } from "solid-js";
import { after } from "./clock";
import { ApiError, open } from "./http";

export interface Sent {
  /** What kind of event it is. */
  event: string;
  /** What to name when the connection was lost, where the broker can go on from there. */
  id?: string;
  data: Record<string, unknown>;
}

export type Reading = "connecting" | "live" | "stopped";

export interface Following {
  reading: Accessor<Reading>;
  error: Accessor<ApiError | undefined>;
  /** Asks again after a refusal. */
  again: () => void;
}

const AGAIN_MS = 3000;
/** The broker sends something every 15 s, if only a comment: three of those are missing. */
const SILENCE_MS_MAX = 45_000;
/** Characters of one event; a longer one is not the broker's. */
const EVENT_CHARS_MAX = 1 << 20;

/** The events of a text that comes in pieces. */
export class Parser {
  private rest = "";

  add(piece: string): Sent[] {
    const parts = (this.rest + piece).split("\n\n");
    this.rest = parts.pop()!.slice(-EVENT_CHARS_MAX);
    return parts.flatMap((part) => {
      const lines = part.split("\n");
      const of = (name: string) => lines.filter((line) => line.startsWith(`${name}:`)).map((line) => line.slice(name.length + 1).replace(/^ /, ""));
      const data = of("data").join("\n");
      if (data === "") return [];
      return [{ event: of("event")[0] ?? "message", id: of("id")[0], data: JSON.parse(data) as Sent["data"] }];
    });
  }
}

/** Hears what `path` sends for as long as the page is shown, and connects again when the connection is lost. */
export function follow(path: string, hear: (events: Sent[]) => void, opened: () => void = () => {}): Following {
  const [reading, setReading] = createSignal<Reading>("connecting");
  const [error, setError] = createSignal<ApiError>();
  let running = new AbortController();
  let stopWaiting = () => {};
  let stopListening = () => {};
  let lastId: string | undefined;

  const read = async (signal: AbortSignal, heard: () => void) => {
    const reader = (await open(path, signal, lastId === undefined ? {} : { "last-event-id": lastId })).getReader();
    const [decoder, parser] = [new TextDecoder(), new Parser()];
    setReading("live");
    setError(undefined);
    opened();
    for (;;) {
      const { done, value } = await reader.read();
      if (done || signal.aborted) return;
      heard();
      const events = parser.add(decoder.decode(value, { stream: true }));
      lastId = events.at(-1)?.id ?? lastId;
      if (events.length > 0) hear(events);
    }
  };
  const start = async () => {
    stopWaiting();
    running.abort();
    const { signal } = (running = new AbortController());
    const silence = new AbortController();
    const heard = () => {
      stopListening();
      stopListening = after(SILENCE_MS_MAX, () => silence.abort());
    };
    heard();
    try {
      await read(AbortSignal.any([signal, silence.signal]), heard);
    } catch (failed) {
      if (signal.aborted) return;
      stopListening();
      // A connection that breaks is no refusal: it is tried again.
      if (failed instanceof ApiError && failed.problem !== "gone") {
        setReading("stopped");
        setError(failed);
        return;
      }
      if (failed instanceof SyntaxError) setError(new ApiError("broken", 200, "An event can't be read: it is no JSON."));
    }
    if (signal.aborted) return;
    stopListening();
    setReading("stopped");
    stopWaiting = after(AGAIN_MS, () => void start());
  };
  void start();
  onCleanup(() => {
    stopWaiting();
    stopListening();
    running.abort();
  });
  return { reading, error, again: () => void start() };
}
