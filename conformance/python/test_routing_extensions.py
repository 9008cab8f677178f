"""What RabbitMQ and its plug-ins add to routing: alternate exchanges, CC and BCC, exchanges that hash, pick, remember
or delay, and direct reply-to."""

import time
from collections import Counter

import pytest
from pika import BasicProperties
from pika.exceptions import ChannelClosedByBroker

from support.broker import bodies, connect, fresh, settle, skip_where_reference_differs, wait_until

REPLY_TO = "amq.rabbitmq.reply-to"

needs_plugin = skip_where_reference_differs("a plug-in that is switched off")
pytestmark = pytest.mark.confirms


def bound(channel, exchange, key=""):
    """An exclusive queue that is bound to `exchange`."""
    name = channel.queue_declare("", exclusive=True).method.queue
    channel.queue_bind(name, exchange, key)
    return name


def with_headers(**headers):
    return BasicProperties(headers={name.replace("_", "-"): value for name, value in headers.items()})


def test_what_finds_no_queue_goes_to_the_alternate_exchange(channel, exchange):
    spare = exchange("fanout")
    first = exchange("direct", arguments={"alternate-exchange": spare})
    wanted, rest = bound(channel, first, "k"), bound(channel, spare)
    channel.basic_publish(first, "k", b"wanted", mandatory=True)
    channel.basic_publish(first, "other", b"rest", mandatory=True)
    assert (bodies(channel, wanted), bodies(channel, rest)) == (["wanted"], ["rest"])


def test_another_alternate_is_another_exchange(channel, exchange):
    name = exchange("direct", arguments={"alternate-exchange": "a"})
    with pytest.raises(ChannelClosedByBroker) as refused:
        channel.exchange_declare(name, "direct", arguments={"alternate-exchange": "b"})
    assert refused.value.reply_text == (
        f"PRECONDITION_FAILED - inequivalent arg 'alternate-exchange' for exchange '{name}' in vhost '/': "
        "received 'b' but current is 'a'"
    )


def test_cc_and_bcc_name_further_queues(channel):
    to, cc, bcc = (channel.queue_declare("", exclusive=True).method.queue for _ in range(3))
    channel.basic_publish("", to, b"hello", with_headers(CC=[cc], BCC=[bcc, to]))
    assert [bodies(channel, queue) for queue in (cc, bcc)] == [["hello"], ["hello"]]
    _, properties, _ = channel.basic_get(to, auto_ack=True)
    assert properties.headers == {"CC": [cc]}
    assert bodies(channel, to) == []


def test_cc_has_to_be_an_array(channel, queue):
    with pytest.raises(ChannelClosedByBroker) as refused:
        channel.basic_publish("", queue, b"", with_headers(CC=queue))
    assert refused.value.reply_text == (
        'PRECONDITION_FAILED - invalid message: {unacceptable_type_in_header,"CC",longstr}'
    )


def test_headers_that_begin_with_x_count_only_where_asked(channel, exchange):
    name = exchange("headers")
    queues = {}
    for mode in ("all", "any", "all-with-x", "any-with-x"):
        queues[mode] = channel.queue_declare("", exclusive=True).method.queue
        channel.queue_bind(queues[mode], name, "", {"x-match": mode, "x-a": "1", "b": "2"})
    channel.basic_publish(name, "", b"both", with_headers(x_a="1", b="2"))
    channel.basic_publish(name, "", b"x only", with_headers(x_a="1"))
    channel.basic_publish(name, "", b"b only", with_headers(b="2"))
    assert bodies(channel, queues["all"]) == ["both", "b only"]
    assert bodies(channel, queues["any"]) == ["both", "b only"]
    assert bodies(channel, queues["all-with-x"]) == ["both"]
    assert bodies(channel, queues["any-with-x"]) == ["both", "x only", "b only"]


@needs_plugin
def test_a_consistent_hash_spreads_by_weight_and_keeps_keys_together(channel, exchange):
    name = exchange("x-consistent-hash")
    light, heavy = bound(channel, name, "1"), bound(channel, name, "3")
    for _ in range(2):
        for key in range(400):
            channel.basic_publish(name, f"key {key}", f"{key}".encode())
    first, second = Counter(bodies(channel, light)), Counter(bodies(channel, heavy))
    assert set(first.values()) == set(second.values()) == {2}, "both messages of a key go the same way"
    assert len(first) + len(second) == 400
    assert 60 <= len(first) <= 140


@needs_plugin
def test_a_consistent_hash_of_a_header(channel, exchange):
    name = exchange("x-consistent-hash", arguments={"hash-header": "customer"})
    queues = [bound(channel, name, "1") for _ in range(3)]
    for nth in range(30):
        channel.basic_publish(name, f"key {nth}", b"", with_headers(customer="the same"))
    assert sorted(len(bodies(channel, queue)) for queue in queues) == [0, 0, 30]


@needs_plugin
def test_a_weight_has_to_be_a_number(channel, exchange):
    name = exchange("x-consistent-hash")
    with pytest.raises(ChannelClosedByBroker) as refused:
        bound(channel, name, "heavy")
    assert refused.value.reply_text == 'PRECONDITION_FAILED - The binding key must be an integer: <<"heavy">>'


