// What was done, said in passing.
import { createSignal, For } from "solid-js";

const [told, setTold] = createSignal<{ id: number; text: string }[]>([]);
let last = 0;

export function tell(text: string): void {
  const id = ++last;
  setTold((before) => [...before.slice(-2), { id, text }]);
  setTimeout(() => setTold((before) => before.filter((one) => one.id !== id)), 5000);
}

export const Toasts = () => (
  <div class="toasts" role="status" aria-live="polite">
    <For each={told()}>{(one) => <div class="toast">{one.text}</div>}</For>
  </div>
);
