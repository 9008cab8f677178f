"""Routing: every type of exchange, bindings between exchanges, and exchanges that delete themselves."""

import pytest
from pika import BasicProperties
from pika.exceptions import ChannelClosedByBroker

from support.broker import bodies, fresh

pytestmark = pytest.mark.confirms


def exclusive_queue(channel):
    return channel.queue_declare("", exclusive=True).method.queue


def test_the_exchanges_that_always_exist(channel):
    for name in ("amq.direct", "amq.fanout", "amq.topic", "amq.headers", "amq.match"):
        channel.exchange_declare(name, passive=True)
    channel.exchange_declare("amq.topic", "topic", durable=True)


@pytest.mark.smoke
def test_default_routes_by_the_queue_s_name(channel):
    first, second = exclusive_queue(channel), exclusive_queue(channel)
    channel.basic_publish("", first, b"for the first")
    assert bodies(channel, first) == ["for the first"]
    assert bodies(channel, second) == []


@pytest.mark.smoke
def test_direct_routes_by_the_equal_key(channel, exchange):
    x, red, both = exchange("direct"), exclusive_queue(channel), exclusive_queue(channel)
    channel.queue_bind(red, x, "red")
    channel.queue_bind(both, x, "red")
    channel.queue_bind(both, x, "blue")
    for key in ("red", "blue", "redd", "RED", ""):
        channel.basic_publish(x, key, key.encode())
    assert bodies(channel, red) == ["red"]
    assert bodies(channel, both) == ["red", "blue"]


def test_an_empty_key_is_a_key(channel, exchange):
    x, queue = exchange("direct"), exclusive_queue(channel)
    channel.queue_bind(queue, x, "")
    channel.basic_publish(x, "", b"empty")
    channel.basic_publish(x, "other", b"other")
    assert bodies(channel, queue) == ["empty"]


@pytest.mark.smoke
def test_fanout_routes_to_all_whatever_the_key(channel, exchange):
    x, queues = exchange("fanout"), [exclusive_queue(channel) for _ in range(3)]
    for queue in queues:
        channel.queue_bind(queue, x, "ignored")
        channel.queue_bind(queue, x, "bound twice")
    channel.basic_publish(x, "anything", b"1")
    channel.basic_publish(x, "", b"2")
    assert [bodies(channel, queue) for queue in queues] == [["1", "2"]] * 3


TOPICS = [
    ("a.b.c", ["a.b.c"], ["a.b", "a.b.c.d", "A.b.c", "a.b.", "a..c"]),
    ("*", ["a", "abc", "#", "*"], ["a.b", "", "."]),
    ("#", ["", "a", "a.b", "a.b.c.d.e", ".", ".."], []),
    ("*.b", ["a.b", ".b"], ["b", "a.a.b", "a.b.c"]),
    ("a.*", ["a.b", "a."], ["a", "a.b.c", "b.a"]),
    ("a.*.c", ["a.b.c", "a..c"], ["a.c", "a.b.b.c"]),
    ("a.#", ["a", "a.b", "a.b.c", "a."], ["", "b", "ab", "b.a"]),
    ("#.a", ["a", "b.a", "c.b.a", ".a"], ["", "a.b", "ba"]),
    ("a.#.c", ["a.c", "a.b.c", "a.b.b.c", "a..c"], ["a", "c", "a.c.b", "c.a"]),
    ("#.b.#", ["b", "a.b", "b.c", "a.b.c", "b.b"], ["", "a", "a.c", "bb"]),
    ("*.#", ["a", "a.b", "a.b.c", "."], [""]),
    ("#.*", ["a", "a.b", "a.b.c"], [""]),
    ("*.*.#", ["a.b", "a.b.c", "."], ["", "a"]),
    ("#.#", ["", "a", "a.b"], []),
    ("a#", ["a#"], ["a", "ab", "a.b"]),
    ("a*.b", ["a*.b"], ["ax.b", "a.b"]),
    ("", [""], ["a", "."]),
]


@pytest.mark.parametrize("pattern, matching, others", TOPICS, ids=[pattern or "empty" for pattern, *_ in TOPICS])
def test_topic_matches_word_by_word(channel, exchange, pattern, matching, others):
    x, queue = exchange("topic"), exclusive_queue(channel)
    channel.queue_bind(queue, x, pattern)
    for key in matching + others:
        channel.basic_publish(x, key, key.encode())
    assert bodies(channel, queue) == matching


