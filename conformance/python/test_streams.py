"""Streams: a log that many consumers read, each from its own place."""

import datetime
import time

import pika
import pytest
from pika.exceptions import ChannelClosedByBroker, ConnectionClosedByBroker

from support.broker import (
    ON_REFERENCE,
    connect,
    fresh,
    reference_differs,
    settle,
    skip_where_reference_differs,
    wait_until,
)


@pytest.fixture
def stream(channel):
    """The name of an empty stream, which is deleted behind the test."""
    name = declare(channel)
    yield name
    with connect() as other:
        other.channel().queue_delete(name)


def declare(channel, **arguments):
    """Declares a stream; `arguments` are written with underlines."""
    name = fresh("stream")
    table = {"x-queue-type": "stream"}
    table.update((f"x-{key.replace('_', '-')}", value) for key, value in arguments.items())
    return channel.queue_declare(name, durable=True, arguments=table).method.queue


def fill(channel, name, numbers, **properties):
    """Publishes numbers and waits until the stream has them for certain."""
    channel.confirm_delivery()
    for number in numbers:
        channel.basic_publish("", name, b"%d" % number, pika.BasicProperties(**properties))


def read(connection, name, start=None, prefetch=100, ack=True, **arguments):
    """Consumes on a channel of its own; returns a list that fills with (offset, number)."""
    channel = connection.channel()
    channel.basic_qos(prefetch_count=prefetch)
    got = []

    def take(_, method, properties, body):
        got.append((properties.headers["x-stream-offset"], int(body)))
        if ack:
            channel.basic_ack(method.delivery_tag)

    table = {f"x-stream-{key.replace('_', '-')}": value for key, value in arguments.items()}
    if start is not None:
        table["x-stream-offset"] = start
    channel.basic_consume(name, take, arguments=table)
    return got


def pairs(numbers):
    """What is read of a stream that was filled with 0, 1 and so on."""
    return [(number, number) for number in numbers]


def test_every_consumer_reads_every_message(connection, channel, stream):
    fill(channel, stream, range(20))
    first, second = (read(connection, stream, "first") for _ in range(2))
    wait_until(connection, lambda: first == second == pairs(range(20)))
    fill(channel, stream, range(20, 30))
    wait_until(connection, lambda: first == second == pairs(range(30)))


def test_a_consumer_begins_where_it_asks_to(connection, channel, stream):
    fill(channel, stream, range(10))
    later = datetime.datetime.now() + datetime.timedelta(hours=1)
    starts = {
        "first": range(13), 4: range(4, 13), "next": range(10, 13), None: range(10, 13),
        "1h": range(13), datetime.datetime(2020, 1, 1): range(13), later: range(10, 13), 12: [12],
    }
    got = {start: read(connection, stream, start) for start in starts}
    fill(channel, stream, range(10, 13))
    expected = {start: pairs(numbers) for start, numbers in starts.items()}
    wait_until(connection, lambda: got == expected)


def test_last_begins_with_the_newest_message(connection, channel, stream):
    fill(channel, stream, range(10))
    got = read(connection, stream, "last")
    wait_until(connection, lambda: got[-1:] == pairs([9]))
    assert got == reference_differs(pairs([9]), reference=got)


@skip_where_reference_differs("it knows the times of chunks only")
def test_a_time_is_exact(connection, channel, stream):
    fill(channel, stream, range(3))
    time.sleep(2.1)
    fill(channel, stream, range(3, 6))
    got = read(connection, stream, "1s")
    wait_until(connection, lambda: got == pairs(range(3, 6)))


def test_an_ack_is_only_credit(connection, channel, stream):
    fill(channel, stream, range(10))
    held = read(connection, stream, "first", prefetch=4, ack=False)
    free = read(connection, stream, "first", prefetch=1)
    wait_until(connection, lambda: free == pairs(range(10)))
    settle(connection)
    assert held == pairs(range(4))
    again = read(connection, stream, "first")
    wait_until(connection, lambda: again == pairs(range(10)))


@skip_where_reference_differs("it takes nothing but acks")
def test_what_is_refused_is_not_delivered_again(connection, channel, stream):
    fill(channel, stream, range(5))
    reader = connection.channel()
    reader.basic_qos(prefetch_count=2)
    got = []

    def refuse(_, method, properties, body):
        got.append((int(body), method.redelivered))
        reader.basic_nack(method.delivery_tag, requeue=True)

    reader.basic_consume(stream, refuse, arguments={"x-stream-offset": "first"})
    wait_until(connection, lambda: len(got) == 5)
    settle(connection)
    assert got == [(number, False) for number in range(5)]


def test_other_headers_stay(connection, channel, stream):
    properties = pika.BasicProperties(
        headers={"a": 1, "x-stream-offset": 77, "b": "two"},
        content_type="text/plain", correlation_id="c", delivery_mode=1,
    )
    channel.confirm_delivery()
    channel.basic_publish("", stream, b"x", properties)
    got = []
    reader = connection.channel()
    reader.basic_qos(prefetch_count=2)
    reader.basic_consume(
        stream, lambda *message: got.append(message[2]), arguments={"x-stream-offset": "first"}
    )
    wait_until(connection, lambda: got)
    assert got[0].headers == {"a": 1, "b": "two", "x-stream-offset": 0}
    assert (got[0].content_type, got[0].correlation_id) == ("text/plain", "c")


