"""Medians of several runs."""

import statistics

# Other work on the machine than load and broker, from which on rates and latencies are not to be trusted.
BUSY_CORES = 0.1


def line(run: dict) -> str:
    """One run in one line, while it goes on."""
    text = (
        f"{run['round']} {run['workload']:<4} {run['load']:<8} {run['name']:<8} "
        f"{run['cpu_us_per_message']:8.2f} us/msg {run['consumed_per_s']:10,.0f} consumed/s "
        f"{run['published_per_s']:10,.0f} published/s {run['peak_rss_bytes'] / 2**20:5.0f} MiB"
    )
    for kind, latency in run["latency"].items():
        text += f"  {kind} {latency['p50_us']:,.0f}/{latency['p99_us']:,.0f} us"
    if floor := run.get("sync_floor"):
        text += f"  fdatasync {floor['p50_us']:,.0f}/{floor['p99_us']:,.0f} us"
    if floor := run.get("answer_floor"):
        text += f"  an answer {floor['p50_us']:,.0f}/{floor['p99_us']:,.0f} us"
    if (others := other_cores(run)) > BUSY_CORES:
        text += f"  (other work: {others:.1f} cores)"
    return "  ".join([text, *(f"!! {what}" for what in remarks(run))])


def remarks(run: dict) -> list[str]:
    """What went wrong in a run."""
    found = list(run["problems"])
    if run["stalled_s"]:
        found.append(f"{run['stalled_s']} s with less than half of the usual rate")
    if run["frozen_s"]:
        found.append(f"no line from the load for {run['frozen_s']:.1f} s")
    return found


def other_cores(run: dict) -> float:
    """Cores that neither broker nor load had, on average: other processes, and other machines on the same host."""
    return run["other_cores"] + run["stolen_cores"]


def of(measured: dict, load: str, workload: str, broker: str) -> list[dict]:
    """The runs of one cell of the table."""
    wanted = (load, workload, broker)
    return [run for run in measured["runs"] if (run["load"], run["workload"], run["name"]) == wanted]


def median(runs: list[dict], *path: str) -> float | None:
    """The median of a figure, which may lie deeper; None when no run has it."""
    found = [value for run in runs if (value := _at(run, path)) is not None]
    return statistics.median(found) if found else None


def spread(measured: dict) -> float:
    """How far the farthest run's CPU per message lies from the median of its kind, as a fraction of it."""
    distances = []
    for run in measured["runs"]:
        figure = "cpu_us_per_message"
        middle = median(of(measured, run["load"], run["workload"], run["name"]), figure)
        distances.append(abs(run[figure] - middle) / middle if middle else 0)
    return max(distances, default=0)


def present(measured: dict, key: str) -> list[str]:
    """What there are runs of, in the order of the first; brokers by name."""
    found = list(dict.fromkeys(run[key] for run in measured["runs"]))
    return sorted(found) if key == "name" else found


def _at(value, path):
    for key in path:
        if not isinstance(value, dict) or key not in value:
            return None
        value = value[key]
    return value
