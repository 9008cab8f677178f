"""What a queue does when its arguments ask for more than first in, first out."""

import pika
import pytest
from pika.exceptions import ChannelClosedByBroker

from support.broker import fresh, polled, settle, skip_where_reference_differs, wait_until


def declare(channel, **arguments):
    """A queue with these arguments, written with underscores, which goes with its connection."""
    named = {"x-" + name.replace("_", "-"): value for name, value in arguments.items()}
    return channel.queue_declare(fresh(), exclusive=True, arguments=named).method.queue


def drain(channel, queue):
    """The bodies of everything in the queue, in the order in which they come."""
    return [body for _, body in polled(channel, queue)]


@pytest.mark.parametrize(
    ("argument", "value", "why"),
    [
        ("x-max-length", -1, "{value_negative,-1}"),
        ("x-max-length", "many", '"expected integer, got longstr"'),
        ("x-max-priority", 256, "{max_value_exceeded,256}"),
        ("x-expires", 0, "{value_zero,0}"),
        ("x-overflow", "burst", "invalid_overflow"),
        ("x-dead-letter-routing-key", "k", "routing_key_but_no_dlx_defined"),
    ],
)
def test_a_bad_argument_is_refused_with_the_reason(channel, argument, value, why):
    name = fresh()
    with pytest.raises(ChannelClosedByBroker) as caught:
        channel.queue_declare(name, exclusive=True, arguments={argument: value})
    assert caught.value.reply_code == 406
    expected = f"PRECONDITION_FAILED - invalid arg '{argument}' for queue '{name}' in vhost '/': {why}"
    assert caught.value.reply_text == expected


@pytest.mark.smoke
def test_a_higher_priority_overtakes(channel):
    queue = declare(channel, max_priority=5)
    channel.confirm_delivery()
    for body, priority in ((b"a", 1), (b"b", 5), (b"c", None), (b"d", 1), (b"e", 200)):
        channel.basic_publish("", queue, body, pika.BasicProperties(priority=priority))
    assert drain(channel, queue) == [b"b", b"e", b"a", b"d", b"c"]


def test_a_single_active_consumer_is_followed_by_the_next(connection, channel):
    queue = declare(channel, single_active_consumer=True)
    got = {"first": [], "second": []}
    for name in got:
        channel.basic_consume(queue, lambda *one, name=name: got[name].append(one[3]), consumer_tag=name)
    for body in (b"1", b"2"):
        channel.basic_publish("", queue, body)
    wait_until(connection, lambda: got["first"] == [b"1", b"2"])
    assert got["second"] == []
    channel.basic_cancel("first")
    channel.basic_publish("", queue, b"3")
    wait_until(connection, lambda: got["second"] == [b"3"])
    with pytest.raises(ChannelClosedByBroker) as caught:
        channel.basic_consume(queue, print, exclusive=True)
    assert caught.value.reply_code == 403


def test_a_quorum_queue_counts_deliveries_and_gives_up(connection, channel):
    queue = fresh()
    limited = {"x-queue-type": "quorum", "x-delivery-limit": 2}
    channel.queue_declare(queue, durable=True, arguments=limited)
    counts = []

    def give_back(_, method, properties, body):
        assert (properties.headers["own"], body) == (1, b"poison")
        counts.append(properties.headers.get("x-delivery-count"))
        channel.basic_reject(method.delivery_tag, requeue=True)

    try:
        channel.basic_publish("", queue, b"poison", pika.BasicProperties(headers={"own": 1}))
        channel.basic_consume(queue, give_back)
        wait_until(connection, lambda: len(counts) >= 3)
        settle(connection)
        assert counts == [None, 1, 2]
    finally:
        channel.queue_delete(queue)


