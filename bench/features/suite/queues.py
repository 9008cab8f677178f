"""What queues can do: priorities, length limits, many consumers, dead letters."""

from .stage import Stage

LEVELS = (0, 10, 255)


def priority(stage: Stage) -> None:
    """A backlog over all levels, drained in order, beside a queue without levels."""
    count = stage.size(200_000, 10_000)
    for levels in LEVELS:
        title = f"x-max-priority {levels}" if levels else "no priorities"
        queue = stage.queue(f"priority-{levels}", {"x-max-priority": levels} if levels else {})
        # 7 is prime to both numbers of levels: neighbours differ, and all levels get the same share.
        targets = [{"key": queue, "priority": turn * 7 % (levels + 1)} for turn in range(levels + 1)]
        with stage.phase(f"{title}: fill") as phase:
            phase.did(stage.load.do("publish", targets=targets, count=count, size_bytes=1024))
            stage.depth(queue, at_least=count)
            phase.grows = True
        consume = {"consumers": [{"queue": queue}], "prefetch": 200, "ack_every": 50, "priorities": True}
        with stage.phase(f"{title}: drain in order") as phase:
            answer = phase.did(stage.load.do("consume", count=count, idle_ms=5000, **consume))
            if answer.get("misplaced"):
                phase.notes["OUT OF ORDER"] = answer["misplaced"]
        stage.load.do("delete", queues=[queue])


def length(stage: Stage) -> None:
    """A queue that drops its head with every message, beside one that keeps everything."""
    count = stage.size(1_000_000, 200_000)
    for title, arguments in (
        ("no limit", {}),
        ("x-max-length 1,000, drop-head", {"x-max-length": 1000}),
        ("x-max-length-bytes 100,000, drop-head", {"x-max-length-bytes": 100_000}),
    ):
        queue = stage.queue("length", arguments)
        with stage.phase(f"{title}: publish") as phase:
            phase.did(stage.load.do("publish", targets=[{"key": queue}], count=count, size_bytes=100))
            kept = 1000 if arguments else count
            stage.depth(queue, at_least=kept, at_most=kept)
        if not arguments:
            with stage.phase("no limit: delete the queue") as phase, stage.watched(phase):
                phase.did(stage.load.do("delete", queues=[queue]), count)
        stage.load.do("delete", queues=[queue])


def consumers(stage: Stage) -> None:
    """Many consumers on one queue, which share what comes."""
    count = stage.size(500_000, 100_000)
    for number in (1, 1000):
        queue = stage.queue(f"consumers-{number}")
        consuming = stage.load.start(
            "consume", consumers=[{"queue": queue}] * number, per_connection=100, prefetch=20, ack_every=5, count=count
        ).ready()
        with stage.phase(f"{number:,} consumer{'s' * (number > 1)}: publish and consume") as phase:
            stage.load.do("publish", targets=[{"key": queue}], count=count, size_bytes=100)
            answer = phase.did(consuming.wait(120))
            if number > 1:
                phase.notes["share of a consumer"] = "{:,} to {:,}".format(*answer["share"])
        stage.load.do("delete", queues=[queue])


def dead_letters(stage: Stage) -> None:
    """Messages that expire at once in a queue, and again in the next, down a chain."""
    count, hops = stage.size(200_000, 50_000), 5
    for number in range(hops):
        arguments = {"x-message-ttl": 1, "x-dead-letter-exchange": "", "x-dead-letter-routing-key": f"chain-{number + 1}"}
        stage.queue(f"chain-{number}", arguments)
    stage.queue(f"chain-{hops}")
    with stage.phase(f"chain of {hops} queues with x-message-ttl 1", "hop") as phase, stage.watched(phase):
        sent = stage.load.do("publish", targets=[{"key": "chain-0"}], count=count, size_bytes=100)
        rest = stage.depth(f"chain-{hops}", at_least=count)
        phase.did(sent, count * hops, sent["seconds"] + rest["seconds"])
