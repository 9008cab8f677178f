"""Transactions: publishes and acks that count when they are committed, all together."""

import pytest
from pika.exceptions import ChannelClosedByBroker

from support.broker import bodies


@pytest.fixture
def channel(connection):
    """A channel in tx mode."""
    opened = connection.channel()
    opened.tx_select()
    return opened


@pytest.fixture
def queues(channel):
    return [channel.queue_declare("", exclusive=True).method.queue for _ in range(2)]


def ready(channel, queue):
    return channel.queue_declare(queue, passive=True).method.message_count


def test_publishes_come_with_the_commit(connection, channel, queues):
    for queue in queues:
        channel.basic_publish("", queue, b"1")
        channel.basic_publish("", queue, b"2")
    other = connection.channel()
    assert [ready(other, queue) for queue in queues] == [0, 0]
    channel.tx_commit()
    assert [bodies(other, queue) for queue in queues] == [["1", "2"], ["1", "2"]]


def test_a_rollback_forgets_publishes(connection, channel, queues):
    channel.basic_publish("", queues[0], b"forgotten")
    channel.tx_rollback()
    channel.basic_publish("", queues[0], b"kept")
    channel.tx_commit()
    assert bodies(connection.channel(), queues[0]) == ["kept"]


def test_acks_count_with_the_commit(connection, channel, queues):
    queue = queues[0]
    channel.basic_publish("", queue, b"1")
    channel.basic_publish("", queue, b"2")
    channel.tx_commit()
    for _ in range(2):
        channel.basic_ack(channel.basic_get(queue)[0].delivery_tag)
    channel.tx_rollback()
    channel.close()
    other = connection.channel()
    assert bodies(other, queue) == ["1", "2"], "no ack was committed"
    other.close()


def test_an_ack_and_a_publish_move_a_message(connection, channel, queues):
    source, destination = queues
    channel.basic_publish("", source, b"moved")
    channel.tx_commit()
    method, _, body = channel.basic_get(source)
    channel.basic_publish("", destination, body)
    channel.basic_ack(method.delivery_tag)
    channel.tx_commit()
    channel.close()
    other = connection.channel()
    assert (bodies(other, source), bodies(other, destination)) == ([], ["moved"])


def test_a_rejection_counts_with_the_commit(connection, channel, queues):
    queue = queues[0]
    channel.basic_publish("", queue, b"back")
    channel.tx_commit()
    channel.basic_reject(channel.basic_get(queue)[0].delivery_tag, requeue=True)
    assert ready(channel, queue) == 0
    channel.tx_commit()
    assert ready(channel, queue) == 1


def test_what_is_not_committed_goes_with_the_channel(connection, channel, queues):
    channel.basic_publish("", queues[0], b"lost")
    channel.close()
    assert ready(connection.channel(), queues[0]) == 0


def test_an_unknown_tag_is_refused_at_once(channel, queues):
    with pytest.raises(ChannelClosedByBroker) as refused:
        channel.basic_ack(99)
        channel.queue_declare(queues[0], passive=True)
    assert refused.value.reply_text == "PRECONDITION_FAILED - unknown delivery tag 99"
