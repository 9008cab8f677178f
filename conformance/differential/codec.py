"""Frames, methods, properties and field tables of AMQP 0-9-1, for a client that looks at every byte it gets.

Written independently of the project's own codec. Values of a field table are plain Python values where there is no
doubt about their type (`int` is a signed 32-bit integer, or 64-bit when it does not fit), and `["@", tag, value]`
for every other type; what is read looks the same, so that a broker that changes a type is seen.
"""

import struct

METHOD, HEADER, BODY, HEARTBEAT = 1, 2, 3, 8
PROTOCOL_HEADER = b"AMQP\x00\x00\x09\x01"

# Name: class id, method id, then its fields, `name:type`; types are bit, byte (o), short (h), long (l), longlong (q),
# shortstr (s), longstr (S) and table (t). `_` stands for a reserved short.
METHODS = {
    "connection.start": (10, 10, "major:o minor:o properties:t mechanisms:S locales:S"),
    "connection.start-ok": (10, 11, "properties:t mechanism:s response:S locale:s"),
    "connection.tune": (10, 30, "channel_max:h frame_max:l heartbeat:h"),
    "connection.tune-ok": (10, 31, "channel_max:h frame_max:l heartbeat:h"),
    "connection.open": (10, 40, "vhost:s _:s _:bit"),
    "connection.open-ok": (10, 41, "_:s"),
    "connection.close": (10, 50, "code:h text:s class:h method:h"),
    "connection.close-ok": (10, 51, ""),
    "connection.blocked": (10, 60, "reason:s"),
    "connection.unblocked": (10, 61, ""),
    "channel.open": (20, 10, "_:s"),
    "channel.open-ok": (20, 11, "_:S"),
    "channel.flow": (20, 20, "active:bit"),
    "channel.flow-ok": (20, 21, "active:bit"),
    "channel.close": (20, 40, "code:h text:s class:h method:h"),
    "channel.close-ok": (20, 41, ""),
    "exchange.declare": (
        40, 10, "_:h exchange:s type:s passive:bit durable:bit auto_delete:bit internal:bit nowait:bit arguments:t",
    ),
    "exchange.declare-ok": (40, 11, ""),
    "exchange.delete": (40, 20, "_:h exchange:s if_unused:bit nowait:bit"),
    "exchange.delete-ok": (40, 21, ""),
    "exchange.bind": (40, 30, "_:h destination:s source:s routing_key:s nowait:bit arguments:t"),
    "exchange.bind-ok": (40, 31, ""),
    "exchange.unbind": (40, 40, "_:h destination:s source:s routing_key:s nowait:bit arguments:t"),
    "exchange.unbind-ok": (40, 51, ""),
    "queue.declare": (
        50, 10, "_:h queue:s passive:bit durable:bit exclusive:bit auto_delete:bit nowait:bit arguments:t",
    ),
    "queue.declare-ok": (50, 11, "queue:s messages:l consumers:l"),
    "queue.bind": (50, 20, "_:h queue:s exchange:s routing_key:s nowait:bit arguments:t"),
    "queue.bind-ok": (50, 21, ""),
    "queue.purge": (50, 30, "_:h queue:s nowait:bit"),
    "queue.purge-ok": (50, 31, "messages:l"),
    "queue.delete": (50, 40, "_:h queue:s if_unused:bit if_empty:bit nowait:bit"),
    "queue.delete-ok": (50, 41, "messages:l"),
    "queue.unbind": (50, 50, "_:h queue:s exchange:s routing_key:s arguments:t"),
    "queue.unbind-ok": (50, 51, ""),
    "basic.qos": (60, 10, "prefetch_size:l prefetch_count:h global:bit"),
    "basic.qos-ok": (60, 11, ""),
    "basic.consume": (
        60, 20, "_:h queue:s consumer_tag:s no_local:bit no_ack:bit exclusive:bit nowait:bit arguments:t",
    ),
    "basic.consume-ok": (60, 21, "consumer_tag:s"),
    "basic.cancel": (60, 30, "consumer_tag:s nowait:bit"),
    "basic.cancel-ok": (60, 31, "consumer_tag:s"),
    "basic.publish": (60, 40, "_:h exchange:s routing_key:s mandatory:bit immediate:bit"),
    "basic.return": (60, 50, "code:h text:s exchange:s routing_key:s"),
    "basic.deliver": (60, 60, "consumer_tag:s delivery_tag:q redelivered:bit exchange:s routing_key:s"),
    "basic.get": (60, 70, "_:h queue:s no_ack:bit"),
    "basic.get-ok": (60, 71, "delivery_tag:q redelivered:bit exchange:s routing_key:s messages:l"),
    "basic.get-empty": (60, 72, "_:s"),
    "basic.ack": (60, 80, "delivery_tag:q multiple:bit"),
    "basic.reject": (60, 90, "delivery_tag:q requeue:bit"),
    "basic.recover": (60, 110, "requeue:bit"),
    "basic.recover-ok": (60, 111, ""),
    "basic.nack": (60, 120, "delivery_tag:q multiple:bit requeue:bit"),
    "confirm.select": (85, 10, "nowait:bit"),
    "confirm.select-ok": (85, 11, ""),
    "tx.select": (90, 10, ""),
    "tx.select-ok": (90, 11, ""),
    "tx.commit": (90, 20, ""),
    "tx.commit-ok": (90, 21, ""),
    "tx.rollback": (90, 30, ""),
    "tx.rollback-ok": (90, 31, ""),
}  # fmt: skip
FIELDS = {name: [field.split(":") for field in fields.split()] for name, (_, _, fields) in METHODS.items()}
NAMES = {ids[:2]: name for name, ids in METHODS.items()}

