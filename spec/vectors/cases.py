"""The values that the vectors consist of: the usual ones, and those at every edge."""

import struct

from wire import EMPTY, NUMBERS, elementary, text

MAX_NESTING = 64
LONGEST_SHORT = "abcdefghijklmnopqrstuvwxyz01234" * 8 + "0123456"
NOT_UTF8 = {"hex": "ff00c328fe80"}
UNICODE = "Grüße, 世界 🐇"

SAMPLE_TABLE = [
    ["product", {"S": "Courser"}],
    ["capabilities", {"F": [["basic.nack", {"t": True}], ["consumer_cancel_notify", {"t": False}]]}],
    ["x-message-ttl", {"I": 60000}],
    ["x-max-length-bytes", {"l": 1 << 40}],
    ["routing", {"A": [{"S": "a"}, {"S": "b"}]}],
]

TYPICAL_TEXT = {
    "exchange": "test.exchange", "routing-key": "test.key", "queue": "test.queue", "consumer-tag": "ctag-1.7",
    "reply-text": "NOT_FOUND - no queue 'q' in vhost '/'", "virtual-host": "/", "mechanism": "PLAIN",
    "mechanisms": "PLAIN AMQPLAIN", "locale": "en_US", "locales": "en_US", "response": "\0guest\0guest",
    "type": "direct", "destination": "to", "source": "from", "reason": "low on memory", "new-secret": "s3cr3t",
    "challenge": "challenge?", "content-type": "application/json", "content-encoding": "utf-8",
    "correlation-id": "correlation-123", "reply-to": "amq.rabbitmq.reply-to", "expiration": "60000",
    "message-id": "msg-456", "user-id": "guest", "app-id": "app", "cluster-id": "",
}
TYPICAL_NUMBER = {
    "version-major": 0, "version-minor": 9, "channel-max": 2047, "frame-max": 131072, "heartbeat": 60,
    "reply-code": 404, "class-id": 50, "method-id": 10, "prefetch-count": 100, "delivery-tag": 12345,
    "message-count": 7, "consumer-count": 2, "delivery-mode": 2, "priority": 5, "timestamp": 1609459200,
}
TYPICAL_BITS = {"durable", "auto-delete", "mandatory", "multiple", "requeue", "active", "redelivered", "no-ack", "if-unused"}


def typical(entry, kind):
    if kind in ("shortstr", "longstr"):
        return TYPICAL_TEXT[entry["name"]]
    if kind == "table":
        return SAMPLE_TABLE
    if kind == "bit":
        return entry["name"] in TYPICAL_BITS
    return TYPICAL_NUMBER.get(entry["name"], 0)


def largest(_, kind):
    if kind in NUMBERS:
        return (1 << 8 * struct.calcsize(NUMBERS[kind])) - 1
    return {"shortstr": LONGEST_SHORT, "longstr": LONGEST_SHORT + UNICODE, "table": every_type(), "bit": True}[kind]


def smallest(_, kind):
    return False if kind == "bit" else EMPTY.get(kind, 0)


def odd(_, kind):
    """Strings of bytes that are no text; the rest as usual."""
    if kind in ("shortstr", "longstr"):
        return NOT_UTF8
    return [[NOT_UTF8, {"S": NOT_UTF8}]] if kind == "table" else smallest(_, kind)


def half(_, kind):
    """Numbers whose highest bit alone is set, where signed readers go wrong."""
    if kind in NUMBERS:
        return 1 << 8 * struct.calcsize(NUMBERS[kind]) - 1
    return UNICODE if kind in ("shortstr", "longstr") else smallest(_, kind)


def visible(method):
    return [entry for entry in method.get("fields", []) if not entry.get("reserved")]


def fill(method, choose):
    return {entry["name"]: choose(entry, elementary(entry["type"])) for entry in visible(method)}


def method_values(method):
    """(what it is, values) for each way to fill a method's fields; the same values only once."""
    bits = [entry["name"] for entry in visible(method) if elementary(entry["type"]) == "bit"]
    cases = [("smallest", fill(method, smallest)), ("typical", fill(method, typical)),
             ("largest", fill(method, largest)), ("half-way numbers and unicode", fill(method, half)),
             ("strings that are no text", fill(method, odd))]
    cases += [(f"only {bit}", {**fill(method, smallest), bit: True}) for bit in bits]
    return distinct(cases)


def property_values(properties):
    """(what it is, values) for each set of properties."""
    def every(choose):
        return {entry["name"]: choose(entry, entry["type"]) for entry in properties}

    cases = [("none", {}), ("all, typical", every(typical)), ("all, smallest", every(smallest)),
             ("all, largest", every(largest)), ("all, half-way numbers and unicode", every(half)),
             ("all, strings that are no text", every(odd))]
    cases += [(f"only {entry['name']}", {entry["name"]: typical(entry, entry["type"])}) for entry in properties]
    for entry in properties:
        rest = every(typical)
        del rest[entry["name"]]
        cases.append((f"all but {entry['name']}", rest))
    return distinct(cases)


def distinct(cases):
    seen, kept = [], []
    for name, values in cases:
        if values not in seen:
            seen.append(values)
            kept.append((name, values))
    return kept


