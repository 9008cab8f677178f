// What the browser remembers of how a user likes the page. Nothing secret.
import { createSignal, type Accessor } from "solid-js";

const PREFIX = "courser.";

export function stored<T>(name: string, initial: T): [Accessor<T>, (value: T) => void] {
  const [value, setValue] = createSignal<T>(read(name, initial));
  const set = (next: T) => {
    setValue(() => next);
    try {
      localStorage.setItem(PREFIX + name, JSON.stringify(next));
    } catch {
      // A browser that stores nothing forgets it, no more.
    }
  };
  return [value, set];
}

function read<T>(name: string, initial: T): T {
  try {
    const text = localStorage.getItem(PREFIX + name);
    return text === null ? initial : (JSON.parse(text) as T);
  } catch {
    return initial;
  }
}
