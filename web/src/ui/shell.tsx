// What is around every page: where one is, where one can go, and how the broker is.
import { createEffect, createMemo, createSignal, ErrorBoundary, For, lazy, onCleanup, onMount, Show, Suspense, type Component } from "solid-js";
import { Dynamic } from "solid-js/web";
import { startPulse, stopPulse, node, overview } from "../lib/pulse";
import { clockTime } from "../lib/format";
import { answeredAt, get } from "../lib/http";
import { listen } from "../lib/keys";
import { isSilent, pace, poll, setPace } from "../lib/poll";
import { place, setQuery, to, vhost } from "../lib/route";
import { isAdministrator, isMonitor, logout, user } from "../lib/session";
import { isDark, setTheme, theme, type Theme } from "../lib/theme";
import type { Page, Vhost } from "../lib/types";
import { AuditLog } from "../pages/audit";
import { ChannelPage, Channels } from "../pages/channels";
import { ConnectionPage } from "../pages/connection";
import { Connections } from "../pages/connections";
import { Consumers } from "../pages/consumers";
import { Definitions } from "../pages/definitions";
import { Events } from "../pages/events";
import { ExchangePage } from "../pages/exchange";
import { Exchanges } from "../pages/exchanges";
import { Limits } from "../pages/limits";
import { Logo } from "../pages/login";
import { LogPage } from "../pages/log";
import { NodePage } from "../pages/node";
import { Overview } from "../pages/overview";
import { Policies } from "../pages/policies";
import { QueuePage } from "../pages/queue";
import { Queues } from "../pages/queues";
import { Streams } from "../pages/streams";
import { Trace } from "../pages/trace";
import { UserPage } from "../pages/user";
import { Users } from "../pages/users";
import { VhostPage, Vhosts } from "../pages/vhosts";
import { Button, Empty } from "./bits";
import { Help } from "./help";
import { Palette } from "./palette";
import { Toasts } from "./toast";

const TopologyPage = lazy(async () => ({ default: (await import("../pages/topology")).TopologyPage }));

/** Pages by the first part of their address: that of the list, and that of one thing. */
const PAGES: Record<string, [Component, Component?]> = {
  overview: [Overview],
  queues: [Queues, QueuePage],
  streams: [Streams, QueuePage],
  exchanges: [Exchanges, ExchangePage],
  topology: [TopologyPage],
  connections: [Connections, ConnectionPage],
  channels: [Channels, ChannelPage],
  consumers: [Consumers],
  vhosts: [Vhosts, VhostPage],
  users: [Users, UserPage],
  policies: [Policies],
  limits: [Limits],
  definitions: [Definitions],
  node: [NodePage],
  trace: [Trace],
  events: [Events],
  log: [LogPage],
  audit: [AuditLog],
};

interface Entry {
  path: string;
  text: string;
  hidden?: () => boolean;
}

const NAVIGATION: [string, Entry[]][] = [
  ["", [{ path: "overview", text: "Overview" }]],
  [
    "Messages",
    [
      { path: "queues", text: "Queues" },
      { path: "streams", text: "Streams" },
      { path: "exchanges", text: "Exchanges" },
      { path: "topology", text: "Topology" },
      { path: "trace", text: "Trace", hidden: () => !isAdministrator() },
    ],
  ],
  [
    "Clients",
    [
      { path: "connections", text: "Connections" },
      { path: "channels", text: "Channels" },
      { path: "consumers", text: "Consumers" },
    ],
  ],
  [
    "Administration",
    [
      { path: "vhosts", text: "Vhosts" },
      { path: "users", text: "Users", hidden: () => !isAdministrator() },
      { path: "policies", text: "Policies" },
      { path: "limits", text: "Limits" },
      { path: "definitions", text: "Definitions", hidden: () => !isAdministrator() },
      { path: "node", text: "Node", hidden: () => !isMonitor() },
      { path: "events", text: "Events", hidden: () => !isMonitor() },
      { path: "log", text: "Log", hidden: () => !isAdministrator() },
      { path: "audit", text: "Audit log", hidden: () => !isAdministrator() },
    ],
  ],
];

