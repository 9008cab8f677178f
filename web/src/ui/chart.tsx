// A chart over time, in the colours of the theme.
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { createEffect, createMemo, createSignal, For, onCleanup, onMount, Show } from "solid-js";
import { now } from "../lib/clock";
import { clockTime } from "../lib/format";
import { silenceMs } from "../lib/poll";
import { colour, isDark } from "../lib/theme";

export interface Line {
  label: string;
  /** A colour of the style sheet. */
  colour: string;
  values: (number | null)[];
  dashed?: boolean;
}

interface Props {
  title: string;
  times: number[];
  lines: Line[];
  /** How a value is written. */
  format: (value: number) => string;
  /** The same to the last digit. */
  exact?: (value: number) => string;
  height?: number;
  /** Steps of the scale are powers of two. */
  binary?: boolean;
  /** Steps of the scale are whole numbers. */
  whole?: boolean;
}

/** So many seconds at least are seen at once. */
const WINDOW = 300;
const MOVE_MS = 5000;
const POWERS = Array.from({ length: 50 }, (_, power) => 2 ** power);

const WHOLE = Array.from({ length: 12 }, (_, power) => [1, 2, 5].map((step) => step * 10 ** power)).flat();

const clock = (seconds: number): string => clockTime(seconds * 1000);

/** The right edge is now: a line that ends before it shows that nothing came since. */
function window(min: number | null, max: number | null): [number, number] {
  const last = Math.max(max ?? 0, Date.now() / 1000);
  return [Math.min(min ?? last, last - WINDOW), last];
}

export function Chart(props: Props) {
  let box!: HTMLDivElement;
  let plot: uPlot | undefined;
  const [cursor, setCursor] = createSignal<number | null>(null);
  const data = createMemo<uPlot.AlignedData>(() => [props.times, ...props.lines.map((line) => line.values)]);
  const shape = createMemo(() => JSON.stringify([isDark(), props.lines.map((line) => [line.label, line.colour])]));

  // Without samples, too, time goes on.
  const moved = createMemo(() => Math.floor(now() / MOVE_MS));
  const lastAt = () => (props.times.at(-1) ?? 0) * 1000;
  const isOld = () => props.times.length > 0 && now() - lastAt() > silenceMs();

  const draw = () => {
    plot?.destroy();
    plot = new uPlot(options(), data(), box);
  };
  const options = (): uPlot.Options => {
    const [ink, grid] = [colour("muted"), colour("line")];
    const font = "11px system-ui, sans-serif";
    const axis = { stroke: ink, font, grid: { stroke: grid, width: 1 }, ticks: { show: false } };
    return {
      width: Math.max(120, box.clientWidth),
      height: props.height ?? 170,
      padding: [8, 32, 0, 0],
      legend: { show: false },
      cursor: { y: false, points: { size: 6 }, drag: { x: false, y: false } },
      scales: { x: { range: (_, min, max) => window(min, max) }, y: { range: (_, __, max) => [0, max > 0 ? max * 1.1 : 1] } },
      axes: [
        // Without samples there are no times.
        { ...axis, space: 60, size: 24, grid: { show: false }, values: (_, ticks) => ticks.map((tick) => (props.times.length < 2 ? "" : clock(tick))) },
        { ...axis, space: 34, size: 62, incrs: props.binary ? POWERS : props.whole ? WHOLE : undefined, values: (_, ticks) => ticks.map((tick) => props.format(tick)) },
      ],
      series: [
        {},
        ...props.lines.map((line, nth) => ({
          label: line.label,
          stroke: colour(line.colour),
          width: 1.6,
          dash: line.dashed ? [5, 4] : undefined,
          fill: nth === 0 ? `${colour(line.colour)}1c` : undefined,
          points: { show: false },
        })),
      ],
      hooks: { setCursor: [(chart) => setCursor(chart.cursor.idx ?? null)] },
    };
  };

  onMount(() => {
    createEffect(() => {
      shape();
      draw();
    });
    createEffect(() => {
      moved();
      plot?.setData(data());
    });
    const resize = new ResizeObserver(() => {
      const width = Math.max(120, box.clientWidth);
      if (plot && plot.width !== width) plot.setSize({ width, height: props.height ?? 170 });
    });
    resize.observe(box);
    onCleanup(() => {
      resize.disconnect();
      plot?.destroy();
    });
  });

  const shown = (line: Line): number | null => {
    const at = cursor();
    if (at !== null) return line.values[at] ?? null;
    return isOld() ? null : (line.values.at(-1) ?? null);
  };
  const time = () => {
    const at = cursor();
    const seconds = at === null ? undefined : props.times[at];
    if (seconds !== undefined) return clock(seconds);
    return isOld() ? `no samples since ${clockTime(lastAt())}` : "now";
  };
  const spoken = () =>
    `${props.title}: ` +
    (isOld() ? `no samples since ${clockTime(lastAt())}` : props.lines.map((line) => `${line.label} ${props.format(line.values.at(-1) ?? 0)}`).join(", "));

  return (
    <figure class="chart">
      <figcaption>
        <span class="chart-title">{props.title}</span>
        <span class="chart-time">{time()}</span>
      </figcaption>
      <div class="chart-box" ref={box} role="img" aria-label={spoken()}>
        <Show when={props.times.length < 2}>
          <span class="chart-wait">The chart starts with the second sample.</span>
        </Show>
      </div>
      <ul class="legend">
        <For each={props.lines}>
          {(line) => (
            <li>
              <i class={`swatch ${line.colour}`} classList={{ dashed: line.dashed }} />
              <span>{line.label}</span>
              <b title={shown(line) === null ? "" : (props.exact ?? String)(shown(line)!)}>
                {shown(line) === null ? "–" : props.format(shown(line)!)}
              </b>
            </li>
          )}
        </For>
      </ul>
    </figure>
  );
}
