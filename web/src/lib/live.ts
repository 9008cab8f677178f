// What comes as it comes: the newest first, so much of it, held back on demand.
import { createSignal, onCleanup, type Accessor } from "solid-js";
import { follow, type Following, type Sent } from "./events";

/** What comes is shown together, so that a flood of it does not draw the page thousands of times. */
const TOGETHER_MS = 200;

interface Options<T> {
  /** What one that was sent is. */
  read: (sent: Sent) => T;
  /** So many are kept: the browser's memory is bounded. */
  most: number;
  /** The broker sends what there was lately to each page that connects. */
  replays?: boolean;
}

export interface Live<T> extends Following {
  items: Accessor<T[]>;
  /** Whether what comes is held back, and how much that is. */
  isHeld: Accessor<boolean>;
  waiting: Accessor<number>;
  /** How much came that could not be taken in time. */
  missed: Accessor<number>;
  hold: (on: boolean) => void;
  clear: () => void;
}

export function live<T>(path: string, options: Options<T>): Live<T> {
  const [items, setItems] = createSignal<T[]>([]);
  const [isHeld, setHeld] = createSignal(false);
  const [waiting, setWaiting] = createSignal(0);
  const [missed, setMissed] = createSignal(0);
  let fresh: T[] = [];
  let timer: ReturnType<typeof setTimeout> | undefined;

  const show = () => {
    timer = undefined;
    setWaiting(isHeld() ? fresh.length : 0);
    if (isHeld()) return;
    const come = fresh.reverse();
    fresh = [];
    setItems((before) => [...come, ...before].slice(0, options.most));
  };
  const hear = (events: Sent[]) => {
    for (const sent of events) {
      if (sent.event === "missed") setMissed((before) => before + Number(sent.data["missed"] ?? 0));
      else fresh.push(options.read(sent));
    }
    if (fresh.length > options.most) fresh.splice(0, fresh.length - options.most);
    timer ??= setTimeout(show, TOGETHER_MS);
  };
  const opened = () => {
    if (!options.replays) return;
    fresh = [];
    setItems([]);
  };
  const following = follow(path, hear, opened);
  onCleanup(() => clearTimeout(timer));
  const hold = (on: boolean) => {
    setHeld(on);
    if (!on) show();
  };
  return { ...following, items, isHeld, waiting, missed, hold, clear: () => setItems([]) };
}
