"""The load: threads with a connection each, which publish, consume, purge, delete and tell the model about it."""

import struct
import threading
import time
from collections import deque

from messages import body, delayed_by, publish_frames, read_body, size_of
from model import State, message_id
from support.wire import METHOD, longlong, long, octet, opened, short, shortstr, table

TX_SELECT, TX_SELECT_OK = (90, 10), (90, 11)
TX_COMMIT, TX_COMMIT_OK = (90, 20), (90, 21)
TX_ROLLBACK, TX_ROLLBACK_OK = (90, 30), (90, 31)
PURGE_OK, DELETE_OK = (50, 31), (50, 41)
DURABLE = 2


class Closed(Exception):
    """The broker has closed the connection or the channel."""


class Worker(threading.Thread):
    """Works until the broker is stopped. What goes wrong before that is a problem, and after it is expected."""

    def __init__(self, name, model, rng, ended):
        super().__init__(name=name, daemon=True)
        self.model, self.rng, self.ended = model, rng, ended
        self.wire = None

    def run(self):
        try:
            self.connect()
            while not self.ended.is_set():
                self.work()
            # Whatever is still to come is read, so that a late confirm counts.
            while True:
                self.read()
        except (OSError, AssertionError, Closed, struct.error) as error:
            if not self.ended.is_set():
                self.model.problem(f"{self.name}: {type(error).__name__}: {error}")
        except ValueError as error:
            self.model.problem(f"{self.name}: received {error}")
        finally:
            if self.wire is not None:
                self.wire.__exit__()

    def connect(self):
        self.wire = opened()

    def work(self):
        raise NotImplementedError

    def read(self):
        """Reads one frame, or one delivery with its content, and acts on it. Gives its method."""
        frame = self.wire.next_frame()
        assert frame.kind == METHOD, f"frame type {frame.kind} instead of a method"
        if frame.method in ("connection.close", "channel.close"):
            if frame.method == "connection.close":
                self.wire.send_method(0, "connection.close-ok")
            raise Closed(frame.arguments[3 : 3 + frame.arguments[2]].decode())
        self.on_method(frame)
        return frame.method

    def on_method(self, frame):
        """Whatever the worker does not wait for."""

    def call(self, name, arguments, answer):
        """Sends a method and serves what comes until its answer."""
        self.wire.send_method(1, name, arguments)
        while self.read() != answer:
            pass

    def pause(self, most_s=0.01):
        time.sleep(self.rng.random() * most_s)


class Publisher(Worker):
    """Publishes in batches with confirms, without waiting for each."""

    def __init__(self, *arguments, number, targets, transient=0.0):
        """`targets`: (exchange, key, queues that it leads to); `transient`: which part of the messages is."""
        super().__init__(*arguments)
        self.number, self.targets, self.transient = number, targets, transient
        self.tag = 0
        self.outstanding = {}

    def connect(self):
        super().connect()
        self.wire.select_confirms()

    def work(self):
        frames = []
        for _ in range(self.rng.randint(1, 30)):
            exchange, key, queues = self.rng.choice(self.targets)
            transient = self.rng.random() < self.transient
            message = self.model.next_id(self.number)
            self.model.published(queues, message, transient)
            self.tag += 1
            self.outstanding[self.tag] = queues, message
            data = body(message, size_of(self.rng))
            frames.append(publish_frames(1, exchange, key, data, not transient, self.properties_of(message)))
        self.wire.send(b"".join(frames))
        window = self.rng.choice([0, 10, 100])
        while len(self.outstanding) > window:
            self.read()
        self.pause()

    def properties_of(self, message):
        """None for the usual ones."""

    def on_method(self, frame):
        assert frame.method in self.answers, f"expected a confirm, got {frame.method}"
        tag, bits = struct.unpack(">QB", frame.arguments)
        for each in self.answered(tag, bits & 1):
            assert each in self.outstanding, f"tag {each} was confirmed twice"
            queues, message = self.outstanding.pop(each)
            if frame.method == "basic.ack":
                self.model.confirmed(queues, message)
            else:
                self.refused_tag = each
                self.model.refused(queues, message)

    answers = ("basic.ack",)
    refused_tag = 0

    def answered(self, tag, multiple):
        """The tags that a confirm of this one, or of all up to it, is about."""
        return [each for each in self.outstanding if each <= tag] if multiple else [tag]


class RefusedPublisher(Publisher):
    """Publishes to a queue that refuses what it has no room for."""

    answers = ("basic.ack", "basic.nack")

    def answered(self, tag, multiple):
        tags = super().answered(tag, multiple)
        # Clients that take a confirm of many for all tags below it would take the refusal back.
        if multiple and tags and min(tags) < self.refused_tag < tag:
            self.model.problem(f"{self.name}: a confirm of {min(tags)} to {tag} covers {self.refused_tag}, which was refused")
        return tags


