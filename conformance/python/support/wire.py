"""A bare AMQP 0-9-1 client on a socket, which sends what it is told, right or wrong.

Written independently of the project's own codec: frames and arguments are packed by hand here.
"""

import socket
import struct
from typing import NamedTuple

from support.broker import HOST, PASSWORD, PORT, USER

PROTOCOL_HEADER = b"AMQP\x00\x00\x09\x01"
METHOD, HEADER, BODY, HEARTBEAT = 1, 2, 3, 8
FRAME_END = b"\xce"

METHODS = {
    "connection.start": (10, 10), "connection.start-ok": (10, 11), "connection.tune": (10, 30),
    "connection.tune-ok": (10, 31), "connection.open": (10, 40), "connection.open-ok": (10, 41),
    "connection.update-secret": (10, 70), "connection.update-secret-ok": (10, 71), "connection.close": (10, 50),
    "connection.close-ok": (10, 51), "channel.flow": (20, 20), "channel.flow-ok": (20, 21),
    "channel.open": (20, 10), "channel.open-ok": (20, 11), "channel.close": (20, 40), "channel.close-ok": (20, 41),
    "exchange.declare": (40, 10), "exchange.declare-ok": (40, 11), "exchange.delete": (40, 20),
    "exchange.delete-ok": (40, 21), "exchange.bind": (40, 30), "exchange.unbind": (40, 40),
    "queue.declare": (50, 10), "queue.declare-ok": (50, 11), "queue.bind": (50, 20), "queue.bind-ok": (50, 21),
    "queue.purge": (50, 30), "queue.delete": (50, 40), "queue.unbind": (50, 50),
    "basic.qos": (60, 10), "basic.qos-ok": (60, 11), "basic.consume": (60, 20), "basic.consume-ok": (60, 21),
    "basic.cancel": (60, 30), "basic.cancel-ok": (60, 31), "basic.publish": (60, 40), "basic.return": (60, 50),
    "basic.deliver": (60, 60), "basic.get": (60, 70), "basic.get-ok": (60, 71), "basic.get-empty": (60, 72),
    "basic.ack": (60, 80), "basic.nack": (60, 120), "basic.recover": (60, 110),
    "confirm.select": (85, 10), "confirm.select-ok": (85, 11), "tx.select": (90, 10),
}  # fmt: skip
NAMES = {ids: name for name, ids in METHODS.items()}


class Frame(NamedTuple):
    """One frame as it came."""

    kind: int
    channel: int
    payload: bytes

    @property
    def method(self):
        """The name of the method in it; its two numbers when it is not in the list above."""
        ids = struct.unpack_from(">HH", self.payload)
        return NAMES.get(ids, ids)

    @property
    def arguments(self):
        """The method's arguments, encoded."""
        return self.payload[4:]


def octet(value):
    return struct.pack(">B", value)


def short(value):
    return struct.pack(">H", value)


def long(value):
    return struct.pack(">I", value)


def longlong(value):
    return struct.pack(">Q", value)


def shortstr(text):
    data = text.encode() if isinstance(text, str) else text
    return octet(len(data)) + data


def longstr(text):
    data = text.encode() if isinstance(text, str) else text
    return long(len(data)) + data


def table(entries=()):
    """A field table of (name, tag, encoded value)."""
    return longstr(b"".join(shortstr(name) + tag + value for name, tag, value in entries))


def frame(kind, channel, payload, end=FRAME_END):
    return struct.pack(">BHI", kind, channel, len(payload)) + payload + end


def method_frame(channel, name, arguments=b""):
    """`name` is one of METHODS, or a pair of any numbers."""
    ids = METHODS.get(name, name)
    return frame(METHOD, channel, struct.pack(">HH", *ids) + arguments)


def header_frame(channel, body_size, properties=b"\x00\x00", class_id=60):
    return frame(HEADER, channel, short(class_id) + short(0) + longlong(body_size) + properties)


def body_frame(channel, body):
    return frame(BODY, channel, body)


def publish_method(channel, exchange, routing_key, bits=0):
    return method_frame(channel, "basic.publish", short(0) + shortstr(exchange) + shortstr(routing_key) + octet(bits))


def publish(channel, exchange, routing_key, body, bits=0):
    """All frames of a message without properties, body in one frame (none when it is empty)."""
    frames = publish_method(channel, exchange, routing_key, bits) + header_frame(channel, len(body))
    return frames + (body_frame(channel, body) if body else b"")


def declare_arguments(queue, bits=0, arguments=()):
    """For queue.declare; bits: 1 passive, 2 durable, 4 exclusive, 8 auto-delete, 16 nowait."""
    return short(0) + shortstr(queue) + octet(bits) + table(arguments)


CLIENT_CAPABILITIES = ("authentication_failure_close", "consumer_cancel_notify", "basic.nack", "publisher_confirms")


def start_ok(user=USER, password=PASSWORD, *, capabilities=CLIENT_CAPABILITIES, mechanism="PLAIN", response=None):
    """The arguments of connection.start-ok; `response` replaces PLAIN's user and password."""
    granted = table([(name, b"t", b"\x01") for name in capabilities])
    if response is None:
        response = f"\0{user}\0{password}"
    return table([("capabilities", b"F", granted)]) + shortstr(mechanism) + longstr(response) + shortstr("en_US")


def confirmed_by(ack, outstanding):
    """Takes what a basic.ack confirms out of the set of outstanding tags; gives these tags."""
    tag, multiple = struct.unpack(">QB", ack.arguments)
    tags = {number for number in outstanding if number <= tag} if multiple else {tag}
    assert tags <= outstanding, "each message is confirmed once"
    outstanding -= tags
    return tags


