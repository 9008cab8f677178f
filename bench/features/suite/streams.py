"""A stream: written once, read by one, by ten, and by ten that want a tenth each."""

from .stage import Stage

READERS = 10


def stream(stage: Stage) -> None:
    """Every reader begins with the first message."""
    count = stage.size(500_000, 100_000)
    queue = stage.queue("stream", {"x-queue-type": "stream"}, durable=True)
    targets = [{"key": queue, "headers": {"x-stream-filter-value": f"f{number}"}} for number in range(READERS)]
    with stage.phase("write, confirmed") as phase:
        publish = {"targets": targets, "count": count, "size_bytes": 1024, "persistent": True, "confirm": 1000}
        phase.did(stage.load.do("publish", **publish))
        phase.grows = True
    _read(stage, "1 reader", [{}], count)
    _read(stage, f"{READERS} readers", [{}] * READERS, count * READERS)
    if stage.name == "courser":
        filters = [{"x-stream-filter": f"f{number}"} for number in range(READERS)]
        _read(stage, f"{READERS} readers, a filter each", filters, count)


def _read(stage: Stage, title: str, readers: list[dict], count: int) -> None:
    consumers = [{"queue": "stream", "arguments": {"x-stream-offset": "first", **more}} for more in readers]
    with stage.phase(f"{title}: from the first message") as phase:
        consume = {"consumers": consumers, "prefetch": 1000, "ack_every": 200, "count": count, "idle_ms": 10_000}
        answer = phase.did(stage.load.do("consume", **consume))
        if len(readers) > 1:
            phase.notes["a second for each"] = answer["count"] / len(readers) / answer["seconds"]
