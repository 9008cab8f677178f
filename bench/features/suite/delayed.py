"""`x-delayed-message`: a million that are due in a year, and a million that are due soon."""

import random
import signal
import time

from .stage import Stage

YEAR_MS = 365 * 24 * 3600 * 1000
# So much later than published the first ones are due, so that all wait when the broker is killed.
AHEAD_S = 20


def year(stage: Stage) -> None:
    """What waiting costs: memory, and starting again."""
    count = stage.size(1_000_000)
    _declare(stage)
    targets = [{"key": "delayed", "headers": {"x-delay": YEAR_MS + number * 1000}} for number in _shuffled(10_000)]
    with stage.phase("due in a year: publish, confirmed") as phase:
        _publish(stage, phase, targets, count)
    for how, title in ((signal.SIGTERM, "stop"), (signal.SIGKILL, "kill -9")):
        with stage.phase(f"due in a year: start after {title}", "message") as phase:
            seconds = stage.restart(how)
            phase.did({"count": count, "seconds": seconds})
            phase.notes["start, s"] = seconds


def soon(stage: Stage) -> None:
    """How exactly they come, and what each costs, after a kill of the broker."""
    count, span_s = stage.size(1_000_000), 6 if stage.tools.quick else 40
    _declare(stage)
    step_ms = span_s * 1000 // 10_000 or 1
    delays_ms = [AHEAD_S * 1000 + number * step_ms for number in _shuffled(span_s * 1000 // step_ms)]
    targets = [{"key": "delayed", "headers": {"x-delay": ms}, "due_ms": ms} for ms in delays_ms]
    title = "due within a minute"
    began_s = time.monotonic()
    with stage.phase(f"{title}: publish, confirmed") as phase:
        _publish(stage, phase, targets, count)
    with stage.phase(f"{title}: start after kill -9", "message") as phase:
        phase.notes["start, s"] = seconds = stage.restart(signal.SIGKILL)
        phase.did({"count": count, "seconds": seconds})
        if time.monotonic() - began_s > AHEAD_S:
            phase.notes["too slow"] = "some were due before the start"
    with stage.phase(f"{title}: deliver") as phase:
        consume = {"consumers": [{"queue": "delayed"}], "prefetch": 1000, "ack_every": 100, "latency": True}
        answer = phase.did(stage.load.do("consume", count=count, idle_ms=(AHEAD_S + 10) * 1000, **consume))
        late = answer["latency"]
        phase.notes["late, ms p50/p99/max"] = {at: late[f"{at}_ns"] / 1e6 for at in ("median", "p99", "max")}
        if answer.get("early"):
            phase.notes["EARLY"] = answer["early"]


def _declare(stage: Stage) -> None:
    stage.exchange("later", "x-delayed-message", {"x-delayed-type": "direct"}, durable=True)
    stage.queue("delayed", durable=True)
    stage.load.do("declare", bindings=[["delayed", "later", "delayed", {}]])


def _publish(stage: Stage, phase, targets: list[dict], count: int) -> None:
    publish = {"exchange": "later", "targets": targets, "size_bytes": 100, "persistent": True, "confirm": 1000}
    phase.did(stage.load.do("publish", count=count, **publish))
    phase.grows = True


def _shuffled(number: int) -> list[int]:
    numbers = list(range(number))
    random.Random(1).shuffle(numbers)
    return numbers
