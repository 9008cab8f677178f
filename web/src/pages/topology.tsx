// Exchanges, queues and the bindings between them, as a picture.
import { createMemo, For, onCleanup, Show } from "solid-js";
import { after } from "../lib/clock";
import { get, seg, withQuery } from "../lib/http";
import { poll } from "../lib/poll";
import { query, setQuery, vhost } from "../lib/route";
import { bindingsOf, EXCHANGES_MAX, walk, type Seen } from "../lib/topology";
import type { Exchange, Page, Vhost } from "../lib/types";
import { Button, Code, Empty, Panel, Problem } from "../ui/bits";
import { Picture } from "../ui/picture";
import { VhostField } from "../ui/vhost-field";

const SECOND_LOOK_MS = 4000;
const VHOSTS_MAX = 100;

/** What leads to an exchange, and what it leads to. */
export function Around(props: { vhost: string; exchange: string }) {
  const look = poll(
    () => `${props.vhost}\n${props.exchange}`,
    async (_, signal) => {
      const sources = props.exchange === "" ? { items: [], isCut: false } : await bindingsOf(props.vhost, props.exchange, "destination", signal);
      const reached = await walk(props.vhost, [props.exchange], signal);
      return { ...reached, bindings: [...sources.items.filter((one) => one.source !== ""), ...reached.bindings], isCut: reached.isCut || sources.isCut };
    },
    { slower: 3 },
  );
  return (
    <Panel title="Topology" flush>
      <Show when={look.error()}>{(error) => <Problem error={error()} retry={look.refresh} />}</Show>
      <Show when={look.data()}>{(seen) => <Picture seen={seen() as Seen} vhost={props.vhost} start={props.exchange} />}</Show>
    </Panel>
  );
}

/** One picture shows one vhost: with all of them chosen, which one is asked, unless there is only one. */
export function TopologyPage() {
  const names = poll(
    () => (vhost() === undefined ? withQuery("/api/vhosts", { page: 1, page_size: VHOSTS_MAX, columns: "name", disable_stats: true }) : undefined),
    (path, signal) => get<Page<Vhost>>(path, { signal }),
    { slower: 12 },
  );
  const list = () => names.data()?.items.map((one) => one.name) ?? [];
  const where = createMemo(() => vhost() ?? (names.data()?.total_count === 1 ? list()[0] : undefined));
  return (
    <>
      <Show when={where() === undefined}>
        <header class="page-head"><h1>Topology</h1></header>
        <Show when={names.error()}>{(error) => <Problem error={error()} retry={names.refresh} />}</Show>
        <Show when={names.data()} fallback={<Show when={!names.error()}><div class="loading">Loading…</div></Show>}>
          <Empty title="Choose a vhost">
            <p>Exchanges, queues and bindings of one vhost are drawn at a time.</p>
            <div class="actions"><For each={list()}>{(name) => <Button onClick={() => setQuery({ vhost: name }, false)}>{name}</Button>}</For></div>
          </Empty>
        </Show>
      </Show>
      <Show when={where()} keyed>{(name) => <OfVhost vhost={name} />}</Show>
    </>
  );
}

function OfVhost(props: { vhost: string }) {
  const look = poll(
    () => ({ vhost: props.vhost, name: query("name") }),
    async ({ vhost, name }, signal) => {
      const path = withQuery(`/api/exchanges/${seg(vhost)}`, { page: 1, page_size: EXCHANGES_MAX, name: name || undefined, sort: "message_stats.publish_in", sort_reverse: true, columns: "name" });
      const list = await get<Page<Exchange>>(path, { signal });
      const starts = list.items.map((one) => one.name).filter((one) => one !== "");
      const seen = await walk(vhost, starts, signal);
      return { ...seen, isCut: seen.isCut || list.filtered_count > list.items.length };
    },
    { slower: 6 },
  );
  // Rates begin with the second look: it should not be long in coming.
  onCleanup(after(SECOND_LOOK_MS, look.refresh));
  const isBare = () => look.data()?.bindings.length === 0 && look.data()?.detours.length === 0;
  return (
    <>
      <header class="page-head">
        <h1>Topology</h1>
        <div class="inline tight">
          <VhostField value={props.vhost} set={(value) => setQuery({ vhost: value })} />
        </div>
      </header>
      <div class="list-tools">
        <div class="search">
          <input type="search" data-key="search" aria-label="Exchanges by name" placeholder="Exchanges by name  /" value={query("name")} onChange={(event) => setQuery({ name: event.currentTarget.value })} />
        </div>
        <Button onClick={look.refresh}>Refresh</Button>
      </div>
      <Show when={look.error()}>{(error) => <Problem error={error()} retry={look.refresh} />}</Show>
      <Show when={isBare()}>
        <Empty title="Nothing is bound here">
          <p>Messages reach queues through bindings. With pika:</p>
          <Code text={`channel.queue_bind("invoices", "orders", "order.paid")`} />
        </Empty>
      </Show>
      <Show when={look.data() && !isBare()}>
        <div class="panel flush">
          <Picture seen={look.data() as Seen} vhost={props.vhost} />
        </div>
      </Show>
    </>
  );
}
