"""Vhosts: what is in one is not in another, and neither connections nor queues go above their limits."""

import pytest
from pika.exceptions import ChannelClosedByBroker, ConnectionClosedByBroker, ProbableAccessDeniedError

from support.broker import bodies

SETTINGS = """
vhosts:
  - name: orders
  - name: small
    max_connections: 2
    max_queues: 2
"""


@pytest.fixture
def broker(own_broker):
    return own_broker(SETTINGS)


def test_vhosts_share_no_names(broker):
    with broker.connect() as one, broker.connect("orders") as other:
        ours, theirs = one.channel(), other.channel()
        for channel in (ours, theirs):
            channel.confirm_delivery()
            channel.exchange_declare("x", "fanout")
            channel.queue_declare("q")
            channel.queue_bind("q", "x")
        ours.basic_publish("x", "", b"ours", mandatory=True)
        theirs.basic_publish("", "q", b"theirs", mandatory=True)
        assert (bodies(ours, "q"), bodies(theirs, "q")) == (["ours"], ["theirs"])
        theirs.queue_delete("q")
        theirs.exchange_delete("x")
        ours.basic_publish("x", "", b"still there", mandatory=True)
        assert bodies(ours, "q") == ["still there"]
        with pytest.raises(ChannelClosedByBroker) as refused:
            theirs.basic_get("q")
        assert refused.value.reply_text == "NOT_FOUND - no queue 'q' in vhost 'orders'"


def test_one_connection_more_than_a_vhost_may_have(broker):
    first, second = broker.connect("small"), broker.connect("small")
    with pytest.raises((ProbableAccessDeniedError, ConnectionClosedByBroker)) as refused:
        broker.connect("small")
    why = "access to vhost 'small' refused for user 'guest': connection limit (2) is reached"
    assert why in str(refused.value)
    broker.connect("orders").close()
    second.close()
    broker.connect("small").close()
    first.close()


def test_one_queue_more_than_a_vhost_may_have(broker):
    with broker.connect("small") as connection:
        channel = connection.channel()
        channel.queue_declare("1")
        channel.queue_declare("2", exclusive=True)
        channel.queue_declare("2", exclusive=True)
        with pytest.raises(ChannelClosedByBroker) as refused:
            connection.channel().queue_declare("3")
        why = "cannot declare queue '3': queue limit in vhost 'small' (2) is reached"
        assert (refused.value.reply_code, refused.value.reply_text) == (406, f"PRECONDITION_FAILED - {why}")
        channel.queue_delete("1")
        connection.channel().queue_declare("3")


def test_limits_change_while_the_vhost_is_in_use(broker):
    with broker.connect("small") as connection:
        channel = connection.channel()
        for name in "12":
            channel.queue_declare(name)
        broker.reconfigure(SETTINGS.replace("max_queues: 2", "max_queues: 3"))
        channel.queue_declare("3")
        broker.reconfigure(SETTINGS.replace("max_queues: 2", "max_queues: 1"))
        assert channel.queue_declare("3").method.message_count == 0, "what is there stays"
        with pytest.raises(ChannelClosedByBroker):
            channel.queue_declare("4")