export function Shell() {
  const [palette, setPalette] = createSignal(false);
  const [help, setHelp] = createSignal(false);
  const [menu, setMenu] = createSignal(false);
  const turn = () => setTheme(isDark() ? "light" : "dark");
  startPulse();
  onCleanup(stopPulse);
  onMount(() => {
    onCleanup(listen({ palette: () => setPalette(true), help: () => setHelp(true), theme: turn }));
  });
  const where = createMemo(() => place().path.join("\n"));
  createEffect(() => {
    where();
    setMenu(false);
    closeMenus();
    window.scrollTo(0, 0);
  });
  createEffect(() => (document.title = `${place().path.slice().reverse().map((part) => part || "(default)").join(" · ")} · Courser`));

  return (
    <div class="shell" classList={{ "menu-open": menu() }}>
      <nav aria-label="Skip">
        <a class="skip" href="#" onClick={(event) => (event.preventDefault(), document.querySelector("main")?.focus())}>
          To the content
        </a>
      </nav>
      <aside class="side">
        <a class="brand" href={to(["overview"])}>
          <Logo />
          <span>
            <b>Courser</b>
            <small title={overview()?.cluster_name}>{overview()?.cluster_name ?? " "}</small>
          </span>
        </a>
        <nav aria-label="Main">
          <For each={NAVIGATION}>
            {([group, entries]) => (
              <div class="nav-group">
                <Show when={group}>
                  <h2>{group}</h2>
                </Show>
                <For each={entries.filter((entry) => !entry.hidden?.())}>
                  {(entry) => (
                    <a href={to([entry.path])} aria-current={place().path[0] === entry.path ? "page" : undefined}>
                      <span>{entry.text}</span>
                      <Show when={counts()[entry.path] !== undefined}>
                        <small>{counts()[entry.path]}</small>
                      </Show>
                    </a>
                  )}
                </For>
              </div>
            )}
          </For>
        </nav>
        <p class="version">{overview() ? `Courser ${overview()!.product_version}` : ""}</p>
      </aside>
      <div class="shade" onClick={() => setMenu(false)} />
      <div class="content">
        <header class="top">
          <Button kind="quiet" class="burger" aria-label="Pages" aria-expanded={menu()} onClick={() => setMenu(!menu())}>
            ☰
          </Button>
          <VhostChoice />
          <button type="button" class="find" aria-label="Find or do… Ctrl K" onClick={() => setPalette(true)}>
            <span>Find or do…</span>
            <kbd>Ctrl K</kbd>
          </button>
          <span class="grow" />
          <Show when={node()?.mem_alarm || node()?.disk_free_alarm}>
            <a class="badge bad" href={to(["overview"])}>
              {node()!.mem_alarm ? "memory alarm" : "disk alarm"}
            </a>
          </Show>
          <Pace />
          <UserMenu turn={turn} help={() => setHelp(true)} />
        </header>
        <Show when={isSilent()}>
          <div class="no-broker" role="alert">
            <b>No answer{answeredAt() > 0 ? ` since ${clockTime(answeredAt())}` : ""}.</b> The figures below are from then. The page keeps asking the broker.
          </div>
        </Show>
        <main tabindex="-1">
          <Current />
        </main>
      </div>
      <Palette open={palette()} close={() => setPalette(false)} turn={turn} help={() => setHelp(true)} />
      <Help open={help()} close={() => setHelp(false)} />
      <Toasts />
    </div>
  );
}

function counts(): Record<string, number | undefined> {
  return overview()?.object_totals ?? {};
}

function closeMenus(): void {
  document.querySelectorAll("details.menu[open]").forEach((menu) => menu.removeAttribute("open"));
}
document.addEventListener("click", (event) => {
  const inside = (event.target as HTMLElement).closest("details.menu");
  document.querySelectorAll("details.menu[open]").forEach((menu) => menu !== inside && menu.removeAttribute("open"));
});
document.addEventListener("keydown", (event) => {
  const open = document.querySelector("details.menu[open]");
  if (event.key !== "Escape" || !open) return;
  closeMenus();
  open.querySelector("summary")?.focus();
});

