"""One broker as a program sees it: connections and channels by name, and everything observable, step by step.

A channel is named `a1`: channel 1 of connection `a`. Both are opened when something is first done on them, and again
when they were closed. What cannot be the same in two brokers is left out here: delivery tags (a program names a
delivery by what was delivered) and how confirms are batched (the confirmed bodies are a set).
"""

import select
import socket
import struct
import time
from urllib.parse import unquote, urlsplit

import codec

BARRIER = "barrier"
LOST = "the broker did not answer"
CAPABILITIES = ("authentication_failure_close", "basic.nack", "consumer_cancel_notify", "publisher_confirms")
ANSWERED = {name[:-3] for name in codec.METHODS if name.endswith("-ok")} | {"basic.get"}


class Channel:
    """What is open, waited for and outstanding on one channel, and what happened in this step."""

    def __init__(self, number):
        self.number = number
        self.open = False
        self.pending = 0
        self.content = None
        self.forget()
        self.begin()

    def forget(self):
        """As a new channel."""
        self.outstanding, self.set_aside = {}, {}
        self.quiet_tags, self.consumes, self.gets = set(), [], []
        self.transactional = False
        self.sequence, self.unconfirmed = None, {}
        self.reply_to = None

    def begin(self):
        """A new step: nothing seen yet."""
        self.replies, self.deliveries, self.returns, self.cancelled = [], {}, [], []
        self.acked, self.nacked, self.late = [], [], []

    def observed(self):
        """What happened in this step, without what did not."""
        seen = {
            "replies": self.replies, "deliveries": self.deliveries, "returns": self.returns,
            "cancelled": sorted(self.cancelled), "acked": sorted(self.acked), "nacked": sorted(self.nacked),
            "returned after its confirm": self.late, "unanswered": self.pending,
            "unconfirmed": sorted(self.unconfirmed.values()),
        }  # fmt: skip
        return {name: what for name, what in seen.items() if what}

    # -- what the program does

    def sent(self, name, fields, body=None):
        """Takes note of a method that is about to be sent."""
        if name == "basic.publish":
            if self.sequence is not None:
                self.sequence += 1
                self.unconfirmed[self.sequence] = body
            return
        if name in ANSWERED and not fields.get("nowait"):
            self.pending += 1
        if name == "confirm.select" and self.sequence is None and not self.transactional:
            self.sequence = 0
        elif name == "tx.select" and self.sequence is None:
            self.transactional = True
        elif name == "tx.commit":
            self.set_aside.clear()
        elif name == "tx.rollback":
            self.outstanding.update(self.set_aside)
            self.set_aside.clear()
        elif name == "basic.recover":
            self.outstanding.clear()
        elif name == "basic.get":
            self.gets.append((fields.get("queue", ""), fields.get("no_ack", False)))
        elif name == "basic.consume":
            if fields.get("nowait"):
                self.consuming(fields["consumer_tag"], fields.get("no_ack"))
            else:
                self.consumes.append(fields.get("no_ack", False))

    def consuming(self, tag, no_ack):
        (self.quiet_tags.add if no_ack else self.quiet_tags.discard)(tag)

    def settle(self, nth, multiple):
        """The delivery tag of the nth outstanding delivery, by what it is; None when nothing is outstanding."""
        if not self.outstanding:
            return None
        tags = sorted(self.outstanding, key=lambda tag: (self.outstanding[tag], tag))
        tag = tags[nth % len(tags)]
        if multiple:
            # The order between several consumers is the broker's choice: then only "all" means the same in each.
            alone = len({source for source, _ in self.outstanding.values()}) == 1
            tag = sorted(tags)[nth % len(tags)] if alone else max(tags)
        for settled in [other for other in tags if other == tag or (multiple and other < tag)]:
            what = self.outstanding.pop(settled)
            if self.transactional:
                self.set_aside[settled] = what
        return tag

    # -- what the broker does

    def take(self, name, fields, content=None):
        """A method that came on this channel, with its content."""
        message = content and dict(fields, properties=content[0], body=content[1])
        if message and message["properties"].get("reply_to", "").startswith("amq.rabbitmq.reply-to."):
            self.reply_to = message["properties"]["reply_to"]
        if name == "basic.deliver":
            tag, consumer = message.pop("delivery_tag"), message.pop("consumer_tag")
            if consumer not in self.quiet_tags:
                self.outstanding[tag] = (consumer, message["body"])
            self.deliveries.setdefault(consumer, []).append(message)
        elif name == "basic.return":
            if self.sequence is not None and message["body"] not in self.unconfirmed.values():
                self.late.append(message["body"])
            self.returns.append(message)
        elif name in ("basic.ack", "basic.nack"):
            last = fields["delivery_tag"]
            tags = [tag for tag in self.unconfirmed if tag == last or (fields["multiple"] and tag < last)]
            kind = self.acked if name == "basic.ack" else self.nacked
            kind.extend(self.unconfirmed.pop(tag) for tag in tags)
            if not tags:
                self.replies.append([name, "confirms nothing"])
        elif name == "basic.cancel":
            self.cancelled.append(fields["consumer_tag"])
        elif name == "basic.cancel-ok" and fields["consumer_tag"] == BARRIER:
            self.pending -= 1
        else:
            self.pending -= 1
            if name == "basic.consume-ok":
                self.consuming(fields["consumer_tag"], self.consumes.pop(0))
            elif name in ("basic.get-ok", "basic.get-empty"):
                queue, no_ack = self.gets.pop(0)
                if message:
                    tag = message.pop("delivery_tag")
                    if not no_ack:
                        self.outstanding[tag] = (f"get from {queue}", message["body"])
            self.replies.append([name, message or fields])

    def closed(self):
        self.open, self.pending, self.content = False, 0, None
        self.forget()


