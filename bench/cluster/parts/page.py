"""The figures as Markdown, beside the goals."""

import statistics

from harness import loads, results
from harness.document import number, table
from harness.workloads import WORKLOADS

from .clusters import TITLES

# What a cluster of three should reach.
CPU_GOAL_US = 8
CPU_GOAL_RATIO = 1 / 10
THROUGHPUT_GOAL_RATIO = 5
CONFIRM_GOAL_RATIO = 2
FAILOVER_GOAL_S = 1.5
CATCH_UP_GOAL_RATIO = 1 / 2


def fault_line(found: dict) -> str:
    """One round in one line."""
    parts = [f"{found['round']} {found['name']:<8}"]
    for key, text in (("killed_s", "leader killed"), ("stopped_s", "stopped in order"), ("restarted_s", "all restarted")):
        if key in found:
            parts.append(f"{text}: {', '.join(f'{wait:.2f}' for wait in found[key])} s;")
    if away := found.get("away"):
        parts.append(f"a follower back: {away['missing_entries']:,} entries in {_seconds(away['caught_up_s'])}, published/s")
        parts.append("/".join(number(away[f"published_{when}"]) for when in ("before", "away", "catching_up")))
    return " ".join(parts)


def tables(measured: dict) -> str:
    """All of them."""
    parts = [_cost(measured), _floor(measured), _latency(measured), _faults(measured), _goals(measured), _remarks(measured)]
    return "\n\n".join(part for part in parts if part) + "\n"


def _kinds(measured: dict) -> list[tuple[str, str, str]]:
    """Name, place and title of what there are runs of."""
    found = {(run["name"], run["place"]) for run in measured["runs"]}
    rows = []
    for name, title in TITLES.items():
        for place in ("leader", "follower"):
            if (name, place) in found:
                rows.append((name, place, title + (", through a follower" if place == "follower" else "")))
    return rows


def _runs(measured: dict, name: str, place: str, workload: str, load: str) -> list[dict]:
    wanted = (name, place, workload, load)
    return [run for run in measured["runs"] if (run["name"], run["place"], run["workload"], run["load"]) == wanted]


def _median(measured: dict, where: tuple, *figure: str) -> float | None:
    return results.median(_runs(measured, *where), *figure)


def _cost(measured: dict) -> str:
    used = [load for load in ("java", "perftest") if any((run["workload"], run["load"]) == ("W3", load) for run in measured["runs"])]
    header = ["", *(f"{loads.TITLES[load]}, us" for load in used), *(f"{loads.TITLES[load]}, msg/s" for load in used), "memory, MiB"]
    rows = []
    for name, place, title in _kinds(measured):
        costs = [number(_median(measured, (name, place, "W3", load), "cpu_us_per_message")) for load in used]
        rates = [_median(measured, (name, place, "W3", load), "consumed_per_s") for load in used]
        memory = max((run["peak_rss_bytes"] for run in measured["runs"] if (run["name"], run["place"]) == (name, place)), default=0)
        rows.append([title, *costs, *("" if rate is None else f"{rate:,.0f}" for rate in rates), f"{memory / 2**20:,.0f}"])
    return (
        f"W3 ({WORKLOADS['W3'].title}): CPU time per consumed message of all nodes together, messages consumed a second, by load; "
        "peak memory of all nodes:\n\n" + table(header, rows)
    )


def _floor(measured: dict) -> str:
    p50, p99 = (results.median(measured["runs"], "sync_floor", at) for at in ("p50_us", "p99_us"))
    return (
        "Floor of anything durable: 4 KiB written and fdatasynced, measured before each run, takes "
        f"{p50:,.0f} us in the median and {p99:,.0f} us at the 99th percentile."
    )


def _latency(measured: dict) -> str:
    rows = []
    for name, place, title in _kinds(measured):
        where = (name, place, "W7d", "perftest")
        cells = [_median(measured, where, "latency", "confirm", at) for at in ("p50_us", "p99_us", "p999_us")]
        cost = number(_median(measured, where, "cpu_us_per_message"))
        rows.append([title, *("" if cell is None else f"{cell:,.0f}" for cell in cells), cost])
    header = ["", "p50, us", "p99, us", "p99.9, us", "CPU, us/message"]
    return "W7d (2,000 messages a second, our perftest): time to the confirm:\n\n" + table(header, rows)


