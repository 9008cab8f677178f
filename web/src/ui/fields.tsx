// Fields of forms.
import { createUniqueId, For, Index, Show, splitProps, type JSX, type ParentProps } from "solid-js";
import { Button } from "./bits";

interface InputProps extends Omit<JSX.InputHTMLAttributes<HTMLInputElement>, "onInput"> {
  label: string;
  hint?: string;
  value?: string;
  set: (value: string) => void;
}

export function Text(props: InputProps) {
  const [own, rest] = splitProps(props, ["label", "hint", "set"]);
  const id = createUniqueId();
  return (
    <label class="field">
      <span>{own.label}</span>
      <input autocomplete="off" spellcheck={false} {...rest} aria-describedby={own.hint ? id : undefined} onInput={(event) => own.set(event.currentTarget.value)} />
      <Show when={own.hint}>
        <small id={id}>{own.hint}</small>
      </Show>
    </label>
  );
}

export function Area(props: { label: string; value: string; set: (value: string) => void; rows?: number; hint?: JSX.Element }) {
  return (
    <label class="field">
      <span>{props.label}</span>
      <textarea class="mono" rows={props.rows ?? 6} spellcheck={false} value={props.value} onInput={(event) => props.set(event.currentTarget.value)} />
      <Show when={props.hint}>
        <small>{props.hint}</small>
      </Show>
    </label>
  );
}

export function Select(props: { label: string; value: string; set: (value: string) => void; options: (string | [string, string])[]; hideLabel?: boolean }) {
  const pairs = () => props.options.map((one): [string, string] => (typeof one === "string" ? [one, one] : one));
  return (
    <label class="field" classList={{ "only-field": props.hideLabel }}>
      <span classList={{ unseen: props.hideLabel }}>{props.label}</span>
      <select onChange={(event) => props.set(event.currentTarget.value)}>
        <For each={pairs()}>
          {([value, text]) => (
            <option value={value} selected={value === props.value}>
              {text}
            </option>
          )}
        </For>
      </select>
    </label>
  );
}

export const Check = (props: ParentProps<{ checked: boolean; set: (value: boolean) => void; disabled?: boolean }>) => (
  <label class="check">
    <input type="checkbox" checked={props.checked} disabled={props.disabled} onChange={(event) => props.set(event.currentTarget.checked)} />
    <span>{props.children}</span>
  </label>
);

/** One line of a table of arguments or headers. */
export interface Entry {
  key: string;
  type: "text" | "number" | "yes/no" | "JSON";
  value: string;
}

const TYPES = ["text", "number", "yes/no", "JSON"];

/** The value that an entry stands for, or what is wrong with it. */
export function entryValue(entry: Entry): { value: unknown } | { wrong: string } {
  const text = entry.value.trim();
  switch (entry.type) {
    case "text":
      return { value: entry.value };
    case "number":
      return text !== "" && Number.isFinite(Number(text)) ? { value: Number(text) } : { wrong: `${entry.key}: “${entry.value}” is not a number` };
    case "yes/no":
      return { value: text === "yes" || text === "true" };
    case "JSON":
      try {
        return { value: JSON.parse(text) };
      } catch {
        return { wrong: `${entry.key}: this is not JSON` };
      }
  }
}

export function entriesValue(entries: Entry[]): { value: Record<string, unknown> } | { wrong: string } {
  const value: Record<string, unknown> = {};
  for (const entry of entries) {
    if (entry.key === "") continue;
    const one = entryValue(entry);
    if ("wrong" in one) return one;
    value[entry.key] = one.value;
  }
  return { value };
}

/** What is wrong with what was typed: a value that is not there yet is missing, not wrong. */
export function wrongEntry(entries: Entry[]): string {
  const known = entriesValue(entries.filter((entry) => entry.value.trim() !== ""));
  return "wrong" in known ? known.wrong : "";
}

export function toEntries(value: Record<string, unknown> | undefined): Entry[] {
  return Object.entries(value ?? {}).map(([key, one]): Entry => {
    if (typeof one === "string") return { key, type: "text", value: one };
    if (typeof one === "number") return { key, type: "number", value: String(one) };
    if (typeof one === "boolean") return { key, type: "yes/no", value: one ? "yes" : "no" };
    return { key, type: "JSON", value: JSON.stringify(one) };
  });
}

interface EntriesProps {
  label: string;
  entries: Entry[];
  set: (entries: Entry[]) => void;
  /** Names with the type of each, offered as one types. */
  known?: Record<string, Entry["type"]>;
}

export function Entries(props: EntriesProps) {
  const list = createUniqueId();
  const change = (nth: number, part: Partial<Entry>) => {
    const known = part.key !== undefined ? props.known?.[part.key] : undefined;
    const merged = (entry: Entry) => ({ ...entry, ...part, ...(known ? { type: known } : {}) });
    props.set(props.entries.map((entry, at) => (at === nth ? merged(entry) : entry)));
  };
  const add = () => props.set([...props.entries, { key: "", type: "text", value: "" }]);
  return (
    <fieldset class="entries">
      <legend>{props.label}</legend>
      <datalist id={list}>
        <For each={Object.keys(props.known ?? {})}>{(name) => <option value={name} />}</For>
      </datalist>
      <Index each={props.entries}>
        {(entry, nth) => (
          <div class="entry">
            <input aria-label="Name" placeholder="name" list={list} value={entry().key} autocomplete="off" spellcheck={false} onInput={(event) => change(nth, { key: event.currentTarget.value })} />
            <select aria-label="Type" onChange={(event) => change(nth, { type: event.currentTarget.value as Entry["type"] })}>
              <For each={TYPES}>
                {(type) => (
                  <option value={type} selected={type === entry().type}>
                    {type}
                  </option>
                )}
              </For>
            </select>
            <Show
              when={entry().type === "yes/no"}
              fallback={
                <input aria-label="Value" placeholder="value" value={entry().value} autocomplete="off" spellcheck={false} onInput={(event) => change(nth, { value: event.currentTarget.value })} />
              }
            >
              <select aria-label="Value" onChange={(event) => change(nth, { value: event.currentTarget.value })}>
                <option value="yes" selected={entry().value === "yes"}>
                  yes
                </option>
                <option value="no" selected={entry().value !== "yes"}>
                  no
                </option>
              </select>
            </Show>
            <Button kind="quiet" class="x" aria-label={`Remove ${entry().key}`} onClick={() => props.set(props.entries.filter((_, at) => at !== nth))}>
              ✕
            </Button>
          </div>
        )}
      </Index>
      <Button kind="quiet" onClick={add}>
        + Add
      </Button>
    </fieldset>
  );
}
