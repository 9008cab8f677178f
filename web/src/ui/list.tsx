// A list that the broker filters, sorts and cuts into pages. What is shown of it is in the address.
import { createMemo, createSignal, For, onCleanup, Show, type JSX } from "solid-js";
import { exact, plural } from "../lib/format";
import { get, withQuery, type Query } from "../lib/http";
import { poll } from "../lib/poll";
import { query, setQuery, vhost } from "../lib/route";
import { stored } from "../lib/store";
import type { Page } from "../lib/types";
import { cut } from "../lib/whole";
import { Button, Empty, Problem } from "./bits";
import { chosenColumns, ColumnChoice, type Choosable } from "./columns";
import { Views } from "./views";

export interface Column<T> extends Choosable {
  cell: (row: T) => JSX.Element;
  /** Members that the broker has to send. */
  needs: string[];
  /** The member that it is sorted by. */
  sort?: string;
  number?: boolean;
}

interface Props<T> {
  /** Plural, as in the address. */
  name: string;
  path: string;
  columns: Column<T>[];
  row: (row: T) => string;
  /** Members that are needed whatever is shown. */
  needs: string[];
  /** More questions to the broker. */
  query?: Query;
  /** What the search looks at. */
  searched?: string;
  /** That of a row, where the list comes whole. */
  text?: (row: T) => string;
  empty: JSX.Element;
  /** Actions with rows that are marked. */
  bulk?: (rows: T[], done: () => void) => JSX.Element;
  tools?: JSX.Element;
  /** The list does not follow the vhost of the page. */
  everywhere?: boolean;
}

const SIZES = [25, 50, 100, 500];

export function List<T>(props: Props<T>) {
  const columns = chosenColumns(props.name, () => props.columns);
  const visible = columns.visible;
  const [size, setSize] = stored(`size.${props.name}`, 50);
  const [marked, setMarked] = createSignal<Record<string, T>>({});

  const page = () => Math.max(1, Number(query("page")) || 1);
  const pageSize = () => Number(query("size")) || size();
  const asked = createMemo(() => ({
    path: withQuery(props.path, {
      page: page(),
      page_size: pageSize(),
      name: query("name"),
      use_regex: query("regex") ? true : undefined,
      sort: query("sort"),
      sort_reverse: query("desc") ? true : undefined,
      columns: [...new Set([...props.needs, ...visible().flatMap((column) => column.needs)])].join(","),
      ...props.query,
    }),
    vhost: props.everywhere ? undefined : vhost(),
  }), undefined, { equals: (one, other) => one.path === other.path && one.vhost === other.vhost });
  const list = poll(asked, async ({ path, vhost }, signal) => {
    const answer = await get<Page<T> | T[]>(path, { signal, vhost });
    return Array.isArray(answer) ? cut(answer, whole()) : answer;
  }, { gentle: true });
  const whole = () => ({
    page: page(), size: pageSize(), name: query("name"), isRegex: query("regex") !== "", sort: query("sort"), isReversed: query("desc") !== "",
    text: props.text ?? ((row: T) => (row as { name?: string }).name ?? ""),
  });

  const sortBy = (column: Column<T>) => {
    const same = query("sort") === column.sort;
    const desc = same ? (query("desc") ? undefined : "1") : column.number ? "1" : undefined;
    setQuery({ sort: column.sort, desc, page: undefined });
  };
  const rows = () => list.data()?.items ?? [];
  const marks = () => Object.values(marked());
  const mark = (row: T, on: boolean) =>
    setMarked((before) => {
      const { [props.row(row)]: _, ...others } = before;
      return on ? { ...others, [props.row(row)]: row } : others;
    });
  const allMarked = () => rows().length > 0 && rows().every((row) => props.row(row) in marked());
  const markAll = (on: boolean) => rows().forEach((row) => mark(row, on));
  const done = () => {
    setMarked({});
    list.refresh();
  };
  const outOfRange = () => list.error()?.problem === "refused" && list.error()!.message.startsWith("Page out of range");

  return (
    <div class="list">
      <div class="list-tools">
        <Search what={props.searched ?? "name"} />
        {props.tools}
        <span class="grow" />
        <Views name={props.name} />
        <ColumnChoice columns={props.columns} chosen={columns} />
      </div>
      <Show when={props.bulk && marks().length > 0}>
        <div class="bulk" role="region" aria-label="Selected rows">
          <b>{plural(marks().length, "row")} selected</b>
          {props.bulk!(marks(), done)}
          <Button kind="quiet" onClick={() => setMarked({})}>
            Clear selection
          </Button>
        </div>
      </Show>
      <Show when={list.error() && !outOfRange()}>
        <Problem error={list.error()!} retry={list.refresh} />
      </Show>
      <Show when={outOfRange()}>
        <Empty title="Page not found">
          <Button onClick={() => setQuery({ page: undefined })}>First page</Button>
        </Empty>
      </Show>
      <Show when={list.data() && !outOfRange()} fallback={<Show when={!list.error()}><div class="loading" role="status">Loading…</div></Show>}>
        <Show
          when={rows().length > 0}
          fallback={
            <Show when={query("name")} fallback={props.empty}>
              <Empty title="Nothing matches">
                <p>No {props.searched ?? "name"} contains “{query("name")}”.</p>
                <Button onClick={() => setQuery({ name: undefined, regex: undefined, page: undefined })}>Show all</Button>
              </Empty>
            </Show>
          }
        >
          <div class="table-box" tabindex="0" role="region" aria-label={`${props.name}, a table`}>
            <table class="table cards">
              <thead>
                <tr>
                  <Show when={props.bulk}>
                    <th class="mark">
                      <input type="checkbox" aria-label="Select all on this page" checked={allMarked()} onChange={(event) => markAll(event.currentTarget.checked)} />
                    </th>
                  </Show>
                  <For each={visible()}>
                    {(column) => (
                      <th classList={{ number: column.number }} title={column.hint} aria-sort={order(column)}>
                        <Show when={column.sort} fallback={column.label || <span class="unseen">Actions</span>}>
                          <button type="button" class="sort" onClick={() => sortBy(column)}>
                            {column.label}
                            <span aria-hidden="true">{order(column) === "ascending" ? " ↑" : order(column) === "descending" ? " ↓" : ""}</span>
                          </button>
                        </Show>
                      </th>
                    )}
                  </For>
                </tr>
              </thead>
              <tbody>
                <For each={rows()}>
                  {(row) => (
                    <tr classList={{ marked: props.row(row) in marked() }}>
                      <Show when={props.bulk}>
                        <td class="mark">
                          <input type="checkbox" aria-label={`Select ${props.row(row)}`} checked={props.row(row) in marked()} onChange={(event) => mark(row, event.currentTarget.checked)} />
                        </td>
                      </Show>
                      <For each={visible()}>
                        {(column) => (
                          <td classList={{ number: column.number }} data-label={column.label}>
                            {column.cell(row)}
                          </td>
                        )}
                      </For>
                    </tr>
                  )}
                </For>
              </tbody>
            </table>
          </div>
          <Pager list={list.data()!} size={pageSize()} setSize={(size) => { setSize(size); setQuery({ size: undefined, page: undefined }); }} isPart={props.query !== undefined} />
        </Show>
      </Show>
    </div>
  );
}

