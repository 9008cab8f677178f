// What charts are drawn of: samples by time, at most an hour of them.
import { createSignal, type Accessor, type Setter } from "solid-js";
import { silenceMs } from "./poll";
import type { Details } from "./types";

const SAMPLES_MAX = 720;

type Row = Record<string, number | undefined>;
type Stats = Record<string, unknown> | undefined;

export class Samples {
  private rows: { at: number; values: Row }[] = [];
  private addedAt = 0;
  private version: Accessor<number>;
  private changed: Setter<number>;

  constructor() {
    [this.version, this.changed] = createSignal(0);
  }

  /** Whether there is anything to draw. */
  get length(): number {
    this.version();
    return this.rows.length;
  }

  /** A silence of more than `gapMs` is a gap: what a counter did in it is not known. */
  add(at: number, values: Row, gapMs = silenceMs()): void {
    const last = this.rows.at(-1);
    if (last && at - last.at < 500) return;
    if (this.addedAt > 0 && at - this.addedAt > gapMs) this.rows.push({ at: at - 1, values: {} });
    this.addedAt = at;
    this.rows.push({ at, values });
    while (this.rows.length > SAMPLES_MAX) this.rows.shift();
    this.changed((version) => version + 1);
  }

  /** Takes over what the broker has seen while others looked; `[stats, name]` by key. */
  seed(sources: Record<string, [Stats, string]>): void {
    if (this.rows.length > 0) return;
    const byTime = new Map<number, Row>();
    let since = Infinity;
    for (const [key, [stats, name]] of Object.entries(sources)) {
      const samples = (stats?.[`${name}_details`] as Details | undefined)?.samples ?? [];
      // Before it began to look, the broker repeats what it saw first.
      const changes = samples.map((one, nth) => one.sample !== samples.at(-1)?.sample && nth);
      const known = changes.findLastIndex((nth) => nth !== false);
      if (known >= 0) since = Math.min(since, samples[known]!.timestamp);
      for (const { sample, timestamp } of samples) {
        byTime.set(timestamp, { ...byTime.get(timestamp), [key]: sample });
      }
    }
    const times = [...byTime.keys()].filter((at) => at >= since).sort((one, other) => one - other).slice(0, -1);
    const rows = times.map((at) => ({ at, values: byTime.get(at)! }));
    // While no page was open, the broker repeats what it saw last: what grew then is spread over that time.
    // Its newest one is of now, and added by who asks.
    this.rows = rows.filter((row, nth) => nth === 0 || JSON.stringify(row.values) !== JSON.stringify(rows[nth - 1]!.values));
    this.changed((version) => version + 1);
  }

  /** Seconds since 1970, as charts count. */
  times: Accessor<number[]> = () => {
    this.version();
    return this.rows.map((row) => row.at / 1000);
  };

  values(key: string): (number | null)[] {
    this.version();
    return this.rows.map((row) => row.values[key] ?? null);
  }

  /** What a counter grew by each second; a counter that began anew has no rate there. */
  rates(key: string): (number | null)[] {
    return this.growth(key).map((grown, nth) => (grown === null ? null : (grown * 1000) / (this.rows[nth]!.at - this.rows[nth - 1]!.at)));
  }

  /** What a counter grew by for each that another one grew by; nothing where that one stayed. */
  ratios(key: string, each: string): (number | null)[] {
    const under = this.growth(each);
    return this.growth(key).map((grown, nth) => (grown === null || !under[nth] ? null : grown / under[nth]));
  }

  private growth(key: string): (number | null)[] {
    this.version();
    return this.rows.map((row, nth) => {
      const [from, until] = [this.rows[nth - 1]?.values[key], row.values[key]];
      return from === undefined || until === undefined || until < from ? null : until - from;
    });
  }
}
