"""The 14 properties and the headers come back as they were sent."""

from datetime import datetime, timezone
from decimal import Decimal

import pytest
from pika import BasicProperties

PROPERTIES = {
    "content_type": "application/json",
    "content_encoding": "gzip",
    "headers": {"x-custom": "value"},
    "delivery_mode": 2,
    "priority": 5,
    "correlation_id": "correlation-123",
    "reply_to": "reply-queue",
    "expiration": "60000",
    "message_id": "msg-456",
    "timestamp": 1609459200,
    "type": "order.created",
    "user_id": "guest",
    "app_id": "conformance",
    "cluster_id": "cluster-1",
}


def sent_and_got(channel, queue, properties, body=b"body"):
    channel.basic_publish("", queue, body, properties)
    _, got, got_body = channel.basic_get(queue, auto_ack=True)
    assert got_body == body
    return got


@pytest.mark.smoke
def test_all_14_together(channel, queue):
    properties = BasicProperties(**PROPERTIES)
    assert sent_and_got(channel, queue, properties) == properties


@pytest.mark.parametrize("name", PROPERTIES)
def test_each_alone(channel, queue, name):
    properties = BasicProperties(**{name: PROPERTIES[name]})
    assert sent_and_got(channel, queue, properties) == properties


@pytest.mark.parametrize("name", PROPERTIES)
def test_all_but_one(channel, queue, name):
    properties = BasicProperties(**{other: value for other, value in PROPERTIES.items() if other != name})
    assert sent_and_got(channel, queue, properties) == properties


def test_none(channel, queue):
    assert sent_and_got(channel, queue, None) == BasicProperties()
    assert sent_and_got(channel, queue, BasicProperties(), b"") == BasicProperties()


def test_empty_and_longest_texts(channel, queue):
    for text in ("", "x" * 255, "grüße 🐇"):
        properties = BasicProperties(content_type=text, correlation_id=text, app_id=text)
        assert sent_and_got(channel, queue, properties) == properties


def test_bounds_of_the_numbers(channel, queue):
    for priority, mode, timestamp in ((0, 1, 0), (255, 2, 2**63 - 1)):
        properties = BasicProperties(priority=priority, delivery_mode=mode, timestamp=timestamp)
        assert sent_and_got(channel, queue, properties) == properties


HEADERS = {
    "void": None,
    "true": True,
    "false": False,
    "small": 7,
    "negative": -(2**31),
    "int": 2**31 - 1,
    "long": 2**40,
    "long least": -(2**63),
    "text": "grüße 🐇",
    "empty text": "",
    "bytes": b"\x00\xff\x00",
    "decimal": Decimal("3.1415"),
    "time": datetime(2021, 1, 1, tzinfo=timezone.utc),
    "array": [1, "two", None, [True, {"deep": -1}]],
    "empty array": [],
    "table": {"a": 1, "b": {"c": {"d": "deep"}}},
    "empty table": {},
    "k" * 128: "a key as long as pika allows",
}


def test_headers_of_every_type_that_pika_has(channel, queue):
    assert sent_and_got(channel, queue, BasicProperties(headers=HEADERS)).headers == HEADERS


@pytest.mark.parametrize("name", HEADERS)
def test_a_header_of_each_type_alone(channel, queue, name):
    headers = {name: HEADERS[name]}
    assert sent_and_got(channel, queue, BasicProperties(headers=headers)).headers == headers


def test_many_headers(channel, queue):
    """More than fits into a frame of the least size: here they may fill up to frame_max."""
    headers = {f"header-{number}": f"value {number}" for number in range(3000)}
    assert sent_and_got(channel, queue, BasicProperties(headers=headers)).headers == headers


def test_headers_are_the_same_for_every_queue_and_after_requeue(channel):
    properties = BasicProperties(**(PROPERTIES | {"headers": HEADERS}))
    queues = [channel.queue_declare("", exclusive=True).method.queue for _ in range(2)]
    for name in queues:
        channel.queue_bind(name, "amq.fanout")
    channel.confirm_delivery()
    channel.basic_publish("amq.fanout", "key", b"x", properties)
    for name in queues:
        tag, first, _ = channel.basic_get(name)
        channel.basic_nack(tag.delivery_tag, requeue=True)
        again = channel.basic_get(name, auto_ack=True)[1]
        assert first == again == properties
