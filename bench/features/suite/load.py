"""The load: a `feature_load` process (`crates/perftest/examples`) that is told what to do, and a perftest that watches another queue meanwhile."""

import itertools
import json
import signal
import subprocess
import threading
from pathlib import Path

# Messages a second through the queue that is watched, and the size of each.
WATCH_RATE, WATCH_SIZE_BYTES = 500, 100
END_LIMIT_S = 20


class Refused(Exception):
    """What the load was told could not be done."""


class Order:
    """A command under way."""

    def __init__(self, what: str):
        self.what = what
        self._ready, self._done = threading.Event(), threading.Event()
        self._answer: dict = {}

    def hear(self, answer: dict) -> None:
        """Takes a line of the load's."""
        self._ready.set()
        if "event" not in answer:
            self._answer = answer
            self._done.set()

    def ready(self) -> "Order":
        """Waits until its consumers are there."""
        self._ready.wait()
        return self

    def wait(self, timeout_s: float | None = None) -> dict:
        """Waits until it is done; raises `Refused` when it has failed."""
        if not self._done.wait(timeout_s):
            raise Refused(f"{self.what}: not done in {timeout_s} s")
        if "error" in self._answer:
            raise Refused(f"{self.what}: {self._answer['error']}")
        return self._answer


class Load:
    """A load process for one broker; ends with its `with` block."""

    def __init__(self, binary: Path, uri: str):
        self.process = subprocess.Popen(
            [binary, uri], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
        )
        self.numbers = itertools.count(1)
        self.orders: dict[int, Order] = {}
        threading.Thread(target=self._listen, daemon=True).start()

    def start(self, op: str, **details) -> Order:
        """Begins a command."""
        number, order = next(self.numbers), Order(op)
        self.orders[number] = order
        json.dump({"id": number, "op": op, **details}, self.process.stdin)
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return order

    def do(self, op: str, timeout_s: float | None = None, **details) -> dict:
        """Does a command, and waits for its answer."""
        return self.start(op, **details).wait(timeout_s)

    def _listen(self) -> None:
        for line in self.process.stdout:
            answer = json.loads(line)
            self.orders[answer.pop("id")].hear(answer)
        for order in self.orders.values():
            order.hear({"error": "the load has ended"})

    def close(self) -> None:
        """Ends the process, whatever it is at."""
        self.process.kill()
        self.process.wait()


class Watch:
    """Sends messages through a queue of its own, at a rate that is nothing to the broker, and says what they took."""

    def __init__(self, perftest: Path, uri: str, report: Path):
        self.report = report
        options = ["--rate", str(WATCH_RATE), "--size", str(WATCH_SIZE_BYTES), "--auto-ack", "--confirm", "0", "--queue", "watch"]
        options += ["--duration", "600s", "--quiet", "--json", str(report)]
        self.process = subprocess.Popen(
            [perftest, "--uri", uri, *options], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True
        )

    def end(self) -> dict:
        """Latencies in milliseconds, from the moment at which each message was due."""
        self.process.send_signal(signal.SIGINT)
        try:
            said = self.process.communicate(timeout=END_LIMIT_S)[0]
        except subprocess.TimeoutExpired as late:
            self.process.kill()
            raise Refused("the watching perftest did not end") from late
        if self.process.returncode:
            raise Refused(f"the watching perftest failed:\n{said.decode()[-1000:]}")
        summary = json.loads(self.report.read_text())["consumer_latency"]
        self.report.unlink()
        return {at: summary[f"{at}_ns"] / 1e6 for at in ("median", "p99", "max")}
