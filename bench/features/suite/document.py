"""The figures as Markdown and as a plot."""

from harness import brokers, document, plot

from . import stage, workloads

LABELS_WIDTH = 300


def tables(measured: dict) -> str:
    """A table for each workload."""
    parts = []
    for workload in dict.fromkeys(row["workload"] for row in measured["rows"]):
        rows = [row for row in measured["rows"] if row["workload"] == workload]
        parts += [f"### {workloads.WORKLOADS[workload].title}", _table(rows, _names(measured))]
    parts += [f"- {failed}" for failed in measured["failed"]]
    return "\n\n".join(parts) + "\n"


def _table(rows: list[dict], names: list[str]) -> str:
    present = [name for name in names if any(row["name"] == name for row in rows)]
    header = ["phase", *(f"{brokers.TITLES[name]}: {what}" for name in present for what in ("us", "a second", "MiB"))]
    lines, remarks = [], []
    for phase in dict.fromkeys(row["phase"] for row in rows):
        found = {row["name"]: row for row in rows if row["phase"] == phase}
        unit = next(iter(found.values()))["unit"]
        label = phase if unit == "message" else f"{phase}, a {unit}"
        lines.append([label, *(cell for name in present for cell in _cells(found.get(name)))])
        remarks += [_remark(found[name]) for name in present if name in found and found[name]["notes"]]
    return "\n\n".join([document.table(header, lines), "\n".join(remarks)]).rstrip()


def _cells(row: dict | None) -> list[str]:
    if row is None:
        return ["", "", ""]
    speed = f"{row['per_s']:,.0f}" if row["per_s"] else ""
    return [document.number(row["cpu_us"]), speed, f"{row['rss_bytes'] / 2**20:,.0f}"]


def _remark(row: dict) -> str:
    notes = (f"{NOTES.get(name, name)} {stage.shown(value)}" for name, value in row["notes"].items())
    return f"- {row['phase']}, {brokers.TITLES[row['name']]}: {'; '.join(notes)}"


NOTES = {"other_queue_ms": "another queue's latency, ms p50/p99/max", "bytes each": "bytes of memory for each"}


def drawing(measured: dict) -> str:
    """Processor time of all phases."""
    names, rows = _names(measured), []
    for workload, phase in dict.fromkeys((row["workload"], row["phase"]) for row in measured["rows"]):
        found = {name: None for name in names}
        for row in measured["rows"]:
            if (row["workload"], row["phase"]) == (workload, phase):
                found[row["name"]] = row["cpu_us"]
        rows.append((phase if workload in phase else f"{workload}: {phase}", found, None))
    return plot.dots("Broker CPU time for each, microseconds (less is better)", rows, left=LABELS_WIDTH)


def _names(measured: dict) -> list[str]:
    return sorted({row["name"] for row in measured["rows"]})