def _waits(measured: dict, name: str, key: str) -> list[float]:
    return [wait for found in measured["faults"] if found["name"] == name for wait in found.get(key, [])]


def _faults(measured: dict) -> str:
    rows = []
    kinds = (("killed_s", "the leader killed"), ("stopped_s", "the leader stopped in order"), ("restarted_s", "all stopped and started again"))
    for key, text in kinds:
        for name in ("cluster", "rabbitmq"):
            if waits := _waits(measured, name, key):
                rows.append([f"{text}: {TITLES[name]}", f"{statistics.median(waits):.2f}", f"{max(waits):.2f}", str(len(waits))])
    text = "Seconds without a confirm, for a client that connects again at once:\n\n"
    text += table(["", "median", "longest", "times"], rows)
    rows = []
    for found in measured["faults"]:
        if away := found.get("away"):
            cells = [number(away[f"published_{when}"]) for when in ("before", "away", "catching_up")]
            rows.append([str(found["round"]), *cells, f"{away['missing_entries']:,}", _seconds(away["caught_up_s"])])
    if rows:
        header = ["round", "before, msg/s", "while it is away", "while it catches up", "entries it lacked", "time"]
        text += "\n\nA follower killed under the full load of W3 (our perftest), and back five seconds later:\n\n" + table(header, rows)
    return text if measured["faults"] else ""


def _goals(measured: dict) -> str:
    """Each goal, and whether it is reached."""
    rows = []

    def row(text: str, goal: float, found: float | None, unit: str, least: bool = False) -> None:
        if found is not None:
            reached = found >= goal if least else found <= goal
            rows.append([text, f"{'>=' if least else '<='} {goal:g}{unit}", f"{number(found)}{unit}", "yes" if reached else "**no**"])

    w3 = {name: _median(measured, (name, "leader", "W3", "java"), "cpu_us_per_message") for name in TITLES}
    rate = {name: _median(measured, (name, "leader", "W3", "java"), "consumed_per_s") for name in TITLES}
    row("CPU per message of all nodes, PerfTest", CPU_GOAL_US, w3["cluster"], " us")
    cheap = _median(measured, ("cluster", "leader", "W3", "perftest"), "cpu_us_per_message")
    row("the same, our perftest", CPU_GOAL_US, cheap, " us")
    row("CPU per message, of RabbitMQ's", CPU_GOAL_RATIO, _ratio(w3["cluster"], w3["rabbitmq"]), "")
    row("throughput with confirms, of RabbitMQ's", THROUGHPUT_GOAL_RATIO, _ratio(rate["cluster"], rate["rabbitmq"]), "", least=True)
    p50 = {name: _median(measured, (name, "leader", "W7d", "perftest"), "latency", "confirm", "p50_us") for name in TITLES}
    row("p50 of a confirm, of one node's", CONFIRM_GOAL_RATIO, _ratio(p50["cluster"], p50["one"]), "")
    killed = _waits(measured, "cluster", "killed_s")
    row("without a confirm after the leader is killed", FAILOVER_GOAL_S, statistics.median(killed) if killed else None, " s")
    away = [found["away"] for found in measured["faults"] if "away" in found]
    kept = [_ratio(one["published_catching_up"], one["published_before"]) for one in away]
    kept = [one for one in kept if one is not None]
    row("throughput while a follower catches up", CATCH_UP_GOAL_RATIO, statistics.median(kept) if kept else None, "", least=True)
    return "Goals:\n\n" + table(["", "goal", "measured", "reached"], rows) if rows else ""


def _remarks(measured: dict) -> str:
    lines = ["- Each figure is the median of its rounds."]
    busy = [others for run in measured["runs"] if (others := results.other_cores(run)) > results.BUSY_CORES]
    if busy:
        lines.append(
            f"- **The machine had other work** in {len(busy)} of {len(measured['runs'])} runs, up to {max(busy):.1f} cores "
            "of it: rates and latencies are worse than they need be."
        )
    for run in measured["runs"]:
        if what := results.remarks(run):
            lines.append(f"- round {run['round']}, {run['workload']}, {run['name']}, {run['place']}, {run['load']}: {'; '.join(what)}")
    return "\n".join([*lines, *(f"- {failed}" for failed in measured["failed"])])


def _ratio(one: float | None, other: float | None) -> float | None:
    return one / other if one is not None and other else None


def _seconds(value: float | None) -> str:
    return "not within 30 s" if value is None else f"{value:.1f} s"