class Connection:
    """A socket, its channels, and how it ended if it did in this step."""

    def __init__(self, address, user, password, vhost):
        self.socket = socket.create_connection(address, timeout=20)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.buffer, self.channels, self.ended, self.closing = b"", {}, None, False
        granted = {name: True for name in CAPABILITIES}
        self.socket.sendall(codec.PROTOCOL_HEADER)
        self.wait_for("connection.start")
        login = {"properties": {"capabilities": granted}, "mechanism": "PLAIN", "locale": "en_US"}
        self.send(0, "connection.start-ok", dict(login, response=f"\0{user}\0{password}"))
        tune = self.wait_for("connection.tune")
        self.send(0, "connection.tune-ok", dict(tune, heartbeat=0))
        self.send(0, "connection.open", {"vhost": vhost})
        self.wait_for("connection.open-ok")

    def send(self, channel, name, fields=None):
        self.socket.sendall(codec.method(channel, name, fields))

    def wait_for(self, name):
        """Reads until this method has come; it comes first, or the broker is no broker."""
        while True:
            for frame in self.frames():
                got, fields = codec.read_method(frame[2])
                assert got == name, f"expected {name}, got {got}: {fields}"
                return fields
            self.receive()

    def receive(self):
        """What the socket has; an empty read is its end."""
        try:
            data = self.socket.recv(1 << 18)
        except ConnectionError:
            data = b""
        if not data:
            raise EOFError
        self.buffer += data

    def frames(self):
        """The whole frames that have come."""
        while len(self.buffer) >= 8:
            kind, channel, size = struct.unpack_from(">BHI", self.buffer)
            if len(self.buffer) < size + 8:
                return
            payload, self.buffer = self.buffer[7 : 7 + size], self.buffer[size + 8 :]
            yield kind, channel, payload

    def channel(self, number):
        """The channel, opened if it is not."""
        channel = self.channels.setdefault(number, Channel(number))
        if not channel.open:
            channel.open = True
            channel.pending += 1
            self.send(number, "channel.open")
        return channel

    def read(self):
        """Takes what has come; False when the socket has ended."""
        try:
            self.receive()
        except EOFError:
            if not self.closing:
                self.ended = ["the socket ended without a word"]
            return False
        for kind, number, payload in self.frames():
            if kind == codec.HEARTBEAT:
                continue
            if number:
                self.take(self.channels[number], kind, payload)
                continue
            name, fields = codec.read_method(payload)
            if name == "connection.close":
                self.ended, self.closing = [name, fields], True
                self.send(0, "connection.close-ok")
            elif name == "connection.close-ok":
                self.closing = True
                return False
        return True

    def take(self, channel, kind, payload):
        if not channel.open:
            # RabbitMQ may still deliver on a channel that it has closed.
            return
        if kind == codec.METHOD:
            name, fields = codec.read_method(payload)
            if name == "channel.open-ok":
                channel.pending -= 1
            elif name == "channel.close":
                channel.replies.append([name, fields])
                channel.closed()
                self.send(channel.number, "channel.close-ok")
            elif name == "channel.close-ok":
                channel.replies.append([name, fields])
                channel.closed()
            elif name in ("basic.deliver", "basic.return", "basic.get-ok"):
                channel.content = [name, fields]
            else:
                channel.take(name, fields)
            return
        if kind == codec.HEADER:
            channel.content += [*codec.read_header(payload), b""]
        else:
            channel.content[4] += payload
        name, fields, properties, size, body = channel.content
        if len(body) == size:
            channel.content = None
            channel.take(name, fields, (properties, body.decode()))