class DelayedPublisher(Publisher):
    """Publishes what is to wait before it comes to its queue."""

    def properties_of(self, message):
        delay_ms = self.rng.choice([1, 50, 300, self.rng.randrange(1, 1500)])
        self.model.waits(message, delay_ms)
        return delayed_by(delay_ms)


class Consumer(Worker):
    """Acknowledges one by one or many, gives some back, and breaks its connection now and then."""

    def __init__(self, *arguments, queue, requeues=0.03, reconnects=0.02):
        super().__init__(*arguments)
        self.queue, self.requeues, self.reconnects = queue, requeues, reconnects

    def connect(self):
        super().connect()
        self.unacked = {}
        self.sent = []
        self.asked = deque()
        self.newest = {}
        self.prefetch = self.rng.choice([1, 10, 50, 300])
        self.wire.send_method(1, "basic.qos", long(0) + short(self.prefetch) + octet(0))
        self.wire.expect("basic.qos-ok", 1)
        self.wire.send_method(1, "basic.consume", short(0) + shortstr(self.queue) + shortstr("c") + b"\0" + table())
        self.wire.expect("basic.consume-ok", 1)

    def work(self):
        if self.read() != "basic.deliver":
            return
        kind = self.rng.random()
        if kind < self.requeues:
            self.give_back(self.rng.choice(list(self.unacked)))
        elif kind < 0.5:
            self.acknowledge([self.rng.choice(list(self.unacked))], multiple=False)
        elif kind < 0.6 or len(self.unacked) >= self.prefetch:
            self.acknowledge(list(self.unacked), multiple=True)
        if len(self.sent) > 100:
            self.settle()
            if self.rng.random() < self.reconnects:
                self.reconnect()

    def on_method(self, frame):
        if frame.method == "basic.qos-ok":
            self.model.set_state(self.queue, self.asked.popleft(), State.SETTLED)
        elif frame.method == "basic.deliver":
            self.on_delivery(frame)

    def on_delivery(self, frame):
        offset = 1 + frame.arguments[0]
        tag, redelivered = struct.unpack_from(">QB", frame.arguments, offset)
        _, data, _ = self.wire.expect_content(1)
        message = read_body(data)
        self.model.delivered(self.queue, message, self.name, redelivered)
        self.unacked[tag] = message
        self.check_place(message, redelivered)

    def check_place(self, message, redelivered):
        """Looks whether it was this message's turn."""
        publisher, last = message >> 40, self.newest.get(message >> 40, 0)
        if not redelivered:
            if message < last:
                self.model.problem(f"{self.queue}: message {message & 0xFFFFFFFFFF} of publisher {publisher} comes late")
            self.newest[publisher] = message

    def acknowledge(self, tags, multiple):
        messages = [self.unacked.pop(tag) for tag in tags]
        self.model.set_state(self.queue, messages, State.ACKED)
        self.sent += messages
        self.wire.send_method(1, "basic.ack", longlong(tags[-1]) + octet(multiple))

    def give_back(self, tag):
        self.model.released(self.queue, [self.unacked.pop(tag)])
        self.wire.send_method(1, "basic.nack", longlong(tag) + octet(2))

    def settle(self):
        """Asks for an answer: when it comes, all acknowledgements before it have been read."""
        self.asked.append(self.sent)
        self.sent = []
        self.wire.send_method(1, "basic.qos", long(0) + short(self.prefetch) + octet(0))

    def reconnect(self):
        """What was not acknowledged is given back; what was, perhaps as well."""
        for messages in (*self.asked, self.sent):
            self.model.set_state(self.queue, messages, State.MAYBE)
        self.model.released(self.queue, self.unacked.values())
        self.wire.__exit__()
        self.connect()


class DelayedConsumer(Consumer):
    """Consumes what has waited, in the order of its times."""

    def check_place(self, message, redelivered):
        self.model.check_due(message)


class AutoConsumer(Consumer):
    """Consumes without acknowledgements: what has come is gone."""

    def connect(self):
        Worker.connect(self)
        self.newest = {}
        self.unacked = {}
        self.wire.send_method(1, "basic.consume", short(0) + shortstr(self.queue) + shortstr("c") + b"\x02" + table())
        self.wire.expect("basic.consume-ok", 1)

    def work(self):
        self.read()

    def on_delivery(self, frame):
        super().on_delivery(frame)
        self.model.set_state(self.queue, self.unacked.values(), State.SETTLED)
        self.unacked.clear()


class Purger(Worker):
    """Purges a queue without consumers."""

    def __init__(self, *arguments, queue):
        super().__init__(*arguments)
        self.queue = queue

    def work(self):
        time.sleep(0.1 + self.rng.random() * 0.6)
        certain = self.model.purge_begins(self.queue)
        self.call("queue.purge", short(0) + shortstr(self.queue) + b"\0", PURGE_OK)
        self.model.purge_ended(self.queue, certain)


