"""The figures as Markdown: printed after a run, and kept in docs/ between two markers."""

from pathlib import Path

from . import brokers, loads, results, shares
from .workloads import MEMORY_GOAL_BYTES, MEMORY_WORKLOAD, USUAL, WORKLOADS

BEGIN, END = "<!-- figures: begin -->", "<!-- figures: end -->"
# A queue grows when this many times more is published than consumed; the table then says so.
UNBALANCED = 1.1
# The load whose figures the README shows.
SUMMARY_LOAD = "java"


def preface(measured: dict) -> str:
    """What the figures were made on, and how long."""
    timing = measured["timing"]
    how = f"{timing['measured_s']} s after {timing['warmup_s']} s of warm-up, rounds: {timing['rounds']}"
    return f"{conditions(measured)}\n- Measured: {measured['started']}, {how}, `{measured['command']}`"


def conditions(measured: dict) -> str:
    """Machine and versions."""
    machine = measured["machine"]
    lines = [
        f"- Machine: {machine['cores']} cores of {machine['cpu']}, {machine['memory_bytes'] / 2**30:.0f} GiB, "
        f"{machine['system']}, Linux {machine['kernel']}, data on {machine['file_system']}; "
        f"load average before: {machine['load_average_before']:.2f}",
        "- Versions: " + ", ".join(f"{name} {text}" for name, text in measured["versions"].items()),
        "- Broker and load run in sessions of their own, as services and programs do: where the kernel groups processes by "
        "session (`sched_autogroup_enabled`), each gets its half of the processors, however many threads the other has.",
    ]
    return "\n".join(lines)


def tables(measured: dict) -> str:
    """All tables."""
    parts = []
    for load in results.present(measured, "load"):
        # What took no part with this load has no row and no column.
        made = {**measured, "runs": [run for run in measured["runs"] if run["load"] == load]}
        parts += [f"### Load: {loads.TITLES[load]}", _cost(made, load)]
        parts += [_floor(made, load), _latency(made, load), _memory(made, load), _written(made, load), _shares(made, load)]
    parts.append(_remarks(measured))
    return "\n\n".join(part for part in parts if part) + "\n"


def renew(path: Path, measured: dict, saved: Path, plots: list[str]) -> None:
    """Puts new figures between the markers of a page; `plots` are files beside the saved figures."""
    source = f"Raw figures, every run: [{saved.name}](../bench/results/{saved.name})"
    replace(path, [preface(measured), tables(measured).rstrip(), *_plots(plots), _commands(measured), source])


def renew_summary(path: Path, measured: dict) -> bool:
    """The same for the README, whose figures come from the load that is not of this project; false if that took no part."""
    if SUMMARY_LOAD not in results.present(measured, "load"):
        return False
    machine = measured["machine"]
    # The page has the others.
    shown = [run for run in measured["runs"] if run["workload"] in USUAL and "-" not in run["name"]]
    measured = {**measured, "runs": shown}
    text = (
        f"With {loads.TITLES[SUMMARY_LOAD]} as load, which writes each message by itself as most clients do; it and the broker "
        f"share {machine['cores']} cores of {machine['cpu']}, commit {measured['versions']['commit']}, "
        f"{measured['started'][:10]}:"
    )
    parts = [text, _cost(measured, SUMMARY_LOAD), _summary_of_memory(measured), _floor(measured, SUMMARY_LOAD), _remarks(measured)]
    replace(path, [part for part in parts if part])
    return True


def replace(path: Path, parts: list[str]) -> None:
    """Puts these paragraphs between the markers of a page."""
    before, _, rest = path.read_text().partition(BEGIN)
    _, _, after = rest.partition(END)
    if not rest or not after:
        raise SystemExit(f"error: {path} lacks the markers {BEGIN} and {END}")
    path.write_text(before + "\n\n".join([BEGIN, *parts, END]) + after)


