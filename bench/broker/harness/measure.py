"""One run: a fresh broker, a load, and what the broker used between two moments of its steady state."""

import queue
import signal
import statistics
import subprocess
import threading
import time
from dataclasses import dataclass
from pathlib import Path

from . import loads, process
from .brokers import Broker, Serving
from .workloads import Workload

# How long a load may go on after its time: starting, and draining what consumers did not keep up with.
LATE_S_MAX = 45
# A second with less than this part of the median rate is a stall, and one that lasts so long is one of load or machine.
STALL_FRACTION = 0.5
STALL_S = 1.5


@dataclass(frozen=True)
class Sample:
    """The moment of one line of the load's output."""

    at_s: float
    published_per_s: int
    consumed_per_s: int
    broker_cpu_s: float
    load_cpu_s: float
    machine_cpu_s: float
    stolen_s: float
    written_bytes: int


class Failed(Exception):
    """A run without figures."""


def run(serving: Serving, load, workload: Workload, timing: loads.Timing, log: Path, when_warm=None) -> dict:
    """Measures one workload once; raises `Failed`. `when_warm` is called with the broker when its warm-up is over."""
    with serving as broker:
        command = load.command(workload, timing, broker.uri)
        samples, text, problems = _watch(command, broker, timing, log, when_warm)
        latencies, trouble = load.outcome(text)
        peak_rss_bytes = process.peak_rss_bytes(broker.pids)
        if not process.is_alive(broker.pids[0]):
            raise Failed(f"the broker has ended by itself; the load said\n{text[-2000:]}")
    window = _window(samples, timing)
    if len(window) < 2:
        raise Failed(f"the load printed no rates:\n{text[-2000:]}")
    return {
        "broker": broker.version,
        "command": shown(command),
        **figures(window),
        "latency": latencies,
        "peak_rss_bytes": peak_rss_bytes,
        "problems": problems + trouble,
        "series": [[round(s.at_s - samples[0].at_s + 1, 2), s.published_per_s, s.consumed_per_s] for s in samples],
    }


def figures(window: list[Sample]) -> dict:
    """Rates, and CPU time per consumed message, from the first sample of the window to its last."""
    first, last = window[0], window[-1]
    seconds = last.at_s - first.at_s
    consumed = published = 0.0
    for before, sample in zip(window, window[1:]):
        consumed += sample.consumed_per_s * (sample.at_s - before.at_s)
        published += sample.published_per_s * (sample.at_s - before.at_s)
    cpu_s = last.broker_cpu_s - first.broker_cpu_s
    load_s = last.load_cpu_s - first.load_cpu_s
    machine_s = last.machine_cpu_s - first.machine_cpu_s
    usual = statistics.median(sample.consumed_per_s for sample in window[1:])
    longest_s = max(sample.at_s - before.at_s for before, sample in zip(window, window[1:]))
    return {
        "seconds": round(seconds, 3),
        "cpu_us_per_message": cpu_s * 1e6 / max(consumed, 1),
        "load_cpu_us_per_message": load_s * 1e6 / max(consumed, 1),
        "broker_cores": cpu_s / seconds,
        "other_cores": max(machine_s - cpu_s - load_s, 0) / seconds,
        "stolen_cores": (last.stolen_s - first.stolen_s) / seconds,
        "consumed_per_s": consumed / seconds,
        "published_per_s": published / seconds,
        "written_bytes_per_message": (last.written_bytes - first.written_bytes) / max(published, 1),
        "stalled_s": sum(sample.consumed_per_s < usual * STALL_FRACTION for sample in window[1:]),
        "frozen_s": longest_s if longest_s > STALL_S else 0,
    }


def shown(command: list[str]) -> str:
    """The command as a reader would give it: folders and ports are other ones with every run."""
    words = ["URI" if word.startswith(("amqp://", "amqps://")) else word for word in command]
    return " ".join(Path(word).name if word.startswith("/") else word for word in words)


def _window(samples: list[Sample], timing: loads.Timing) -> list[Sample]:
    """The samples from the end of the warm-up on. The first comes a second after the start."""
    if not samples:
        return []
    start_s = samples[0].at_s - 1
    from_s = start_s + timing.warmup_s - 0.1
    to_s = start_s + timing.warmup_s + timing.measured_s + 0.4
    return [sample for sample in samples if from_s <= sample.at_s <= to_s]


def _watch(
    command: list[str], broker: Broker, timing: loads.Timing, log: Path, when_warm
) -> tuple[list[Sample], str, list[str]]:
    """Runs the load; takes the broker's and the load's CPU time at each of its lines."""
    samples, problems, text = [], [], []
    load = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    lines: queue.Queue[str | None] = queue.Queue()
    threading.Thread(target=_read_lines, args=(load.stdout, lines), daemon=True).start()
    deadline_s = time.monotonic() + timing.warmup_s + timing.measured_s + LATE_S_MAX
    try:
        while True:
            try:
                line = lines.get(timeout=max(deadline_s - time.monotonic(), 0))
            except queue.Empty:
                problems.append(f"stopped: it was not done {LATE_S_MAX} s after its time")
                break
            if line is None:
                break
            text.append(line)
            if found := loads.rates(line):
                used = process.cpu_s(broker.pids), process.cpu_s(process.tree(load.pid)), *process.machine_cpu_s()
                written = process.disk_written_bytes(log.parent)
                samples.append(Sample(time.monotonic(), found["published"], found["consumed"], *used, written))
                if when_warm and samples[-1].at_s - samples[0].at_s + 1 >= timing.warmup_s - 0.1:
                    when_warm(broker)
                    when_warm = None
    finally:
        status = _end(load)
        log.write_text("".join(text))
    if status != 0 and not problems:
        problems.append(f"the load ended with {status}")
    return samples, "".join(text), problems


def _read_lines(stream, lines: queue.Queue) -> None:
    for line in stream:
        lines.put(line)
    lines.put(None)


def _end(load: subprocess.Popen) -> int:
    """Waits for its end, asks for it, asks again, forces it."""
    for step in (None, signal.SIGINT, signal.SIGINT, signal.SIGKILL):
        if step is not None:
            load.send_signal(step)
        try:
            return load.wait(timeout=5)
        except subprocess.TimeoutExpired:
            continue
    return load.wait()
