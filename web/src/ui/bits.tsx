// Small things that every page is made of.
import { createSignal, For, Show, splitProps, type JSX, type ParentProps } from "solid-js";
import { now } from "../lib/clock";
import * as format from "../lib/format";
import type { ApiError } from "../lib/http";
import type { Arguments } from "../lib/types";

/** A number that can be read at once, and to the last digit on hover. */
export function Num(props: { of: number | undefined; as?: "count" | "rate" | "bytes"; faint?: boolean }) {
  const value = () => Number(props.of ?? 0);
  const text = () => format[props.as ?? "count"](value());
  const full = () => {
    if (props.as === "rate") return `${value().toLocaleString("en", { maximumFractionDigits: 3 })} per second`;
    return props.as === "bytes" ? `${format.exact(value())} bytes` : format.exact(value());
  };
  return (
    <span class="num" classList={{ zero: value() === 0 }} title={full()}>
      {text()}
    </span>
  );
}

/** When something was: how long ago, and exactly on hover. */
export function Time(props: { at: number }) {
  return (
    <time dateTime={format.iso(props.at)} title={`${format.utc(props.at)} · ${new Date(props.at).toLocaleString()} here`}>
      {format.duration(now() - props.at)} ago
    </time>
  );
}

export type Tone = "plain" | "good" | "warn" | "bad" | "info";

export function Badge(props: ParentProps<{ tone?: Tone; title?: string }>) {
  return (
    <span class={`badge ${props.tone ?? "plain"}`} title={props.title}>
      {props.children}
    </span>
  );
}

const TONES: Record<string, Tone> = { running: "good", up: "good", blocked: "bad", blocking: "warn", flow: "warn", paused: "warn", down: "bad" };

export const State = (props: { of: string }) => (
  <span class={`state ${TONES[props.of] ?? "plain"}`}>
    <i aria-hidden="true" />
    {props.of}
  </span>
);

interface ButtonProps extends JSX.ButtonHTMLAttributes<HTMLButtonElement> {
  kind?: "plain" | "main" | "danger" | "quiet";
}

export function Button(props: ButtonProps) {
  const [own, rest] = splitProps(props, ["kind", "class"]);
  return <button type="button" {...rest} class={`button ${own.kind ?? "plain"} ${own.class ?? ""}`} />;
}

/** A name that leads to what it names. */
export const Link = (props: ParentProps<{ to: string; title?: string }>) => (
  <a class="link" href={props.to} title={props.title}>
    {props.children}
  </a>
);

export function Copy(props: { text: string; label?: string }) {
  const [done, setDone] = createSignal(false);
  const copy = async () => {
    await copyText(props.text);
    setDone(true);
    setTimeout(() => setDone(false), 1500);
  };
  return (
    <button type="button" class="copy" onClick={copy} aria-label={props.label ?? "Copy"} title={props.label ?? "Copy"}>
      {done() ? "Copied" : "Copy"}
    </button>
  );
}

/** Plain HTTP from another machine has no clipboard of its own. */
async function copyText(text: string): Promise<void> {
  if (navigator.clipboard && window.isSecureContext) return navigator.clipboard.writeText(text);
  const area = document.createElement("textarea");
  area.value = text;
  (document.querySelector("dialog[open]") ?? document.body).append(area);
  area.select();
  document.execCommand("copy");
  area.remove();
}

export function Code(props: { text: string; label?: string }) {
  return (
    <div class="code">
      <pre tabindex="0">{props.text}</pre>
      <Copy text={props.text} label={props.label} />
    </div>
  );
}

/** A part of a page with its own heading. */
export function Panel(props: ParentProps<{ title: JSX.Element; aside?: JSX.Element; flush?: boolean; class?: string }>) {
  return (
    <section class={`panel ${props.class ?? ""}`} classList={{ flush: props.flush }}>
      <header>
        <h2>{props.title}</h2>
        <div class="aside">{props.aside}</div>
      </header>
      <div class="panel-body">{props.children}</div>
    </section>
  );
}

export function Empty(props: ParentProps<{ title: string }>) {
  return (
    <div class="empty">
      <h2>{props.title}</h2>
      <div>{props.children}</div>
    </div>
  );
}

const HEADINGS = {
  gone: "The broker does not answer",
  login: "Log in again",
  forbidden: "Not allowed",
  missing: "Not there",
  refused: "The broker refused that",
  broken: "Something is wrong in the broker",
};

export function Problem(props: { error: ApiError; retry?: () => void }) {
  const hint = () => {
    if (props.error.problem === "forbidden") return "An administrator can give the tag or the permission that is missing.";
    if (props.error.problem === "gone" && props.retry) return "The page tries again by itself.";
    if (props.error.problem === "missing") return "It may have been deleted just now.";
    return "";
  };
  return (
    <div class={`problem ${props.error.problem}`} role="alert">
      <h2>{HEADINGS[props.error.problem]}</h2>
      <p>
        {props.error.message} {hint()}
      </p>
      <Show when={props.retry}>
        <Button onClick={props.retry}>Try again</Button>
      </Show>
    </div>
  );
}

/** Facts beside their names. */
export function Facts(props: { of: [string, JSX.Element][] }) {
  return (
    <dl class="facts">
      <For each={props.of}>
        {([name, value]) => (
          <div>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        )}
      </For>
    </dl>
  );
}

export const literal = (value: unknown): string => (typeof value === "string" ? value : JSON.stringify(value));

export function Args(props: { of: Arguments | undefined; empty?: string }) {
  const entries = () => Object.entries(Array.isArray(props.of) ? {} : (props.of ?? {}));
  return (
    <Show when={entries().length > 0} fallback={<span class="muted">{props.empty ?? "none"}</span>}>
      <span class="args">
        <For each={entries()}>
          {([name, value]) => (
            <span class="arg">
              <span>{name}</span> <b>{literal(value)}</b>
            </span>
          )}
        </For>
      </span>
    </Show>
  );
}

/** A tile with one figure. */
export function Tile(props: ParentProps<{ label: string; to?: string }>) {
  const inner = () => (
    <>
      <span class="tile-value">{props.children}</span>
      <span class="tile-label">{props.label}</span>
    </>
  );
  return (
    <Show when={props.to} fallback={<div class="tile">{inner()}</div>}>
      <a class="tile" href={props.to}>
        {inner()}
      </a>
    </Show>
  );
}