@skip_where_reference_differs("it has no filters before 3.13")
def test_a_filter_is_exact(connection, channel, stream):
    for number, value in enumerate(["a", "b", None, "a", "c"]):
        headers = {"x-stream-filter-value": value} if value else None
        fill(channel, stream, [number], headers=headers)
    one = read(connection, stream, "first", filter="a")
    several = read(connection, stream, "first", filter=["a", "c"], match_unfiltered=True)
    wait_until(connection, lambda: len(one) == 2 and len(several) == 4)
    settle(connection)
    assert one == pairs([0, 3])
    assert several == pairs([0, 2, 3, 4])


@skip_where_reference_differs("it lets go of segments, not of single messages")
def test_old_messages_leave_and_offsets_stay(connection, channel):
    name = declare(channel, max_length_bytes=10_000)
    try:
        fill(channel, name, range(500))
        left = channel.queue_declare(name, passive=True).method.message_count
        assert 0 < left < 300
        got = read(connection, name, 0)
        wait_until(connection, lambda: got == pairs(range(500 - left, 500)))
    finally:
        channel.queue_delete(name)


def test_messages_leave_a_stream_when_they_are_too_old(connection, channel):
    name = declare(channel, max_age="1s")
    try:
        fill(channel, name, range(5))
        time.sleep(1.1)
        fill(channel, name, [5])
        if not ON_REFERENCE:  # There whole segments leave, and that is one.
            wait_until(connection, lambda: channel.queue_declare(name, passive=True).method.message_count == 1)
        got = read(connection, name, "last")
        wait_until(connection, lambda: got[-1:] == [(5, 5)])
    finally:
        channel.queue_delete(name)


@pytest.mark.parametrize(
    ("flags", "why"),
    [
        ({"durable": False}, "non-durable"),
        ({"durable": True, "exclusive": True}, "exclusive-owner"),
        ({"durable": True, "auto_delete": True}, "auto-delete"),
    ],
)
def test_a_stream_is_durable_and_for_all(channel, flags, why):
    name = fresh("stream")
    with pytest.raises(ChannelClosedByBroker) as caught:
        channel.queue_declare(name, arguments={"x-queue-type": "stream"}, **flags)
    expected = f"PRECONDITION_FAILED - invalid property '{why}' for queue '{name}' in vhost '/'"
    assert (caught.value.reply_code, caught.value.reply_text) == (406, expected)


@pytest.mark.parametrize(
    ("argument", "value", "why"),
    [
        ("x-max-age", "5", ": invalid_max_age"),
        ("x-max-age", "5Q", ": invalid_max_age"),
        ("x-stream-max-segment-size-bytes", -1, ": {value_negative,-1}"),
        ("x-max-length", 5, " of queue type rabbit_stream_queue"),
        ("x-dead-letter-exchange", "x", " of queue type rabbit_stream_queue"),
    ],
)
def test_arguments_of_streams(channel, argument, value, why):
    name = fresh("stream")
    with pytest.raises(ChannelClosedByBroker) as caught:
        channel.queue_declare(
            name, durable=True, arguments={"x-queue-type": "stream", argument: value}
        )
    expected = f"PRECONDITION_FAILED - invalid arg '{argument}' for queue '{name}' in vhost '/'{why}"
    assert (caught.value.reply_code, caught.value.reply_text) == (406, expected)


def test_a_consumer_needs_a_prefetch(channel, stream):
    with pytest.raises(ChannelClosedByBroker) as caught:
        channel.basic_consume(stream, print)
    queue = f"queue '{stream}' in vhost '/'"
    expected = reference_differs(f"stream {queue}", reference=f"'{queue}'")
    text = f"PRECONDITION_FAILED - consumer prefetch count is not set for {expected}"
    assert (caught.value.reply_code, caught.value.reply_text) == (406, text)


def test_a_consumer_acknowledges(connection, channel, stream):
    channel.basic_qos(prefetch_count=1)
    with pytest.raises(ConnectionClosedByBroker) as caught:
        channel.basic_consume(stream, print, auto_ack=True)
    kind = reference_differs("stream", reference="stream queues")
    text = (
        f"NOT_IMPLEMENTED - automatic acknowledgement not supported by {kind} "
        f"queue '{stream}' in vhost '/'"
    )
    assert (caught.value.reply_code, caught.value.reply_text) == (540, text)


@pytest.mark.parametrize("method", ["basic.get", "queue.purge"])
def test_a_stream_is_neither_polled_nor_purged(channel, stream, method):
    call = {"basic.get": channel.basic_get, "queue.purge": channel.queue_purge}[method]
    with pytest.raises(ConnectionClosedByBroker) as caught:
        call(stream)
    text = f"NOT_IMPLEMENTED - {method} not supported by stream queues queue '{stream}' in vhost '/'"
    assert (caught.value.reply_code, caught.value.reply_text) == (540, text)


def test_only_streams_have_offsets(channel, queue):
    with pytest.raises(ChannelClosedByBroker) as caught:
        channel.basic_consume(queue, print, arguments={"x-stream-offset": "first"})
    text = (
        f"PRECONDITION_FAILED - invalid arg 'x-stream-offset' for queue '{queue}' in vhost '/' "
        "of queue type rabbit_classic_queue"
    )
    assert (caught.value.reply_code, caught.value.reply_text) == (406, text)
