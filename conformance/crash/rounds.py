"""Rounds of load, a stop at a bad moment, a restart and a look at what is there."""

import itertools
import random
import signal
import subprocess
import threading
import time

from broker import BrokerError
from messages import read_body
from model import Model
from support.wire import METHOD, long, longlong, longstr, octet, opened, short, shortstr, table
from workers import (
    DURABLE, AutoConsumer, Consumer, DelayedConsumer, DelayedPublisher, Publisher, Purger, Recreator, RefusedPublisher,
    Rejecter, TxMover, TxPublisher,
)  # fmt: skip

PASSIVE = 1
WAIT_S = 3
FANOUT = ["fan.kept", "fan.acked", "fan.auto"]
TX_GROUP = "transactions"
DEAD_GROUP = "dead letters"
EXPIRED_GROUP = "expired"
LATE_S = 15


def letters_to(queue):
    return [("x-dead-letter-exchange", b"S", longstr("")), ("x-dead-letter-routing-key", b"S", longstr(queue))]


ARGUMENTS = {
    "dying": letters_to("dead"),
    "expiring": [*letters_to("expired"), ("x-message-ttl", b"I", long(150))],
    "refusing": [("x-max-length", b"I", long(10)), ("x-overflow", b"S", longstr("reject-publish"))],
}

STOPS = ("kill", "kill", "kill", "kill in a checkpoint", "kill at a new segment", "kill while stopping", "stop", "stop")
"""How a round ends; a `stop` is the polite one."""


class Failed(Exception):
    """The round found problems."""


