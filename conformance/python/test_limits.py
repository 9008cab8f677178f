"""Times to live, lengths, and dead letters: when a message leaves its queue without having been consumed."""

import time

import pika
import pytest
from pika.exceptions import ChannelClosedByBroker, NackError

from support.broker import fresh, reference_differs, settle, skip_where_reference_differs, wait_until


def dying(dead, **arguments):
    """Arguments of a queue whose dead letters go to the queue `dead`."""
    return {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": dead, **arguments}


def declare(channel, arguments):
    return channel.queue_declare(fresh(), exclusive=True, arguments=arguments).method.queue


def ready(channel, queue):
    return channel.queue_declare(queue, passive=True).method.message_count


def expiring(text, **more):
    return pika.BasicProperties(expiration=text, **more)


def reject_one(channel, queue):
    delivered = channel.basic_get(queue)[0]
    channel.basic_reject(delivered.delivery_tag, requeue=False)


def get(connection, channel, queue):
    """The next message of a queue, which may take a moment: (method, properties, body)."""
    got = []

    def arrives():
        got[:] = channel.basic_get(queue, auto_ack=True)
        return got[0] is not None

    wait_until(connection, arrives)
    return got


# -- times to live


@pytest.mark.smoke
def test_messages_leave_when_their_time_is_over(connection, channel):
    queue = declare(channel, {"x-message-ttl": 400})
    channel.confirm_delivery()
    channel.basic_publish("", queue, b"1")
    time.sleep(0.2)
    channel.basic_publish("", queue, b"2")
    assert ready(channel, queue) == 2
    wait_until(connection, lambda: ready(channel, queue) == 1)
    assert channel.basic_get(queue, auto_ack=True)[2] == b"2"


def test_the_shorter_time_counts_and_only_at_the_head(connection, channel):
    queue = declare(channel, {"x-message-ttl": 60000})
    channel.basic_publish("", queue, b"stays")
    channel.basic_publish("", queue, b"goes", expiring("50"))
    settle(connection)
    assert ready(channel, queue) == 2, "the head is in front of it"
    assert channel.basic_get(queue, auto_ack=True)[2] == b"stays"
    wait_until(connection, lambda: ready(channel, queue) == 0)


def test_a_time_of_zero_means_now_or_never(connection, channel, queue):
    channel.basic_publish("", queue, b"no consumer takes it", expiring("0"))
    wait_until(connection, lambda: ready(channel, queue) == 0)
    got = []
    channel.basic_consume(queue, lambda *message: got.append(message[3]), auto_ack=True)
    channel.basic_publish("", queue, b"taken", expiring("0"))
    wait_until(connection, lambda: got == [b"taken"])


def test_what_was_given_back_expires_as_promptly(connection, channel):
    queue = declare(channel, {"x-message-ttl": 300})
    channel.basic_publish("", queue, b"m")
    channel.basic_nack(channel.basic_get(queue)[0].delivery_tag)
    assert ready(channel, queue) == 1
    wait_until(connection, lambda: ready(channel, queue) == 0)


def test_an_unused_queue_expires_with_its_messages(connection, channel):
    queue = channel.queue_declare(fresh(), arguments={"x-expires": 400}).method.queue
    channel.basic_publish("", queue, b"lost")
    time.sleep(0.25)
    channel.queue_declare(queue, arguments={"x-expires": 400})
    time.sleep(0.25)
    assert ready(channel, queue) == 1, "the declare has renewed its lease"
    time.sleep(0.8)
    with pytest.raises(ChannelClosedByBroker) as caught:
        ready(channel, queue)
    assert caught.value.reply_code == 404


def test_a_consumer_keeps_a_queue_from_expiring(connection, channel):
    queue = channel.queue_declare(fresh(), arguments={"x-expires": 200}).method.queue
    channel.basic_consume(queue, lambda *_: None)
    settle(connection, 0.6)
    assert ready(channel, queue) == 0
    channel.queue_delete(queue)


# -- lengths


@pytest.mark.smoke
def test_the_oldest_leave_a_queue_that_is_too_long(channel):
    queue = declare(channel, {"x-max-length": 2})
    channel.confirm_delivery()
    for body in (b"1", b"2", b"3"):
        channel.basic_publish("", queue, body)
    assert [channel.basic_get(queue, auto_ack=True)[2] for _ in range(3)] == [b"2", b"3", None]


def test_bytes_of_bodies_count(channel):
    queue = declare(channel, {"x-max-length-bytes": 10})
    channel.confirm_delivery()
    for body in (b"12345", b"67890", b"x"):
        channel.basic_publish("", queue, body)
    assert [channel.basic_get(queue, auto_ack=True)[2] for _ in range(3)] == [b"67890", b"x", None]


@pytest.mark.smoke
def test_a_publisher_hears_that_a_full_queue_refuses(connection, channel, queue):
    full = declare(channel, {"x-max-length": 1, "x-overflow": "reject-publish"})
    for bound in (full, queue):
        channel.queue_bind(bound, "amq.direct", full)
    channel.confirm_delivery()
    channel.basic_publish("amq.direct", full, b"1")
    with pytest.raises(NackError):
        channel.basic_publish("amq.direct", full, b"2")
    assert channel.basic_get(full, auto_ack=True)[2] == b"1"
    channel.basic_publish("amq.direct", full, b"3")
    assert ready(channel, queue) == 3, "the other queue keeps its copies"


# -- dead letters


def check_death(headers, **expected):
    """The latest entry of x-death: every field, and the time as recent."""
    latest = dict(headers["x-death"][0])
    assert abs(latest.pop("time").timestamp() - time.time()) < 30 * 3600
    assert latest == expected


@pytest.mark.smoke
def test_a_refused_message_says_how_it_died(connection, channel, queue):
    source = declare(channel, {"x-dead-letter-exchange": "amq.fanout"})
    channel.queue_bind(queue, "amq.fanout")
    headers = {"own": 1, "CC": ["also"]}
    channel.basic_publish("", source, b"m", expiring("60000", headers=headers, correlation_id="7"))
    reject_one(channel, source)
    method, properties, body = get(connection, channel, queue)
    assert (method.exchange, method.routing_key, body) == ("amq.fanout", source, b"m")
    assert (properties.expiration, properties.correlation_id) == (None, "7")
    found = properties.headers
    check_death(
        found,
        **{"count": 1, "reason": "rejected", "queue": source, "exchange": "", "routing-keys": [source, "also"]},
        **{"original-expiration": "60000"},
    )
    assert (found["own"], found["CC"]) == (1, ["also"])
    assert [found[f"x-first-death-{what}"] for what in ("reason", "queue", "exchange")] == ["rejected", source, ""]
    last = [found.get(f"x-last-death-{what}") for what in ("reason", "queue", "exchange")]
    assert last == reference_differs(["rejected", source, ""], reference=[None, None, None])


def test_the_reason_is_told(connection, channel, queue):
    expired = declare(channel, dying(queue, **{"x-message-ttl": 10}))
    crowded = declare(channel, dying(queue, **{"x-max-length": 0}))
    refusing = declare(channel, dying(queue, **{"x-max-length": 0, "x-overflow": "reject-publish-dlx"}))
    for source, reason in ((expired, "expired"), (crowded, "maxlen"), (refusing, "maxlen")):
        channel.basic_publish("", source, b"m")
        headers = get(connection, channel, queue)[1].headers
        key = {"routing-keys": [source]}
        check_death(headers, count=1, reason=reason, queue=source, exchange="", **key)


def test_deaths_are_counted_by_queue_and_reason(connection, channel):
    one, two = fresh(), fresh()
    channel.queue_declare(one, exclusive=True, arguments=dying(two))
    channel.queue_declare(two, exclusive=True, arguments=dying(one))
    channel.basic_publish("", one, b"m")
    for queue in (one, two, one):
        wait_until(connection, lambda queue=queue: ready(channel, queue) == 1)
        reject_one(channel, queue)
    headers = get(connection, channel, two)[1].headers
    deaths = [(death["queue"], death["reason"], death["count"]) for death in headers["x-death"]]
    assert deaths == [(one, "rejected", 2), (two, "rejected", 1)]


def test_what_expires_in_a_circle_is_dropped(connection, channel):
    queue = fresh()
    channel.queue_declare(queue, exclusive=True, arguments=dying(queue, **{"x-message-ttl": 50}))
    channel.basic_publish("", queue, b"m")
    wait_until(connection, lambda: ready(channel, queue) == 0)
    settle(connection)
    assert ready(channel, queue) == 0


@skip_where_reference_differs("only quorum queues can wait, and look for the exchange once in three minutes")
def test_a_dead_letter_waits_for_a_queue(connection, channel):
    dlx, queue = fresh("x"), fresh()
    arguments = {
        "x-dead-letter-exchange": dlx, "x-dead-letter-strategy": "at-least-once", "x-overflow": "reject-publish",
        "x-queue-type": "quorum",
    }
    channel.queue_declare(queue, durable=True, arguments=arguments)
    try:
        channel.basic_publish("", queue, b"waits")
        reject_one(channel, queue)
        settle(connection)
        channel.exchange_declare(dlx, "fanout", auto_delete=True)
        dead = channel.queue_declare("", exclusive=True).method.queue
        channel.queue_bind(dead, dlx)
        wait_until(connection, lambda: ready(channel, dead) == 1)
    finally:
        channel.queue_delete(queue)


def test_retries_with_a_pause_are_possible(connection, channel):
    """The usual pattern: refused, waits in another queue, comes back."""
    work, pause = fresh(), fresh()
    channel.queue_declare(work, exclusive=True, arguments=dying(pause))
    channel.queue_declare(pause, exclusive=True, arguments=dying(work, **{"x-message-ttl": 50}))
    attempts = []

    def fail_twice(_, method, properties, __):
        deaths = (properties.headers or {}).get("x-death", [])
        attempts.append(sum(death["count"] for death in deaths if death["reason"] == "rejected"))
        if len(attempts) < 3:
            channel.basic_reject(method.delivery_tag, requeue=False)
        else:
            channel.basic_ack(method.delivery_tag)

    channel.basic_consume(work, fail_twice)
    channel.basic_publish("", work, b"m")
    wait_until(connection, lambda: len(attempts) == 3)
    assert attempts == [0, 1, 2]
