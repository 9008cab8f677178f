// A short table: all of it is there.
import { For, Show, type JSX } from "solid-js";

interface Props<T> {
  label: string;
  rows: T[];
  columns: { label: string; cell: (row: T) => JSX.Element; number?: boolean }[];
  empty: JSX.Element;
}

export function Table<T>(props: Props<T>) {
  return (
    <Show when={props.rows.length > 0} fallback={<div class="nothing">{props.empty}</div>}>
      <div class="table-box" tabindex="0" role="region" aria-label={props.label}>
        <table class="table cards">
          <thead>
            <tr>
              <For each={props.columns}>{(column) => <th classList={{ number: column.number }}>{column.label || <span class="unseen">Actions</span>}</th>}</For>
            </tr>
          </thead>
          <tbody>
            <For each={props.rows}>
              {(row) => (
                <tr>
                  <For each={props.columns}>
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
    </Show>
  );
}
