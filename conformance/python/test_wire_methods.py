"""Whole methods that clients do not send in this way: nowait everywhere, every width of integer, floods."""

import time

import pytest

from support.broker import fresh, reference_differs, skip_where_reference_differs
from support.wire import (
    METHOD,
    METHODS,
    Wire,
    confirmed_by,
    declare_arguments,
    long,
    longlong,
    longstr,
    method_frame,
    octet,
    opened,
    publish,
    short,
    shortstr,
    table,
)

CLOSE = short(200) + shortstr("") + short(0) + short(0)


def delete_queue(queue, bits=0):
    return short(0) + shortstr(queue) + octet(bits)


def consume(queue, tag, bits=0):
    """bits: 1 no-local, 2 no-ack, 4 exclusive, 8 nowait."""
    return short(0) + shortstr(queue) + shortstr(tag) + octet(bits) + table()


def bind(queue, exchange, key="k"):
    return short(0) + shortstr(queue) + shortstr(exchange) + shortstr(key)


def exchange_declare(name, kind="direct", bits=0):
    """bits: 1 passive, 2 durable, 4 auto-delete, 8 internal, 16 nowait."""
    return short(0) + shortstr(name) + shortstr(kind) + octet(bits) + table()


def test_nowait_is_never_answered():
    """Every method that has the bit, then one that is answered: its answer has to be the first frame."""
    queue, source, destination = fresh(), fresh("x"), fresh("x")
    steps = [
        ("exchange.declare", exchange_declare(source, bits=16)),
        ("exchange.declare", exchange_declare(destination, "fanout", bits=16)),
        ("exchange.bind", bind(destination, source) + octet(1) + table()),
        ("queue.declare", declare_arguments(queue, bits=16)),
        ("queue.bind", bind(queue, destination) + octet(1) + table()),
        ("confirm.select", octet(1)),
        ("basic.consume", consume(queue, "tag", bits=8)),
        ("basic.cancel", shortstr("tag") + octet(1)),
        ("queue.purge", short(0) + shortstr(queue) + octet(1)),
        ("exchange.unbind", bind(destination, source) + octet(1) + table()),
        ("queue.delete", delete_queue(queue, bits=4)),
        ("exchange.delete", short(0) + shortstr(source) + octet(2)),
        ("exchange.delete", short(0) + shortstr(destination) + octet(2)),
    ]
    with opened() as wire:
        for method, arguments in steps:
            wire.send_method(1, method, arguments)
        wire.send_method(1, "basic.qos", long(0) + short(1) + octet(0))
        wire.expect("basic.qos-ok", 1)
        wire.send_method(1, "queue.declare", declare_arguments(queue, bits=1))
        assert wire.expect_channel_close()[0] == 404, "the nowait delete was done"


def test_an_error_of_a_nowait_method_closes_the_channel_all_the_same():
    with opened() as wire:
        wire.send_method(1, "queue.declare", declare_arguments("amq.mine", bits=16))
        code, text, ids = wire.expect_channel_close()
    assert (code, ids) == (403, METHODS["queue.declare"])
    assert text == "ACCESS_REFUSED - queue name 'amq.mine' contains reserved prefix 'amq.*'"


@pytest.mark.parametrize(
    "method, arguments, expected",
    [
        ("queue.declare", declare_arguments("missing", bits=1), 404),
        ("queue.bind", bind("missing", "amq.direct") + octet(0) + table(), 404),
        ("queue.purge", short(0) + shortstr("missing") + octet(0), 404),
        ("exchange.declare", exchange_declare("missing", bits=1), 404),
        ("basic.consume", consume("missing", ""), 404),
        ("basic.get", short(0) + shortstr("missing") + octet(0), 404),
        ("basic.ack", longlong(99) + octet(0), 406),
        ("basic.nack", longlong(99) + octet(0), 406),
        ("exchange.delete", short(0) + shortstr("") + octet(0), 403),
    ],
)
def test_the_reason_names_the_method_that_failed(method, arguments, expected):
    with opened() as wire:
        wire.send_method(1, method, arguments)
        code, _, ids = wire.expect_channel_close()
    assert (code, ids) == (expected, METHODS[method])


def test_a_consumer_tag_is_used_once_on_a_channel():
    with opened() as wire:
        queue = wire.open_channel(2).declare(1, "", bits=4)[0]
        wire.send_method(2, "basic.consume", consume(queue, "t"))
        wire.expect("basic.consume-ok", 2)
        wire.send_method(1, "basic.consume", consume(queue, "t"))
        wire.expect("basic.consume-ok", 1)
        wire.send_method(1, "basic.consume", consume(queue, "t"))
        code, text, ids = wire.expect_connection_close()
    assert (code, ids) == (530, METHODS["basic.consume"])
    assert text == "NOT_ALLOWED - attempt to reuse consumer tag 't'"


