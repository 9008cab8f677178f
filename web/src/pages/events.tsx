// What happens in the broker, as it happens.
import { Show } from "solid-js";
import type { Sent } from "../lib/events";
import { iso, timeOfDay, utc } from "../lib/format";
import { withQuery } from "../lib/http";
import { query, setQuery, to, vhost } from "../lib/route";
import { Args, Badge, Empty, Link, type Tone } from "../ui/bits";
import { Select } from "../ui/fields";
import { LiveTable } from "../ui/live";

interface Happening {
  at_ms: number;
  kind: string;
  vhost: string;
  name: string;
  details: Record<string, unknown>;
}

const KINDS: [string, string][] = [
  ["", "everything"],
  ["alarm.", "alarms"],
  ["connection.", "connections"],
  ["channel.", "channels"],
  ["user.authentication.", "logins"],
  ["queue.", "queues"],
  ["exchange.", "exchanges"],
  ["binding.", "bindings"],
  ["vhost.", "vhosts"],
  ["policy.,parameter.", "policies and parameters"],
  ["user.,permission.,topic.permission.", "users and permissions"],
];

const ENDS: [RegExp, Tone][] = [
  [/^alarm\.set$|failure$/, "bad"],
  [/\.(deleted|closed|cleared|purged)$/, "warn"],
  [/\.(created|success|set)$/, "good"],
];
const toneOf = (kind: string): Tone => ENDS.find(([end]) => end.test(kind))?.[1] ?? "plain";

/** Kinds of which the named thing has a page while it is there. */
const PAGES: Record<string, string> = { queue: "queues", exchange: "exchanges", binding: "exchanges" };

function Name(props: { of: Happening }) {
  const page = () => (/\.(deleted)$/.test(props.of.kind) ? undefined : PAGES[props.of.kind.split(".")[0]!]);
  return (
    <Show when={page()} fallback={<span class="mono">{props.of.name}</span>}>
      {(page) => <Link to={to([page(), props.of.vhost, props.of.name])}>{props.of.name || "(default exchange)"}</Link>}
    </Show>
  );
}

export function Events() {
  const path = () => withQuery("/api/events", { kind: query("kind"), vhost: vhost() });
  return (
    <>
      <header class="page-head"><h1>Events</h1></header>
      <p class="lead">Events from now on, newest first. HTTP requests are in the audit log.</p>
      <Show when={path()} keyed>
        {(path) => (
          <LiveTable<Happening>
            name="events" path={path} read={(sent: Sent) => sent.data as unknown as Happening}
            text={(one) => `${one.kind} ${one.vhost} ${one.name} ${JSON.stringify(one.details)}`}
            tools={<Select label="Kinds" hideLabel value={query("kind")} set={(kind) => setQuery({ kind })} options={KINDS} />}
            empty={<Empty title="Nothing has happened yet"><p>Logins, connections, queues that come and go, policies, alarms: they appear here as they come.</p></Empty>}
            columns={[
              { label: "When", cell: (one) => <time class="mono" dateTime={iso(one.at_ms)} title={utc(one.at_ms)}>{timeOfDay(one.at_ms)}</time> },
              { label: "What", cell: (one) => <Badge tone={toneOf(one.kind)}>{one.kind}</Badge> },
              { label: "Vhost", cell: (one) => one.vhost },
              { label: "Object", cell: (one) => <Name of={one} /> },
              { label: "Details", cell: (one) => <Args of={one.details} empty="" /> },
            ]}
          />
        )}
      </Show>
    </>
  );
}