# From the highest bit of the property flags on.
PROPERTIES = [
    ("content_type", "s"), ("content_encoding", "s"), ("headers", "t"), ("delivery_mode", "o"), ("priority", "o"),
    ("correlation_id", "s"), ("reply_to", "s"), ("expiration", "s"), ("message_id", "s"), ("timestamp", "q"),
    ("type", "s"), ("user_id", "s"), ("app_id", "s"), ("cluster_id", "s"),
]  # fmt: skip

NUMBERS = {"o": ">B", "h": ">H", "l": ">I", "q": ">Q"}
# Numbers in tables.
TABLE_NUMBERS = {"b": ">b", "B": ">B", "s": ">h", "u": ">H", "I": ">i", "i": ">I", "l": ">q", "f": ">f", "T": ">Q"}


def pack(kind, value):
    """One field of a method or one property, but no bit."""
    if kind in NUMBERS:
        return struct.pack(NUMBERS[kind], value)
    if kind == "t":
        return pack("S", b"".join(pack("s", name) + pack_value(entry) for name, entry in value.items()))
    data = value.encode() if isinstance(value, str) else value
    return struct.pack(">B" if kind == "s" else ">I", len(data)) + data


def pack_value(value):
    """A value of a field table, with its tag."""
    if value is None:
        return b"V"
    if isinstance(value, bool):
        return b"t" + bytes([value])
    if isinstance(value, int):
        return b"I" + struct.pack(">i", value) if -(2**31) <= value < 2**31 else b"l" + struct.pack(">q", value)
    if isinstance(value, float):
        return b"d" + struct.pack(">d", value)
    if isinstance(value, str):
        return b"S" + pack("S", value)
    if isinstance(value, dict):
        return b"F" + pack("t", value)
    if value[:1] == ["@"]:
        _, tag, inner = value
        return tag.encode() + (struct.pack(TABLE_NUMBERS[tag], inner) if tag in TABLE_NUMBERS else pack("S", inner))
    return b"A" + pack("S", b"".join(pack_value(entry) for entry in value))


