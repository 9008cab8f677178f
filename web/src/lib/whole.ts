// Lists that the broker does not cut come whole: here they are filtered, sorted and cut as the broker does it, in that
// order, so that a search sees all of them.
import type { Page } from "./types";

export interface Cut<T> {
  page: number;
  size: number;
  /** What rows have to have in them, or match. */
  name: string;
  isRegex: boolean;
  /** What of a row is searched. */
  text: (row: T) => string;
  /** The member that they are sorted by, with dots between its parts. */
  sort: string;
  isReversed: boolean;
}

export function cut<T>(rows: T[], wanted: Cut<T>): Page<T> {
  const found = wanted.name === "" ? rows : rows.filter(finds(wanted));
  const sorted = wanted.sort === "" ? found : [...found].sort((one, other) => order(member(one, wanted.sort), member(other, wanted.sort)) * (wanted.isReversed ? -1 : 1));
  const items = sorted.slice((wanted.page - 1) * wanted.size, wanted.page * wanted.size);
  return { items, page: wanted.page, page_size: wanted.size, page_count: Math.ceil(found.length / wanted.size), filtered_count: found.length, total_count: rows.length };
}

function finds<T>({ name, isRegex, text }: Cut<T>): (row: T) => boolean {
  if (!isRegex) return (row) => text(row).toLowerCase().includes(name.toLowerCase());
  try {
    const pattern = new RegExp(name, "i");
    return (row) => pattern.test(text(row));
  } catch {
    // What is half typed matches nothing.
    return () => false;
  }
}

const member = (row: unknown, path: string): unknown => path.split(".").reduce<unknown>((value, name) => (value as Record<string, unknown> | undefined)?.[name], row);

/** Numbers by size, everything else as text; what is not there comes first. */
function order(one: unknown, other: unknown): number {
  if (typeof one === "number" && typeof other === "number") return one - other;
  const [text, otherText] = [one, other].map((value) => (value === undefined || value === null ? "" : String(value)));
  return text! < otherText! ? -1 : text! > otherText! ? 1 : 0;
}