@needs_plugin
@pytest.mark.parametrize("kind", ["x-random", "x-modulus-hash"])
def test_each_message_goes_to_one_queue(channel, exchange, kind):
    name = exchange(kind)
    queues = [bound(channel, name) for _ in range(3)]
    for nth in range(90):
        channel.basic_publish(name, f"key {nth}", b"")
    counts = [len(bodies(channel, queue)) for queue in queues]
    assert sum(counts) == 90
    assert min(counts) > 10


@needs_plugin
def test_a_history_reaches_those_who_come_later(channel, exchange):
    name = exchange("x-recent-history", arguments={"x-recent-history-length": 2})
    for text in ("1", "2", "3"):
        channel.basic_publish(name, "", text.encode())
    channel.basic_publish(name, "", b"secret", with_headers(x_recent_history_no_store=True))
    queue = bound(channel, name)
    assert bodies(channel, queue) == ["2", "3"]


@needs_plugin
def test_a_delayed_message_comes_when_its_time_has_come(channel, exchange):
    name = exchange("x-delayed-message", arguments={"x-delayed-type": "direct"})
    queue = bound(channel, name, "k")
    began = time.monotonic()
    for delay in (600, 300):
        channel.basic_publish(name, "k", f"{delay}".encode(), with_headers(x_delay=delay), mandatory=True)
    channel.basic_publish(name, "k", b"now")
    assert bodies(channel, queue) == ["now"]
    arrived = []
    channel.basic_consume(
        queue, lambda _, __, properties, body: arrived.append((body, properties.headers, time.monotonic() - began)),
        auto_ack=True,
    )  # fmt: skip
    wait_until(channel.connection, lambda: len(arrived) == 2)
    assert [(body, headers) for body, headers, _ in arrived] == [
        (b"300", {"x-delay": -300}), (b"600", {"x-delay": -600}),
    ]  # fmt: skip
    for (_, _, after_s), delay_s in zip(arrived, (0.3, 0.6), strict=True):
        assert delay_s <= after_s


@skip_where_reference_differs("a plugin of a third party")
def test_an_exchange_drops_what_it_has_seen(channel, exchange):
    name = exchange("fanout", arguments={"x-message-deduplication": True, "x-cache-size": 10})
    queue = bound(channel, name)
    for body, seen in ((b"1", "a"), (b"2", "b"), (b"3", "a")):
        channel.basic_publish(name, "", body, with_headers(x_deduplication_header=seen))
    assert bodies(channel, queue) == ["1", "2"]


@needs_plugin
def test_a_delayed_exchange_needs_a_type(channel):
    with pytest.raises(ChannelClosedByBroker) as refused:
        channel.exchange_declare(fresh("x"), "x-delayed-message")
    assert refused.value.reply_text == (
        "PRECONDITION_FAILED - Invalid argument, 'x-delayed-type' must be an existing exchange type"
    )


def test_a_direct_reply_reaches_the_one_who_asked(connection, channel, queue):
    replies = []
    asking = connection.channel()
    asking.basic_consume(REPLY_TO, lambda _, method, __, body: replies.append((method, body)), auto_ack=True)
    asking.basic_publish("", queue, b"question", BasicProperties(reply_to=REPLY_TO, correlation_id="7"))
    wait_until(connection, lambda: channel.queue_declare(queue, passive=True).method.message_count == 1)
    _, properties, _ = channel.basic_get(queue, auto_ack=True)
    assert properties.reply_to.startswith(f"{REPLY_TO}.")
    assert properties.correlation_id == "7"
    with connect() as another:
        answering = another.channel()
        assert answering.queue_declare(properties.reply_to, passive=True).method.consumer_count == 1
        answering.basic_publish("", properties.reply_to, b"answer")
    wait_until(connection, lambda: len(replies) == 1)
    method, body = replies[0]
    assert (method.exchange, method.routing_key, body) == ("", properties.reply_to, b"answer")


def test_a_late_reply_is_dropped(connection, channel, queue):
    asking = connection.channel()
    tag = asking.basic_consume(REPLY_TO, lambda *_: pytest.fail("a reply without a requester"), auto_ack=True)
    asking.basic_publish("", queue, b"question", BasicProperties(reply_to=REPLY_TO))
    wait_until(connection, lambda: channel.queue_declare(queue, passive=True).method.message_count == 1)
    reply_to = channel.basic_get(queue, auto_ack=True)[1].reply_to
    asking.basic_cancel(tag)
    channel.basic_publish("", reply_to, b"too late")
    settle(connection)
    with pytest.raises(ChannelClosedByBroker) as refused:
        channel.queue_declare(reply_to, passive=True)
    assert refused.value.reply_text == f"NOT_FOUND - no queue '{reply_to}' in vhost '/'"


@pytest.mark.parametrize(
    ("mistake", "text"),
    [
        (lambda channel: channel.basic_consume(REPLY_TO, print), "reply consumer cannot acknowledge"),
        (lambda channel: [consume_replies(channel) for _ in range(2)], "reply consumer already set"),
        (lambda channel: channel.basic_publish("", "q", b"", BasicProperties(reply_to=REPLY_TO)),
         "fast reply consumer does not exist"),
    ],
)  # fmt: skip
def test_mistakes_with_direct_replies(channel, mistake, text):
    with pytest.raises(ChannelClosedByBroker) as refused:
        mistake(channel)
    assert refused.value.reply_text == f"PRECONDITION_FAILED - {text}"


def consume_replies(channel):
    channel.basic_consume(REPLY_TO, print, auto_ack=True)