def test_topic_routes_once_however_many_patterns_match(channel, exchange):
    x, queue, rest = exchange("topic"), exclusive_queue(channel), exclusive_queue(channel)
    for pattern in ("#", "*.b", "a.*", "a.b", "a.#"):
        channel.queue_bind(queue, x, pattern)
    channel.queue_bind(rest, x, "a.#")
    channel.basic_publish(x, "a.b", b"once")
    assert bodies(channel, queue) == bodies(channel, rest) == ["once"]
    for pattern in ("#", "a.*", "a.b"):
        channel.queue_unbind(queue, x, pattern)
    channel.basic_publish(x, "a.c", b"second")
    channel.queue_unbind(queue, x, "a.#")
    channel.basic_publish(x, "a.c", b"third")
    assert bodies(channel, queue) == ["second"]
    assert bodies(channel, rest) == ["second", "third"]


HEADERS = [
    ("all are equal", {"x-match": "all", "a": 1, "b": "two"}, {"a": 1, "b": "two", "c": 3}, True),
    ("one of all differs", {"x-match": "all", "a": 1, "b": "two"}, {"a": 1, "b": "three"}, False),
    ("one of all is missing", {"x-match": "all", "a": 1, "b": "two"}, {"a": 1}, False),
    ("any is equal", {"x-match": "any", "a": 1, "b": "two"}, {"a": 2, "b": "two"}, True),
    ("none of any is equal", {"x-match": "any", "a": 1, "b": "two"}, {"a": 2}, False),
    ("all without x-match", {"a": 1, "b": 2}, {"a": 1}, False),
    ("all without x-match, equal", {"a": 1, "b": 2}, {"a": 1, "b": 2}, True),
    ("all of nothing", {"x-match": "all"}, {"a": 1}, True),
    ("any of nothing", {"x-match": "any"}, {"a": 1}, False),
    ("void asks for presence", {"x-match": "all", "a": None}, {"a": "anything"}, True),
    ("void, and absent", {"x-match": "all", "a": None}, {"b": 1}, False),
    ("text is no number", {"x-match": "all", "a": "1"}, {"a": 1}, False),
    ("bool", {"x-match": "all", "a": True}, {"a": True}, True),
    ("bool differs", {"x-match": "all", "a": True}, {"a": False}, False),
    ("x- headers do not count", {"x-match": "all", "x-other": 1, "a": 1}, {"a": 1}, True),
    ("no headers at all", {"x-match": "all", "a": 1}, None, False),
    ("no headers, nothing asked", {"x-match": "all"}, None, True),
]


@pytest.mark.parametrize("what, arguments, headers, matches", HEADERS, ids=[what for what, *_ in HEADERS])
def test_headers_match_by_value(channel, exchange, what, arguments, headers, matches):
    x, queue = exchange("headers"), exclusive_queue(channel)
    channel.queue_bind(queue, x, "key is ignored", arguments)
    channel.basic_publish(x, "", what.encode(), BasicProperties(headers=headers))
    assert bodies(channel, queue) == ([what] if matches else [])


def test_headers_bindings_differ_by_their_arguments(channel, exchange):
    x, queue = exchange("headers"), exclusive_queue(channel)
    for shape in ("round", "square"):
        channel.queue_bind(queue, x, "", {"x-match": "all", "shape": shape})
    channel.queue_unbind(queue, x, "", {"x-match": "all", "shape": "round"})
    for shape in ("round", "square"):
        channel.basic_publish(x, "", shape.encode(), BasicProperties(headers={"shape": shape}))
    assert bodies(channel, queue) == ["square"]


def test_a_bad_x_match_is_refused(channel, exchange):
    x, queue = exchange("headers"), exclusive_queue(channel)
    with pytest.raises(ChannelClosedByBroker) as caught:
        channel.queue_bind(queue, x, "", {"x-match": "most"})
    assert caught.value.reply_code == 406


def test_unbind_stops_routing(channel, exchange):
    x, queue = exchange("direct"), exclusive_queue(channel)
    channel.queue_bind(queue, x, "k")
    channel.basic_publish(x, "k", b"1")
    channel.queue_unbind(queue, x, "k")
    channel.basic_publish(x, "k", b"2")
    channel.queue_bind(queue, x, "k")
    channel.basic_publish(x, "k", b"3")
    assert bodies(channel, queue) == ["1", "3"]