def _cost(measured: dict, load: str) -> str:
    names = results.present(measured, "name")
    titles = [_title(measured, name) for name in names]
    # Set for a load that costs little, and for one that writes each message by itself.
    goals = any(WORKLOADS[name].goal.cost(load) for name in results.present(measured, "workload"))
    header = ["workload", *(f"{title}, us" for title in titles), *["goal"] * goals]
    header += [f"{title}, msg/s" for title in titles]
    rows = []
    for workload in results.present(measured, "workload"):
        runs = [results.of(measured, load, workload, name) for name in names]
        costs = [number(results.median(cell, "cpu_us_per_message")) for cell in runs]
        label = f"**{workload}** {WORKLOADS[workload].title}"
        limit = WORKLOADS[workload].goal.cost(load)
        goal = [f"<= {limit:g}" if limit else ""] * goals
        rows.append([label, *costs, *goal, *(_throughput(cell, workload) for cell in runs)])
    return "Broker CPU time per consumed message, and messages consumed a second:\n\n" + table(header, rows)


def _throughput(runs: list[dict], workload: str) -> str:
    consumed = results.median(runs, "consumed_per_s")
    published = results.median(runs, "published_per_s")
    if consumed is None:
        return ""
    sent = published * max(WORKLOADS[workload].fanout, 1)
    return f"{consumed:,.0f}" + (f" of {sent:,.0f} published" if sent > consumed * UNBALANCED else "")


def _latency(measured: dict, load: str) -> str:
    rows = []
    for workload in results.present(measured, "workload"):
        kind, goal = WORKLOADS[workload].latency, WORKLOADS[workload].goal
        for name in results.present(measured, "name") if kind else ():
            runs = results.of(measured, load, workload, name)
            cells = [_micros(results.median(runs, "latency", kind, at)) for at in ("p50_us", "p99_us", "p999_us")]
            if any(cells):
                rows.append([f"**{workload}** {kind}", _title(measured, name), *cells])
        if kind and goal.latency_p50_us and load == "perftest":
            rows.append([f"**{workload}** {kind}", "goal", _micros(goal.latency_p50_us), _micros(goal.latency_p99_us), ""])
    if not rows:
        return ""
    return "Latency at a fixed rate, in microseconds:\n\n" + table(["latency", "broker", "p50", "p99", "p99.9"], rows)


def _floor(measured: dict, load: str) -> str:
    """What the disk takes: no durable figure can be better than it."""
    of_load = [run for run in measured["runs"] if run["load"] == load]
    p50, p99 = (results.median(of_load, "sync_floor", at) for at in ("p50_us", "p99_us"))
    if not p50:
        return ""
    text = (
        "Floor of anything durable: 4 KiB written and fdatasynced, measured before each durable run, takes "
        f"{p50:,.0f} us in the median and {p99:,.0f} us at the 99th percentile."
    )
    return text + _answer_floor(of_load)


def _answer_floor(runs: list[dict]) -> str:
    """What a confirm takes at a fixed rate where there is no broker."""
    rate, late, p50, p99, system = (
        results.median(runs, "answer_floor", at) for at in ("rate", "late_p50_us", "p50_us", "p99_us", "system_us")
    )
    if not p50:
        return ""
    return (
        f" Floor of a confirm at {rate:,.0f} messages a second: a program that only reads each, writes it, syncs and answers "
        f"does so after {p50:,.0f} us in the median, of which the sender's timer is {late:,.0f} late, and {p99:,.0f} us at "
        f"the 99th percentile; the system takes {system:,.1f} us of processor time for each."
    )


def _memory(measured: dict, load: str) -> str:
    names = results.present(measured, "name")
    rows = []
    for workload in results.present(measured, "workload"):
        peaks = [results.median(results.of(measured, load, workload, name), "peak_rss_bytes") for name in names]
        goal = f"<= {MEMORY_GOAL_BYTES >> 20}" if workload == MEMORY_WORKLOAD else ""
        rows.append([workload, *("" if peak is None else f"{peak / 2**20:.0f}" for peak in peaks), goal])
    header = ["workload", *(_title(measured, name) for name in names), "goal"]
    return "Peak resident memory, in MiB:\n\n" + table(header, rows)


