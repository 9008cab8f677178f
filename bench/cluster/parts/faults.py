"""How long clients wait when nodes end and come back."""

import queue
import statistics
import subprocess
import sys
import threading
import time
from pathlib import Path

from harness import loads

HERE = Path(__file__).resolve().parent.parent
PATIENCE_S = 60
# A follower that lacks no more than so many entries is with the others again: under load there are always some on the way.
CAUGHT_UP_ENTRIES = 50
AWAY_S = 5
BEFORE_S = 3
WARMUP_S = 2
# For so long after a node has ended, the longest time without a confirm is searched.
WATCHED_S = 2
QUEUE = "bench-faults"


class Publisher:
    """Publishes one message after the other, and knows when each was confirmed."""

    def __init__(self, python: str, nodes: list):
        command = [python, HERE / "publisher.py", QUEUE, *(node.uri for node in nodes)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.times = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        for line in self.process.stdout:
            self.times.put(float(line))

    def confirmed_after(self, moment: float) -> float:
        """When the first message after this moment was confirmed."""
        until = time.monotonic() + PATIENCE_S
        while True:
            try:
                at = self.times.get(timeout=max(until - time.monotonic(), 0))
            except queue.Empty:
                sys.exit(f"error: nothing was confirmed within {PATIENCE_S} s")
            if at > moment:
                return at

    def longest_wait(self, began: float) -> float:
        """The longest time between two confirms, of which the later one came after this moment."""
        at, longest = began, 0.0
        while at < began + WATCHED_S:
            next_at = self.confirmed_after(at)
            longest, at = max(longest, next_at - at), next_at
        return longest

    def settle(self, seconds: float) -> None:
        """Until it has published for a while."""
        self.confirmed_after(time.monotonic() + seconds)

    def close(self) -> None:
        self.process.stdin.close()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def gone(cluster, python: str, times: int, in_order: bool = False) -> list[float]:
    """The node that leads is killed, or stopped in order: the longest time between two confirms, each time. It comes back where
    it can, before the next time."""
    waits = []
    for _ in range(times):
        leader = cluster.leader()
        publisher = Publisher(python, [leader, *(node for node in cluster.nodes if node is not leader)])
        try:
            publisher.settle(1)
            began = time.monotonic()
            if in_order:
                leader.stop()
            else:
                leader.kill()
            waits.append(publisher.longest_wait(began))
        finally:
            publisher.close()
        if hasattr(leader, "start"):
            leader.start()
            wait_for(cluster, leader)
    return waits


def restart(cluster, python: str) -> float:
    """All nodes are stopped in order: seconds from their start to the first confirm."""
    for node in cluster.nodes:
        node.stop()
    began = time.monotonic()
    for node in cluster.nodes:
        node.start()
    publisher = Publisher(python, cluster.nodes)
    try:
        return publisher.confirmed_after(began) - began
    finally:
        publisher.close()


def wait_for(cluster, node) -> float:
    """Seconds until this follower lacks next to nothing."""
    began = time.monotonic()
    while time.monotonic() < began + PATIENCE_S:
        lag = cluster.lag(node.name)
        if lag is not None and lag <= CAUGHT_UP_ENTRIES:
            return time.monotonic() - began
        time.sleep(0.05)
    raise SystemExit(f"error: node {node.name} did not catch up within {PATIENCE_S} s:\n{node.log_end()}")


def away(cluster, load, workload) -> dict:
    """A follower is killed under full load and comes back: how long it takes to catch up, and what is published meanwhile."""
    node = cluster.followers()[0]
    command = load.command(workload, loads.Timing(0, PATIENCE_S), cluster.leader().uri)
    running = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    rates: list[tuple[float, int]] = []
    reader = threading.Thread(target=_read_rates, args=(running.stdout, rates), daemon=True)
    reader.start()
    try:
        time.sleep(WARMUP_S)
        began = time.monotonic()
        time.sleep(BEFORE_S)
        node.kill()
        killed = time.monotonic()
        time.sleep(AWAY_S)
        back = time.monotonic()
        node.start()
        missing = 0
        caught_up_s = None
        while caught_up_s is None and time.monotonic() < back + PATIENCE_S / 2:
            lag = cluster.lag(node.name)
            missing = max(missing, lag or 0)
            if lag is not None and lag <= CAUGHT_UP_ENTRIES:
                caught_up_s = time.monotonic() - back
            time.sleep(0.05)
        caught = time.monotonic()
        time.sleep(1)
    finally:
        running.terminate()
        running.wait()
    return {
        "missing_entries": missing,
        "caught_up_s": caught_up_s,
        "published_before": _mean(rates, began, killed),
        "published_away": _mean(rates, killed, back),
        # A line tells of the second before it.
        "published_catching_up": _mean(rates, back, max(caught, back + 1) + 1),
        "series": [[round(at - began, 2), rate] for at, rate in rates],
    }


def _read_rates(stream, rates: list) -> None:
    for line in stream:
        if found := loads.rates(line):
            rates.append((time.monotonic(), found["published"]))


def _mean(rates: list, after: float, until: float) -> float | None:
    """Of the seconds that lie wholly in between."""
    found = [rate for at, rate in rates if after + 1 <= at <= until]
    return statistics.mean(found) if found else None
