"""Load tools: how each is told a workload, and how its output is read."""

import json
import re
from dataclasses import dataclass
from pathlib import Path

from .workloads import Workload

TITLES = {
    "java": "RabbitMQ PerfTest",
    "perftest": "our perftest",
    "go": "amqp091-go",
    "pika": "pika",
    "bunny": "Bunny",
}
_RATE = re.compile(r"(published|sent|consumed|received|confirmed): (\d+) msg/s")
_CALLED = {"sent": "published", "received": "consumed"}


@dataclass(frozen=True)
class Timing:
    """Seconds of a run that are not measured, and that are."""

    warmup_s: int
    measured_s: int


def rates(line: str) -> dict[str, int] | None:
    """Messages a second, if this is one of the lines that both tools print every second."""
    found = {_CALLED.get(name, name): int(count) for name, count in _RATE.findall(line)}
    return found if {"published", "consumed"} <= found.keys() else None


class Perftest:
    """Our own: cheap enough to leave the machine to the broker."""

    name = "perftest"

    def __init__(self, binary: Path, folder: Path):
        self.binary = binary
        self.report = folder / "perftest.json"

    def command(self, workload: Workload, timing: Timing, uri: str) -> list[str]:
        """The command line; publishing goes on a second longer than is measured."""
        words = [str(self.binary), "--uri", uri, *self.options(workload)]
        # The broker's certificate is its own. PerfTest looks at none by itself.
        words += ["--insecure"] if uri.startswith("amqps://") else []
        words += ["--warmup", f"{timing.warmup_s}s", "--duration", f"{timing.measured_s + 1}s"]
        return [*words, "--json", str(self.report)]

    def options(self, workload: Workload) -> list[str]:
        """What says the workload."""
        words = ["--producers", str(workload.producers), "--consumers", str(workload.consumers)]
        words += ["--size", str(workload.size_bytes)]
        words += ["--prefetch", str(workload.prefetch)] if workload.prefetch else ["--auto-ack"]
        if workload.durable:
            words += ["--durable", "--persistent"]
        words += ["--confirm", str(workload.confirm)]
        if workload.fanout:
            words += ["--exchange", "bench", "--exchange-type", "fanout", "--queues", str(workload.fanout)]
        if workload.queues > 1:
            words += ["--queue", "bench", "--queues", str(workload.queues)]
        if workload.rate:
            words += ["--rate", str(workload.rate)]
        return words

    def outcome(self, _output: str) -> tuple[dict, list[str]]:
        """Latencies in microseconds, and what went wrong."""
        try:
            report = json.loads(self.report.read_text())
        except (OSError, ValueError) as problem:
            return {}, [f"no report: {problem}"]
        self.report.unlink()
        latencies = {}
        for kind in ("consumer", "confirm"):
            if summary := report.get(f"{kind}_latency"):
                latencies[kind] = {
                    "p50_us": summary["median_ns"] / 1000,
                    "p99_us": summary["p99_ns"] / 1000,
                    "p999_us": summary["p999_ns"] / 1000,
                    "max_us": summary["max_ns"] / 1000,
                }
        fate = report["fate"]
        problems = [f"{fate[what]} {what}" for what in ("lost", "nacked", "unconfirmed", "duplicates") if fate[what]]
        return latencies, problems + fate["failures"]


class JavaPerfTest:
    """RabbitMQ PerfTest: dearer than most brokers, but not of this project."""

    name = "java"

    def __init__(self, jars: Path):
        self.jars = jars

    def command(self, workload: Workload, timing: Timing, uri: str) -> list[str]:
        """The command line; publishing goes on a second longer than is measured."""
        words = ["java", "-cp", f"{self.jars}/*", "com.rabbitmq.perf.PerfTest", "--uri", uri]
        return [*words, *self.options(workload), "--time", str(timing.warmup_s + timing.measured_s + 1)]

    def options(self, workload: Workload) -> list[str]:
        """What says the workload. A queue is durable when messages are persistent."""
        words = ["--producers", str(workload.producers), "--consumers", str(workload.consumers)]
        words += ["--size", str(workload.size_bytes)]
        words += ["--qos", str(workload.prefetch)] if workload.prefetch else ["--autoack"]
        if workload.durable:
            words += ["--flag", "persistent", "--auto-delete", "false"]
        words += ["--confirm", str(workload.confirm)]
        if workload.fanout:
            words += ["--exchange", "bench", "--type", "fanout", "--queue-pattern", "bench-%d"]
            words += ["--queue-pattern-from", "1", "--queue-pattern-to", str(workload.fanout)]
        elif workload.queues > 1:
            words += ["--queue-pattern", "bench-%d", "--queue-pattern-from", "1"]
            words += ["--queue-pattern-to", str(workload.queues)]
        else:
            words += ["--queue", "bench"]
        if workload.rate:
            words += ["--rate", str(workload.rate)]
        return words

    def outcome(self, output: str) -> tuple[dict, list[str]]:
        """Latencies in microseconds, and what went wrong."""
        latencies = {}
        for kind in ("consumer", "confirm"):
            if match := re.search(rf"id: \S+, {kind} latency \S+ (\d+)/(\d+)/(\d+)/(\d+)/(\d+) ", output):
                latencies[kind] = {"p50_us": int(match[2]), "p99_us": int(match[5])}
        return latencies, []


class Client:
    """A client library in a small program of ours (`clients/`), which uses it as its users do: a call for each message,
    and so a write for each. All take the same options and print the same lines."""

    def __init__(self, name: str, program: list[str]):
        self.name = name
        self.program = program

    def command(self, workload: Workload, timing: Timing, uri: str) -> list[str]:
        """The command line; publishing goes on a second longer than is measured."""
        words = [*self.program, "--uri", uri, "--seconds", str(timing.warmup_s + timing.measured_s + 1)]
        for option in ("producers", "consumers", "size_bytes", "prefetch", "confirm", "fanout", "queues", "rate"):
            words += [f"--{option.removesuffix('_bytes')}", str(getattr(workload, option))]
        return words + ["--durable"] * workload.durable

    def outcome(self, _output: str) -> tuple[dict, list[str]]:
        """No latencies: these programs measure none."""
        return {}, []
