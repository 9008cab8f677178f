"""Plots of the medians as SVG, readable on light and on dark pages."""

import math
from html import escape

from . import brokers, results
from .workloads import WORKLOADS

LEFT, RIGHT, TOP, ROW = 70, 590, 76, 34
# Where the column of the first broker's figures ends, and how wide one is.
FIGURES, COLUMN = RIGHT + 75, 80
STYLE = """
  text { font: 13px system-ui, sans-serif; fill: #24292f } .faint { fill: #6e7781 } .title { font-weight: 600 }
  .grid { stroke: #d0d7de } .span { stroke: #afb8c1; stroke-width: 2 } .goal { stroke: #1a7f37; stroke-width: 3 }
  .courser { fill: #0969da } .rabbitmq { fill: #bc4c00 } .rabbitmq3 { fill: #e3a008 } .lavinmq { fill: #8250df }
  .strangeq { fill: #bf3989 } .courser-tls, .courser-managed, .courser-watched { fill: #0f8b8d } .end { text-anchor: end } .middle { text-anchor: middle }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3 } .faint { fill: #8b949e } .grid { stroke: #30363d } .span { stroke: #6e7681 }
    .goal { stroke: #3fb950 } .courser { fill: #58a6ff } .rabbitmq { fill: #f0883e } .rabbitmq3 { fill: #e3b341 }
    .lavinmq { fill: #a371f7 } .strangeq { fill: #f778ba } .courser-tls, .courser-managed, .courser-watched { fill: #39c5cf }
  }
"""


def drawings(measured: dict) -> dict[str, str]:
    """File names and their contents, for the first load of the run."""
    load = results.present(measured, "load")[0]
    names = results.present(measured, "name")
    cost, speed = [], []
    for workload in results.present(measured, "workload"):
        runs = {name: results.of(measured, load, workload, name) for name in names}
        goal = WORKLOADS[workload].goal.cost(load)
        cost.append((workload, {name: results.median(runs[name], "cpu_us_per_message") for name in names}, goal))
        if not WORKLOADS[workload].rate:
            speed.append((workload, {name: results.median(runs[name], "consumed_per_s") for name in names}, None))
    found = {"broker-cpu.svg": dots("Broker CPU time per consumed message, microseconds (less is better)", cost)}
    if speed:
        found["broker-throughput.svg"] = dots("Messages consumed a second (more is better)", speed)
    return found


def dots(title: str, rows: list[tuple[str, dict, float | None]], left: int = LEFT) -> str:
    """A row for each workload, a dot for each broker, a bar for the goal, on a logarithmic axis. Labels have room for
    `left` pixels."""
    values = [value for _, by_name, goal in rows for value in (*by_name.values(), goal) if value]
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    scale = (RIGHT - left) / max(high - low, 1)
    bottom = TOP + ROW * len(rows)

    def across(value):
        return left + (math.log10(value) - low) * scale

    names = list(rows[0][1])
    parts = [_text(left, 24, title, "title"), _legend(left, names, any(goal for _, _, goal in rows))]
    for power in range(low, max(high, low + 1) + 1):
        x = left + (power - low) * scale
        parts.append(f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="{TOP - 12}" y2="{bottom - 8}"/>')
        parts.append(_text(x, bottom + 12, f"{10.0**power:,g}" if power < 6 else f"{10 ** (power - 6)} M", "faint middle"))
    for index, (label, by_name, goal) in enumerate(rows):
        y = TOP + ROW * index + 8
        found = {name: value for name, value in by_name.items() if value}
        parts.append(_text(left - 12, y + 4, label, "end"))
        ends = [across(value) for value in found.values()]
        parts.append(f'<line class="span" x1="{min(ends):.1f}" x2="{max(ends):.1f}" y1="{y}" y2="{y}"/>')
        if goal:
            parts.append(f'<line class="goal" x1="{across(goal):.1f}" x2="{across(goal):.1f}" y1="{y - 9}" y2="{y + 9}"/>')
        for name, value in found.items():
            parts.append(f'<circle class="{name}" cx="{across(value):.1f}" cy="{y}" r="6"/>')
            parts.append(_text(FIGURES + COLUMN * names.index(name), y + 4, _short(value), f"{name} end"))
    width, height = FIGURES + COLUMN * max(len(names) - 1, 1) + 15, bottom + 24
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}">'
    return "\n".join([head, f"<title>{escape(title)}</title>", f"<style>{STYLE}</style>", *parts, "</svg>", ""])


def _legend(left: int, names: list[str], has_goal: bool) -> str:
    parts, x = [], left
    for name in names:
        parts.append(f'<circle class="{name}" cx="{x + 6}" cy="45" r="6"/>{_text(x + 18, 49, brokers.TITLES[name])}')
        x += 42 + 8 * len(brokers.TITLES[name])
    if has_goal:
        parts.append(f'<line class="goal" x1="{x + 6}" x2="{x + 6}" y1="37" y2="53"/>{_text(x + 16, 49, "goal for Courser")}')
    return "\n".join(parts)


def _text(x: float, y: float, text: str, kind: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y}" class="{kind}">{escape(text)}</text>'


def _short(value: float) -> str:
    if value >= 1e6:
        return f"{value / 1e6:.2f} M"
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"
