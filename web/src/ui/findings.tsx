// What the operator should know, as the broker says it.
import { For, type JSX } from "solid-js";
import { to } from "../lib/route";
import { Badge, Link, Time, type Tone } from "./bits";

export interface Finding {
  severity: "critical" | "warning" | "info";
  kind: string;
  text: string;
  since_ms: number | null;
  object: { vhost?: string; queue?: string; connection?: string } | null;
}

const TONES: Record<string, Tone> = { critical: "bad", warning: "warn", info: "info" };

export const Findings = (props: { list: Finding[] }) => (
  <ul>
    <For each={props.list}>
      {(one) => (
        <li class={TONES[one.severity] ?? "info"}>
          <Badge tone={TONES[one.severity] ?? "info"}>{one.kind.replaceAll("_", " ")}</Badge>
          <span>
            {one.text}. <Leads object={one.object} /> {one.since_ms === null ? "" : <span class="muted">since <Time at={one.since_ms} /></span>}
          </span>
        </li>
      )}
    </For>
  </ul>
);

function Leads(props: { object: Finding["object"] }): JSX.Element {
  // Findings change places while they are shown, and their rows stay: the link is asked for again.
  const link = (): JSX.Element => {
    const { vhost, queue, connection } = props.object ?? {};
    if (vhost !== undefined && queue !== undefined) return <Link to={to(["queues", vhost, queue])}>To {queue}</Link>;
    if (connection !== undefined) return <Link to={to(["connections", connection])}>To the connection</Link>;
    return "";
  };
  return <>{link()}</>;
}
