// Timers that also run while the tab is hidden: browsers slow down those of such tabs, but not those of workers.
import { createSignal } from "solid-js";
import Ticker from "./ticker?worker";

const [now, setNow] = createSignal(Date.now());
const [hidden, setHidden] = createSignal(document.hidden);
export { hidden, now };

type Wait = { at: number; then: () => void };
const waiting = new Set<Wait>();

function tick(): void {
  const time = Date.now();
  if (!document.hidden) setNow(time);
  for (const wait of [...waiting]) {
    if (wait.at <= time && waiting.delete(wait)) wait.then();
  }
}

document.addEventListener("visibilitychange", () => {
  setHidden(document.hidden);
  tick();
});

try {
  new Ticker().addEventListener("message", tick);
} catch {
  setInterval(tick, 1000);
}

/** Calls `then` in about so many milliseconds. Returns what stops that. */
export function after(ms: number, then: () => void): () => void {
  const wait = { at: Date.now() + ms, then };
  waiting.add(wait);
  return () => waiting.delete(wait);
}
