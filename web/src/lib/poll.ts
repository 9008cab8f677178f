// Asks the broker again and again, as long as the page is shown.
import { createEffect, createSignal, onCleanup, untrack, type Accessor } from "solid-js";
import { createStore, reconcile } from "solid-js/store";
import { after, hidden, now } from "./clock";
import { answeredAt, ApiError, reachable } from "./http";
import { stored } from "./store";

/** Seconds between two looks; 0 for none by itself. */
const [pace, setPace] = stored("pace", 5);
export { pace, setPace };

/** Milliseconds without an answer after which the broker is silent: two were due by then. */
export const silenceMs = (): number => (pace() === 0 ? Infinity : pace() * 2000 + 5000);

/** Whether the broker does not answer; what is shown is old then. */
export const isSilent = (): boolean => !reachable() || now() - answeredAt() > silenceMs();

/** So many times as long as an answer took is waited before the next question. */
const GENTLE_TIMES = 60;
const GENTLE_MS_MAX = 60_000;
/** The same after a failure, whose end the user waits to see. */
const FAILED_MS_MAX = 10_000;
/** The fastest answer so far: so much the network takes, whatever is asked. */
let fastestMs = Infinity;

export interface Polled<T> {
  data: Accessor<T | undefined>;
  error: Accessor<ApiError | undefined>;
  /** When the data came. */
  at: Accessor<number>;
  refresh: () => void;
}

interface Options {
  /** How often, as a multiple of the pace. */
  slower?: number;
  /** Goes on while the tab is hidden. */
  always?: boolean;
  /** Asks once for each question. */
  once?: boolean;
  /** What takes the broker long is asked for less often. */
  gentle?: boolean;
}

/**
 * Asks with what `source` says, again when that changes. `undefined` is no question. The last answer stays until the
 * next one is there, unless it was to another question.
 */
export function poll<S, T>(
  source: Accessor<S | undefined>,
  ask: (source: S, signal: AbortSignal) => Promise<T>,
  options: Options = {},
): Polled<T> {
  const [state, setState] = createStore<{ data?: unknown }>({});
  const data = () => state.data as T | undefined;
  const [error, setError] = createSignal<ApiError>();
  const [at, setAt] = createSignal(0);
  let running: AbortController | undefined;
  let stopWaiting = () => {};

  const look = async (question: S) => {
    stopWaiting();
    running?.abort();
    const controller = new AbortController();
    running = controller;
    const asked = Date.now();
    try {
      const answer = await ask(question, controller.signal);
      if (controller.signal.aborted) return;
      // What is the same as before stays, so that the user keeps the place in a list.
      setState("data", reconcile(answer as unknown, { key: "name" }));
      setError(undefined);
      setAt(Date.now());
    } catch (failed) {
      if (controller.signal.aborted) return;
      const known = failed instanceof ApiError;
      if (!known) console.error(failed);
      setError(known ? failed : new ApiError("broken", 0, String(failed)));
    }
    if (!options.once) wait(question, Date.now() - asked, error() ? FAILED_MS_MAX : GENTLE_MS_MAX);
  };

  const wait = (question: S, took: number, gentleMax: number) => {
    const seconds = untrack(pace) * (options.slower ?? 1);
    if (seconds === 0 && untrack(reachable)) return;
    fastestMs = Math.min(fastestMs, took);
    const least = options.gentle ? Math.min((took - fastestMs) * GENTLE_TIMES, gentleMax) : 0;
    stopWaiting = after(Math.max((seconds || 5) * 1000, least), () => {
      // A hidden tab is woken by its becoming visible.
      if (options.always || !untrack(hidden)) void look(question);
      else slept = true;
    });
  };
  let slept = false;

  createEffect(() => {
    const question = source();
    pace();
    if (question !== undefined) untrack(() => void look(question));
  });
  createEffect(() => {
    if (!hidden() && slept) {
      slept = false;
      const question = untrack(source);
      if (question !== undefined) untrack(() => void look(question));
    }
  });
  onCleanup(() => {
    stopWaiting();
    running?.abort();
  });
  const refresh = () => {
    const question = untrack(source);
    if (question !== undefined) void look(question);
  };
  return { data, error, at, refresh };
}