class Peer:
    """A broker under comparison."""

    def __init__(self, uri, vhost=None):
        parts = urlsplit(uri)
        self.address = parts.hostname, parts.port
        self.login = unquote(parts.username), unquote(parts.password)
        self.vhost = vhost or unquote(parts.path[1:]) or "/"
        self.connections, self.gone = {}, {}

    def connection(self, name):
        if name not in self.connections:
            self.connections[name] = Connection(self.address, *self.login, self.vhost)
        return self.connections[name]

    def channel(self, name):
        """(connection, channel) of a name like `a1`, opened if need be."""
        connection = self.connection(name[0])
        return connection, connection.channel(int(name[1:]))

    def begin(self):
        self.gone = {}
        for connection in self.connections.values():
            for channel in connection.channels.values():
                channel.begin()

    def observed(self):
        """What happened in this step, by channel; and by connection where one ended."""
        seen = dict(self.gone)
        for name, connection in self.connections.items():
            for number, channel in connection.channels.items():
                if what := channel.observed():
                    seen[f"{name}{number}"] = what
        return seen

    def waiting(self):
        """Whether an answer or a confirm is still to come."""
        return any(
            connection.closing or channel.pending > 0 or channel.unconfirmed
            for connection in self.connections.values()
            for channel in connection.channels.values()
        )

    def read(self, name):
        connection = self.connections[name]
        if not connection.read():
            self.remove(name)

    def remove(self, name):
        """Forgets a connection, and keeps what is to be told of it."""
        connection = self.connections.pop(name)
        connection.socket.close()
        for number, channel in connection.channels.items():
            channel.pending, channel.unconfirmed = 0, {}
            if what := channel.observed():
                self.gone[f"{name}{number}"] = what
        if connection.ended:
            self.gone[name] = connection.ended

    def drop(self):
        """Ends all connections without a word."""
        for name in list(self.connections):
            self.remove(name)


def settle(peers, quiet_s, limit_s):
    """Serves all connections until every answer is there and nothing has come for `quiet_s`."""
    start = time.monotonic()
    last = start
    while True:
        now = time.monotonic()
        if now - start > limit_s or (now - last >= quiet_s and not any(peer.waiting() for peer in peers)):
            return
        sockets = {
            connection.socket: (peer, name) for peer in peers for name, connection in peer.connections.items()
        }
        for ready in select.select(list(sockets), [], [], quiet_s)[0]:
            peer, name = sockets[ready]
            peer.read(name)
            last = time.monotonic()
