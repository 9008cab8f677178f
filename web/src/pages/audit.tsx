// Who asked for which change, from where, and what came of it.
import { onCleanup, Show } from "solid-js";
import { exact, utc } from "../lib/format";
import { get, SEARCH_MS_MAX, seg, withQuery } from "../lib/http";
import { poll } from "../lib/poll";
import { node } from "../lib/pulse";
import { query, setQuery } from "../lib/route";
import { download } from "../lib/save";
import { Badge, Button, Empty, Num, Panel, Problem, Time } from "../ui/bits";
import { AsCommand } from "../ui/dialog";
import { Select } from "../ui/fields";
import { Table } from "../ui/table";

interface Entry {
  at_ms: number;
  user: string | null;
  peer: string;
  method: string;
  path: string;
  status: number;
  /** Requests without good credentials before this one that were not noted. */
  left_out?: number;
}

interface AuditPage {
  items: Entry[];
  has_more: boolean;
}

const SIZES = ["50", "100", "500"];
const RESULTS: [string, string][] = [["", "all"], ["done", "done"], ["refused", "refused"]];
/** Lines that the broker looks at for one answer. */
const LOOKED_AT = 200_000;
const TYPING_MS = 250;

const isRefused = (one: Entry) => one.status >= 400;

/** A path as people write it; a slash within a name stays as it is. */
function plain(path: string): string {
  try {
    return path.split(/(%2F)/i).map((part) => (/^%2F$/i.test(part) ? part : decodeURIComponent(part))).join("");
  } catch {
    return path;
  }
}

export function AuditLog() {
  const page = () => Math.max(1, Math.trunc(Number(query("page"))) || 1);
  const size = () => (SIZES.includes(query("size")) ? query("size") : "100");
  const isSearched = () => query("name") !== "" || query("result") !== "";
  const path = () => withQuery("/api/audit", { page: page(), page_size: size(), search: query("name"), result: RESULTS.some(([result]) => result === query("result")) ? query("result") : "" });
  // Old lines are read from the disk, which may take the broker a while.
  const look = poll(path, (path, signal) => get<AuditPage>(path, { signal, limitMs: SEARCH_MS_MAX }), { gentle: true });
  const items = () => look.data()?.items ?? [];
  const first = (values: Record<string, string>) => setQuery({ ...values, page: undefined });
  let typing: ReturnType<typeof setTimeout> | undefined;
  const search = (name: string) => {
    clearTimeout(typing);
    typing = setTimeout(() => first({ name }), TYPING_MS);
  };
  onCleanup(() => clearTimeout(typing));
  const turn = (by: number) => setQuery({ page: page() + by === 1 ? undefined : page() + by });
  const nothing = () => {
    if (look.data()?.has_more) return `None of the last ${exact(LOOKED_AT)} requests matches.`;
    return page() > 1 ? "There are no older requests." : "No request matches.";
  };
  return (
    <>
      <header class="page-head"><h1>Audit log</h1></header>
      <p class="lead">Requests for changes over HTTP, refused ones too, the newest first. What they carried is not kept: it may be secret. What clients do over AMQP is among the events.</p>
      <div class="list-tools">
        <div class="search">
          <input type="search" data-key="search" aria-label="Search by user, address, path or status" placeholder="Search by user, address, path  /" value={query("name")} spellcheck={false} onInput={(event) => search(event.currentTarget.value)} />
        </div>
        <Select label="What came of it" hideLabel value={query("result")} set={(result) => first({ result })} options={RESULTS} />
        <span class="grow" />
        <Button disabled={items().length === 0} onClick={() => download("audit.json", JSON.stringify(items(), null, 2))}>Save</Button>
      </div>
      <Show when={look.error()}>{(error) => <Problem error={error()} retry={look.refresh} />}</Show>
      <Show when={look.data()} fallback={<Show when={!look.error()}><div class="loading">Loading…</div></Show>}>
        {(found) => (
          <Show when={items().length > 0 || isSearched() || page() > 1} fallback={<Empty title="No requests yet"><p>Each request for a change over the HTTP API, this page and <code>courser ctl</code> is noted, unless <code>management.audit_log</code> is none.</p></Empty>}>
            <div class="panel flush">
              <Table
                label="Requests, newest first" rows={items()} empty={<p>{nothing()}</p>}
                columns={[
                  { label: "When", cell: (one) => <span title={utc(one.at_ms)}><Time at={one.at_ms} /></span> },
                  { label: "User", cell: (one) => one.user ?? <span class="muted">not logged in</span> },
                  { label: "From", cell: (one) => <span class="mono">{one.peer}</span> },
                  { label: "Asked for", cell: (one) => <span class="mono"><b>{one.method}</b> {plain(one.path)}</span> },
                  { label: "Answer", cell: (one) => <span class="badges"><Badge tone={isRefused(one) ? "bad" : "good"}>{one.status}</Badge><Show when={one.left_out}>{(left) => <Badge tone="warn" title="Requests without good credentials that were not noted">{exact(left())} more</Badge>}</Show></span> },
                ]}
              />
            </div>
            <nav class="pager" aria-label="Pages of the audit log">
              <span>Page {exact(page())}</span>
              <span class="grow" />
              <Select label="Rows on a page" hideLabel value={size()} set={(size) => first({ size })} options={SIZES.map((size): [string, string] => [size, `${size} rows`])} />
              <Button data-key="previous" disabled={page() <= 1} onClick={() => turn(-1)}>‹ Newer</Button>
              <Button data-key="next" disabled={!found().has_more || items().length === 0} onClick={() => turn(1)}>Older ›</Button>
            </nav>
          </Show>
        )}
      </Show>
      <AsCommand actions={[{ method: "GET", path: path() }]} />
      <Logins />
    </>
  );
}

interface Attempts {
  protocol: string;
  auth_attempts: number;
  auth_attempts_failed: number;
  auth_attempts_succeeded: number;
}

/** Logins over each protocol; who fails again and again is made to wait. */
function Logins() {
  const look = poll(() => node()?.name, (name, signal) => get<Attempts[]>(`/api/auth/attempts/${seg(name)}`, { signal }), { slower: 3 });
  return (
    <Panel title="Logins since the start" flush>
      <Show when={look.error()}>{(error) => <Problem error={error()} />}</Show>
      <Table
        label="Logins since the start" rows={look.data() ?? []} empty={<p>No logins.</p>}
        columns={[
          { label: "Over", cell: (one) => one.protocol },
          { label: "Let in", number: true, cell: (one) => <Num of={one.auth_attempts_succeeded} /> },
          { label: "Refused", number: true, cell: (one) => <Num of={one.auth_attempts_failed} /> },
        ]}
      />
      <p class="muted small pad">Repeated wrong passwords are delayed longer each time, by address and by user.</p>
    </Panel>
  );
}
