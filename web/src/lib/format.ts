// Numbers, sizes and times as people read them.

const whole = new Intl.NumberFormat("en");

export const exact = (value: number): string => whole.format(value);

export function count(value: number): string {
  if (Math.abs(value) < 10_000) return whole.format(Math.round(value));
  const units: [number, string][] = [[1e9, "G"], [1e6, "M"], [1e3, "k"]];
  const [size, unit] = units.find(([size]) => Math.abs(value) >= size) ?? [1, ""];
  return short(value / size) + unit;
}

const short = (value: number): string =>
  Math.abs(value) >= 99.95 ? value.toFixed(0) : Math.abs(value) >= 9.995 ? value.toFixed(1).replace(/\.0$/, "") : value.toFixed(2).replace(/\.?0+$/, "");

export function rate(value: number): string {
  if (Math.abs(value) < 0.005) return "0/s";
  return (Math.abs(value) < 10_000 ? (Math.abs(value) < 99.95 ? short(value) : whole.format(Math.round(value))) : count(value)) + "/s";
}

export function bytes(value: number): string {
  const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
  let nth = 0;
  while (Math.abs(value) >= 1024 && nth < units.length - 1) {
    value /= 1024;
    nth += 1;
  }
  return `${nth === 0 ? Math.round(value) : short(value)} ${units[nth]}`;
}

export function duration(ms: number): string {
  const seconds = Math.max(0, Math.round(ms / 1000));
  if (seconds < 60) return `${seconds} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min`;
  const hours = Math.floor(minutes / 60);
  if (hours < 48) return minutes % 60 ? `${hours} h ${minutes % 60} min` : `${hours} h`;
  const days = Math.floor(hours / 24);
  return hours % 24 ? `${days} d ${hours % 24} h` : `${days} d`;
}

/** A time that is short, such as the disk takes for something. */
export function milliseconds(ms: number): string {
  if (ms >= 1000) return `${short(ms / 1000)} s`;
  return ms < 1 ? `${Math.round(ms * 1000)} µs` : `${short(ms)} ms`;
}

/** A time of today, as clocks here show it. */
export const clockTime = (ms: number): string => new Date(ms).toLocaleTimeString("en-GB", { hour12: false });

/** As far from 1970 as a Date reaches. */
const DATE_MS_MAX = 8.64e15;

/** A time as ISO 8601 has it; empty where no calendar reaches, since clients can send any number. */
export const iso = (ms: number): string => (Math.abs(ms) <= DATE_MS_MAX ? new Date(ms).toISOString() : "");

export const utc = (ms: number): string => iso(ms).replace("T", " ").replace(/\.\d+Z$/, " UTC") || "no date";

/** The time of day, to the millisecond. */
export const timeOfDay = (ms: number): string => iso(ms).replace(/^.*T|Z$/g, "");

/** Units of the property `timestamp`, in milliseconds, each with the first number that is too large for it: seconds from the year 5138 on. */
const TIMESTAMP_UNITS: [number, number, string][] = [[1e11, 1000, ""], [1e14, 1, "milliseconds"], [1e17, 1e-3, "microseconds"], [Infinity, 1e-6, "nanoseconds"]];

/** The date that a timestamp means. The protocol has seconds; many clients send a finer unit. */
export function timestamp(value: number): string {
  const unit = TIMESTAMP_UNITS.find(([below]) => value < below);
  if (!unit) return "no date";
  return utc(value * unit[1]) + (unit[2] && `, if in ${unit[2]}`);
}

/** `1 queue`, `2 queues`. */
export const plural = (number: number, noun: string): string =>
  `${exact(number)} ${noun}${number === 1 ? "" : /(s|x|ch)$/.test(noun) ? "es" : "s"}`;