def test_a_deleted_exchange_takes_its_bindings_along(channel):
    x, queue = fresh("x"), exclusive_queue(channel)
    channel.exchange_declare(x, "direct")
    channel.queue_bind(queue, x, "k")
    channel.exchange_delete(x)
    channel.exchange_declare(x, "direct")
    channel.basic_publish(x, "k", b"not bound any more")
    channel.exchange_delete(x)
    assert bodies(channel, queue) == []


def test_exchanges_bind_to_exchanges(channel, exchange):
    source, middle, last = exchange("topic"), exchange("fanout", internal=True), exchange("direct")
    queue, direct = exclusive_queue(channel), exclusive_queue(channel)
    channel.exchange_bind(middle, source, "news.#")
    channel.exchange_bind(last, middle)
    channel.queue_bind(queue, middle)
    channel.queue_bind(direct, last, "news.sport")
    for key in ("news.sport", "news.art", "weather"):
        channel.basic_publish(source, key, key.encode())
    assert bodies(channel, queue) == ["news.sport", "news.art"]
    assert bodies(channel, direct) == ["news.sport"], "the key stays the same on the way"
    channel.exchange_unbind(middle, source, "news.#")
    channel.basic_publish(source, "news.sport", b"late")
    assert bodies(channel, queue) == []


def test_a_queue_reached_on_several_paths_gets_one_copy(channel, exchange):
    source, left, right = exchange("fanout"), exchange("fanout"), exchange("fanout")
    queue = exclusive_queue(channel)
    for side in (left, right):
        channel.exchange_bind(side, source)
        channel.queue_bind(queue, side)
    channel.queue_bind(queue, source)
    channel.basic_publish(source, "", b"once")
    assert bodies(channel, queue) == ["once"]


def test_a_circle_of_exchanges_ends(channel, exchange):
    first, second = exchange("fanout"), exchange("fanout")
    queue = exclusive_queue(channel)
    channel.exchange_bind(first, second)
    channel.exchange_bind(second, first)
    channel.exchange_bind(first, first)
    channel.queue_bind(queue, second)
    channel.basic_publish(first, "", b"round")
    assert bodies(channel, queue) == ["round"]


def is_there(connection, name):
    """Whether the exchange exists."""
    try:
        connection.channel().exchange_declare(name, passive=True)
    except ChannelClosedByBroker as closed:
        assert closed.reply_code == 404
        return False
    return True


@pytest.mark.parametrize("ending", ["unbind", "delete the queue", "delete the destination"])
def test_an_auto_delete_exchange_goes_with_its_last_binding(connection, channel, exchange, ending):
    x, queue, destination = fresh("x"), exclusive_queue(channel), exchange("fanout")
    channel.exchange_declare(x, "direct", auto_delete=True)
    assert is_there(connection, x), "not before it has had one"
    channel.queue_bind(queue, x, "first")
    if ending == "delete the destination":
        channel.exchange_bind(destination, x, "second")
    else:
        channel.queue_bind(queue, x, "second")
    channel.queue_unbind(queue, x, "first")
    assert is_there(connection, x), "one binding is left"
    if ending == "unbind":
        channel.queue_unbind(queue, x, "second")
    elif ending == "delete the queue":
        channel.queue_delete(queue)
    else:
        channel.exchange_delete(destination)
    assert not is_there(connection, x)


def test_delete_if_unused_deletes_an_exchange_without_bindings(connection, channel):
    x, queue = fresh("x"), exclusive_queue(channel)
    channel.exchange_declare(x, "direct")
    channel.queue_bind(queue, x, "k")
    channel.queue_unbind(queue, x, "k")
    channel.exchange_delete(x, if_unused=True)
    assert not is_there(connection, x)


def test_ten_thousand_topic_bindings(channel, exchange):
    x, queue = exchange("topic"), exclusive_queue(channel)
    wanted = exclusive_queue(channel)
    for number in range(10_000 // 50):
        for word in range(50):
            channel.queue_bind(queue, x, f"region.{number}.*.{word}.#")
    channel.queue_bind(wanted, x, "region.*.hit.7.#")
    channel.basic_publish(x, "region.150.hit.7.more.words", b"found")
    channel.basic_publish(x, "region.150.hit.70", b"not bound")
    assert bodies(channel, queue) == bodies(channel, wanted) == ["found"]
