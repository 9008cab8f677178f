"use strict";
// Draws the report that stands in the page as JSON. No library, nothing is fetched.

const report = JSON.parse(document.getElementById("report").textContent);
const byId = (id) => document.getElementById(id);
const escape = (text) => String(text).replace(/[&<>"]/g, (c) => `&#${c.charCodeAt(0)};`);

function humanTime(ns) {
  if (ns < 1e3) return `${Math.round(ns)} ns`;
  if (ns < 1e6) return `${+(ns / 1e3).toPrecision(3)} µs`;
  if (ns < 1e9) return `${+(ns / 1e6).toPrecision(3)} ms`;
  return `${+(ns / 1e9).toPrecision(3)} s`;
}

function humanCount(count) {
  if (count < 1e3) return `${+count.toPrecision(3)}`;
  if (count < 1e6) return `${+(count / 1e3).toPrecision(3)} k`;
  return `${+(count / 1e6).toPrecision(4)} M`;
}

// Where a value lies between 0 and 1, and which values get a line of the grid.
function linearScale(max) {
  const rough = (max || 1) / 4;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * [1, 2, 2.5, 5, 10].find((m) => power * m >= rough);
  const top = Math.max(step, Math.ceil(max / step) * step);
  const ticks = [];
  for (let tick = 0; tick <= top + step / 2; tick += step) ticks.push(tick);
  return { at: (value) => value / top, ticks };
}

function logScale(min, max) {
  const low = Math.floor(Math.log10(Math.max(1, min)));
  const high = Math.max(low + 1, Math.ceil(Math.log10(Math.max(1, max))));
  const ticks = [];
  for (let power = low; power <= high; power++) ticks.push(10 ** power);
  return { at: (value) => (Math.log10(Math.max(1, value)) - low) / (high - low), ticks };
}

// 90, 99, 99.9, ... % stand at equal distances.
function percentileScale(max) {
  const all = [0, 50, 90, 99, 99.9, 99.99, 99.999, 99.9999];
  const nines = (percentile) => -Math.log10(1 - Math.min(percentile, 99.99999) / 100);
  const top = Math.max(2, nines(max));
  return { at: (percentile) => Math.min(1, nines(percentile) / top), ticks: all.filter((p) => nines(p) <= top) };
}

const FRAME = { width: 960, height: 280, left: 64, right: 16, top: 8, bottom: 28 };

// One chart: `series` is [{ name, points: [[x, y], ...] }]; points without a value are gaps.
function draw(id, { series, x, y, xLabel, yLabel, band }) {
  const { width, height, left, right, top, bottom } = FRAME;
  const px = (value) => left + x.at(value) * (width - left - right);
  const py = (value) => height - bottom - y.at(value) * (height - top - bottom);
  const grid = y.ticks.map((tick) =>
    `<line class="grid" x1="${left}" x2="${width - right}" y1="${py(tick)}" y2="${py(tick)}"/>` +
    `<text x="${left - 8}" y="${py(tick) + 4}" text-anchor="end">${yLabel(tick)}</text>`);
  const marks = x.ticks.map((tick) =>
    `<line class="grid" x1="${px(tick)}" x2="${px(tick)}" y1="${height - bottom}" y2="${height - bottom + 4}"/>` +
    `<text x="${px(tick)}" y="${height - 8}" text-anchor="middle">${xLabel(tick)}</text>`);
  const warmup = band ? `<rect class="warmup" x="${left}" y="${top}" width="${px(band) - left}" height="${height - top - bottom}"/>` : "";
  const lines = series.map(({ points }, index) => {
    let path = "";
    let open = false;
    for (const [valueX, valueY] of points) {
      if (valueY === null) { open = false; continue; }
      path += `${open ? "L" : "M"}${px(valueX).toFixed(1)} ${py(valueY).toFixed(1)}`;
      open = true;
    }
    return `<path class="series" stroke="var(--s${index})" d="${path}"/>`;
  });
  const legend = series.map(({ name }, index) => `<span><i style="background:var(--s${index})"></i>${escape(name)}</span>`);
  byId(id).innerHTML = `<div class="legend">${legend.join("")}${band ? "<span>grey: warm-up</span>" : ""}</div>` +
    `<svg viewBox="0 0 ${width} ${height}" role="img">${warmup}${grid.join("")}${marks.join("")}${lines.join("")}` +
    `<line class="cursor" y1="${top}" y2="${height - bottom}"/></svg>`;
  follow(byId(id).querySelector("svg"), series, px, xLabel, yLabel);
}

// Shows the values under the pointer.
function follow(svg, series, px, xLabel, yLabel) {
  const tip = byId("tip");
  const cursor = svg.querySelector(".cursor");
  const xs = [...new Set(series.flatMap(({ points }) => points.map(([x]) => x)))].sort((a, b) => a - b);
  const hide = () => { tip.hidden = true; cursor.style.visibility = "hidden"; };
  svg.addEventListener("pointerleave", hide);
  svg.addEventListener("pointermove", (event) => {
    const box = svg.getBoundingClientRect();
    const at = (event.clientX - box.left) / box.width * FRAME.width;
    if (!xs.length) return hide();
    const x = xs.reduce((best, candidate) => Math.abs(px(candidate) - at) < Math.abs(px(best) - at) ? candidate : best);
    const rows = series.map(({ name, points }) => {
      const point = points.find((candidate) => candidate[0] === x && candidate[1] !== null);
      return point ? `${name}: ${yLabel(point[1])}` : null;
    });
    tip.textContent = [xLabel(x), ...rows.filter(Boolean)].join("\n");
    tip.hidden = false;
    tip.style.left = `${Math.min(event.clientX + 16, innerWidth - tip.offsetWidth - 8)}px`;
    tip.style.top = `${event.clientY + 16}px`;
    cursor.setAttribute("x1", px(x));
    cursor.setAttribute("x2", px(x));
    cursor.style.visibility = "visible";
  });
}

function timeScale() {
  const end = report.series.length ? report.series[report.series.length - 1].at_s : 1;
  const rough = Math.max(end, 1) / 8;
  const step = [1, 2, 5, 10, 30, 60, 120, 300, 600, 1800, 3600, 7200, 86400].find((s) => s >= rough) || 86400;
  const ticks = [];
  for (let tick = 0; tick <= end; tick += step) ticks.push(tick);
  return { at: (value) => value / Math.max(end, 1), ticks };
}

const seconds = (value) => `${+value.toFixed(1)} s`;

function drawThroughput(band) {
  const line = (name, field) => ({ name, points: report.series.map((point) => [point.at_s, point[field]]) });
  const series = [line("published", "published_per_s"), line("consumed", "consumed_per_s")];
  if (report.settings.confirm || report.settings.tx) series.push(line("confirmed", "confirmed_per_s"));
  const max = Math.max(0, ...series.flatMap(({ points }) => points.map(([, y]) => y)));
  draw("throughput", {
    series, band, x: timeScale(), y: linearScale(max), xLabel: seconds, yLabel: (count) => `${humanCount(count)}/s`,
  });
}

function drawLatency(id, field, band) {
  const line = (name, figure) => ({
    name, points: report.series.map((point) => [point.at_s, point[field] ? point[field][figure] : null]),
  });
  const series = [line("median", "median_ns"), line("99th percentile", "p99_ns"), line("max", "max_ns")];
  const values = series.flatMap(({ points }) => points.map(([, y]) => y)).filter((y) => y !== null);
  if (!values.length) { byId(`${id}-section`).remove(); return; }
  const y = logScale(Math.min(...values), Math.max(...values));
  draw(id, { series, band, x: timeScale(), y, xLabel: seconds, yLabel: humanTime });
}

function drawPercentiles() {
  const curve = (name, points) => ({ name, points: points.map((point) => [point.percentile, point.latency_ns]) });
  const series = [];
  if (report.consumer_percentiles.length) series.push(curve("consumer", report.consumer_percentiles));
  if (report.confirm_percentiles.length) series.push(curve("confirm", report.confirm_percentiles));
  if (!series.length) { byId("percentile-section").remove(); return; }
  const points = series.flatMap((line) => line.points);
  const below = points.map(([x]) => x).filter((x) => x < 100);
  for (const line of series) line.points = line.points.filter(([x]) => x < 100);
  const y = logScale(Math.min(...points.map(([, v]) => v)), Math.max(...points.map(([, v]) => v)));
  draw("percentiles", {
    series, y, x: percentileScale(Math.max(0, ...below)), xLabel: (p) => `${+p.toFixed(5)} %`, yLabel: humanTime,
  });
}

function showFigures() {
  const perSecond = (name) => [name, humanCount(report[name].per_s) + "/s"];
  const rows = [["published", "consumed", "confirmed"].filter((name) => report[name].total).map(perSecond)];
  for (const kind of ["consumer", "confirm"]) {
    const latency = report[`${kind}_latency`];
    if (!latency) continue;
    const figures = [["median", "median_ns"], ["99th", "p99_ns"], ["99.9th", "p999_ns"], ["max", "max_ns"]];
    rows.push(figures.map(([name, field]) => [`${kind} latency, ${name}`, humanTime(latency[field])]));
  }
  const cell = ([name, value]) => `<div><b>${escape(value)}</b><span>${escape(name)}</span></div>`;
  byId("figures").innerHTML = rows.map((row) => `<div class="row">${row.map(cell).join("")}</div>`).join("");
}

function showVerdict() {
  const { lost, undrained, nacked, unconfirmed, failures } = report.fate;
  const problems = [];
  if (lost) problems.push(`${lost} lost`);
  if (undrained) problems.push(`${undrained} left when the time to drain was over`);
  if (nacked) problems.push(`${nacked} refused`);
  if (unconfirmed) problems.push(`${unconfirmed} never confirmed`);
  problems.push(...failures);
  const good = `${report.published.total} published, ${report.consumed.total} consumed in ${report.duration_s.toFixed(1)} s`;
  byId("verdict").className = problems.length ? "bad" : "good";
  byId("verdict").textContent = problems.length ? `Failed: ${problems.join("; ")}` : good + (report.interrupted ? ", interrupted" : "");
}

function showSettings() {
  const rows = Object.entries({ ...report.settings, warmup_s: report.warmup_s, duration_s: report.duration_s });
  byId("settings").innerHTML = rows.map(([name, value]) =>
    `<tr><th>${escape(name.replaceAll("_", " "))}</th><td>${escape(value)}</td></tr>`).join("");
}

const warm = report.series.filter((point) => point.warmup);
const band = warm.length ? warm[warm.length - 1].at_s : 0;
showVerdict();
showFigures();
drawThroughput(band);
drawLatency("consumer", "consumer_latency", band);
drawLatency("confirm", "confirm_latency", band);
drawPercentiles();
showSettings();