def _summary_of_memory(measured: dict) -> str:
    """The peaks of one workload as a sentence."""
    peaks = {
        _title(measured, name): results.median(results.of(measured, SUMMARY_LOAD, MEMORY_WORKLOAD, name), "peak_rss_bytes")
        for name in results.present(measured, "name")
    }
    each = ", ".join(f"{peak / 2**20:.0f} MiB for {title}" for title, peak in peaks.items() if peak is not None)
    return f"Peak resident memory in {MEMORY_WORKLOAD}: {each}." if each else ""


def _written(measured: dict, load: str) -> str:
    names = results.present(measured, "name")
    rows = []
    for workload in results.present(measured, "workload"):
        if WORKLOADS[workload].durable:
            cells = [results.of(measured, load, workload, name) for name in names]
            written = [results.median(runs, "written_bytes_per_message") for runs in cells]
            size = WORKLOADS[workload].size_bytes
            rows.append([workload, *("" if count is None else number(count / size) for count in written)])
    header = ["workload", *(_title(measured, name) for name in names)]
    return (
        "Bytes written to the disk, by whatever ran, for each byte of a published body. Below 1, messages are confirmed before "
        "they reach the disk: until then they are in memory or the page cache, which a power failure empties.\n\n"
        + table(header, rows)
        if rows
        else ""
    )


def _shares(measured: dict, load: str) -> str:
    """Where Courser's time goes, as far as it was profiled."""
    seen = {each["workload"]: each["shares"] for each in measured.get("shares", []) if each["load"] == load}
    if not seen:
        return ""
    costs = {name: results.median(results.of(measured, load, name, "courser"), "cpu_us_per_message") for name in seen}
    rows = [
        [title, *("" if costs[name] is None else number(seen[name][part] * costs[name]) for name in seen)]
        for part, title in shares.TITLES.items()
    ]
    return "Where Courser's CPU time goes, in microseconds per message, as perf sees it in another run:\n\n" + table(
        ["", *seen], rows
    )


def _remarks(measured: dict) -> str:
    """How far runs differ, and everything that did not go as it should, as a list."""
    lines = [
        "- Each figure is the median of its rounds; the farthest run lies "
        f"{results.spread(measured):.0%} from its median CPU time."
    ]
    if (profile := measured.get("profile", "release")) != "release":
        lines.append(f"- Courser was built with the profile {profile}, without link-time optimisation.")
    busy = [others for run in measured["runs"] if (others := results.other_cores(run)) > results.BUSY_CORES]
    if busy:
        lines.append(
            f"- **The machine had other work** in {len(busy)} of {len(measured['runs'])} runs, up to {max(busy):.1f} cores "
            "of it: rates and latencies are worse than they need be."
        )
    for run in measured["runs"]:
        if what := results.remarks(run):
            title = brokers.TITLES[run["name"]]
            which = f"round {run['round']}, {run['workload']}, {title}, {loads.TITLES[run['load']]}"
            lines.append(f"- {which}: {'; '.join(what)}")
    lines += [f"- {failed}" for failed in measured["failed"]]
    return "\n".join(lines)


def _commands(measured: dict) -> str:
    """What was run."""
    lines = [f"{name:<11} {brokers.COMMANDS[name]}" for name in results.present(measured, "name")]
    commands = {(run["load"], run["workload"]): run["command"] for run in measured["runs"]}
    lines += [f"{workload:<11} {command}" for (_, workload), command in commands.items()]
    return "Commands:\n\n```\n" + "\n".join(lines) + "\n```"


def _plots(plots: list[str]) -> list[str]:
    return [f"![The same as a plot](../bench/results/{name})" for name in plots]


def _title(measured: dict, name: str) -> str:
    """With the version that took part."""
    version = next(run["broker"] for run in measured["runs"] if run["name"] == name).split()[-1]
    return f"{brokers.TITLES[name].removesuffix(' 3')} {version}"


def table(header: list[str], rows: list[list[str]]) -> str:
    """In Markdown; all columns but the first are numbers."""
    lines = [header, ["---"] + ["---:"] * (len(header) - 1), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def number(value: float | None) -> str:
    """With as many digits as say something."""
    if value is None:
        return ""
    return f"{value:.2f}" if value < 10 else f"{value:.1f}" if value < 100 else f"{value:,.0f}"


def _micros(value: float | None) -> str:
    return "" if value is None else f"{value:,.0f}"
