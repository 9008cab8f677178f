// One connection.
import { Show } from "solid-js";
import * as format from "../lib/format";
import { get, seg, withQuery } from "../lib/http";
import { poll } from "../lib/poll";
import { go, place, to } from "../lib/route";
import { Samples } from "../lib/samples";
import type { Channel, Connection } from "../lib/types";
import { Args, Badge, Facts, Link, Num, Panel, Problem, State, Time } from "../ui/bits";
import { Chart } from "../ui/chart";
import { Table } from "../ui/table";
import { clientOf, CloseMany } from "./connections";

export function ConnectionPage() {
  const name = place().path[1] ?? "";
  const path = `/api/connections/${seg(name)}`;
  const samples = new Samples();
  const look = poll(() => path, async (path, signal) => {
    const first = samples.length === 0;
    const one = await get<Connection>(withQuery(path, first ? { data_rates_age: 600, data_rates_incr: 5 } : {}), { signal });
    const all = one as unknown as Record<string, unknown>;
    if (first) samples.seed({ recv_oct: [all, "recv_oct"], send_oct: [all, "send_oct"] });
    samples.add(Date.now(), { recv_oct: one.recv_oct, send_oct: one.send_oct });
    return one;
  });
  const channels = poll(() => `${path}/channels`, (path, signal) => get<Channel[]>(path, { signal }));
  const rate = (value: number) => `${format.bytes(value)}/s`;
  return (
    <Show when={look.data()} fallback={<Show when={look.error()} fallback={<div class="loading">Loading…</div>}><p class="crumbs"><Link to={to(["connections"])}>Connections</Link></p><h1>{name}</h1><Problem error={look.error()!} /></Show>}>
      {(one) => (
        <>
          <header class="page-head">
            <div>
              <p class="crumbs"><Link to={to(["connections"])}>Connections</Link> in {one().vhost}</p>
              <h1>{one().user_provided_name ?? one().name}</h1>
              <State of={one().state} /> <Badge tone={one().ssl ? "good" : "plain"}>{one().ssl ? "TLS" : "no TLS"}</Badge>
            </div>
            <div class="actions"><CloseMany rows={[one()]} done={() => go(to(["connections"]))} /></div>
          </header>
          <Show when={look.error()}>{(error) => <Problem error={error()} retry={look.refresh} />}</Show>
          <div class="charts">
            <Chart title="Bytes per second" times={samples.times()} format={rate} binary lines={[{ label: "from the client", colour: "c1", values: samples.rates("recv_oct") }, { label: "to the client", colour: "c2", values: samples.rates("send_oct") }]} />
          </div>
          <div class="columns">
            <Panel title="Who">
              <Facts
                of={[
                  ["User", one().user], ["Login", one().auth_mechanism], ["Client", clientOf(one()) || <span class="muted">does not say</span>],
                  ["From", `${one().peer_host}:${one().peer_port}`], ["To", `${one().host}:${one().port}`], ["Since", <Time at={one().connected_at} />],
                ]}
              />
            </Panel>
            <Panel title="What was agreed">
              <Facts
                of={[
                  ["Protocol", one().protocol], ["Heartbeat", one().timeout ? `${one().timeout} s` : "none"], ["Largest frame", <Num of={one().frame_max} as="bytes" />],
                  ["Channels at most", <Num of={one().channel_max} />], ["Waits to be sent", <Num of={one().send_pend} as="bytes" />],
                ]}
              />
            </Panel>
          </div>
          <Panel title="Channels" flush>
            <Table
              label="Channels" rows={channels.data() ?? []} empty={<p>No open channels.</p>}
              columns={[
                { label: "Channel", cell: (one) => <Link to={to(["channels", one.name])}>{one.number}</Link> },
                { label: "State", cell: (one) => <State of={one.state} /> },
                { label: "Consumers", number: true, cell: (one) => <Num of={one.consumer_count} /> },
                { label: "Prefetch", number: true, cell: (one) => <Num of={one.prefetch_count} /> },
                { label: "Unacked", number: true, cell: (one) => <Num of={one.messages_unacknowledged} /> },
                { label: "Unconfirmed", number: true, cell: (one) => <Num of={one.messages_unconfirmed} /> },
              ]}
            />
          </Panel>
          <Panel title="Client properties"><Args of={one().client_properties} /></Panel>
        </>
      )}
    </Show>
  );
}
