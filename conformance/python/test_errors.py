"""Mistakes of a client, with the code and the exact text of the answer: the most complete list of the suite.

Each mistake is a function of (ch, other, q, x): the channel that makes it, a channel of another connection, and the
unused names of a queue and of an exchange. {q} and {x} in the text stand for the same names.
"""

from typing import Callable, NamedTuple

import pytest
from pika import BasicProperties
from pika.exceptions import ChannelClosedByBroker, ConnectionClosedByBroker

from support.broker import connect, fresh, skip_where_reference_differs


class Mistake(NamedTuple):
    """`what` names the test; `act` makes the mistake."""

    what: str
    code: int
    text: str
    act: Callable


def shared(ch, q, **options):
    """An auto-delete queue that every connection may use (it goes when it has had a consumer)."""
    ch.queue_declare(q, auto_delete=True, **options)


def exclusive(ch, q):
    ch.queue_declare(q, exclusive=True)


def after(setup, mistake):
    """Makes the mistake, the last expression, after the set-up."""
    return lambda ch, other, q, x: (setup(ch, other, q, x), mistake(ch, other, q, x))


def own(ch, _other, q, _x):
    exclusive(ch, q)


def others(_ch, other, q, _x):
    exclusive(other, q)


def direct(ch, _other, _q, x):
    ch.exchange_declare(x, "direct", auto_delete=True)


def not_found(what, act, text):
    return Mistake(f"404 {what}", 404, f"NOT_FOUND - {text}", act)


def refused(what, act, text):
    return Mistake(f"403 {what}", 403, f"ACCESS_REFUSED - {text}", act)


def failed(what, act, text):
    return Mistake(f"406 {what}", 406, f"PRECONDITION_FAILED - {text}", act)


def locked(what, act):
    return Mistake(
        f"405 {what}", 405,
        "RESOURCE_LOCKED - cannot obtain exclusive access to locked queue '{q}' in vhost '/'. It could be originally "
        "declared on another connection or the exclusive property value does not match that of the original "
        "declaration.",
        act,
    )  # fmt: skip


def ignore(*_):
    """A consumer's callback that does nothing."""


NO_QUEUE, NO_EXCHANGE = "no queue '{q}' in vhost '/'", "no exchange '{x}' in vhost '/'"
NONE_DECLARED = "no previously declared queue"
DEFAULT_EXCHANGE = "operation not permitted on the default exchange"
IN_EXCLUSIVE_USE = "queue '{q}' in vhost '/' in exclusive use"

MISSING = [
    not_found("passive declare of a queue", lambda ch, o, q, x: ch.queue_declare(q, passive=True), NO_QUEUE),
    not_found("passive declare of an exchange", lambda ch, o, q, x: ch.exchange_declare(x, passive=True), NO_EXCHANGE),
    not_found("consume", lambda ch, o, q, x: ch.basic_consume(q, ignore), NO_QUEUE),
    not_found("get", lambda ch, o, q, x: ch.basic_get(q), NO_QUEUE),
    not_found("purge", lambda ch, o, q, x: ch.queue_purge(q), NO_QUEUE),
    not_found("bind a missing queue", lambda ch, o, q, x: ch.queue_bind(q, "amq.direct", "k"), NO_QUEUE),
    not_found("bind to a missing exchange", after(own, lambda ch, o, q, x: ch.queue_bind(q, x, "k")), NO_EXCHANGE),
    not_found("bind a missing exchange", lambda ch, o, q, x: ch.exchange_bind(x, "amq.direct", "k"), NO_EXCHANGE),
    not_found("bind from a missing exchange", lambda ch, o, q, x: ch.exchange_bind("amq.direct", x, "k"), NO_EXCHANGE),
    not_found("publish", lambda ch, o, q, x: ch.basic_publish(x, "k", b""), NO_EXCHANGE),
    not_found("consume '' before any declare", lambda ch, o, q, x: ch.basic_consume("", ignore), NONE_DECLARED),
    not_found("get '' before any declare", lambda ch, o, q, x: ch.basic_get(""), NONE_DECLARED),
    not_found("bind '' before any declare", lambda ch, o, q, x: ch.queue_bind("", "amq.direct", "k"), NONE_DECLARED),
    not_found("purge '' before any declare", lambda ch, o, q, x: ch.queue_purge(""), NONE_DECLARED),
    not_found("delete '' before any declare", lambda ch, o, q, x: ch.queue_delete(""), NONE_DECLARED),
]

