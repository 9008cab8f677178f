"""Every argument of queues, exchanges, bindings and consumers with good values, wrong values and wrong types.

A case is named by its subject and the value that it tries; what it shows is the answer to the last of its calls. What
is made is deleted after each case.
"""

import json

QUEUE, EXCHANGE = "surface-q", "surface-x"
TYPES = ("classic", "quorum", "stream")
ODD = (0, -1, 2**40, 1.5, True, None, "", "word", [], ["@", "B", 5], ["@", "T", 5])

DEAD = {"x-dead-letter-exchange": "amq.fanout"}
REFUSING = {"x-overflow": "reject-publish"}
# Argument: values that mean something to it, beside the odd ones; what else has to be said with it.
QUEUE_ARGUMENTS = {
    "x-expires": ((60_000,), {}),
    "x-message-ttl": ((60_000,), {}),
    "x-max-length": ((10,), {}),
    "x-max-length-bytes": ((1000,), {}),
    "x-max-in-memory-length": ((10,), {}),
    "x-max-in-memory-bytes": ((1000,), {}),
    "x-overflow": (("drop-head", "reject-publish", "reject-publish-dlx"), {}),
    "x-dead-letter-exchange": (("amq.fanout",), {}),
    "x-dead-letter-routing-key": (("key",), DEAD),
    "x-dead-letter-strategy": (("at-most-once", "at-least-once"), DEAD | REFUSING),
    "x-max-priority": ((1, 31, 32, 255, 256), {}),
    "x-single-active-consumer": ((False,), {}),
    "x-queue-mode": (("default", "lazy"), {}),
    "x-queue-version": ((1, 2, 3), {}),
    "x-delivery-limit": ((20,), {}),
    "x-consumer-timeout": ((60_000,), {}),
    "x-consumer-disconnected-timeout": ((60_000,), {}),
    "x-delayed-retry-type": (("all", "failed", "returned", "disabled"), {}),
    "x-delayed-retry-min": ((1000,), {"x-delayed-retry-type": "all"}),
    "x-delayed-retry-max": ((1000,), {"x-delayed-retry-type": "all"}),
    "x-quorum-initial-group-size": ((1,), {}),
    "x-quorum-target-group-size": ((1,), {}),
    "x-initial-cluster-size": ((1,), {}),
    "x-max-age": (("1D", "5s", "1x", "D"), {}),
    "x-stream-max-segment-size-bytes": ((100_000,), {}),
    "x-stream-filter-size-bytes": ((16, 255, 256), {}),
    "x-queue-leader-locator": (("client-local", "balanced", "random", "least-leaders"), {}),
    "x-queue-master-locator": (("client-local", "min-masters", "random"), {}),
    "x-message-deduplication": ((False,), {}),
    "x-unknown": (("kept",), {}),
}
EXCHANGE_TYPES = (
    "direct", "fanout", "topic", "headers", "x-local-random", "x-consistent-hash", "x-recent-history", "x-random",
    "x-modulus-hash", "x-delayed-message", "x-message-deduplication", "unknown",
)  # fmt: skip
# Argument: type of exchange, values that mean something.
EXCHANGE_ARGUMENTS = {
    "alternate-exchange": ("direct", ("amq.fanout", "missing")),
    "hash-header": ("x-consistent-hash", ("h",)),
    "hash-property": ("x-consistent-hash", ("message_id", "correlation_id", "timestamp", "app_id")),
    "x-recent-history-length": ("x-recent-history", (10,)),
    "x-unknown": ("direct", ("kept",)),
}
CONSUMER_ARGUMENTS = {
    "x-priority": (10,),
    "x-consumer-timeout": (60_000,),
    "x-cancel-on-ha-failover": (False,),
    "x-credit": (),
    "x-stream-offset": ("first", "last", "next", "1h", ["@", "T", 1_700_000_000]),
    "x-stream-filter": ("a", ["a", "b"], [1]),
    "x-stream-match-unfiltered": (False,),
    "x-unknown": ("kept",),
}


def cases():
    """All ((subject, value), calls)."""
    yield from queue_arguments()
    yield from queue_properties()
    yield from second_declarations()
    yield from exchanges()
    yield from bindings()
    yield from consumers()


