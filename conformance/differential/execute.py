"""Runs a program step by step against one broker or two in lockstep, and notes what each of them lets a client see.

A program is a list of steps; a step is `{"on": "a1", "do": [[method, fields], ...]}`. All methods of a step are sent in
one write, then everything is served until it is quiet. What is no method of AMQP:

    ["basic.publish", {..., "properties": {...}, "body": "m1"}]     a message with its content
    ["basic.ack", {"nth": 2, "multiple": true}]     the delivery is named by its place among the outstanding ones;
                                                    the same for nack and reject; `delivery_tag` is sent as it is
    ["answer", {"body": "m1"}]                      to the reply address that came last on this channel
    ["wait", {"ms": 50}]    ["drop", {}]            nothing for a while; the socket ends without a word
"""

import re
import time

import codec
from normalise import is_incomparable, normalise
from peer import BARRIER, settle

QUEUES = ["q1", "q2", "q3", "q4"]
EXCHANGES = ["x1", "x2", "x3", "x4"]
# What is left when all else has gone: all messages of each queue are looked at and taken away.
MESSAGES_LEFT = 30
CLEANINGS = 50


SHORT_MS = 15
"""The only times in programs that pass while they run; no other number in them is 15."""

# What a broker is done with when it has answered.
AT_ONCE = {"queue.declare", "exchange.declare", "basic.qos", "basic.get", "confirm.select", "tx.select"}


# What has to be the last of a step: RabbitMQ takes nothing before its answer, or never.
UNFOLLOWED = {"tx.commit", "channel.close"}


class Pace:
    """How long it has to be quiet before a step is over; `slow` is for what seems to differ."""

    def __init__(self, program, slow=False):
        timed = re.search(rf"\b{SHORT_MS}\b", repr(program))
        self.at_once_s = self.quiet_s = 0.25 if timed else 0.1
        if not slow:
            self.quiet_s = 0.06 if timed else 0.012
            self.at_once_s = self.quiet_s if timed else 0.002
        self.end_s = max(0.06, self.quiet_s)
        self.limit_s = 8 if slow else 4

    def quiet_after(self, names):
        if names & {"drop", "connection.close"}:
            return self.end_s
        return self.at_once_s if names <= AT_ONCE else self.quiet_s


def packed(channel, name, fields):
    """The frames of one method of a program, or nothing when there is nothing to do it with."""
    fields = dict(fields)
    if name == "answer":
        if channel.reply_to is None:
            return b""
        name, fields = "basic.publish", {"routing_key": channel.reply_to, "properties": {}, "body": fields["body"]}
    if name == "basic.publish":
        properties, body = fields.pop("properties"), fields.pop("body")
        channel.sent(name, fields, body)
        return codec.method(channel.number, name, fields) + codec.content(channel.number, properties, body)
    if "nth" in fields:
        tag = channel.settle(fields.pop("nth"), fields.get("multiple", False))
        if tag is None:
            return b""
        fields["delivery_tag"] = tag
    channel.sent(name, fields)
    return codec.method(channel.number, name, fields)


def act(peer, step):
    """Sends all of a step to one broker."""
    on, first = step["on"], step["do"][0][0]
    if first == "drop":
        if on[0] in peer.connections:
            peer.remove(on[0])
        return
    if first == "connection.close":
        if on[0] in peer.connections:
            peer.connections[on[0]].closing = True
            peer.connections[on[0]].send(0, "connection.close", {"code": 200})
        return
    if first == "wait":
        return
    connection, channel = peer.channel(on)
    frames = b"".join(packed(channel, name, fields) for name, fields in step["do"])
    if step["do"][-1][0] not in UNFOLLOWED:
        # Its answer says that the channel has done all of the step.
        channel.sent("basic.cancel", {})
        frames += codec.method(channel.number, "basic.cancel", {"consumer_tag": BARRIER})
    try:
        connection.socket.sendall(frames)
    except ConnectionError:
        peer.remove(on[0])


def perform(peers, step, pace):
    """One step on all brokers; what each of them showed."""
    for peer in peers:
        peer.begin()
        act(peer, step)
    if step["do"][0][0] == "wait":
        time.sleep(step["do"][0][1]["ms"] / 1000)
    settle(peers, pace.quiet_after({name for name, _ in step["do"]}), pace.limit_s)
    return [peer.observed() for peer in peers]


def inspection():
    """The steps after a program: what is still there, and what is in it."""
    yield {"on": "a1", "do": [["drop", {}]]}
    yield {"on": "b1", "do": [["drop", {}]]}
    for number, exchange in enumerate(EXCHANGES, 1):
        yield {"on": f"z{number}", "do": [["exchange.declare", {"exchange": exchange, "passive": True}]]}
    for number, queue in enumerate(QUEUES, 5):
        gets = [["basic.get", {"queue": queue, "no_ack": True}]] * MESSAGES_LEFT
        yield {"on": f"z{number}", "do": [["queue.declare", {"queue": queue, "passive": True}]]}
        yield {"on": f"z{number}", "do": gets}


def clean(peers, pace):
    """Takes away all that a program can have left."""
    for peer in peers:
        peer.drop()
    deletes = [["queue.delete", {"queue": name}] for name in QUEUES]
    deletes += [["exchange.delete", {"exchange": name}] for name in EXCHANGES]
    # An exclusive queue may still be about to go.
    for _ in range(CLEANINGS):
        seen = perform(peers, {"on": "z9", "do": deletes}, pace)
        if all(str(each).count("delete-ok") == len(deletes) for each in seen):
            break
        time.sleep(0.1)
    for peer in peers:
        peer.drop()


def shorten_gets(observed):
    """Of the gets of the inspection only those that found something."""
    for what in observed.values():
        if isinstance(what, dict) and "replies" in what:
            found = [reply for reply in what["replies"] if reply[0] != "basic.get-empty"]
            what["replies"] = found if found else what["replies"][:1]
    return observed


def run(program, peers, pace):
    """Yields (step, [what each broker showed]) for the whole program and the inspection after it."""
    try:
        for step in program:
            yield step, [normalise(observed) for observed in perform(peers, step, pace)]
        for step in inspection():
            yield step, [normalise(shorten_gets(observed)) for observed in perform(peers, step, pace)]
    finally:
        clean(peers, pace)


def first_difference(program, peers, pace):
    """(number of the step, step, [what each broker showed]) where they differ first, or None."""
    for number, (step, seen) in enumerate(run(program, peers, pace)):
        if is_incomparable(seen[0]):
            return None
        if any(other != seen[0] for other in seen):
            return number, step, seen
    return None