FORBIDDEN = [
    refused(
        "a queue named amq.*", lambda ch, o, q, x: ch.queue_declare("amq.mine"),
        "queue name 'amq.mine' contains reserved prefix 'amq.*'",
    ),
    refused(
        "an exchange named amq.*", lambda ch, o, q, x: ch.exchange_declare("amq.mine"),
        "exchange name 'amq.mine' contains reserved prefix 'amq.*'",
    ),
    refused("declare the default exchange", lambda ch, o, q, x: ch.exchange_declare(""), DEFAULT_EXCHANGE),
    refused(
        "declare the default exchange passively",
        lambda ch, o, q, x: ch.exchange_declare("", passive=True),
        DEFAULT_EXCHANGE,
    ),
    refused("delete the default exchange", lambda ch, o, q, x: ch.exchange_delete(""), DEFAULT_EXCHANGE),
    refused("bind to the default", after(own, lambda ch, o, q, x: ch.queue_bind(q, "", "k")), DEFAULT_EXCHANGE),
    refused("unbind from the default", after(own, lambda ch, o, q, x: ch.queue_unbind(q, "", q)), DEFAULT_EXCHANGE),
    refused("bind from the default exchange", lambda ch, o, q, x: ch.exchange_bind("amq.fanout", ""), DEFAULT_EXCHANGE),
    refused("bind the default exchange", lambda ch, o, q, x: ch.exchange_bind("", "amq.fanout"), DEFAULT_EXCHANGE),
    refused(
        "publish to an internal exchange",
        lambda ch, o, q, x: (
            ch.exchange_declare(x, "fanout", internal=True, auto_delete=True), ch.basic_publish(x, "", b"")
        ),
        "cannot publish to internal exchange '{x}' in vhost '/'",
    ),
    refused(
        "consume what another consumes exclusively",
        lambda ch, o, q, x: (shared(o, q), o.basic_consume(q, ignore, exclusive=True), ch.basic_consume(q, ignore)),
        IN_EXCLUSIVE_USE,
    ),
    refused(
        "consume exclusively what another consumes",
        lambda ch, o, q, x: (shared(o, q), o.basic_consume(q, ignore), ch.basic_consume(q, ignore, exclusive=True)),
        IN_EXCLUSIVE_USE,
    ),
]  # fmt: skip

LOCKED = [
    locked("declare", after(others, lambda ch, o, q, x: ch.queue_declare(q))),
    locked("declare as exclusive", after(others, lambda ch, o, q, x: exclusive(ch, q))),
    locked("declare passively", after(others, lambda ch, o, q, x: ch.queue_declare(q, passive=True))),
    locked("consume", after(others, lambda ch, o, q, x: ch.basic_consume(q, ignore))),
    locked("get", after(others, lambda ch, o, q, x: ch.basic_get(q))),
    locked("bind", after(others, lambda ch, o, q, x: ch.queue_bind(q, "amq.direct", "k"))),
    locked("purge", after(others, lambda ch, o, q, x: ch.queue_purge(q))),
    locked("delete", after(others, lambda ch, o, q, x: ch.queue_delete(q))),
    locked("a shared queue as exclusive", lambda ch, o, q, x: (shared(o, q), ch.queue_declare(q, exclusive=True))),
    locked("one's own exclusive as shared", after(own, lambda ch, o, q, x: ch.queue_declare(q))),
]


def differs(argument, received, current, kind="queue"):
    name = "{q}" if kind == "queue" else "{x}"
    values = f"received '{received}' but current is '{current}'"
    return f"inequivalent arg '{argument}' for {kind} '{name}' in vhost '/': {values}"


def once(ch, q):
    """A message in the exclusive queue q, got and not yet acknowledged; its delivery tag."""
    exclusive(ch, q)
    ch.basic_publish("", q, b"x")
    return ch.basic_get(q)[0].delivery_tag


def twice(settle):
    """Settles the same delivery two times."""

    def act(ch, _other, q, _x):
        tag = once(ch, q)
        settle(ch, tag)
        settle(ch, tag)

    return act


def waiting(ch, _other, q, _x):
    exclusive(ch, q)
    ch.confirm_delivery()
    ch.basic_publish("", q, b"x")