def test_the_server_names_a_consumer():
    with opened() as wire:
        queue = wire.declare(1, "", bits=4)[0]
        tags = set()
        for _ in range(2):
            wire.send_method(1, "basic.consume", consume(queue, ""))
            tags.add(wire.expect("basic.consume-ok", 1).arguments[1:])
        assert len(tags) == 2
        assert all(tag.startswith(b"amq.ctag-") for tag in tags)


def test_cancelling_an_unknown_consumer_is_good():
    with opened() as wire:
        wire.send_method(1, "basic.cancel", shortstr("unknown") + octet(0))
        assert wire.expect("basic.cancel-ok", 1).arguments == shortstr("unknown")


def test_nothing_is_delivered_after_cancel_ok():
    with opened() as wire, opened() as publisher:
        queue = wire.declare(1, fresh(), bits=8)[0]
        wire.send_method(1, "basic.consume", consume(queue, "t", bits=2))
        wire.expect("basic.consume-ok", 1)
        publisher.send(publish(1, "", queue, b"x") * 200)
        wire.send_method(1, "basic.cancel", shortstr("t") + octet(0))
        while (received := wire.next_frame()).kind != METHOD or received.method != "basic.cancel-ok":
            pass
        publisher.send(publish(1, "", queue, b"late") * 200)
        wire.send_method(1, "queue.declare", declare_arguments(queue, bits=1))
        assert wire.expect_channel_close()[0] == 404, "auto-delete is done when cancel-ok is sent"


@pytest.mark.parametrize("bits", [2, 3], ids=["immediate", "immediate and mandatory"])
def test_immediate_is_not_implemented(bits):
    with opened() as wire:
        wire.send(publish(1, "", "q", b"x", bits))
        code, text, ids = wire.expect_connection_close()
    assert (code, text, ids) == (540, "NOT_IMPLEMENTED - immediate=true", METHODS["basic.publish"])


@skip_where_reference_differs("RabbitMQ refuses channel.flow with active=false")
def test_a_client_can_stop_the_flow_of_deliveries():
    queue = fresh()
    with opened() as wire:
        wire.declare(1, queue, bits=4)
        wire.send_method(1, "basic.consume", short(0) + shortstr(queue) + shortstr("c") + octet(2) + table(()))
        wire.expect("basic.consume-ok", 1)
        wire.send_method(1, "channel.flow", octet(0))
        assert wire.expect("channel.flow-ok", 1).arguments == octet(0)
        wire.send(publish(1, "", queue, b"held back"))
        wire.send_method(1, "queue.declare", declare_arguments(queue, bits=1))
        wire.expect("queue.declare-ok", 1)
        wire.send_method(1, "channel.flow", octet(1))
        assert wire.expect("channel.flow-ok", 1).arguments == octet(1)
        wire.expect("basic.deliver", 1)


def test_the_secret_may_be_renewed():
    with opened() as wire:
        wire.send_method(0, "connection.update-secret", longstr("guest") + shortstr("it is about to expire"))
        wire.expect("connection.update-secret-ok", 0)
        wire.declare(1, fresh(), bits=4)


# -- order and number


def test_a_missing_exchange_costs_only_the_channel_whatever_is_in_flight():
    lost = publish(1, fresh("missing"), "k", b"lost")
    with opened() as wire:
        wire.open_channel(2)
        queue = wire.declare(2, "", bits=4)[0]
        wire.send(lost * 500 + publish(2, "", queue, b"kept"))
        code, text, ids = wire.expect_channel_close(1)
        assert (code, ids) == (404, METHODS["basic.publish"])
        assert text.startswith("NOT_FOUND - no exchange 'conformance.missing.")
        assert wire.get(2, queue)[1] == b"kept"
        wire.open_channel(1)
        assert wire.declare(1, queue, bits=4 | 1)[1] == 0


def test_frames_behind_an_error_are_dropped_until_close_ok():
    with opened() as wire:
        queue = wire.declare(1, "", bits=4)[0]
        wire.send_method(1, "queue.declare", declare_arguments(fresh(), bits=1))
        wire.send(publish(1, "", queue, b"dropped") + method_frame(1, "queue.declare", declare_arguments(queue, 4)))
        assert wire.expect_channel_close()[0] == 404
        wire.open_channel(1)
        assert wire.declare(1, queue, bits=4 | 1)[1] == 0


