// How long the journal's disk takes.
import * as format from "../lib/format";
import { samples } from "../lib/pulse";
import { Chart } from "./chart";

export const SyncTime = () => (
  <Chart
    title="Time of a sync" times={samples.times()} format={format.milliseconds} exact={(ms) => `${ms.toFixed(3)} ms`}
    lines={[{ label: "on average", colour: "c5", values: samples.ratios("sync_ms", "syncs") }]}
  />
);