def undone(calls):
    """The calls that take away what these may have made."""
    made = {(method, fields[method.partition(".")[0]]) for method, fields in calls if method.endswith(".declare")}
    for method, name in made:
        what = method.partition(".")[0]
        yield f"{what}.delete", {what: name}


def declare(kind, arguments, **fields):
    of_type = {} if kind is None else {"x-queue-type": kind}
    return "queue.declare", {"queue": QUEUE, "durable": True, "arguments": of_type | arguments} | fields


def said(value):
    """A value as a case's name says it."""
    return json.dumps(value, separators=(",", ":"))


def queue_arguments():
    for name, (meant, others) in QUEUE_ARGUMENTS.items():
        for kind in TYPES:
            for value in (*meant, *ODD):
                yield (f"queue {kind} {name}", said(value)), [declare(kind, others | {name: value})]
            if others:
                yield (f"queue {kind} {name}", "alone"), [declare(kind, {name: meant[0]})]
    for value in (*TYPES, "Quorum", "delayed", "jms", *ODD):
        yield ("queue x-queue-type", said(value)), [declare(value, {})]


def queue_properties():
    for kind in (None, *TYPES):
        for durable in (True, False):
            for flag in ("none", "exclusive", "auto_delete"):
                fields = {"durable": durable} | ({} if flag == "none" else {flag: True})
                yield (f"queue {kind}", f"durable={durable} {flag}"), [declare(kind, {}, **fields)]
    for name in ("amq.surface", "a" * 255, "line\nbreak", "", "amq.rabbitmq.reply-to"):
        yield ("queue named", said(name[:30])), [declare("classic", {}, queue=name, auto_delete=True)]


def second_declarations():
    """What is there was declared otherwise."""
    for name, (meant, others) in QUEUE_ARGUMENTS.items():
        for kind in TYPES:
            given, other = others | {name: meant[0]}, others | {name: meant[-1]}
            yield (f"again {kind} {name}", "without"), [declare(kind, given), declare(kind, others)]
            yield (f"again {kind} {name}", "with"), [declare(kind, others), declare(kind, given)]
            if meant[0] != meant[-1]:
                yield (f"again {kind} {name}", "with other"), [declare(kind, given), declare(kind, other)]
            if isinstance(meant[0], int) and not isinstance(meant[0], bool):
                more = others | {name: meant[0] + 1}
                wide = others | {name: ["@", "l", meant[0]]}
                yield (f"again {kind} {name}", "with more"), [declare(kind, given), declare(kind, more)]
                yield (f"again {kind} {name}", "with wide"), [declare(kind, given), declare(kind, wide)]
    for kind in (None, *TYPES):
        for other in (None, *TYPES):
            yield (f"again {kind}", f"as {other}"), [declare(kind, {}), declare(other, {})]
        for flag in ("exclusive", "auto_delete", "passive"):
            yield (f"again {kind}", flag), [declare(kind, {}), declare(kind, {}, **{flag: True})]
        yield (f"again {kind}", "not durable"), [declare(kind, {}), declare(kind, {}, durable=False)]


def exchange(kind, arguments=(), **fields):
    return "exchange.declare", {"exchange": EXCHANGE, "type": kind, "arguments": dict(arguments)} | fields


def exchanges():
    for kind in EXCHANGE_TYPES:
        yield (f"exchange {kind}", "alone"), [exchange(kind)]
        for flag in ("durable", "auto_delete", "internal"):
            yield (f"exchange {kind}", flag), [exchange(kind, **{flag: True})]
            yield (f"exchange {kind}", f"again {flag}"), [exchange(kind), exchange(kind, **{flag: True})]
        yield (f"exchange {kind}", "again as direct"), [exchange(kind), exchange("direct")]
        yield (f"exchange {kind}", "passive"), [exchange(kind), exchange(kind, passive=True)]
    for name, (kind, meant) in EXCHANGE_ARGUMENTS.items():
        for value in (*meant, *ODD):
            yield (f"exchange {kind} {name}", said(value)), [exchange(kind, {name: value})]
        given = exchange(kind, {name: meant[0]})
        yield (f"exchange {kind} {name}", "again without"), [given, exchange(kind)]
        yield (f"exchange {kind} {name}", "again with"), [exchange(kind), given]
    for name in ("amq.surface", "amq.direct", "", "line\nbreak"):
        yield ("exchange named", said(name)), [exchange("direct", exchange=name, durable=True)]
        yield ("exchange deleted", said(name)), [("exchange.delete", {"exchange": name})]


