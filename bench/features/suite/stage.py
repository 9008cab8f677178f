"""One workload on one broker: what it did in each of its phases, and what that took of the broker."""

import contextlib
import signal
import time
from dataclasses import dataclass, field
from pathlib import Path

from harness import process

from .load import Load, Refused, Watch

SETTLE_S = 0.3


@dataclass
class Tools:
    """Programs, the folder for what they write, and whether this is the small version."""

    courser: Path
    load: Path
    perftest: Path
    cache: Path
    quick: bool


@dataclass
class Phase:
    """A piece of work, filled in while it is done."""

    name: str
    unit: str
    count: int = 0
    seconds: float = 0
    notes: dict = field(default_factory=dict)
    # Whether what was done stays, so that its memory can be told for each.
    grows: bool = False

    def did(self, answer: dict, count: int | None = None, seconds: float | None = None) -> dict:
        """Takes number and time from an answer of the load's, unless told otherwise."""
        self.count += answer["count"] if count is None else count
        self.seconds += answer["seconds"] if seconds is None else seconds
        return answer


class Stage:
    """Where a workload finds its broker, its load, and how much it is to do."""

    def __init__(self, tools: Tools, workload: str, name: str, broker):
        self.tools, self.workload, self.name, self.broker = tools, workload, name, broker
        self.load = Load(tools.load, broker.uri)
        self.rows: list[dict] = []
        # Of processes that were the broker before a restart.
        self._spent_s = 0.0

    def size(self, full: int, rabbitmq: int | None = None) -> int:
        """How many: a tenth in the small version, and RabbitMQ may get fewer where it would take minutes."""
        wanted = full if self.name == "courser" or rabbitmq is None else rabbitmq
        return max(wanted // 10, 1) if self.tools.quick else wanted

    @contextlib.contextmanager
    def phase(self, name: str, unit: str = "message"):
        """Measures the broker while the block runs; the block says what was done."""
        phase = Phase(name, unit)
        before_s, began_s = self._cpu_s(), time.monotonic()
        rss_before = process.rss_bytes(self.broker.pids)
        yield phase
        cpu_s = self._cpu_s() - before_s
        rss = process.rss_bytes(self.broker.pids)
        if phase.grows:
            phase.notes["bytes each"] = max(rss - rss_before, 0) / max(phase.count, 1)
        row = {
            "workload": self.workload,
            "phase": name,
            "name": self.name,
            "unit": unit,
            "count": phase.count,
            "seconds": phase.seconds,
            "elapsed_s": time.monotonic() - began_s,
            "cpu_s": cpu_s,
            "cpu_us": cpu_s * 1e6 / max(phase.count, 1),
            "per_s": phase.count / phase.seconds if phase.seconds else None,
            "rss_bytes": rss,
            "peak_bytes": process.peak_rss_bytes(self.broker.pids),
            "notes": phase.notes,
        }
        self.rows.append(row)
        print(line(row), flush=True)

    @contextlib.contextmanager
    def watched(self, phase: Phase):
        """Notes how long messages of another queue take while the block runs."""
        watch = Watch(self.tools.perftest, self.broker.uri, self.tools.cache / "watch.json")
        time.sleep(SETTLE_S)
        try:
            yield
        finally:
            time.sleep(SETTLE_S)
            phase.notes["other_queue_ms"] = watch.end()

    def queue(self, name: str, arguments: dict | None = None, durable: bool = False) -> str:
        """Declares a queue."""
        self.load.do("declare", queues=[{"name": name, "durable": durable, "arguments": arguments or {}}])
        return name

    def exchange(self, name: str, kind: str, arguments: dict | None = None, durable: bool = False) -> str:
        """Declares an exchange."""
        exchange = {"name": name, "kind": kind, "durable": durable, "arguments": arguments or {}}
        self.load.do("declare", exchanges=[exchange])
        return name

    def depth(self, queue: str, limit_s: int = 120, **wanted) -> dict:
        """Waits until a queue has `at_least` or `at_most` so many messages ready."""
        answer = self.load.do("depth", queue=queue, every_ms=5, limit_ms=limit_s * 1000, **wanted)
        count, least, most = answer["count"], wanted.get("at_least", 0), wanted.get("at_most")
        if count < least or (most is not None and count > most):
            raise Refused(f"{queue} has {count:,} messages after {limit_s} s, and should have {wanted}")
        return answer

    def restart(self, how: signal.Signals) -> float:
        """Stops the broker and starts it again, if it is one that can; seconds until it answers."""
        self.load.close()
        self._spent_s = self._cpu_s()
        self.broker.stop(how)
        seconds = self.broker.start()
        self.load = Load(self.tools.load, self.broker.uri)
        return seconds

    def _cpu_s(self) -> float:
        return self._spent_s + process.cpu_s(self.broker.pids)

    def close(self) -> None:
        """Ends the load."""
        self.load.close()


def line(row: dict) -> str:
    """A phase in a line, while others go on."""
    text = f"{row['workload']:<10} {row['name']:<8} {row['phase']:<44} {row['count']:>9,}"
    text += f" {row['cpu_us']:10.2f} us/{row['unit']:<8}"
    text += f" {row['per_s']:11,.0f}/s" if row["per_s"] else " " * 14
    text += f" {row['rss_bytes'] / 2**20:6.0f} MiB"
    return "  ".join([text, *(f"{name}: {shown(value)}" for name, value in row["notes"].items())])


def shown(value) -> str:
    """A note as text."""
    if isinstance(value, dict):
        return "/".join(f"{part:.1f}" for part in value.values())
    return f"{value:,.2f}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else str(value)
