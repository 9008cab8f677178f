"""Arguments, headers and properties for random programs: mostly valid, now and then not."""

from execute import SHORT_MS

EXCHANGE_TYPES = ("direct", "fanout", "topic", "headers", "x-recent-history", "x-consistent-hash", "direct", "topic")
# Which of several destinations these choose is the broker's affair.
CHOOSING = ("x-consistent-hash",)
DEAD_LETTERING = ("x-dead-letter-exchange", "x-dead-letter-routing-key", "x-message-ttl", "x-max-length", "x-overflow")

FAR_MS = 600_000
QUEUE_ARGUMENTS = {
    "x-message-ttl": (0, SHORT_MS, SHORT_MS, FAR_MS, ["@", "l", FAR_MS]),
    "x-expires": (FAR_MS, FAR_MS, SHORT_MS),
    "x-max-length": (0, 1, 2, 3, ["@", "s", 2]),
    "x-max-length-bytes": (0, 5, 12, 50),
    "x-overflow": ("drop-head", "reject-publish", "reject-publish-dlx"),
    "x-dead-letter-exchange": ("", "", "x1", "x2", "amq.fanout", "missing"),
    "x-dead-letter-routing-key": ("q1", "q2", "q3", "a"),
    "x-max-priority": (1, 5, 10, 255),
    "x-single-active-consumer": (True, True, False),
    "x-queue-mode": ("lazy", "default"),
    "x-queue-type": ("classic",),
    "x-unknown": ("kept", 1, None),
}
WRONG = (-1, "text", 1.5, True, None, 2**40, {}, [], 256, "", ["@", "T", 5])
WRONG_NAMES = (*QUEUE_ARGUMENTS, "x-queue-version")


def queue_arguments(g):
    """For queue.declare; `g` is the generator."""
    names = list(QUEUE_ARGUMENTS)
    likelihood = 0.06
    if g.arguments:
        names, likelihood = g.arguments, 0.5
    elif g.arguments is not None:
        likelihood = 0.02
    arguments = {}
    for name in names:
        if not g.some(likelihood):
            continue
        choices = QUEUE_ARGUMENTS[name]
        if not g.timed:
            choices = [value for value in choices if value != SHORT_MS]
        arguments[name] = g.pick(choices)
    if g.some(g.wrong / 2):
        arguments[g.pick(WRONG_NAMES)] = g.pick(WRONG)
    if str(arguments.get("x-overflow")).startswith("reject"):
        # RabbitMQ refuses what does not fit into the empty queue, even where a consumer waits for it.
        if arguments.get("x-max-length") == 0:
            arguments["x-max-length"] = 1
        if "x-max-length-bytes" in arguments and not g.some(g.wrong):
            arguments["x-max-length-bytes"] = 60
    if "x-dead-letter-routing-key" in arguments and not g.some(g.wrong):
        arguments.setdefault("x-dead-letter-exchange", g.pick(QUEUE_ARGUMENTS["x-dead-letter-exchange"]))
    g.dying |= "x-dead-letter-exchange" in arguments
    if not g.timed:
        g.ranked |= "x-max-priority" in arguments
    else:
        arguments.pop("x-max-priority", None)
    return arguments


def exchange_arguments(g, kind):
    arguments = {}
    if g.some(0.15):
        arguments["alternate-exchange"] = g.pick(("x1", "x2", "x3", "amq.fanout", "missing"))
    if kind == "x-recent-history" and g.some(0.7):
        arguments["x-recent-history-length"] = g.pick((1, 2, 5))
    if kind == "x-consistent-hash" and g.some(0.4):
        name, value = g.pick((("hash-header", "h"), ("hash-property", "message_id"), ("hash-property", "timestamp")))
        arguments[name] = value
    if g.some(g.wrong / 2):
        names = ("alternate-exchange", "x-recent-history-length", "hash-header", "hash-property", "x-unknown")
        arguments[g.pick(names)] = g.pick([value for value in WRONG if value != 2**40])
    return arguments


def consumer_arguments(g):
    arguments = {}
    if g.some(0.15):
        arguments["x-priority"] = g.pick((-5, 0, 1, 5))
    if g.some(g.wrong / 4):
        arguments[g.pick(("x-priority", "x-unknown"))] = g.pick(WRONG)
    return arguments


def header_match(g):
    """The arguments of a binding to a headers exchange."""
    arguments = {}
    if g.some(0.8):
        arguments["x-match"] = g.pick(("all", "any", "all-with-x", "any-with-x"))
        if g.some(g.wrong):
            arguments["x-match"] = g.pick(("some", 1, None))
    for name in ("h", "i", "x-h"):
        if g.some(0.4):
            arguments[name] = g.pick((1, "1", "a", True, None))
    return arguments


def properties(g):
    """The properties of a message."""
    made = {}
    if g.some(0.5):
        made["headers"] = headers(g)
    if g.some(0.3):
        made["delivery_mode"] = g.pick((1, 2))
    if g.some(0.3):
        made["priority"] = g.pick((0, 1, 4, 5, 9, 10, 200, 255))
    if g.some(0.15):
        choices = [str(FAR_MS), *(["0"] if not g.ranked else []), *([str(SHORT_MS)] * 3 if g.timed else [])]
        made["expiration"] = g.pick(choices)
        if g.some(g.wrong):
            made["expiration"] = g.pick(("abc", "-1", "1x", "", "1.5", str(2**40), " 1"))
    if g.some(0.1):
        made |= {"content_type": "text/plain", "content_encoding": "utf-8", "message_id": g.pick("ab")}
    if g.some(0.05):
        made |= {"correlation_id": "7", "timestamp": 1_700_000_000, "type": "t", "app_id": "app", "reply_to": "q1"}
    if g.some(0.03):
        made["user_id"] = "guest" if not g.some(g.wrong) else "someone"
    return made


def headers(g):
    made = {}
    for name in ("h", "i", "x-h"):
        if g.some(0.4):
            made[name] = g.pick((1, "1", "a", True, None, 2.5, ["@", "b", 1], ["@", "l", 1], [1, "a"], {"k": "v"}))
    for name in ("CC", "BCC"):
        if g.some(0.12):
            made[name] = [g.pick(("a", "b", "q1", "q2", "q3", "a.b")) for _ in range(g.random.randint(0, 2))]
            if g.some(g.wrong):
                made[name] = g.pick(("a", 1, [1, "q1"], {"q1": 1}))
    if g.some(0.05):
        made["x-recent-history-no-store"] = g.pick((True, False, "true"))
    return made
