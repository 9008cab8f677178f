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

export interface Following {
  isLive: Accessor<boolean>;
  error: Accessor<ApiError | undefined>;
  /** Asks again after a refusal. */
  again: () => void;
}

const AGAIN_MS = 3000;
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

/** Hears what `path` sends for as long as somebody looks, and connects again when the connection is lost. */
export function follow(path: string, hear: (events: Sent[]) => void, opened: () => void = () => {}): Following {
  const [isLive, setLive] = createSignal(false);
  const [error, setError] = createSignal<ApiError>();
  let running = new AbortController();
  let stopWaiting = () => {};
  let lastId: string | undefined;

  const read = async (signal: AbortSignal) => {
    const reader = (await open(path, signal, lastId === undefined ? {} : { "last-event-id": lastId })).getReader();
    const [decoder, parser] = [new TextDecoder(), new Parser()];
    setLive(true);
    setError(undefined);
    opened();
    for (;;) {
      const { done, value } = await reader.read();
      if (done || signal.aborted) return;
      const events = parser.add(decoder.decode(value, { stream: true }));
      lastId = events.at(-1)?.id ?? lastId;
      if (events.length > 0) hear(events);
    }
  };
  const start = async () => {
    stopWaiting();
    running.abort();
    const { signal } = (running = new AbortController());
    try {
      await read(signal);
    } catch (failed) {
      if (signal.aborted) return;
      // A connection that breaks is no refusal: it is tried again.
      if (failed instanceof ApiError && failed.problem !== "gone") {
        setLive(false);
        setError(failed);
        return;
      }
      if (failed instanceof SyntaxError) setError(new ApiError("broken", 200, "An event can't be read: it is no JSON."));
    }
    if (signal.aborted) return;
    setLive(false);
    stopWaiting = after(AGAIN_MS, () => void start());
  };
  void start();
  onCleanup(() => {
    stopWaiting();
    running.abort();
  });
  return { isLive, error, again: () => void start() };
}
