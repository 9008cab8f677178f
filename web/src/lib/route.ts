// Where in the page one is: everything that can be seen again by its address.
import { createSignal } from "solid-js";

export interface Place {
  path: string[];
  query: Record<string, string>;
}

function parse(hash: string): Place {
  const [path = "", query = ""] = hash.replace(/^#\/?/, "").split("?", 2);
  const decode = (text: string) => {
    try {
      return decodeURIComponent(text);
    } catch {
      return text;
    }
  };
  return {
    path: path === "" ? ["overview"] : path.split("/").map(decode),
    query: Object.fromEntries(new URLSearchParams(query)),
  };
}

const [place, setPlace] = createSignal(parse(location.hash), {
  equals: (one, other) => JSON.stringify(one) === JSON.stringify(other),
});
window.addEventListener("hashchange", () => setPlace(parse(location.hash)));
export { place };

export const query = (name: string): string => place().query[name] ?? "";

/** The vhost that the page is narrowed to; all if empty. */
export const vhost = (): string | undefined => place().query.vhost;

type Values = Record<string, string | number | undefined>;

export function hash(path: string[], values: Values = {}): string {
  const given = Object.entries(values).filter(([, value]) => value !== undefined && value !== "");
  const text = new URLSearchParams(given.map(([name, value]) => [name, String(value)])).toString();
  return `#/${path.map(encodeURIComponent).join("/")}${text ? `?${text}` : ""}`;
}

/** An address that stays in the vhost. */
export const to = (path: string[], values: Values = {}): string => hash(path, { vhost: vhost(), ...values });

export function go(address: string): void {
  location.hash = address;
  // The event of the change comes later; a key that is pressed at once is meant for the new page.
  setPlace(parse(location.hash));
}

/** Changes some of the query; what becomes empty is dropped. */
export function setQuery(values: Values, replace = true): void {
  const address = hash(place().path, { ...place().query, ...values });
  if (replace) {
    history.replaceState(null, "", address);
    setPlace(parse(location.hash));
  } else go(address);
}

/** Goes to an address in the place of the one that the browser is at, its query before the hash too. */
export function settle(hash: string): void {
  history.replaceState(null, "", location.pathname + hash);
  setPlace(parse(location.hash));
}