class Recreator(Worker):
    """Declares a queue, fills it and deletes it, again and again."""

    def __init__(self, *arguments, queue, numbers):
        """`numbers` gives a new publisher's number for each life of the queue."""
        super().__init__(*arguments)
        self.queue, self.numbers = queue, numbers

    def connect(self):
        super().connect()
        self.wire.select_confirms()

    def work(self):
        queue = self.model.queues[self.queue]
        everything = list(queue.states)
        queue.exists = None
        self.model.set_state(self.queue, everything, State.ACKED)
        self.call("queue.delete", short(0) + shortstr(self.queue) + b"\0", DELETE_OK)
        self.model.set_state(self.queue, everything, State.SETTLED)
        queue.exists = False
        self.pause(0.02)
        queue.exists = None
        _, count, _ = self.wire.declare(1, self.queue, DURABLE)
        if count:
            self.model.problem(f"{self.queue}: {count} messages are in the queue that was just made")
        number = next(self.numbers)
        for sequence in range(1, self.rng.randint(2, 40)):
            message = message_id(number, sequence)
            self.model.published([self.queue], message)
            self.wire.send(publish_frames(1, "", self.queue, body(message, size_of(self.rng))))
            while self.read() != "basic.ack":
                pass
            self.model.confirmed([self.queue], message)
            queue.exists = True
        self.pause(0.05)


class TxPublisher(Worker):
    """Publishes in transactions, each to one or more queues, and rolls some back."""

    def __init__(self, *arguments, number, targets):
        super().__init__(*arguments)
        self.number, self.targets = number, targets

    def connect(self):
        super().connect()
        self.call(TX_SELECT, b"", TX_SELECT_OK)

    def work(self):
        members, frames = [], []
        for _ in range(self.rng.randint(1, 12)):
            exchange, key, queues = self.rng.choice(self.targets)
            message = self.model.next_id(self.number)
            self.model.published(queues, message)
            members += [(name, message) for name in queues]
            frames.append(publish_frames(1, exchange, key, body(message, size_of(self.rng))))
        self.model.transaction_begins(members)
        self.wire.send(b"".join(frames))
        committed = self.rng.random() > 0.1
        self.call(*(TX_COMMIT, b"", TX_COMMIT_OK) if committed else (TX_ROLLBACK, b"", TX_ROLLBACK_OK))
        for name, message in members:
            if committed:
                self.model.confirmed([name], message)
            else:
                self.model.never_published([name], message, "was rolled back")
        self.model.transaction_ended(members)
        self.pause(0.02)


class TxMover(Consumer):
    """Takes from one queue and publishes to another, both in one transaction."""

    def __init__(self, *arguments, queue, target):
        super().__init__(*arguments, queue=queue)
        self.target = target

    def connect(self):
        super().connect()
        self.call(TX_SELECT, b"", TX_SELECT_OK)

    def work(self):
        self.read()
        if not self.unacked or len(self.unacked) < self.prefetch and self.rng.random() < 0.4:
            return
        tags, messages = list(self.unacked), list(self.unacked.values())
        self.model.move_begins(self.queue, self.target, messages)
        self.send_move(tags[-1], messages)
        if self.rng.random() < 0.1:
            self.call(TX_ROLLBACK, b"", TX_ROLLBACK_OK)
            self.model.move_ended(self.queue, self.target, messages, committed=False)
            self.model.move_begins(self.queue, self.target, messages)
            self.send_move(tags[-1], messages)
        self.call(TX_COMMIT, b"", TX_COMMIT_OK)
        self.model.move_ended(self.queue, self.target, messages, committed=True)
        for tag in tags:
            del self.unacked[tag]

    def send_move(self, tag, messages):
        for message in messages:
            data = body(message, size_of(self.rng))
            self.wire.send(publish_frames(1, "", self.target, data))
        self.wire.send_method(1, "basic.ack", longlong(tag) + octet(1))


class Rejecter(Consumer):
    """Refuses everything for good; the broker moves it to another queue, as a dead letter."""

    def __init__(self, *arguments, queue, target):
        super().__init__(*arguments, queue=queue)
        self.target = target

    def work(self):
        self.read()
        if not self.unacked or len(self.unacked) < self.prefetch and self.rng.random() < 0.4:
            return
        last = list(self.unacked)[-1]
        # The broker does not say when a letter is on the disk, so until they are looked at it may be in either queue.
        self.model.move_begins(self.queue, self.target, list(self.unacked.values()))
        self.unacked.clear()
        self.wire.send_method(1, "basic.nack", longlong(last) + octet(1))
