"""What exchanges cost: many bindings, headers, hashes, ten thousand queues behind one."""

from .stage import Stage

KEYS = 10_000
# Making fewer bindings takes no time that says anything.
MEASURED_MIN = 500


def topic(stage: Stage) -> None:
    """100,000 bindings of a topic exchange: words, `*` and `#`."""
    bindings, queues = stage.size(100_000, 20_000), 100
    for number in (10, bindings):
        exchange = stage.exchange("topic", "topic")
        names = [f"topic-{index}" for index in range(queues)]
        stage.load.do("declare", queues=[{"name": name} for name in names])
        patterns = [_pattern(index) for index in range(number)]
        title = f"{10 if number == 10 else stage.size(100_000):,} bindings"
        made = [[names[index % queues], exchange, pattern, {}] for index, (pattern, _) in enumerate(patterns)]
        _bind(stage, title, made)
        step = max(number // KEYS, 1)
        hits = [{"key": key} for _, key in patterns[::step]]
        misses = [{"key": f"region{index % 50}.service{index}.unknown"} for index in range(len(hits))]
        for what, targets in (("hit", hits), ("miss", misses)):
            _publish(stage, f"{title}: {what}", exchange, targets, stage.size(300_000, 50_000))
        if number == bindings:
            with stage.phase(f"{title}: delete the exchange", "binding") as phase, stage.watched(phase):
                phase.did(stage.load.do("delete", exchanges=[exchange]), number)
                if bindings != stage.size(100_000):
                    phase.notes["bindings"] = bindings
        stage.load.do("delete", exchanges=[exchange], queues=names)


def headers(stage: Stage) -> None:
    """Headers exchanges, half of the bindings with `x-match: all`, half with `any`."""
    queues = 10
    for number in (10, 1000, 10_000):
        exchange = stage.exchange("headers", "headers")
        names = [f"headers-{index}" for index in range(queues)]
        stage.load.do("declare", queues=[{"name": name} for name in names])
        wanted = [_headers(index) for index in range(number)]
        made = [[names[index % queues], exchange, "", arguments] for index, (arguments, _) in enumerate(wanted)]
        title = f"{number:,} bindings"
        _bind(stage, title, made)
        hits = [{"headers": sent} for _, sent in wanted]
        misses = [{"headers": {"tenant": f"t{index}", "kind": "other", "size": 5}} for index in range(number)]
        few = {10: 100_000, 1000: 5000}.get(number, 300)
        for what, targets in (("hit", hits), ("miss", misses)):
            _publish(stage, f"{title}: {what}", exchange, targets, stage.size(200_000, few))
        stage.load.do("delete", exchanges=[exchange], queues=names)


def consistent_hash(stage: Stage) -> None:
    """100 queues behind a consistent hash."""
    queues, count = 100, stage.size(500_000, 100_000)
    exchange = stage.exchange("hash", "x-consistent-hash")
    names = [f"hash-{index}" for index in range(queues)]
    stage.load.do("declare", queues=[{"name": name} for name in names])
    _bind(stage, f"{queues} queues", [[name, exchange, "1", {}] for name in names])
    consuming = stage.load.start("consume", consumers=[{"queue": name} for name in names], per_connection=50, count=count)
    consuming.ready()
    targets = [{"key": f"key-{index}"} for index in range(KEYS)]
    with stage.phase(f"{queues} queues: publish and consume") as phase:
        stage.load.do("publish", exchange=exchange, targets=targets, count=count, size_bytes=100)
        answer = phase.did(consuming.wait(120))
        phase.notes["share of a queue"] = "{:,} to {:,}".format(*answer["share"])


def fanout(stage: Stage) -> None:
    """10,000 queues behind one fanout exchange."""
    queues, messages = stage.size(10_000, 2000), 100
    title = f"{stage.size(10_000):,} queues"
    exchange = stage.exchange("fanout", "fanout")
    names = [f"fanout-{index}" for index in range(queues)]
    with stage.phase(f"{title}: declare", "queue") as phase:
        phase.did(stage.load.do("declare", queues=[{"name": name} for name in names], in_flight=32))
        phase.grows = True
    _bind(stage, title, [[name, exchange, "", {}] for name in names])
    with stage.phase(f"{title}: publish", "copy") as phase, stage.watched(phase):
        sent = stage.load.do("publish", exchange=exchange, targets=[{}], count=messages, size_bytes=100)
        rest = stage.depth(names[-1], at_least=messages)
        phase.did(sent, messages * queues, sent["seconds"] + rest["seconds"])
        phase.grows = True
        if queues != stage.size(10_000):
            phase.notes["queues"] = queues
    consuming = {"consumers": [{"queue": name} for name in names], "per_connection": 1000}
    with stage.phase(f"{title}: consume", "copy") as phase:
        phase.did(stage.load.do("consume", count=queues * messages, idle_ms=10_000, **consuming))
    with stage.phase(f"{title}: delete", "queue") as phase, stage.watched(phase):
        phase.did(stage.load.do("delete", queues=names))


def _bind(stage: Stage, title: str, bindings: list) -> None:
    if len(bindings) < MEASURED_MIN:
        stage.load.do("declare", bindings=bindings)
        return
    with stage.phase(f"{title}: bind", "binding") as phase, stage.watched(phase):
        phase.did(stage.load.do("declare", bindings=bindings, in_flight=32))
        phase.grows = True


def _publish(stage: Stage, title: str, exchange: str, targets: list[dict], count: int) -> None:
    with stage.phase(title) as phase:
        phase.did(stage.load.do("publish", exchange=exchange, targets=targets, count=count, size_bytes=16))


def _pattern(index: int) -> tuple[str, str]:
    """The pattern of a binding, and a key that only this one matches."""
    match index % 10:
        case 7 | 8:
            return f"region{index % 50}.*.kind{index}", f"region{index % 50}.service{index}.kind{index}"
        case 9:
            return f"tenant{index}.#", f"tenant{index}.a.b.c"
        case _:
            return f"region{index % 50}.service{index}.event", f"region{index % 50}.service{index}.event"


def _headers(index: int) -> tuple[dict, dict]:
    """The arguments of a binding, and headers that only this one matches."""
    if index % 2:
        return {"x-match": "any", "user": f"u{index}", "account": f"a{index}"}, {"user": f"u{index}", "kind": "order"}
    tenant = {"tenant": f"t{index}", "kind": "order"}
    return {"x-match": "all", **tenant}, {**tenant, "size": 5}