class Rounds:
    """A broker's life in rounds, with the model of what it holds."""

    def __init__(self, broker, seed, seconds):
        self.broker, self.seed, self.seconds = broker, seed, seconds
        self.numbers = itertools.count(100)
        self.log_offset = 0
        self.begin_anew()

    def begin_anew(self):
        """An empty data folder with the queues in it."""
        self.broker.start_over()
        self.model = Model()
        for name in ("work", "backlog", "fan.kept", "fan.acked", "refusing"):
            self.model.add_queue(name)
        self.model.add_queue("fan.auto", drops_head=True)
        self.model.add_queue("purged", drops_head=True, purged=set())
        self.model.add_queue("recreated", recreated=True)
        self.model.add_queue("volatile", durable=False)
        self.model.add_queue("delayed", delayed=True)
        for name in ("tx.in", "tx.beside", "tx.out"):
            self.model.add_queue(name, group=TX_GROUP)
        for name in ("dying", "dead"):
            self.model.add_queue(name, group=DEAD_GROUP)
        self.model.add_queue("expiring", group=EXPIRED_GROUP, expires_to="expired")
        self.model.add_queue("expired", group=EXPIRED_GROUP)
        self.broker.configure()
        self.broker.start()
        with opened() as wire:
            for queue in self.model.queues.values():
                if queue.durable:
                    wire.declare(1, queue.name, DURABLE, ARGUMENTS.get(queue.name, ()))
            routes = [("fan", "fanout", FANOUT), ("tx", "fanout", ["tx.in", "tx.beside"])]
            for exchange, kind, names in [*routes, ("later", "x-delayed-message", ["delayed"])]:
                extra = [("x-delayed-type", b"S", longstr("fanout"))] if exchange == "later" else []
                arguments = short(0) + shortstr(exchange) + shortstr(kind) + octet(DURABLE) + table(extra)
                wire.send_method(1, "exchange.declare", arguments)
                wire.expect("exchange.declare-ok", 1)
                for name in names:
                    bind = short(0) + shortstr(name) + shortstr(exchange) + shortstr("") + b"\0" + table()
                    wire.send_method(1, "queue.bind", bind)
                    wire.expect("queue.bind-ok", 1)
            wire.select_confirms().publish_confirmed(1, "nowhere", b"so that the topology is durable")

    def run(self, number):
        """One round; raises Failed or BrokerError. Gives a line about it."""
        rng = random.Random(f"{self.seed}/{number}")
        how = rng.choice(STOPS)
        before = self.model.delivered_count, self.model.confirmed_count, self.model.refused_count
        ended = threading.Event()
        workers = self.workers(rng, ended)
        self.declare_volatile()
        for worker in workers:
            worker.start()
        try:
            time.sleep(self.seconds * rng.uniform(0.2, 1))
            self.broker.check_alive()
        finally:
            self.end(how, ended, rng, workers)
        clean = how == "stop"
        self.model.stopped(clean)
        self.broker.keep("at-the-stop")
        kills = self.restart(rng)
        found = self.look(rng)
        complaints, self.log_offset = self.broker.complaints(self.log_offset)
        for line in complaints:
            self.model.problem(f"in the broker's log: {line}")
        if self.model.problems:
            raise Failed("\n".join(self.model.problems))
        delivered, confirmed = self.model.delivered_count - before[0], self.model.confirmed_count - before[1]
        refused = self.model.refused_count - before[2]
        again = f", killed {kills} times while starting" if kills else ""
        started_ms = round(self.broker.ready_s * 1000)
        return f"{how}{again}: {confirmed} confirmed, {refused} refused, {delivered} delivered, {found} found, start in {started_ms} ms"

    def workers(self, rng, ended):
        def common(name):
            return name, self.model, random.Random(rng.random()), ended

        def to(name):
            return "", name, [name]

        fan, tx = ("fan", "", FANOUT), ("tx", "", ["tx.in", "tx.beside"])
        return [
            Publisher(*common("publisher 1"), number=1, targets=[to("work")], transient=0.1),
            Publisher(*common("publisher 2"), number=2, targets=[to("work"), to("backlog"), fan]),
            Publisher(*common("publisher 3"), number=3, targets=[fan], transient=0.2),
            Publisher(*common("publisher 4"), number=4, targets=[to("backlog"), to("purged"), to("volatile"), to("dying")]),
            DelayedPublisher(*common("delayed publisher"), number=6, targets=[("later", "", ["delayed"])]),
            RefusedPublisher(*common("refused publisher"), number=7, targets=[to("refusing")]),
            Consumer(*common("consumer of what is not refused"), queue="refusing"),
            Publisher(*common("publisher of what expires"), number=8, targets=[to("expiring")]),
            DelayedConsumer(*common("delayed consumer"), queue="delayed", requeues=0.05),
            TxPublisher(*common("tx publisher"), number=5, targets=[tx, tx, to("tx.beside")]),
            TxMover(*common("tx mover"), queue="tx.in", target="tx.out"),
            Rejecter(*common("rejecter"), queue="dying", target="dead"),
            Consumer(*common("consumer 1"), queue="work"),
            Consumer(*common("consumer 2"), queue="work"),
            Consumer(*common("consumer 3"), queue="fan.acked", requeues=0.2),
            AutoConsumer(*common("auto consumer"), queue="fan.auto"),
            Purger(*common("purger"), queue="purged"),
            Recreator(*common("recreator"), queue="recreated", numbers=self.numbers),
        ]

    def declare_volatile(self):
        with opened() as wire:
            _, count, _ = wire.declare(1, "volatile")
        if count:
            self.model.problem(f"volatile: {count} messages are in a queue that is not durable")

    # -- stopping and starting

    def end(self, how, ended, rng, workers):
        """Stops the broker as asked for, and waits until all workers have noticed."""
        try:
            if how == "kill in a checkpoint":
                self.wait_for(lambda: (self.broker.journal / "checkpoint.tmp").exists())
            elif how == "kill at a new segment":
                before = self.segments()
                self.wait_for(lambda: self.segments() != before)
            self.model.stop_begins()
            ended.set()
            if how == "stop":
                self.broker.stop()
            elif how == "kill while stopping":
                self.broker.process.send_signal(signal.SIGTERM)
                time.sleep(rng.random() * 0.3)
        finally:
            ended.set()
            self.broker.kill()
            for worker in workers:
                worker.join()

    def segments(self):
        return {entry.name for entry in self.broker.journal.glob("*.log")}

    def wait_for(self, condition):
        deadline = time.monotonic() + WAIT_S
        while time.monotonic() < deadline and not condition():
            time.sleep(0.0002)

    def restart(self, rng):
        """Starts the broker, after some starts that are killed, with settings that make much happen."""
        mib = 1 << 20
        self.broker.configure(
            memory_high_bytes=rng.choice([0, 0, 8 * mib]),
            segment_bytes=rng.choice([mib, mib, 2 * mib]),
            buffer_bytes=rng.choice([mib, 4 * mib]),
            checkpoint_after_bytes=rng.choice([mib, 2 * mib, 8 * mib]),
            dead_bytes=rng.choice([mib, 8 * mib]),
            spare_segments=rng.choice([3, 4, 8]),
        )
        kills = rng.choice([0, 0, 0, 1, 2, 4])
        for _ in range(kills):
            self.broker.spawn()
            try:
                code = self.broker.process.wait(rng.random() * self.broker.ready_s * 1.2)
                raise BrokerError(f"the broker ended with {code} while it started: {self.broker.last_line()}")
            except subprocess.TimeoutExpired:
                self.broker.kill()
        self.broker.start()
        return kills

    # -- looking

    def look(self, rng):
        """Compares the queues with the model; those that are not drained are left to the next round."""
        groups = {}
        for queue in self.model.queues.values():
            groups.setdefault(queue.group, []).append(queue)
        total = 0
        for group, queues in groups.items():
            for queue in queues:
                if queue.delayed:
                    self.wait_for_delayed(queue)
                if queue.expires_to:
                    self.wait_until_expired(queue)
            drained = any(queue.drops_head or queue.recreated for queue in queues) or rng.random() < 0.6
            counts = {queue.name: self.count(queue) for queue in queues}
            total += sum(count or 0 for count in counts.values())
            if drained:
                found = {name: self.drain(name, count) for name, count in counts.items() if count is not None}
                self.model.check_drained({queue.name: found.get(queue.name, []) for queue in queues})
        return total

    def wait_for_delayed(self, queue):
        """Until all that waits is due; what is due may be a little late."""
        time.sleep(max(0, self.model.last_due() - time.time()))
        deadline = time.monotonic() + LATE_S
        with opened() as wire:
            before = -1
            while time.monotonic() < deadline:
                count = wire.declare(1, queue.name, PASSIVE | DURABLE)[1]
                if count == before and count >= self.model.counts(queue.name)[0]:
                    return
                before = count
                time.sleep(0.1)

    def wait_until_expired(self, queue):
        """Until everything has come to the queue that it expires to; on its way it is in neither."""
        deadline = time.monotonic() + LATE_S
        with opened() as wire:
            before = -1
            while True:
                left, there = (wire.declare(1, name, PASSIVE | DURABLE)[1] for name in (queue.name, queue.expires_to))
                if not left and there == before and there >= self.model.sure_to_come(queue.expires_to):
                    return
                if time.monotonic() > deadline:
                    # What has not come is missed when the messages are looked at.
                    return
                before = there
                time.sleep(0.1)

    def count(self, queue):
        """How many messages declare-ok says are there; None if the queue does not exist."""
        with opened() as wire:
            wire.send_method(1, "queue.declare", short(0) + shortstr(queue.name) + octet(PASSIVE | DURABLE) + table())
            frame = wire.next_frame()
            there = frame.kind == METHOD and frame.method == "queue.declare-ok"
            count = int.from_bytes(frame.arguments[-8:-4], "big") if there else None
        expected = queue.exists if queue.durable else False
        if expected is not None and expected != there:
            self.model.problem(f"{queue.name}: the queue {'exists' if there else 'does not exist'} after the restart")
        if queue.recreated:
            queue.exists = there
        if there:
            least, most = self.model.counts(queue.name)
            if not queue.drops_head and not least <= count <= most:
                self.model.problem(f"{queue.name}: declare-ok says {count} messages, which should be {least} to {most}")
        return count

    def drain(self, name, count):
        """Takes all messages, which have to be `count`; gives them in their order."""
        messages = []
        with opened() as wire:
            wire.send_method(1, "basic.consume", short(0) + shortstr(name) + shortstr("d") + b"\0" + table())
            wire.expect("basic.consume-ok", 1)
            try:
                for tag in range(1, count + 1):
                    wire.expect("basic.deliver", 1)
                    messages.append(read_body(wire.expect_content(1)[1]))
                    if self.model.queues[name].delayed:
                        self.model.check_due(messages[-1])
                    if tag % 100 == 0 or tag == count:
                        wire.send_method(1, "basic.ack", longlong(tag) + octet(1))
            except (TimeoutError, AssertionError, ValueError) as error:
                self.model.problem(f"{name}: of {count} messages {len(messages)} could be read: {error}")
                return messages
            wire.send_method(1, "basic.cancel", shortstr("d") + b"\0")
            frame = wire.next_frame()
            if frame.method != "basic.cancel-ok":
                self.model.problem(f"{name}: there are more messages than the {count} that declare-ok said")
                return messages
            left = wire.declare(1, name, PASSIVE | DURABLE)[1]
            if left:
                self.model.problem(f"{name}: {left} messages are left after all {count} were read")
        return messages
