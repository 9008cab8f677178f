// One exchange.
import { For, lazy, Match, Show, Suspense, Switch } from "solid-js";
import { deleteExchange } from "../lib/actions";
import * as format from "../lib/format";
import { exchangeSeg, get, seg, withQuery } from "../lib/http";
import { poll } from "../lib/poll";
import { go, place, query, setQuery, to } from "../lib/route";
import { Samples } from "../lib/samples";
import { numberOf, type Exchange } from "../lib/types";
import { Args, Facts, Link, Num, Panel, Problem, Tile } from "../ui/bits";
import { Chart } from "../ui/chart";
import { Ask } from "../ui/dialog";
import { Bindings } from "./bindings";
import { ExchangeFeatures, exchangeName } from "./exchanges";
import { Publish } from "./publish";
import { RouteTest } from "./route-test";

const Picture = lazy(async () => ({ default: (await import("./topology")).Around }));
const TABS: [string, string][] = [["", "At a glance"], ["bindings", "Bindings"], ["publish", "Publish"], ["route", "Route test"], ["topology", "Topology"]];
const RATES = ["publish_in", "publish_out"];

export function ExchangePage() {
  const [, vhost = "", name = ""] = place().path;
  const samples = new Samples();
  const look = poll(
    () => `/api/exchanges/${seg(vhost)}/${exchangeSeg(name)}`,
    async (path, signal) => {
      const first = samples.length === 0;
      const exchange = await get<Exchange>(withQuery(path, first ? { msg_rates_age: 600, msg_rates_incr: 5 } : {}), { signal });
      if (first) samples.seed(Object.fromEntries(RATES.map((key) => [key, [exchange.message_stats, key]])));
      samples.add(Date.now(), Object.fromEntries(RATES.map((key) => [key, numberOf(exchange.message_stats, key)])));
      return exchange;
    },
    { always: true },
  );
  const builtIn = name === "" || name.startsWith("amq.");
  return (
    <Show when={look.data()} fallback={<Show when={look.error()} fallback={<div class="loading">Loading…</div>}><h1>{exchangeName(name)}</h1><Problem error={look.error()!} retry={look.refresh} /></Show>}>
      {(exchange) => (
        <>
          <header class="page-head">
            <div>
              <p class="crumbs"><Link to={to(["exchanges"])}>Exchanges</Link> in {vhost}</p>
              <h1>{exchangeName(name)}</h1>
              <ExchangeFeatures exchange={exchange()} />
            </div>
            <div class="actions">
              <Show when={!builtIn}>
                <Ask label="Delete…" title={`Delete ${name}`} verb="Delete" danger actions={[deleteExchange(vhost, name)]} told={`${name} is deleted.`} done={(answers) => answers.length > 0 && go(to(["exchanges"]))}>
                  <p>Its bindings are deleted too. No message is lost, but publishing to it afterwards closes the channel.</p>
                </Ask>
              </Show>
            </div>
          </header>
          <Show when={look.error()}>{(error) => <Problem error={error()} retry={look.refresh} />}</Show>
          <nav class="tabs" aria-label="Parts of this page">
            <For each={TABS}>
              {([tab, text]) => <button type="button" aria-current={query("tab") === tab ? "page" : undefined} onClick={() => setQuery({ tab }, false)}>{text}</button>}
            </For>
          </nav>
          <Switch fallback={<Glance exchange={exchange()} samples={samples} />}>
            <Match when={query("tab") === "bindings"}>
              <Bindings vhost={vhost} exchange={name} side="source" />
              <Show when={name !== ""}><Bindings vhost={vhost} exchange={name} side="destination" /></Show>
            </Match>
            <Match when={query("tab") === "publish"}>
              <Panel title={`Publish to ${exchangeName(name)}`}><Publish vhost={vhost} exchange={name} done={look.refresh} /></Panel>
            </Match>
            <Match when={query("tab") === "route"}>
              <Panel title="Where would a message go?"><RouteTest vhost={vhost} exchange={name} /></Panel>
            </Match>
            <Match when={query("tab") === "topology"}>
              <Suspense fallback={<div class="loading">Drawing…</div>}><Picture vhost={vhost} exchange={name} /></Suspense>
            </Match>
          </Switch>
        </>
      )}
    </Show>
  );
}

const Glance = (props: { exchange: Exchange; samples: Samples }) => (
  <>
    <div class="tiles">
      <Tile label="published, total"><Num of={numberOf(props.exchange.message_stats, "publish_in")} /></Tile>
      <Tile label="routed to queues, total"><Num of={numberOf(props.exchange.message_stats, "publish_out")} /></Tile>
    </div>
    <div class="charts">
      <Chart
        title="Messages per second" times={props.samples.times()} format={format.rate} exact={(value) => `${value.toFixed(3)} per second`}
        lines={[{ label: "in", colour: "c1", values: props.samples.rates("publish_in") }, { label: "out", colour: "c2", values: props.samples.rates("publish_out") }]}
      />
    </div>
    <Panel title="How it was declared">
      <Facts of={[["Arguments", <Args of={props.exchange.arguments} />], ["Policy", props.exchange.policy ?? <span class="muted">none</span>]]} />
    </Panel>
  </>
);
