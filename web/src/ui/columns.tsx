// Which columns of a table are shown: chosen by hand, remembered, and part of the address.
import { createMemo, For, type Accessor } from "solid-js";
import { query, setQuery } from "../lib/route";
import { stored } from "../lib/store";

export interface Choosable {
  id: string;
  label: string;
  /** What it means, on hover. */
  hint?: string;
  /** Not shown until chosen. */
  extra?: boolean;
}

export interface Chosen<C> {
  visible: Accessor<C[]>;
  set: (ids: string[]) => void;
}

/** The first column is always there. */
export function chosenColumns<C extends Choosable>(name: string, columns: Accessor<C[]>): Chosen<C> {
  const [chosen, choose] = stored<string[] | null>(`columns.${name}`, null);
  const visible = createMemo(() => {
    const named = query("cols") ? query("cols").split(",") : chosen();
    return columns().filter((column, nth) => nth === 0 || (named ? named.includes(column.id) : !column.extra));
  });
  const set = (ids: string[]) => {
    choose(ids);
    setQuery({ cols: ids.join(",") });
  };
  return { visible, set };
}

export function ColumnChoice<C extends Choosable>(props: { columns: C[]; chosen: Chosen<C> }) {
  const isVisible = (id: string) => props.chosen.visible().some((column) => column.id === id);
  const change = (id: string, on: boolean) => props.chosen.set(props.columns.map((column) => column.id).filter((one) => (one === id ? on : isVisible(one))));
  return (
    <details class="menu">
      <summary class="button plain">Columns</summary>
      <div class="menu-body">
        <For each={props.columns.slice(1).filter((column) => column.label)}>
          {(column) => (
            <label class="check" title={column.hint}>
              <input type="checkbox" checked={isVisible(column.id)} onChange={(event) => change(column.id, event.currentTarget.checked)} />
              <span>{column.label}</span>
            </label>
          )}
        </For>
      </div>
    </details>
  );
}
