// Ctrl K: to a page, to a thing by its name, or to something that can be done.
import { createEffect, createMemo, createSignal, For, Show } from "solid-js";
import { get, withQuery } from "../lib/http";
import { PLACES } from "../lib/keys";
import { go, place, setQuery, to, vhost } from "../lib/route";
import { logout } from "../lib/session";
import type { Page } from "../lib/types";
import { Dialog } from "./dialog";

interface Found {
  text: string;
  kind: string;
  run: () => void;
}

interface Props {
  open: boolean;
  close: () => void;
  turn: () => void;
  help: () => void;
}

const KINDS = ["queues", "exchanges", "connections"];

export function Palette(props: Props) {
  const [text, setText] = createSignal("");
  const [chosen, setChosen] = createSignal(0);
  const [things, setThings] = createSignal<Found[]>([]);

  const commands = createMemo((): Found[] => {
    const pages = Object.entries(PLACES).map(([key, [path, name]]) => ({ text: name, kind: `page · g ${key}`, run: () => go(to([path])) }));
    const add = (path: string, text: string) => ({ text, kind: "do", run: () => addOn(path) });
    return [
      ...pages,
      add("queues", "Add a queue"),
      add("exchanges", "Add an exchange"),
      add("vhosts", "Add a vhost"),
      add("users", "Add a user"),
      add("policies", "Add a policy"),
      { text: "Light or dark", kind: "do · t", run: props.turn },
      { text: "Keys and help", kind: "do · ?", run: props.help },
      { text: "All vhosts", kind: "do", run: () => setQuery({ vhost: undefined }, false) },
      { text: "Copy the address of this view", kind: "do", run: () => void navigator.clipboard?.writeText(location.href) },
      { text: "Log out", kind: "do", run: () => logout() },
    ];
  });
  const matches = createMemo(() => {
    const words = text().toLowerCase().split(/\s+/).filter(Boolean);
    const fits = commands().filter((one) => words.every((word) => one.text.toLowerCase().includes(word)));
    return [...fits, ...(text().trim() === "" ? [] : things())].slice(0, 40);
  });

  let waiting: ReturnType<typeof setTimeout> | undefined;
  /** Whether Enter was pressed before the broker had answered. */
  let isEntered = false;
  let isAsking = false;
  let asked: AbortController | undefined;
  createEffect(() => {
    const wanted = text().trim();
    clearTimeout(waiting);
    asked?.abort();
    setChosen(0);
    // What an earlier text has found is nothing that this one may lead to.
    setThings([]);
    isEntered = false;
    isAsking = wanted !== "";
    if (!isAsking) return;
    waiting = setTimeout(() => {
      asked = new AbortController();
      void look(wanted, asked.signal).then(found);
    }, 150);
  });
  createEffect(() => {
    if (props.open) setText("");
    place();
  });

  const found = (list: Found[] | undefined) => {
    if (!list) return;
    isAsking = false;
    setThings(list);
    if (isEntered) run(matches()[0]);
  };
  const run = (one: Found | undefined) => {
    isEntered = !one && isAsking;
    if (!one) return;
    props.close();
    one.run();
  };
  const press = (event: KeyboardEvent) => {
    const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (by) {
      event.preventDefault();
      setChosen((at) => Math.max(0, Math.min(matches().length - 1, at + by)));
      document.getElementById(`found-${chosen()}`)?.scrollIntoView({ block: "nearest" });
    } else if (event.key === "Enter") {
      event.preventDefault();
      run(matches()[chosen()]);
    }
  };
  return (
    <Dialog title="Find or do" open={props.open} close={props.close}>
      <div class="palette">
        <input
          autofocus
          role="combobox"
          aria-expanded="true"
          aria-controls="found"
          aria-activedescendant={`found-${chosen()}`}
          aria-label="Search pages, queues, exchanges, connections and actions"
          placeholder="A page, a name, or something to do"
          value={text()}
          onInput={(event) => setText(event.currentTarget.value)}
          onKeyDown={press}
          spellcheck={false}
        />
        <ul id="found" role="listbox" aria-label="What was found">
          <For each={matches()}>
            {(one, nth) => (
              <li id={`found-${nth()}`} role="option" aria-selected={nth() === chosen()} onMouseMove={() => setChosen(nth())} onClick={() => run(one)}>
                <span>{one.text}</span>
                <small>{one.kind}</small>
              </li>
            )}
          </For>
        </ul>
        <Show when={matches().length === 0}>
          <p class="muted">No matches.</p>
        </Show>
      </div>
    </Dialog>
  );
}

/** Opens the form for something new, at once: the keys that come next are meant for it. */
function addOn(path: string): void {
  go(to([path]));
  document.querySelector<HTMLElement>("[data-key=add]")?.click();
}

/** Things whose names have that in them; nothing if that is no longer asked. */
async function look(name: string, signal: AbortSignal): Promise<Found[] | undefined> {
  const find = async (kind: string): Promise<Found[]> => {
    const path = withQuery(`/api/${kind}`, { page: 1, page_size: 8, name, columns: "name,vhost,type", disable_stats: true });
    const found = await get<Page<{ name: string; vhost: string; type?: string }>>(path, { signal, vhost: vhost() });
    return found.items.map((one) => {
      const address = kind === "connections" ? [kind, one.name] : [kind, one.vhost, one.name];
      const what = one.type === "stream" ? "stream" : kind.slice(0, -1);
      return { text: one.name || "(default)", kind: `${what} · ${one.vhost}`, run: () => go(to(address)) };
    });
  };
  const found = await Promise.all(KINDS.map((kind) => find(kind).catch(() => [])));
  return signal.aborted ? undefined : found.flat();
}
