"""What the broker may and must have: the state of every message in every queue, kept outside of the broker.

The workers tell the model what they are about to send and what they have received; after a restart the model
judges what is found. It only expects what `docs/durability.md` promises.
"""

import enum
import threading
import time
from collections import defaultdict

SEQUENCE_BITS = 40
PROBLEMS_MAX = 20


def message_id(publisher, sequence):
    return publisher << SEQUENCE_BITS | sequence


def split_id(message):
    """(publisher, sequence)"""
    return message >> SEQUENCE_BITS, message & (1 << SEQUENCE_BITS) - 1


def describe(message):
    publisher, sequence = split_id(message)
    return f"message {sequence} of publisher {publisher}"


class State(enum.Enum):
    """Of a message in a queue."""

    UNSURE = "published, not confirmed"
    SURE = "confirmed"
    MAYBE = "acknowledged before a crash"
    ACKED = "acknowledged, perhaps not yet read by the broker"
    SETTLED = "acknowledged, and the broker has read it"


class Queue:
    """One queue as it should be.

    `drops_head` says that messages may go from its head without the test seeing each: by a consumer without
    acknowledgements, or by a purge. Such a queue is looked at after every restart. Queues of one `group` are looked
    at together. `recreated` stands for one that is deleted and declared again, with a publisher of its own each time.
    `delayed` is one whose messages wait elsewhere before they come to it, each for another time. After a while in
    one with `expires_to` messages go to the queue of that name.
    """

    def __init__(
        self, name, *, group=None, durable=True, drops_head=False, purged=None, recreated=False, delayed=False,
        expires_to=None,
    ):  # fmt: skip
        self.name = name
        self.group = group or name
        self.drops_head = drops_head
        self.durable = durable
        self.recreated = recreated
        self.delayed = delayed
        self.expires_to = expires_to
        # None: it was being declared or deleted when the broker stopped, or deleted before a crash.
        self.exists = True
        self.states = {}
        self.gone = {}
        self.transient = set()
        self.held = {}
        # Acknowledged before they were confirmed: their publish may have been lost with the crash.
        self.unconfirmed = set()
        self.purging = False
        # Messages that a purge may have taken; None: a consumer without acknowledgements may have taken any.
        self.purged = purged

    def end(self, message, why):
        """The message is not in the queue any more, and must never be again."""
        self.states.pop(message, None)
        self.transient.discard(message)
        self.unconfirmed.discard(message)
        self.held.pop(message, None)
        self.gone[message] = why