class Reader:
    """Reads fields one after the other; bits that follow each other share a byte."""

    def __init__(self, data):
        self.data, self.at, self.bit = data, 0, 8

    def take(self, size):
        part = self.data[self.at : self.at + size]
        assert len(part) == size, "the broker sent a field that is cut short"
        self.at += size
        return part

    def read(self, kind):
        if kind == "bit":
            if self.bit > 7:
                self.bits, self.bit = self.take(1)[0], 0
            value = bool(self.bits >> self.bit & 1)
            self.bit += 1
            return value
        self.bit = 8
        if kind in NUMBERS:
            return self.number(NUMBERS[kind])
        if kind == "s":
            return self.take(self.take(1)[0]).decode(errors="backslashreplace")
        data = self.take(self.number(">I"))
        return Reader(data).table() if kind == "t" else data.decode(errors="backslashreplace")

    def number(self, form):
        return struct.unpack(form, self.take(struct.calcsize(form)))[0]

    def table(self):
        entries = {}
        while self.at < len(self.data):
            name = self.read("s")
            entries[name] = self.value()
        return entries

    def value(self):
        tag = self.take(1).decode()
        if tag == "V":
            return None
        if tag == "t":
            return bool(self.take(1)[0])
        if tag == "I":
            return self.number(">i")
        if tag == "d":
            return self.number(">d")
        if tag == "S":
            return self.read("S")
        if tag == "F":
            return self.read("t")
        if tag == "A":
            inner, entries = Reader(self.take(self.number(">I"))), []
            while inner.at < len(inner.data):
                entries.append(inner.value())
            return entries
        if tag in TABLE_NUMBERS:
            value = self.number(TABLE_NUMBERS[tag])
            # A plain integer when it is what `pack_value` makes of one.
            return value if tag == "l" and not -(2**31) <= value < 2**31 else ["@", tag, value]
        return ["@", tag, self.read("S")]


def frame(kind, channel, payload):
    return struct.pack(">BHI", kind, channel, len(payload)) + payload + b"\xce"


def method(channel, name, fields=None):
    """The frame of a method; what `fields` leaves out is zero, empty or false."""
    fields, payload, bits = fields or {}, struct.pack(">HH", *METHODS[name][:2]), []
    unknown = fields.keys() - {field for field, _ in FIELDS[name]}
    assert not unknown, f"{name} has no {', '.join(unknown)}"

    def flush():
        nonlocal payload
        if bits:
            payload += bytes([sum(bit << place for place, bit in enumerate(bits))])
            bits.clear()

    for field, kind in FIELDS[name]:
        if kind == "bit":
            bits.append(bool(fields.get(field)))
        else:
            flush()
            payload += pack(kind, fields.get(field, {} if kind == "t" else 0 if kind in NUMBERS else ""))
    flush()
    return frame(METHOD, channel, payload)


def content(channel, properties, body):
    """The frames of a content that fits into one body frame."""
    flags, packed = 0, b""
    for place, (name, kind) in enumerate(PROPERTIES):
        if name in properties:
            flags |= 1 << (15 - place)
            packed += pack(kind, properties[name])
    header = struct.pack(">HHQH", 60, 0, len(body), flags) + packed
    return frame(HEADER, channel, header) + (frame(BODY, channel, body.encode()) if body else b"")


def read_method(payload):
    """(name, fields) of the payload of a method frame."""
    name = NAMES[struct.unpack_from(">HH", payload)]
    reader = Reader(payload[4:])
    fields = {field: reader.read(kind) for field, kind in FIELDS[name]}
    fields.pop("_", None)
    return name, fields


def read_header(payload):
    """(properties, body size) of the payload of a content header."""
    _, _, size, flags = struct.unpack_from(">HHQH", payload)
    reader = Reader(payload[14:])
    return {name: reader.read(kind) for place, (name, kind) in enumerate(PROPERTIES) if flags >> (15 - place) & 1}, size