class Wire:
    """The socket. Reads give whole frames; every read has a time limit."""

    def __init__(self, timeout_s=15):
        self.socket = socket.create_connection((HOST, PORT), timeout=timeout_s)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.reader = self.socket.makefile("rb")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.reader.close()
        self.socket.close()

    # -- writing

    def send(self, data):
        self.socket.sendall(data)

    def send_method(self, channel, name, arguments=b""):
        self.send(method_frame(channel, name, arguments))

    # -- reading

    def read_frame(self):
        """The next frame, or None when the broker has closed the socket."""
        try:
            head = self.reader.read(7)
            if len(head) < 7:
                return None
            kind, channel, size = struct.unpack(">BHI", head)
            payload = self.reader.read(size)
            assert self.reader.read(1) == FRAME_END, "the broker sent a bad end marker"
        except ConnectionResetError:
            return None
        return Frame(kind, channel, payload)

    def next_frame(self):
        """The next frame that is no heartbeat; fails when the socket closes instead."""
        while True:
            received = self.read_frame()
            assert received is not None, "the broker closed the socket"
            if received.kind != HEARTBEAT:
                return received

    def expect(self, name, channel=None):
        """The next frame, which has to be this method; gives it."""
        received = self.next_frame()
        assert received.kind == METHOD, f"expected {name}, got frame type {received.kind}"
        assert received.method == name, f"expected {name}, got {received.method}: {received.payload!r}"
        if channel is not None:
            assert received.channel == channel
        return received

    def expect_content(self, channel):
        """Reads a content header and its body frames: (properties, body, size of each frame)."""
        header = self.next_frame()
        assert (header.kind, header.channel) == (HEADER, channel)
        class_id, weight, size = struct.unpack_from(">HHQ", header.payload)
        assert (class_id, weight) == (60, 0)
        body, frame_sizes = b"", []
        while len(body) < size:
            part = self.next_frame()
            assert (part.kind, part.channel) == (BODY, channel)
            body += part.payload
            frame_sizes.append(len(part.payload) + 8)
        assert len(body) == size
        return header.payload[12:], body, frame_sizes

    def expect_close(self, name, channel):
        """A connection.close or channel.close: (code, text, (class id, method id))."""
        received = self.expect(name, channel)
        (code,) = struct.unpack_from(">H", received.arguments)
        length = received.arguments[2]
        text = received.arguments[3 : 3 + length].decode()
        return code, text, struct.unpack_from(">HH", received.arguments, 3 + length)

    def expect_connection_close(self):
        """Reads connection.close, answers it, and sees the socket end. Gives (code, text, ids)."""
        reason = self.expect_close("connection.close", 0)
        self.send_method(0, "connection.close-ok")
        self.expect_end()
        return reason

    def expect_channel_close(self, channel=1):
        """Reads channel.close and answers it. Gives (code, text, ids)."""
        reason = self.expect_close("channel.close", channel)
        self.send_method(channel, "channel.close-ok")
        return reason

    def expect_end(self):
        """The broker closes the socket, whatever it says before that; a connection.close is answered."""
        while (received := self.read_frame()) is not None:
            if received.kind == METHOD and received.method == "connection.close":
                self.send_method(0, "connection.close-ok")

    # -- getting there

    def handshake(self, *, channel_max=2047, frame_max=131072, heartbeat_s=0, vhost="/", **login):
        """From the protocol header to open-ok."""
        self.login(**login)
        self.send_method(0, "connection.tune-ok", short(channel_max) + long(frame_max) + short(heartbeat_s))
        self.send_method(0, "connection.open", shortstr(vhost) + shortstr("") + octet(0))
        self.expect("connection.open-ok", 0)
        return self

    def login(self, **login):
        """From the protocol header to tune; gives tune's (channel_max, frame_max, heartbeat)."""
        self.send(PROTOCOL_HEADER)
        self.expect("connection.start", 0)
        self.send_method(0, "connection.start-ok", start_ok(**login))
        return struct.unpack(">HIH", self.expect("connection.tune", 0).arguments)

    def open_channel(self, channel=1):
        self.send_method(channel, "channel.open", shortstr(""))
        self.expect("channel.open-ok", channel)
        return self

    def select_confirms(self, channel=1):
        """Every message published on the channel after this is confirmed; see `publish_confirmed`."""
        self.send_method(channel, "confirm.select", octet(0))
        self.expect("confirm.select-ok", channel)
        return self

    def publish_confirmed(self, channel, queue, body):
        """Publishes to a queue and waits until it is there. The channel is in confirm mode."""
        self.send(publish(channel, "", queue, body))
        self.expect("basic.ack", channel)

    def get(self, channel, queue):
        """basic.get without acknowledgement: (properties, body, size of each frame)."""
        self.send_method(channel, "basic.get", short(0) + shortstr(queue) + octet(1))
        self.expect("basic.get-ok", channel)
        return self.expect_content(channel)

    def declare(self, channel, queue, bits=0, arguments=()):
        """Declares a queue; gives its (name, message count, consumer count)."""
        self.send_method(channel, "queue.declare", declare_arguments(queue, bits, arguments))
        answer = self.expect("queue.declare-ok", channel).arguments
        length = answer[0]
        return (answer[1 : 1 + length].decode(), *struct.unpack_from(">II", answer, 1 + length))


def opened(**handshake):
    """A connection with channel 1 open."""
    return Wire().handshake(**handshake).open_channel(1)