def test_closes_may_cross():
    """The client's own channel.close meets the broker's: both are answered, the number is free again."""
    with opened() as wire:
        wire.send_method(1, "queue.declare", declare_arguments(fresh(), bits=1))
        wire.send_method(1, "channel.close", CLOSE)
        assert wire.expect_channel_close()[0] == 404
        wire.expect("channel.close-ok", 1)
        wire.open_channel(1)


def test_a_channel_number_can_be_used_again_at_once():
    with opened() as wire:
        for _ in range(100):
            wire.send_method(1, "channel.close", CLOSE)
            wire.expect("channel.close-ok", 1)
            wire.open_channel(1)
        wire.declare(1, fresh(), bits=4)


def open_and_close(wire, numbers):
    """Opens all these channels, then closes them. Each channel answers for itself, in whatever order."""
    for method, arguments in (("channel.open", shortstr("")), ("channel.close", CLOSE)):
        wire.send(b"".join(method_frame(number, method, arguments) for number in numbers))
        assert {wire.expect(f"{method}-ok").channel for _ in numbers} == set(numbers)


@pytest.mark.timeout(180)
def test_eighty_thousand_channels_on_one_connection():
    with opened() as wire:
        for _ in range(80):
            open_and_close(wire, range(2, 1002))
        wire.declare(1, fresh(), bits=4)


def test_all_2047_channels_at_once():
    numbers = range(2, 2048)
    with opened() as wire:
        wire.send(b"".join(method_frame(number, "channel.open", shortstr("")) for number in numbers))
        assert {wire.expect("channel.open-ok").channel for _ in numbers} == set(numbers)
        for number in (1, 1024, 2047):
            queue = wire.declare(number, "", bits=4)[0]
            wire.select_confirms(number).publish_confirmed(number, queue, b"x")


def test_channels_are_counted_and_may_have_any_number():
    with opened(channel_max=3) as wire:
        for number in (65535, 2048):
            wire.open_channel(number)
            queue = wire.declare(number, "", bits=4)[0]
            wire.select_confirms(number).publish_confirmed(number, queue, b"x")
        wire.send_method(2, "channel.open", shortstr(""))
        assert wire.expect_connection_close()[0] == 530


def test_a_published_batch_is_confirmed_to_its_last_message():
    count = 1000
    with opened() as wire:
        queue = wire.select_confirms().declare(1, "", bits=4)[0]
        wire.send(publish(1, "", queue, b"x") * count)
        outstanding = set(range(1, count + 1))
        while outstanding:
            confirmed_by(wire.expect("basic.ack", 1), outstanding)
        assert wire.declare(1, queue, bits=4 | 1)[1] == count


def test_names_lose_carriage_return_and_line_feed():
    name = fresh()
    with opened() as wire:
        assert wire.declare(1, f"{name[:5]}\r\n{name[5:]}\n", bits=4)[0] == name


def reference_needs_a_moment():
    """RabbitMQ 3 deletes a dropped connection's queues some time after it has given back its deliveries."""
    time.sleep(reference_differs(0, reference=1))


def test_a_dropped_socket_frees_exclusive_queues_and_returns_deliveries():
    shared, own = fresh(), fresh()
    with opened() as other:
        other.declare(1, shared, bits=0)
        other.select_confirms().publish_confirmed(1, shared, b"once")
        with opened() as wire:
            wire.declare(1, own, bits=4)
            wire.send_method(1, "basic.get", short(0) + shortstr(shared) + octet(0))
            wire.expect("basic.get-ok", 1)
            wire.expect_content(1)
        other.send_method(1, "basic.consume", consume(shared, "t", bits=2))
        other.expect("basic.consume-ok", 1)
        delivery = other.expect("basic.deliver", 1).arguments
        assert delivery[:11] == shortstr("t") + longlong(1) + b"\x01", "delivered again, and says so"
        assert other.expect_content(1)[1] == b"once"
        with opened() as again:
            reference_needs_a_moment()
            again.declare(1, own, bits=4)
        other.send_method(1, "queue.delete", delete_queue(shared))


def test_many_connections_come_and_go():
    wires = [Wire() for _ in range(300)]
    try:
        for number, wire in enumerate(wires):
            wire.handshake().open_channel()
            wire.declare(1, fresh(f"many.{number}"), bits=4)
    finally:
        for wire in wires:
            wire.__exit__()