function order<T>(column: Column<T>): "ascending" | "descending" | undefined {
  if (!column.sort || query("sort") !== column.sort) return undefined;
  return query("desc") ? "descending" : "ascending";
}

function Search(props: { what: string }) {
  let waiting: ReturnType<typeof setTimeout> | undefined;
  const search = (text: string, ms: number) => {
    clearTimeout(waiting);
    const find = () => text !== query("name") && setQuery({ name: text, page: undefined });
    if (ms === 0) find();
    else waiting = setTimeout(find, ms);
  };
  // What was typed is meant for this list, not for the page that comes after it.
  onCleanup(() => clearTimeout(waiting));
  return (
    <div class="search">
      <input
        type="search"
        data-key="search"
        aria-label={`Search by ${props.what}`}
        placeholder={`Search by ${props.what}  /`}
        value={query("name")}
        spellcheck={false}
        onInput={(event) => search(event.currentTarget.value, 250)}
        onChange={(event) => search(event.currentTarget.value, 0)}
      />
      <button
        type="button"
        class="toggle"
        aria-pressed={query("regex") ? "true" : "false"}
        title="Regular expression"
        aria-label="Regular expression"
        onClick={() => setQuery({ regex: query("regex") ? undefined : "1", page: undefined })}
      >
        .*
      </button>
    </div>
  );
}

/** The broker's total counts what `isPart` leaves out. */
function Pager<T>(props: { list: Page<T>; size: number; setSize: (size: number) => void; isPart: boolean }) {
  const first = () => (props.list.page - 1) * props.list.page_size + 1;
  const last = () => first() + props.list.items.length - 1;
  const turn = (by: number) => setQuery({ page: props.list.page + by === 1 ? undefined : props.list.page + by });
  return (
    <nav class="pager" aria-label="Pages of the list">
      <span>
        {exact(first())}–{exact(last())} of {exact(props.list.filtered_count)}
        {!props.isPart && props.list.filtered_count !== props.list.total_count ? ` (${exact(props.list.total_count)} in all)` : ""}
      </span>
      <span class="grow" />
      <label>
        <span class="unseen">Rows on a page</span>
        <select onChange={(event) => props.setSize(Number(event.currentTarget.value))}>
          <For each={SIZES}>{(size) => <option value={size} selected={size === props.size}>{size} rows</option>}</For>
        </select>
      </label>
      <Button data-key="previous" disabled={props.list.page <= 1} onClick={() => turn(-1)}>
        ‹ Previous
      </Button>
      <Button data-key="next" disabled={props.list.page >= props.list.page_count} onClick={() => turn(1)}>
        Next ›
      </Button>
    </nav>
  );
}
