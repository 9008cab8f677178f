// The way of messages: what was published where, where it went, who got it, where it died.
import { createMemo, createSignal, For, Show } from "solid-js";
import { exact, iso, plural, timeOfDay, utc } from "../lib/format";
import { get, seg } from "../lib/http";
import { poll } from "../lib/poll";
import { query, setQuery, to, vhost } from "../lib/route";
import { begin, EMPTY_LOG, end, freshName, logged, newDeaths, stories, take, type Death, type Log, type Step, type Story } from "../lib/tracing";
import type { Vhost } from "../lib/types";
import { Badge, Button, Empty, Link, Panel, Problem, Time } from "../ui/bits";
import { Ask } from "../ui/dialog";
import { Table } from "../ui/table";

const SHOWN = 100;

export function Trace() {
  const where = () => vhost() ?? "/";
  const queue = () => query("queue");
  const look = poll(where, (name, signal) => get<Vhost>(`/api/vhosts/${seg(name)}`, { signal }), { slower: 2 });
  const changed = () => look.refresh();
  return (
    <>
      <header class="page-head">
        <div>
          <p class="crumbs">in the vhost {where()}</p>
          <h1>Trace</h1>
        </div>
        <div class="actions"><Show when={look.data()}>{(vhost) => <Switches vhost={vhost()} done={changed} />}</Show></div>
      </header>
      <Show when={look.error()}>{(error) => <Problem error={error()} retry={look.refresh} />}</Show>
      <Show
        when={queue()}
        fallback={
          <Empty title="Follow messages">
            <p>While it is on, the broker copies what is published and delivered in a vhost, and this page shows the way of each message that has a <code>message_id</code>: where it was published, which queues it went to, who got it, whether again, and where it died.</p>
            <p>It costs about as much as one more consumer of all messages. <Show when={look.data()?.tracing}>In {where()} it is on, switched on elsewhere or earlier.</Show></p>
          </Empty>
        }
      >
        <Show when={`${where()}\n${queue()}`} keyed>
          <Followed vhost={where()} queue={queue()} />
        </Show>
      </Show>
    </>
  );
}

function Switches(props: { vhost: Vhost; done: () => void }) {
  const name = freshName();
  return (
    <>
      <Show when={!query("queue")}>
        <Ask label="Begin…" kind="main" title={`Follow messages in ${props.vhost.name}`} verb="Begin" actions={begin(props.vhost, name)} done={(answers) => (answers.length === 3 && setQuery({ queue: name }), props.done())}>
          <p>The queue <b class="mono">{name}</b> takes the copies. It is deleted five minutes after this page was last open; tracing stays on until it is switched off here.</p>
        </Ask>
      </Show>
      <Show when={props.vhost.tracing || query("queue")}>
        <Ask label="Switch off…" title={`Follow no more messages in ${props.vhost.name}`} verb="Switch off" actions={end(props.vhost, query("queue"))} done={(answers) => (answers.length > 0 && setQuery({ queue: undefined, id: undefined }), props.done())}>
          <p>Stops tracing and clears this list.</p>
        </Ask>
      </Show>
    </>
  );
}

function Followed(props: { vhost: string; queue: string }) {
  const [log, setLog] = createSignal<Log>(EMPTY_LOG);
  let last: number | undefined;
  const here = (copies: Step[]) => {
    // Copies whose purge did not come through are there again.
    const fresh = copies.filter((one) => last === undefined || one.nth > last);
    if (fresh.length === 0) return;
    const before = last;
    last = fresh.at(-1)!.nth;
    setLog((log) => logged(log, fresh, before));
  };
  let taking = Promise.resolve();
  const takeAfter = (queue: string, signal: AbortSignal) => {
    const taken = taking.then(() => (signal.aborted ? undefined : take(props.vhost, queue, signal, here)));
    taking = taken.catch(() => {});
    return taken;
  };
  const look = poll(() => props.queue, takeAfter, { always: true });
  const steps = () => log().steps;
  const all = createMemo(() => stories(steps()));
  const found = () => all().filter((one) => one.id.includes(query("name"))).reverse();
  const story = () => all().find((one) => one.id === query("id"));
  const nameless = () => steps().filter((one) => one.id === "").length;
  return (
    <>
      <Show when={look.error()}>{(error) => <Problem error={error()} retry={look.refresh} />}</Show>
      <div class="list-tools">
        <div class="search">
          <input type="search" data-key="search" aria-label="Search by message id" placeholder="Search by message id  /" value={query("name")} spellcheck={false} onInput={(event) => setQuery({ name: event.currentTarget.value })} />
        </div>
        <span class="grow" />
        <Button onClick={look.refresh}>Refresh</Button>
        <Button onClick={() => setLog(EMPTY_LOG)}>Clear</Button>
      </div>
      <Show when={query("id")}>
        <Panel title={<>Message <span class="mono">{query("id")}</span></>} aside={<Button kind="quiet" onClick={() => setQuery({ id: undefined })}>Close</Button>}>
          <Show when={story()} fallback={<p class="muted">Nothing was seen of it so far.</p>}>{(story) => <Timeline story={story()} vhost={props.vhost} />}</Show>
        </Panel>
      </Show>
      <Show when={log().missing > 0}>
        <p role="status"><Badge tone="warn">incomplete</Badge> {plural(log().missing, "step")} did not get here: there were more than the queue of the copies holds until they are taken, or another page took them. A message may have gone on since.</p>
      </Show>
      <Panel title={`Messages (${exact(found().length)})`} flush>
        <Table
          label="Messages, newest first" rows={found().slice(0, SHOWN)} empty={<p>Nothing was published or delivered so far{query("name") ? " with such an id" : ""}.</p>}
          columns={[
            { label: "Message", cell: (one) => <button type="button" class="link mono" onClick={() => setQuery({ id: one.id })}>{one.id}</button> },
            { label: "First seen", cell: (one) => <Time at={one.steps[0]!.at} /> },
            { label: "Came by", cell: (one) => <>{one.steps[0]!.exchange || "(default exchange)"} <span class="mono">{one.steps[0]!.keys.join(", ")}</span></> },
            { label: "What happened", cell: (one) => <Outcome story={one} isWhole={one.steps[0]!.nth >= log().wholeFrom} /> },
          ]}
        />
        <p class="muted small pad">
          {found().length > SHOWN ? `The first ${SHOWN}. ` : ""}{log().older > 0 ? `${plural(log().older, "older step")} are kept no more. ` : ""}{nameless() > 0 ? `${plural(nameless(), "step")} of messages without a message_id can't be told apart. ` : ""}Acknowledgements are not copied: that a message was refused shows when it is delivered again, or out of the queue of its dead letters.
        </p>
      </Panel>
    </>
  );
}