@pytest.mark.parametrize("flaw", ["exclusive", "auto_delete", "transient"])
def test_a_quorum_queue_is_durable_and_shared(channel, flaw):
    properties = {"durable": flaw != "transient", flaw: True}
    properties.pop("transient", None)
    with pytest.raises(ChannelClosedByBroker) as caught:
        channel.queue_declare(fresh(), arguments={"x-queue-type": "quorum"}, **properties)
    assert caught.value.reply_code == 406
    assert "invalid property" in caught.value.reply_text


@skip_where_reference_differs("a setting of the whole node")
def test_a_channel_that_keeps_a_message_for_too_long_is_closed(connection, channel):
    queue = declare(channel, consumer_timeout=300)
    channel.basic_publish("", queue, b"slow")
    channel.basic_consume(queue, lambda *_: None)
    wait_until(connection, lambda: channel.is_closed)
    other = connection.channel()
    method, _, body = other.basic_get(queue, auto_ack=True)
    assert (body, method.redelivered) == (b"slow", True)


@skip_where_reference_differs("a plugin of a third party")
def test_a_repeated_message_is_dropped_and_confirmed(channel):
    queue = declare(channel, message_deduplication=True, cache_size=10)
    channel.confirm_delivery()
    for body, name in ((b"1", "a"), (b"2", "b"), (b"3", "a")):
        headers = {"x-deduplication-header": name}
        channel.basic_publish("", queue, body, pika.BasicProperties(headers=headers), mandatory=True)
    assert drain(channel, queue) == [b"1", b"2"]


@skip_where_reference_differs("a plugin of a third party")
def test_without_a_cache_a_message_is_dropped_while_one_of_the_same_is_there(channel):
    queue = declare(channel, message_deduplication=True)
    channel.confirm_delivery()

    def publish(body):
        properties = pika.BasicProperties(headers={"x-deduplication-header": "a"})
        channel.basic_publish("", queue, body, properties, mandatory=True)

    publish(b"waiting")
    publish(b"dropped")
    method, _, body = channel.basic_get(queue)
    assert body == b"waiting"
    publish(b"dropped: the first is not acknowledged")
    channel.basic_ack(method.delivery_tag)
    publish(b"the next")
    assert drain(channel, queue) == [b"the next"]


def test_a_priority_that_is_no_integer_is_refused(channel, queue):
    with pytest.raises(ChannelClosedByBroker) as caught:
        channel.basic_consume(queue, print, arguments={"x-priority": "high"})
    assert caught.value.reply_code == 406
    why = f"invalid arg 'x-priority' for queue '{queue}' in vhost '/': \"expected integer, got longstr\""
    assert caught.value.reply_text == f"PRECONDITION_FAILED - {why}"


def test_the_highest_priority_gets_everything_that_it_can_take(connection, channel, queue):
    channel.basic_qos(prefetch_count=2)
    got = {"low": [], "high": []}
    for name, priority in (("low", -1), ("high", 10)):
        channel.basic_consume(
            queue, lambda *one, name=name: got[name].append(one[3]), arguments={"x-priority": priority}
        )
    for body in (b"1", b"2", b"3"):
        channel.basic_publish("", queue, body)
    wait_until(connection, lambda: sum(map(len, got.values())) == 3)
    assert got == {"low": [b"3"], "high": [b"1", b"2"]}


def test_a_thousand_consumers_of_one_queue_take_turns(connection, channel, queue):
    got = []
    for number in range(1000):
        channel.basic_consume(queue, lambda *one, number=number: got.append(number), auto_ack=True)
    for _ in range(2000):
        channel.basic_publish("", queue, b"x")
    wait_until(connection, lambda: len(got) == 2000)
    assert got == 2 * list(range(1000))


def test_a_consumer_cancelled_with_messages_in_flight_loses_none(connection, channel, queue):
    got = []
    tag = channel.basic_consume(queue, lambda *one: got.append(one[3]))
    for number in range(1000):
        channel.basic_publish("", queue, b"%d" % number)
    wait_until(connection, lambda: got)
    channel.basic_cancel(tag)
    channel.close()
    assert sorted(map(int, drain(connection.channel(), queue))) == list(range(1000))