def boundaries(bits, signed):
    if signed:
        edges = {-(1 << bits - 1), -(1 << bits - 1) + 1, -1, 0, 1, (1 << bits - 1) - 1}
        smaller = [width for width in (8, 16, 32) if width < bits]
        for width in smaller:
            edges |= {-(1 << width - 1) - 1, -(1 << width - 1), (1 << width - 1) - 1, 1 << width - 1, (1 << width) - 1,
                      1 << width}
    else:
        edges = {0, 1, (1 << bits - 1) - 1, 1 << bits - 1, (1 << bits) - 1}
    return sorted(edges)


FLOATS = [
    ("zero", 0.0), ("minus zero", -0.0), ("one and a half", 1.5), ("minus one third", -1 / 3), ("infinity", float("inf")),
    ("minus infinity", float("-inf")),
]
FLOAT_BITS = {
    "f": [("smallest subnormal", "00000001"), ("largest", "7f7fffff"), ("quiet NaN", "7fc00000"),
          ("signalling NaN with a payload", "7f800123"), ("negative NaN", "ffc00000")],
    "d": [("smallest subnormal", "0000000000000001"), ("largest", "7fefffffffffffff"), ("quiet NaN", "7ff8000000000000"),
          ("signalling NaN with a payload", "7ff0000000000123"), ("negative NaN", "fff8000000000000")],
}


def scalar_values():
    """(what it is, value) for each type that holds no other, at every edge."""
    cases = [("false", {"t": False}), ("true", {"t": True}), ("void", {"V": None})]
    for tag, bits, signed in [("b", 8, True), ("B", 8, False), ("s", 16, True), ("u", 16, False), ("I", 32, True),
                              ("i", 32, False), ("l", 64, True), ("T", 64, False)]:
        cases += [(f"{tag} {edge}", {tag: edge}) for edge in boundaries(bits, signed)]
    for tag in "fd":
        cases += [(f"{tag} {name}", {tag: struct.pack(f">{tag}", number).hex()}) for name, number in FLOATS]
        cases += [(f"{tag} {name}", {tag: raw}) for name, raw in FLOAT_BITS[tag]]
    for scale, digits in [(0, 0), (2, 314), (255, (1 << 32) - 1), (0, 1 << 31), (1, (1 << 31) - 1)]:
        cases.append((f"decimal of {digits} with {scale} places", {"D": {"scale": scale, "digits": digits}}))
    strings = [b"", b"a", UNICODE.encode(), bytes.fromhex(NOT_UTF8["hex"]), bytes(range(256)), b"z" * 65537]
    cases += [(f"S of {len(raw)} bytes", {"S": text(raw)}) for raw in strings]
    cases += [(f"x of {len(raw)} bytes", {"x": raw.hex()}) for raw in strings[:5]]
    return cases


def every_type():
    """One value of each type, also inside an array and a table."""
    flat = [{"t": True}, {"b": -1}, {"B": 255}, {"s": -1}, {"u": 65535}, {"I": -1}, {"i": (1 << 32) - 1}, {"l": -1},
            {"f": "3fc00000"}, {"d": "3ff8000000000000"}, {"D": {"scale": 2, "digits": 314}}, {"S": "text"},
            {"T": 1609459200}, {"V": None}, {"x": "00ff"}]
    entries = [[f"key-{next(iter(value))}", value] for value in flat]
    return entries + [["key-A", {"A": flat}], ["key-F", {"F": entries}]]


def nested(levels, kind):
    """A table that is `levels` deep, by tables, by arrays, or by both in turn."""
    value = {"I": 7}
    for level in range(levels - 1):
        as_array = kind == "arrays" or kind == "both" and level % 2 == 0
        value = {"A": [value]} if as_array else {"F": [["k", value]]}
    return [["k", value]]


def table_values():
    """(what it is, entries) for tables that are more than one scalar."""
    cases = [
        ("no entries", []), ("empty key", [["", {"I": 1}]]), ("longest key", [[LONGEST_SHORT, {"I": 1}]]),
        ("unicode key", [[UNICODE, {"I": 1}]]), ("key that is no text", [[NOT_UTF8, {"I": 1}]]),
        ("the same key twice", [["k", {"I": 1}], ["k", {"S": "second"}]]),
        ("order that is not the alphabet's", [["b", {"I": 1}], ["a", {"I": 2}], ["c", {"I": 3}]]),
        ("empty array", [["k", {"A": []}]]), ("empty table in a table", [["k", {"F": []}]]),
        ("array of empty arrays and tables", [["k", {"A": [{"A": []}, {"F": []}, {"A": [{"A": []}]}]}]]),
        ("array of one type", [["k", {"A": [{"I": number} for number in range(5)]}]]),
        ("every type", every_type()), ("two hundred entries", [[f"key-{n}", {"i": n}] for n in range(200)]),
        ("a dead-letter history", [["x-death", {"A": [{"F": [
            ["count", {"l": 1}], ["reason", {"S": "expired"}], ["queue", {"S": "q"}], ["time", {"T": 1609459200}],
            ["exchange", {"S": ""}], ["routing-keys", {"A": [{"S": "q"}]}]]}]}]]),
    ]
    for kind in ("tables", "arrays", "both"):
        cases += [(f"{levels} levels of {kind}", nested(levels, kind)) for levels in (2, MAX_NESTING)]
    return cases