/** The page of the address. Another thing of the same kind is another page. */
function Current() {
  const key = createMemo(() => place().path.join("/"));
  const found = createMemo(() => {
    const [list, one] = PAGES[place().path[0] ?? ""] ?? [];
    return place().path.length > 1 ? one : list;
  });
  return (
    <Show when={key()} keyed>
      <ErrorBoundary fallback={(error, reset) => <Broken error={error} reset={reset} />}>
        <Suspense fallback={<div class="loading">Loading…</div>}>
          <Show when={found()} fallback={<Empty title="Page not found">The link may be outdated.</Empty>}>
            <Dynamic component={found()} />
          </Show>
        </Suspense>
      </ErrorBoundary>
    </Show>
  );
}

function Broken(props: { error: unknown; reset: () => void }) {
  console.error(props.error);
  return (
    <Empty title="Something went wrong on this page">
      <p>{String(props.error)}</p>
      <Button onClick={props.reset}>Try again</Button>
    </Empty>
  );
}

function VhostChoice() {
  const [open, setOpen] = createSignal(false);
  const names = poll(
    () => (open() || vhost() === undefined ? "/api/vhosts?page=1&page_size=200&columns=name&disable_stats=true" : undefined),
    (path, signal) => get<Page<Vhost>>(path, { signal }),
    { slower: 12 },
  );
  const options = () => {
    const known = names.data()?.items.map((one) => one.name) ?? [];
    const now = vhost();
    return now !== undefined && !known.includes(now) ? [now, ...known] : known;
  };
  return (
    <label class="vhost">
      <span>Vhost</span>
      <select aria-label="Vhost" onFocus={() => setOpen(true)} onChange={(event) => setQuery({ vhost: event.currentTarget.value, page: undefined }, false)}>
        <option value="" selected={vhost() === undefined}>
          all
        </option>
        <For each={options()}>
          {(name) => (
            <option value={name} selected={name === vhost()}>
              {name}
            </option>
          )}
        </For>
      </select>
    </label>
  );
}

function Pace() {
  return (
    <label class="pace" title="Refresh interval">
      <i class="live" classList={{ off: pace() === 0, lost: isSilent() }} aria-hidden="true" />
      <Show when={answeredAt() > 0}>
        <time class="answered" classList={{ lost: isSilent() }} dateTime={new Date(answeredAt()).toISOString()} title="Time of the broker's last answer">
          {clockTime(answeredAt())}
        </time>
      </Show>
      <span class="unseen">Refresh interval</span>
      <select onChange={(event) => setPace(Number(event.currentTarget.value))}>
        <For each={[2, 5, 15, 60, 0]}>
          {(seconds) => (
            <option value={seconds} selected={seconds === pace()}>
              {seconds === 0 ? "paused" : `${seconds} s`}
            </option>
          )}
        </For>
      </select>
    </label>
  );
}

function UserMenu(props: { turn: () => void; help: () => void }) {
  const themes: Theme[] = ["system", "light", "dark"];
  return (
    <details class="menu end">
      <summary class="button quiet">{user()?.name}</summary>
      <div class="menu-body">
        <p class="muted">{user()?.tags.join(", ") || "no tags"}</p>
        <div class="segments" role="radiogroup" aria-label="Theme">
          <For each={themes}>
            {(one) => (
              <button type="button" role="radio" aria-checked={theme() === one} onClick={() => setTheme(one)}>
                {one}
              </button>
            )}
          </For>
        </div>
        <Button kind="quiet" onClick={props.help}>
          Keys and help <kbd>?</kbd>
        </Button>
        <a class="button quiet" href="./api/index.html" target="_blank" rel="noreferrer">
          HTTP API
        </a>
        <Button kind="quiet" onClick={() => logout()}>
          Log out
        </Button>
      </div>
    </details>
  );
}