def bound(ch, other, q, x):
    exclusive(ch, q)
    direct(ch, other, q, x)
    ch.queue_bind(q, x, "k")


IN_USE, NOT_EMPTY = "queue '{q}' in vhost '/' in use", "queue '{q}' in vhost '/' not empty"

REDECLARED = [
    failed(
        "durable as transient", lambda ch, o, q, x: (shared(ch, q, durable=True), shared(ch, q)),
        differs("durable", "false", "true"),
    ),
    failed(
        "transient as durable", lambda ch, o, q, x: (shared(ch, q), shared(ch, q, durable=True)),
        differs("durable", "true", "false"),
    ),
    failed(
        "auto-delete as lasting", lambda ch, o, q, x: (shared(ch, q), ch.queue_declare(q)),
        differs("auto_delete", "false", "true"),
    ),
    failed(
        "durable before auto-delete", lambda ch, o, q, x: (shared(ch, q), ch.queue_declare(q, durable=True)),
        differs("durable", "true", "false"),
    ),
    failed(
        "an exchange of another type", after(direct, lambda ch, o, q, x: ch.exchange_declare(x, "fanout")),
        differs("type", "fanout", "direct", "exchange"),
    ),
    failed(
        "amq.topic as direct", lambda ch, o, q, x: ch.exchange_declare("amq.topic", "direct", durable=True),
        differs("type", "direct", "topic", "exchange").replace("{x}", "amq.topic"),
    ),
    failed(
        "a transient exchange as durable",
        after(direct, lambda ch, o, q, x: ch.exchange_declare(x, "direct", auto_delete=True, durable=True)),
        differs("durable", "true", "false", "exchange"),
    ),
    failed(
        "an auto-delete exchange as lasting", after(direct, lambda ch, o, q, x: ch.exchange_declare(x, "direct")),
        differs("auto_delete", "false", "true", "exchange"),
    ),
    failed(
        "an exchange as internal",
        after(direct, lambda ch, o, q, x: ch.exchange_declare(x, "direct", auto_delete=True, internal=True)),
        differs("internal", "true", "false", "exchange"),
    ),
]  # fmt: skip

FAILED = [
    failed(
        "delete a queue with a consumer if unused",
        after(own, lambda ch, o, q, x: (ch.basic_consume(q, ignore), ch.queue_delete(q, if_unused=True))), IN_USE,
    ),
    failed(
        "delete a queue with a message if empty",
        after(waiting, lambda ch, o, q, x: ch.queue_delete(q, if_empty=True)), NOT_EMPTY,
    ),
    failed(
        "delete a bound exchange if unused",
        after(bound, lambda ch, o, q, x: ch.exchange_delete(x, if_unused=True)),
        "exchange '{x}' in vhost '/' in use",
    ),
    failed("ack an unknown tag", lambda ch, o, q, x: ch.basic_ack(99), "unknown delivery tag 99"),
    failed("ack an unknown tag, multiple", lambda ch, o, q, x: ch.basic_ack(99, True), "unknown delivery tag 99"),
    failed("nack an unknown tag", lambda ch, o, q, x: ch.basic_nack(7), "unknown delivery tag 7"),
    failed("reject an unknown tag", lambda ch, o, q, x: ch.basic_reject(2**40), f"unknown delivery tag {2**40}"),
    failed("ack tag 0 alone", lambda ch, o, q, x: (once(ch, q), ch.basic_ack(0)), "unknown delivery tag 0"),
    failed("ack twice", twice(lambda ch, tag: ch.basic_ack(tag)), "unknown delivery tag 1"),
    failed("nack twice", twice(lambda ch, tag: ch.basic_nack(tag, requeue=False)), "unknown delivery tag 1"),
    failed("reject twice", twice(lambda ch, tag: ch.basic_reject(tag, requeue=False)), "unknown delivery tag 1"),
    failed(
        "ack a tag of another channel",
        lambda ch, o, q, x: (once(o, q), ch.basic_ack(1)), "unknown delivery tag 1",
    ),
    failed(
        "ack what needs none",
        after(waiting, lambda ch, o, q, x: ch.basic_ack(ch.basic_get(q, auto_ack=True)[0].delivery_tag)),
        "unknown delivery tag 1",
    ),
    failed(
        "another's user-id",
        lambda ch, o, q, x: ch.basic_publish("", q, b"", BasicProperties(user_id="stranger")),
        "user_id property set to 'stranger' but authenticated user was 'guest'",
    ),
    failed(
        "a message above 16 MiB",
        lambda ch, o, q, x: ch.basic_publish("", q, bytes(16 * 1024 * 1024 + 1)),
        "message size 16777217 is larger than configured max size 16777216",
    ),
    failed(
        "tx after confirm", lambda ch, o, q, x: (ch.confirm_delivery(), ch.tx_select()),
        "cannot switch from confirm to tx mode",
    ),
    failed(
        "confirm after tx", lambda ch, o, q, x: (ch.tx_select(), ch.confirm_delivery()),
        "cannot switch from tx to confirm mode",
    ),
    failed("commit without tx", lambda ch, o, q, x: ch.tx_commit(), "channel is not transactional"),
    failed("rollback without tx", lambda ch, o, q, x: ch.tx_rollback(), "channel is not transactional"),
]  # fmt: skip

