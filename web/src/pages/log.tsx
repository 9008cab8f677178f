// The broker's log, as it is written.
import { Show } from "solid-js";
import type { Sent } from "../lib/events";
import { iso, timeOfDay, utc } from "../lib/format";
import { withQuery } from "../lib/http";
import { query, setQuery } from "../lib/route";
import { Badge, Empty, type Tone } from "../ui/bits";
import { Select } from "../ui/fields";
import { LiveTable } from "../ui/live";

interface LogLine {
  at_ms: number;
  level: string;
  target: string;
  text: string;
}

/** Lines from before that are shown. */
const BEFORE = 500;
const LEVELS: [string, string][] = [["", "all levels"], ["error", "errors"], ["warn", "warnings and worse"], ["info", "information and worse"], ["debug", "debug and worse"]];
const TONES: Record<string, Tone> = { error: "bad", warn: "warn", info: "info" };

export function LogPage() {
  const path = () => withQuery("/api/log/stream", { level: query("level"), count: BEFORE });
  return (
    <>
      <header class="page-head"><h1>Log</h1></header>
      <p class="lead">What the broker writes into its log, the newest on top. The setting log.level decides how much that is.</p>
      <Show when={path()} keyed>
        {(path) => (
          <LiveTable<LogLine>
            name="log" path={path} replays read={(sent: Sent) => sent.data as unknown as LogLine} text={(one) => `${one.level} ${one.target} ${one.text}`}
            tools={<Select label="Levels" hideLabel value={query("level")} set={(level) => setQuery({ level })} options={LEVELS} />}
            empty={<Empty title="Nothing was logged">What the broker logs appears here as it comes.</Empty>}
            columns={[
              { label: "When", cell: (one) => <time class="mono" dateTime={iso(one.at_ms)} title={utc(one.at_ms)}>{timeOfDay(one.at_ms)}</time> },
              { label: "Level", cell: (one) => <Badge tone={TONES[one.level] ?? "plain"}>{one.level}</Badge> },
              { label: "Component", cell: (one) => <span class="mono muted">{one.target}</span> },
              { label: "Text", cell: (one) => <span class="log-text">{one.text}</span> },
            ]}
          />
        )}
      </Show>
    </>
  );
}