def bindings():
    for value in ("all", "any", "all-with-x", "any-with-x", *ODD):
        bind = {"queue": QUEUE, "exchange": "amq.headers", "arguments": {"x-match": value}}
        yield ("bind queue x-match", said(value)), [declare(None, {}), ("queue.bind", bind)]
        bind = {"destination": EXCHANGE, "source": "amq.headers", "arguments": {"x-match": value}}
        yield ("bind exchange x-match", said(value)), [exchange("fanout"), ("exchange.bind", bind)]
    for key in ("1", "10", "0", "-1", "word", "", "1.5"):
        bind = {"queue": QUEUE, "exchange": EXCHANGE, "routing_key": key}
        made = [declare(None, {}), exchange("x-consistent-hash")]
        yield ("bind x-consistent-hash", said(key)), [*made, ("queue.bind", bind)]
    bound = {"queue": QUEUE, "exchange": "", "routing_key": "key"}
    yield ("bind", "default exchange"), [declare(None, {}), ("queue.bind", bound)]
    yield ("unbind", "default exchange"), [declare(None, {}), ("queue.unbind", bound)]
    missing = {"queue": QUEUE, "exchange": "missing"}
    yield ("bind", "missing exchange"), [declare(None, {}), ("queue.bind", missing)]
    yield ("unbind", "missing exchange"), [declare(None, {}), ("queue.unbind", missing)]
    yield ("bind", "missing queue"), [("queue.bind", {"queue": "missing", "exchange": "amq.direct"})]


def consumers():
    for kind in TYPES:
        qos = [declare(kind, {}), ("basic.qos", {"prefetch_count": 10})]

        def consume(arguments=(), before=qos, **fields):
            return [*before, ("basic.consume", {"queue": QUEUE, "arguments": dict(arguments)} | fields)]

        for name, meant in CONSUMER_ARGUMENTS.items():
            for value in (*meant, *ODD):
                yield (f"consume {kind} {name}", said(value)), consume({name: value})
        for flag in ("no_local", "no_ack", "exclusive"):
            yield (f"consume {kind}", flag), consume(**{flag: True})
        yield (f"consume {kind}", "without prefetch"), consume(before=[declare(kind, {})])
        first = ("basic.consume", {"queue": QUEUE, "consumer_tag": "t"})
        yield (f"consume {kind}", "tag twice"), consume(before=[*qos, first], consumer_tag="t")
        alone = (first[0], first[1] | {"exclusive": True})
        yield (f"consume {kind}", "beside exclusive"), consume(before=[*qos, alone])
        yield (f"consume {kind}", "exclusive beside"), consume(before=[*qos, first], exclusive=True)
        get = ("basic.get", {"queue": QUEUE})
        yield (f"get {kind}", "empty"), [declare(kind, {}), get]
        yield (f"purge {kind}", "empty"), [declare(kind, {}), ("queue.purge", {"queue": QUEUE})]
        # RabbitMQ never answers these of a stream.
        for flag in ("if_unused", "if_empty") if kind != "stream" else ():
            delete = ("queue.delete", {"queue": QUEUE, flag: True})
            yield (f"delete {kind}", flag), [declare(kind, {}), delete]
            yield (f"delete {kind}", f"{flag} with consumer"), [*qos, first, delete]


def observe(caller):
    """{(subject, value): how the last call was answered} for one broker."""
    seen = {}
    for name, calls in cases():
        answer = "ok"
        for number, (method, fields) in enumerate(calls, 1):
            answer = caller.call(method, fields)
            if answer != "ok":
                break
        seen[name] = answer
        if calls[-1][0] in ("basic.consume", "queue.delete"):
            caller.end()
        # A broker that gave no answer may have made it all the same.
        if number > 1 or not answer.startswith("406"):
            for method, fields in undone(calls):
                caller.call(method, fields)
    return seen