function Outcome(props: { story: Story; isWhole: boolean }) {
  const deliveries = () => props.story.steps.filter((one) => one.what === "delivered");
  const isLost = () => props.story.steps.every((one) => one.what === "published" && one.queues.length === 0);
  return (
    <span class="badges">
      <Show when={isLost()}><Badge tone="bad">went to no queue</Badge></Show>
      <Show when={!isLost() && deliveries().length === 0}>
        <Show when={props.isWhole} fallback={<Badge title="Steps are missing since then: it may have been delivered">not known</Badge>}><Badge tone="info">waits</Badge></Show>
      </Show>
      <Show when={deliveries().length > 0}><Badge tone="good">delivered{deliveries().length > 1 ? ` ${deliveries().length} times` : ""}</Badge></Show>
      <Show when={deliveries().some((one) => one.redelivered)}><Badge tone="warn">again</Badge></Show>
      <Show when={props.story.steps.some((one) => one.deaths.length > 0)}><Badge tone="warn">dead letter</Badge></Show>
    </span>
  );
}

function Timeline(props: { story: Story; vhost: string }) {
  const first = () => props.story.steps[0]!.at;
  const since = (at: number) => (at === first() ? "" : `+${exact(at - first())} ms`);
  return (
    <ol class="timeline">
      <For each={props.story.steps}>
        {(step, nth) => (
          <>
            <For each={newDeaths(step, props.story.steps.slice(0, nth()))}>{(death) => <Died death={death} vhost={props.vhost} />}</For>
            <li class={step.what}>
              <time dateTime={iso(step.at)} title={utc(step.at)}>{timeOfDay(step.at)}</time> <span class="muted">{since(step.at)}</span>
              <div><Happened step={step} vhost={props.vhost} /></div>
            </li>
          </>
        )}
      </For>
    </ol>
  );
}

const Died = (props: { death: Death; vhost: string }) => (
  <li class="died">
    <time dateTime={iso(props.death.time * 1000)} title={utc(props.death.time * 1000)}>{timeOfDay(props.death.time * 1000).slice(0, 8)}</time>
    <div>
      <Badge tone="bad">{props.death.reason}</Badge> in <Link to={to(["queues", props.vhost, props.death.queue])}>{props.death.queue}</Link>
      {props.death.count > 1 ? `, ${props.death.count} times by now` : ""}: it became a dead letter.
    </div>
  </li>
);

function Happened(props: { step: Step; vhost: string }) {
  const queues = () => (
    <For each={props.step.queues}>{(name, nth) => <>{nth() > 0 ? ", " : ""}<Link to={to(["queues", props.vhost, name])}>{name}</Link></>}</For>
  );
  const who = () => (props.step.user ? <> by {props.step.user}</> : "");
  const over = () => <span class="muted">{props.step.connection}, channel {props.step.channel}</span>;
  return (
    <Show
      when={props.step.what === "published"}
      fallback={<><Badge tone={props.step.redelivered ? "warn" : "good"}>{props.step.redelivered ? "delivered again" : "delivered"}</Badge> out of {queues()} {over()}</>}
    >
      <Badge tone="info">published</Badge>{who()} to <Link to={to(["exchanges", props.vhost, props.step.exchange])}>{props.step.exchange || "(default exchange)"}</Link> with <span class="mono">{props.step.keys.join(", ") || "(empty key)"}</span>
      {props.step.queues.length > 0 ? <>: it went to {queues()}</> : <>: <Badge tone="bad">it went to no queue</Badge></>} {over()}
    </Show>
  );
}
