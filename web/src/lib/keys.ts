// Keys, and what `?` says of them.
import { go, to } from "./route";

export interface Key {
  keys: string;
  does: string;
}

export const PLACES: Record<string, [string, string]> = {
  o: ["overview", "Overview"],
  q: ["queues", "Queues"],
  s: ["streams", "Streams"],
  e: ["exchanges", "Exchanges"],
  c: ["connections", "Connections"],
  h: ["channels", "Channels"],
  r: ["consumers", "Consumers"],
  v: ["vhosts", "Vhosts"],
  u: ["users", "Users"],
  p: ["policies", "Policies"],
  l: ["limits", "Limits"],
  d: ["definitions", "Definitions"],
  n: ["node", "Node"],
  y: ["topology", "Topology"],
  t: ["trace", "Trace"],
  a: ["events", "Events"],
  w: ["log", "Log"],
  i: ["audit", "Audit log"],
};

export const KEYS: Key[] = [
  { keys: "Ctrl K  or  :", does: "Find a page, a queue, a command" },
  { keys: "/", does: "Search in the list" },
  { keys: "j  k", does: "Next and previous row" },
  { keys: "Enter", does: "Open the row" },
  { keys: "x", does: "Select the row" },
  { keys: "[  ]", does: "Previous and next page" },
  { keys: "n", does: "Add something to the list" },
  { keys: "t", does: "Light or dark" },
  { keys: "?", does: "This help" },
  { keys: "Esc", does: "Close what is open" },
];

interface Commands {
  palette: () => void;
  help: () => void;
  theme: () => void;
}

/** How long a `g` waits for its letter. */
const GOING_MS = 5000;
let goingSince = -Infinity;

export function listen(commands: Commands): () => void {
  const press = (event: KeyboardEvent) => {
    if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") {
      event.preventDefault();
      return commands.palette();
    }
    const target = event.target as HTMLElement;
    const types = target.matches("input:not([type=checkbox]), textarea, select, [contenteditable]");
    if (types || event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) {
      if (types && event.key === "Escape" && !document.querySelector("dialog[open]")) {
        // The browser would empty a search, after the keys that come next.
        event.preventDefault();
        target.blur();
      }
      return;
    }
    // When keys were pressed counts, not when the page came to them.
    const isGoing = event.timeStamp - goingSince < GOING_MS;
    goingSince = event.key === "g" ? event.timeStamp : -Infinity;
    if (isGoing && PLACES[event.key]) {
      event.preventDefault();
      return go(to([PLACES[event.key]![0]]));
    }
    if (act(event.key, commands)) event.preventDefault();
  };
  document.addEventListener("keydown", press);
  return () => document.removeEventListener("keydown", press);
}

function act(key: string, commands: Commands): boolean {
  const press = (name: string) => document.querySelector<HTMLElement>(`[data-key="${name}"]:not([disabled])`);
  switch (key) {
    case "g":
      return true;
    case ":":
      return commands.palette(), true;
    case "?":
      return commands.help(), true;
    case "t":
      return commands.theme(), true;
    case "/":
      return press("search")?.focus(), true;
    case "n":
      return press("add")?.click(), true;
    case "[":
      return press("previous")?.click(), true;
    case "]":
      return press("next")?.click(), true;
    case "j":
    case "k":
      return step(key === "j" ? 1 : -1), true;
    case "x":
      return document.activeElement?.closest("tr")?.querySelector<HTMLElement>("input[type=checkbox]")?.click(), true;
    default:
      return false;
  }
}

/** To the link of the next or previous row. */
function step(by: number): void {
  const links = [...document.querySelectorAll<HTMLElement>("main tbody tr:not(.opened)")].map((row) => row.querySelector<HTMLElement>("td a, td .link")).filter((link) => link !== null);
  const at = links.findIndex((link) => link.closest("tr") === document.activeElement?.closest("tr"));
  const next = links[at < 0 ? 0 : Math.min(links.length - 1, Math.max(0, at + by))];
  next?.focus();
  next?.scrollIntoView({ block: "nearest" });
}
