// What a file of definitions would change, before it does.
import { For, Show } from "solid-js";
import { exact, plural } from "../lib/format";
import { send, type Action } from "../lib/http";
import { poll } from "../lib/poll";
import { literal, Problem } from "../ui/bits";

interface Row {
  list: string;
  /** The members that tell it from others. */
  row: Record<string, unknown>;
  before?: Record<string, unknown>;
  after?: Record<string, unknown>;
  because?: string;
}

const PARTS = ["refuse", "skip", "strip", "change", "create", "keep"] as const;
type Part = (typeof PARTS)[number];

type Plan = Record<Part, Row[]> & Record<`${Exclude<Part, "skip">}_count` | "same_count" | "skipped_count", number> & { unknown_keys: string[] };

const count = (plan: Plan, part: Part) => (part === "skip" ? plan.skipped_count : plan[`${part}_count`]);

const HEADS: Record<Part, string> = {
  refuse: "refused: the load stops there",
  skip: "left out",
  strip: "loaded without keys that do nothing here",
  change: "changed",
  create: "made",
  keep: "there with other settings, and stay as they are",
};

/** Rows of each sort that are shown. */
const SHOWN = 100;

/** `binding orders to invoices by paid in /` and the like. */
function named({ list, row }: Row): string {
  const what = list.replaceAll("_", " ").replace(/ies$/, "y").replace(/s$/, "");
  const own = list === "bindings" ? `${literal(row["source"])} to ${literal(row["destination"])} by ${literal(row["routing_key"])}` : [row["component"], row["user"], row["name"]].filter((one) => one !== undefined).map(literal).join(" ");
  return `${what} ${own}${row["vhost"] !== undefined && list !== "vhosts" ? ` in ${literal(row["vhost"])}` : ""}`;
}

export function Difference(props: { trial: Action }) {
  const look = poll(() => props.trial, (trial) => send<Plan>(trial), { once: true });
  const none = () => look.data() && ["refuse", "change", "create"].every((part) => count(look.data()!, part as Part) === 0);
  return (
    <section class="difference" aria-label="What would change" aria-live="polite">
      <Show when={look.error()}>{(error) => <Problem error={error()} retry={look.refresh} />}</Show>
      <Show when={look.data()} fallback={<Show when={!look.error()}><p class="muted">Comparing…</p></Show>}>
        {(plan) => (
          <>
            <p>
              <Show when={none()}>Nothing would change. </Show>
              <Show when={plan().same_count > 0}>{plural(plan().same_count, "thing")} {plan().same_count === 1 ? "is" : "are"} there already, as in the file.</Show>
            </p>
            <Show when={plan().unknown_keys.length > 0}>
              <p>Keys that are unknown, and not loaded: <span class="mono">{plan().unknown_keys.map(literal).join(", ")}</span></p>
            </Show>
            <For each={PARTS.filter((part) => count(plan(), part) > 0)}>
              {(part) => (
                <details open={part !== "create" || plan().create_count <= 10}>
                  <summary><b>{exact(count(plan(), part))}</b> {HEADS[part]}</summary>
                  <ul class="preview">
                    <For each={plan()[part].slice(0, SHOWN)}>
                      {(one) => (
                        <li>
                          <span class="mono">{named(one)}</span>
                          <Show when={one.because}><small>{one.because}</small></Show>
                          <Show when={one.after}>
                            <small class="changes">
                              <For each={Object.keys(one.after!)}>{(name) => <span>{name}: <del>{literal(one.before?.[name] ?? null)}</del> → <ins>{literal(one.after![name])}</ins></span>}</For>
                            </small>
                          </Show>
                        </li>
                      )}
                    </For>
                  </ul>
                  <Show when={count(plan(), part) > SHOWN}><p class="muted small">The first {SHOWN}.</p></Show>
                </details>
              )}
            </For>
          </>
        )}
      </Show>
    </section>
  );
}