CHANNEL_MISTAKES = MISSING + FORBIDDEN + LOCKED + REDECLARED + FAILED

CONNECTION_MISTAKES = [
    Mistake(
        "540 prefetch_size", 540, "NOT_IMPLEMENTED - prefetch_size!=0 (10)",
        lambda ch, o, q, x: ch.basic_qos(prefetch_size=10),
    ),
    Mistake(
        "540 recover without requeue", 540, "NOT_IMPLEMENTED - requeue=false",
        lambda ch, o, q, x: ch.basic_recover(requeue=False),
    ),
]  # fmt: skip


@pytest.fixture
def names():
    """The unused names (q, x); what the mistake has left behind is deleted when all connections are closed."""
    q, x = fresh(), fresh("x")
    yield q, x
    with connect() as cleaner:
        channel = cleaner.channel()
        channel.queue_delete(q)
        channel.exchange_delete(x)


@pytest.fixture
def other():
    """A channel of another connection."""
    with connect() as another:
        yield another.channel()


def reason_of(mistake, channel, other, names, kind):
    """Makes the mistake; gives the (code, text) that came, and the (code, text) that should have."""
    q, x = names
    with pytest.raises(kind) as caught:
        mistake.act(channel, other, q, x)
        # Methods without an answer fail a little later: the next one that has an answer hears of it.
        channel.basic_qos()
    reason = caught.value
    return (reason.reply_code, reason.reply_text), (mistake.code, mistake.text.format(q=q, x=x))


@pytest.mark.parametrize("mistake", CHANNEL_MISTAKES, ids=[mistake.what for mistake in CHANNEL_MISTAKES])
def test_a_mistake_that_closes_the_channel(names, connection, channel, other, mistake):
    got, expected = reason_of(mistake, channel, other, names, ChannelClosedByBroker)
    assert got == expected
    again = connection.channel(channel.channel_number)
    again.queue_declare("", exclusive=True)


@pytest.mark.parametrize("mistake", CONNECTION_MISTAKES, ids=[mistake.what for mistake in CONNECTION_MISTAKES])
def test_a_mistake_that_closes_the_connection(names, connection, channel, other, mistake):
    got, expected = reason_of(mistake, channel, other, names, ConnectionClosedByBroker)
    assert got == expected
    other.queue_declare("", exclusive=True)


@skip_where_reference_differs("3.10 closes the connection with 503")
@pytest.mark.parametrize("kind", ["foo", "x-unheard", ""])
def test_an_unknown_exchange_type(channel, kind):
    with pytest.raises(ChannelClosedByBroker) as caught:
        channel.exchange_declare(fresh("x"), kind)
    texts = [f"PRECONDITION_FAILED - {word} exchange type '{kind}'" for word in ("unknown", "invalid")]
    assert caught.value.reply_code == 406
    assert caught.value.reply_text in texts


@pytest.mark.parametrize("name", ["amq.direct", "amq.fanout", "amq.topic", "amq.headers", "amq.match"])
def test_a_system_exchange_cannot_be_deleted(channel, name):
    with pytest.raises(ChannelClosedByBroker) as caught:
        channel.exchange_delete(name)
    assert caught.value.reply_code == 403
    expected = f"deletion of system exchange '{name}' in vhost '/' not allowed"
    assert caught.value.reply_text == f"ACCESS_REFUSED - {expected}"
