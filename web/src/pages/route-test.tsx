// Where a message would go, and why; nothing is sent.
import { createSignal, For, Show } from "solid-js";
import { routeOf } from "../lib/actions";
import { ApiError, send } from "../lib/http";
import { to } from "../lib/route";
import type { Binding } from "../lib/types";
import { Badge, Link, Problem } from "../ui/bits";
import { AsCommand } from "../ui/dialog";
import { Entries, entriesValue, Text, type Entry } from "../ui/fields";

interface Trace {
  routed: boolean;
  queues: { name: string; refuses: boolean; dead_letter_exchange: string | null; dead_letter_routing_key: string | null }[];
  queue_count: number;
  steps: { exchange: string; text: string; bindings: (Binding & { loop: boolean })[] }[];
  step_count: number;
}

export function RouteTest(props: { vhost: string; exchange: string }) {
  const [key, setKey] = createSignal("");
  const [headers, setHeaders] = createSignal<Entry[]>([]);
  const [trace, setTrace] = createSignal<Trace>();
  const [error, setError] = createSignal<ApiError>();
  const action = () => {
    const known = entriesValue(headers());
    return routeOf(props.vhost, props.exchange, { routing_key: key(), properties: "value" in known && Object.keys(known.value).length > 0 ? { headers: known.value } : {} });
  };
  const ask = async (event: Event) => {
    event.preventDefault();
    setError(undefined);
    try {
      setTrace(await send<Trace>(action()));
    } catch (failed) {
      if (!(failed instanceof ApiError)) throw failed;
      setTrace(undefined);
      setError(failed);
    }
  };
  return (
    <form class="publish-main" onSubmit={ask}>
      <div class="inline">
        <Text label="Routing key" value={key()} set={setKey} />
        <button type="submit" class="button main">Where would it go?</button>
      </div>
      <Entries label="Headers" entries={headers()} set={setHeaders} />
      <Show when={error()}>{(error) => <Problem error={error()} />}</Show>
      <Show when={trace()}>
        {(trace) => (
          <div class="trace" role="status">
            <ol>
              <For each={trace().steps}>
                {(step) => (
                  <li>
                    {step.text}
                    <Show when={step.bindings.length > 0}>
                      <ul>
                        <For each={step.bindings}>
                          {(one) => <li>to the {one.destination_type} <Link to={to([`${one.destination_type}s`, one.vhost, one.destination])}>{one.destination}</Link> by <code>{one.routing_key || "(empty key)"}</code> <Show when={one.loop}><Badge>seen before</Badge></Show></li>}
                        </For>
                      </ul>
                    </Show>
                  </li>
                )}
              </For>
              <Show when={trace().step_count > trace().steps.length}><li class="muted">and {trace().step_count - trace().steps.length} more</li></Show>
            </ol>
            <p><b>{trace().queue_count > 0 ? `It reaches ${trace().queue_count} ${trace().queue_count === 1 ? "queue" : "queues"}:` : trace().routed ? "It is kept for later." : "It reaches no queue."}</b></p>
            <ul>
              <For each={trace().queues}>
                {(one) => (
                  <li>
                    <Link to={to(["queues", props.vhost, one.name])}>{one.name}</Link> <Show when={one.refuses}><Badge tone="bad">refuses it: full</Badge></Show>
                    <Show when={one.dead_letter_exchange !== null}> <small class="muted">dead letters go to {one.dead_letter_exchange || "the default exchange"}{one.dead_letter_routing_key ? ` with ${one.dead_letter_routing_key}` : ""}</small></Show>
                  </li>
                )}
              </For>
              <Show when={trace().queue_count > trace().queues.length}><li class="muted">and {trace().queue_count - trace().queues.length} more</li></Show>
            </ul>
          </div>
        )}
      </Show>
      <AsCommand actions={[action()]} />
    </form>
  );
}
