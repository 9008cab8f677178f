"""Messages that expire: a million in one moment, and each at its own."""

import random
import time

from .load import Refused
from .stage import Stage

# Time to publish them all before the first expires.
MARGIN, MARGIN_S = 2, 2


def expiry(stage: Stage) -> None:
    """A backlog that expires at once, while another queue goes on; then one that expires message by message."""
    count = stage.size(1_000_000, 200_000)
    _at_once(stage, "transient", count, persistent=False)
    _at_once(stage, "persistent", count, persistent=True)
    letters = stage.size(200_000, 50_000)
    stage.queue("letters")
    to_letters = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "letters"}
    _at_once(stage, "transient, dead-lettered", letters, persistent=False, arguments=to_letters, letters="letters")
    _one_by_one(stage, stage.size(1_000_000, 200_000))


def _at_once(stage: Stage, title: str, count: int, persistent: bool, arguments: dict | None = None, letters: str = "") -> None:
    queue = stage.queue("expiring", arguments, durable=persistent)
    publish = {"targets": [{"key": queue}], "size_bytes": 100, "persistent": persistent, "confirm": 1000 * persistent}
    # A part of them shows how long all will take.
    part = count // 20
    stage.load.do("publish", count=part, expire_in_ms=1, **publish)
    tried = stage.load.do("publish", count=part, expire_in_ms=1, **publish)
    stage.depth(queue, at_most=0)
    expire_in_ms = int((tried["seconds"] * count / part * MARGIN + MARGIN_S) * 1000)
    began_s = time.monotonic()
    with stage.phase(f"{title}: fill") as phase:
        phase.did(stage.load.do("publish", count=count, expire_in_ms=expire_in_ms, **publish))
        held = stage.depth(queue)["count"]
        phase.grows = True
    if held < count:
        raise Refused(f"only {held:,} of {count:,} messages were there before they expired")
    with stage.phase(f"{title}: expire at once") as phase, stage.watched(phase):
        due_s = began_s + expire_in_ms / 1000
        time.sleep(max(due_s - time.monotonic(), 0))
        stage.depth(queue, at_most=0)
        if letters:
            stage.depth(letters, at_least=held + 2 * part)
        phase.count, phase.seconds = held, time.monotonic() - due_s
    stage.load.do("delete", queues=[queue])


def _one_by_one(stage: Stage, count: int) -> None:
    queue = stage.queue("mixed")
    shuffled = list(range(1000))
    random.Random(1).shuffle(shuffled)
    # From 1 to 6 s, in no order: what is due waits behind what is not.
    targets = [{"key": queue, "expiration": str(1000 + number * 5)} for number in shuffled]
    with stage.phase("mixed expirations: fill, and wait until all are gone") as phase, stage.watched(phase):
        sent = stage.load.do("publish", targets=targets, count=count, size_bytes=100)
        rest = stage.depth(queue, at_most=0)
        phase.did(sent, count, sent["seconds"] + rest["seconds"])
    stage.load.do("delete", queues=[queue])