class Model:
    def __init__(self):
        self.lock = threading.RLock()
        self.queues = {}
        self.problems = []
        self.sequences = defaultdict(int)
        # When messages are due that wait: not to be seen before, in seconds since 1970.
        self.due = {}
        # Transactions without an answer: [(queue, message), ...] each.
        self.unanswered = []
        # Messages whose move to another queue has no answer: message -> (from, to, was sure to be there).
        self.moves = {}
        self.stops = 0
        # The broker closes one connection after the other: what the first held goes to the others, also where it
        # has not read the acknowledgement.
        self.stopping = False
        self.delivered_count = self.confirmed_count = self.refused_count = 0

    def add_queue(self, name, **settings):
        self.queues[name] = Queue(name, **settings)

    def problem(self, text):
        with self.lock:
            if len(self.problems) < PROBLEMS_MAX:
                self.problems.append(text)

    def next_id(self, publisher):
        with self.lock:
            self.sequences[publisher] += 1
            return message_id(publisher, self.sequences[publisher])

    # -- what publishers tell

    def published(self, queues, message, transient=False):
        """To be called before the message is sent."""
        with self.lock:
            for name in queues:
                queue = self.queues[name]
                queue.states[message] = State.UNSURE
                queue.gone.pop(message, None)
                if transient or not queue.durable:
                    queue.transient.add(message)
                if queue.expires_to:
                    # The broker does not say when it moves on, so until they are looked at it may be in either queue.
                    queue.states[message] = State.MAYBE
                    self.moves[message] = name, queue.expires_to, False
                    self.published([queue.expires_to], message)

    def confirmed(self, queues, message):
        with self.lock:
            self.confirmed_count += 1
            for name in queues:
                queue = self.queues[name]
                queue.unconfirmed.discard(message)
                if queue.states.get(message) is State.UNSURE:
                    queue.states[message] = State.SURE
                if queue.expires_to and message in self.moves:
                    self.moves[message] = name, queue.expires_to, True

    def refused(self, queues, message):
        """The broker has said that it does not take the message."""
        with self.lock:
            self.refused_count += 1
            self.never_published(queues, message, "was refused with a nack")

    def waits(self, message, delay_ms):
        """To be called before the message is sent."""
        with self.lock:
            self.due[message] = time.time() + delay_ms / 1000

    def check_due(self, message):
        """A message that has waited has come."""
        with self.lock:
            early_s = self.due[message] - time.time()
            # The broker counts whole milliseconds.
            if early_s > 0.002:
                self.problem(f"{describe(message)} comes {early_s * 1000:.0f} ms before its time")

    def last_due(self):
        with self.lock:
            return max(self.due.values(), default=0)

    def never_published(self, queues, message, why):
        with self.lock:
            for name in queues:
                self.queues[name].end(message, why)

    # -- what consumers tell

    def delivered(self, name, message, to, redelivered):
        """A message came from a queue while the broker is under load."""
        with self.lock:
            self.delivered_count += 1
            queue = self.queues[name]
            state = queue.states.get(message)
            if state is None:
                self.problem(f"{name}: {describe(message)} was delivered, but {self.why_not(queue, message)}")
            elif state is State.SETTLED or state is State.ACKED and not self.stopping:
                self.problem(f"{name}: {describe(message)} was delivered again to {to}: {state.value}")
            elif message in queue.held and not self.stopping:
                kind = ("transient " if message in queue.transient else "") + describe(message)
                flag = "redelivered" if redelivered else "not redelivered"
                self.problem(f"{name}: {kind}, which {queue.held[message]} holds, was delivered to {to} too, {flag}")
            queue.held[message] = to

    def why_not(self, queue, message):
        return queue.gone.get(message, "was never published to this queue")

    def set_state(self, name, messages, state):
        """To be called before an acknowledgement is sent (ACKED), and when the broker has read it (SETTLED)."""
        with self.lock:
            queue = self.queues[name]
            for message in messages:
                if message in queue.states:
                    if queue.states[message] is State.UNSURE:
                        queue.unconfirmed.add(message)
                    queue.states[message] = state
                queue.held.pop(message, None)

    def released(self, name, messages):
        """Given back to the queue; to be called before the broker is told."""
        with self.lock:
            for message in messages:
                self.queues[name].held.pop(message, None)

    # -- purges

    def purge_begins(self, name):
        """Gives the messages that the purge will take for certain."""
        with self.lock:
            queue = self.queues[name]
            queue.purging = True
            return [message for message, state in queue.states.items() if state is State.SURE]

    def purge_ended(self, name, certain):
        with self.lock:
            queue = self.queues[name]
            queue.purging = False
            queue.purged.update(queue.states)
            for message in certain:
                queue.states[message] = State.SETTLED

    # -- transactions

    def transaction_begins(self, members):
        with self.lock:
            self.unanswered.append(members)

    def transaction_ended(self, members):
        with self.lock:
            self.unanswered.remove(members)

    def move_begins(self, source, target, messages):
        """A transaction, or the broker on its own, publishes each message to `target` and settles it in `source`."""
        with self.lock:
            states = self.queues[source].states
            for message in messages:
                was_sure = states.get(message) is State.SURE
                self.moves.setdefault(message, (source, target, was_sure))
                self.published([target], message)
                states[message] = State.ACKED

    def move_ended(self, source, target, messages, committed):
        with self.lock:
            for message in messages:
                _, _, was_sure = self.moves.pop(message)
                if committed:
                    self.queues[source].end(message, "was moved to another queue in a committed transaction")
                    self.confirmed([target], message)
                else:
                    self.queues[target].end(message, "was rolled back")
                    self.queues[source].states[message] = State.SURE if was_sure else State.UNSURE

    # -- restarts

    def stopped(self, clean):
        """The broker's process has ended."""
        with self.lock:
            self.stops += 1
            self.stopping = False
            for queue in self.queues.values():
                queue.held.clear()
                if queue.recreated and not clean:
                    queue.exists = queue.exists or None
                if queue.purging:
                    queue.purging = False
                    queue.purged.update(queue.states)
                for message in list(queue.transient):
                    queue.end(message, f"was transient, and stop {self.stops} came")
                for message, state in list(queue.states.items()):
                    if state is State.SETTLED and clean:
                        queue.end(message, f"had been acknowledged, purged or deleted before clean stop {self.stops}")
                    elif state in (State.SETTLED, State.ACKED):
                        queue.states[message] = State.MAYBE

    def stop_begins(self):
        """To be called before the broker is told to stop."""
        with self.lock:
            self.stopping = True

    def sure_to_come(self, name):
        """How many confirmed messages are on their way to the queue, or have come."""
        with self.lock:
            return sum(target == name and was_sure for _, target, was_sure in self.moves.values())

    def counts(self, name):
        """(least, most) messages that the queue can have after a restart."""
        states = self.queues[name].states
        return sum(state is State.SURE for state in states.values()), len(states)

    def check_drained(self, found):
        """Judges all messages of some queues, in the order in which they came: {queue: [message, ...]}."""
        with self.lock:
            before = {name: dict(self.queues[name].states) for name in found}
            seen = {name: set(messages) for name, messages in found.items()}
            for name, messages in found.items():
                self.check_order(name, messages)
                self.check_missing(self.queues[name], seen[name])
            self.check_transactions(before, seen)
            self.check_moves(before, seen)
            for name in found:
                self.after_drain(self.queues[name], seen[name])

    def check_order(self, name, messages):
        queue, last, once = self.queues[name], {}, set()
        for message in messages:
            publisher, sequence = split_id(message)
            if message in once:
                self.problem(f"{name}: {describe(message)} is in the queue twice")
            elif message not in queue.states:
                self.problem(f"{name}: {describe(message)} is there, but {self.why_not(queue, message)}")
            elif sequence < last.get(publisher, 0) and not queue.delayed:
                self.problem(f"{name}: {describe(message)} comes after {last[publisher]}")
            once.add(message)
            last[publisher] = sequence
        if queue.recreated and len(last) > 1:
            self.problem(f"{name}: messages from before its deletion are among those from after it")

    def check_missing(self, queue, seen):
        missing = [message for message in queue.states if message not in seen]
        lost = [message for message in missing if queue.states[message] is State.SURE]
        if queue.drops_head:
            unsure = queue.unconfirmed
            taken = [each for each in missing if queue.states[each] is not State.UNSURE and each not in unsure]
            self.check_head_only(queue, taken, seen)
            if queue.purged is not None:
                lost = [message for message in lost if message not in queue.purged]
            else:
                lost = []
        lost = [message for message in lost if message not in self.moves]
        if lost:
            which = ", ".join(describe(message) for message in lost[:3])
            self.problem(f"{queue.name}: {len(lost)} confirmed messages are lost: {which} ... {describe(lost[-1])}")

    def check_head_only(self, queue, taken, seen):
        """What is missing was taken from the head, so nothing of the same publisher is left before it."""
        first = {}
        for message in seen:
            publisher, sequence = split_id(message)
            first[publisher] = min(sequence, first.get(publisher, sequence))
        for message in taken:
            publisher, sequence = split_id(message)
            if sequence > first.get(publisher, sequence):
                self.problem(f"{queue.name}: {describe(message)} is lost, but {first[publisher]} is still there")
                return

    def check_transactions(self, before, seen):
        """What was not answered is there as a whole or not at all."""
        open_ones = []
        for members in self.unanswered:
            if any(name not in seen for name, _ in members):
                open_ones.append(members)
                continue
            members = [(name, message) for name, message in members if before[name].get(message) is State.UNSURE]
            there = [message in seen[name] for name, message in members]
            if any(there) and not all(there):
                which = ", ".join(f"{describe(message)} in {name}" for name, message in members)
                self.problem(f"a transaction is there in part ({there.count(True)} of {len(there)}): {which}")
        self.unanswered = open_ones

    def check_moves(self, before, seen):
        """A message whose move was not answered is in one of the two queues, never in both."""
        for message, (source, target, was_sure) in list(self.moves.items()):
            if source not in seen or target not in seen:
                continue
            places = (message in seen[source]) + (message in seen[target])
            if places == 2:
                self.problem(f"{describe(message)} was moved, and is in {source} and in {target}")
            elif places == 0 and was_sure:
                self.problem(f"{describe(message)} was moved, and is neither in {source} nor in {target}")
            del self.moves[message]

    def after_drain(self, queue, seen):
        for message in list(queue.states):
            if message in seen:
                queue.states[message] = State.SETTLED
                queue.unconfirmed.discard(message)
            else:
                queue.end(message, f"was not there any more after stop {self.stops}")
        queue.purged = None if queue.purged is None else set()
