"""Connections and channels: logging in, heartbeats, limits, and closing in both directions."""

import time

import pika
import pytest
from pika.exceptions import ConnectionClosedByBroker, ProbableAccessDeniedError, ProbableAuthenticationError

from support.broker import HOST, PORT, connect, fresh, settle
from support.wire import HEARTBEAT, Wire, frame, opened


@pytest.mark.smoke
def test_connect_and_close():
    connection = connect()
    assert connection.is_open
    assert connection.basic_nack_supported
    assert connection.consumer_cancel_notify_supported
    assert connection.exchange_exchange_bindings_supported
    assert connection.publisher_confirms_supported
    connection.channel()
    connection.close()
    assert connection.is_closed


def parameters(**settings):
    return pika.ConnectionParameters(HOST, PORT, connection_attempts=1, **settings)


@pytest.mark.smoke
def test_a_wrong_password_is_refused():
    with pytest.raises(ProbableAuthenticationError) as caught:
        pika.BlockingConnection(parameters(credentials=pika.PlainCredentials("guest", "wrong")))
    assert "ACCESS_REFUSED" in str(caught.value)
    assert "Login was refused using authentication mechanism PLAIN" in str(caught.value)


@pytest.mark.smoke
def test_an_unknown_vhost_is_refused():
    with pytest.raises((ConnectionClosedByBroker, ProbableAccessDeniedError)) as caught:
        pika.BlockingConnection(parameters(virtual_host="no/such vhost"))
    assert "530" in str(caught.value)
    assert "NOT_ALLOWED - vhost no/such vhost not found" in str(caught.value)


@pytest.mark.parametrize("seconds", [0, 5, 60, 600])
def test_the_client_s_heartbeat_is_taken(seconds):
    with connect(heartbeat=seconds) as connection:
        connection.channel().queue_declare("", exclusive=True)


def test_an_idle_connection_lives_by_its_heartbeats():
    with connect(heartbeat=1) as connection:
        channel = connection.channel()
        settle(connection, 4)
        assert channel.queue_declare("", exclusive=True).method.queue


def test_the_broker_sends_heartbeats_when_it_has_nothing_to_say():
    with Wire() as wire:
        wire.handshake(heartbeat_s=2)
        started = time.monotonic()
        for _ in range(3):
            assert wire.read_frame() == (HEARTBEAT, 0, b"")
            wire.send(frame(HEARTBEAT, 0, b""))
        assert 1.5 < time.monotonic() - started < 7, "at most one interval apart"


def test_two_missed_heartbeats_close_the_connection():
    queue = fresh()
    with opened(heartbeat_s=1) as wire:
        wire.declare(1, queue, bits=4)
        started = time.monotonic()
        wire.expect_end()
        assert 1 < time.monotonic() - started
    with opened() as another:
        another.declare(1, queue, bits=4)


def test_any_traffic_counts_as_a_heartbeat():
    with opened(heartbeat_s=1) as wire:
        for _ in range(10):
            time.sleep(0.4)
            wire.declare(1, "", bits=4)


def test_without_heartbeats_silence_is_good():
    with opened(heartbeat_s=0) as wire:
        time.sleep(3)
        wire.declare(1, "", bits=4)


def test_channels_are_independent(connection):
    channels = [connection.channel() for _ in range(50)]
    queue = channels[0].queue_declare("", exclusive=True).method.queue
    for channel in channels[::2]:
        channel.close()
    for channel in channels[1::2]:
        channel.basic_publish("", queue, b"x")
        assert channel.basic_get(queue, auto_ack=True)[2] == b"x"


def test_a_closed_channel_s_number_is_free_at_once(connection):
    for _ in range(200):
        channel = connection.channel(7)
        channel.basic_qos(prefetch_count=1)
        channel.close()


def test_a_lower_channel_max_and_frame_max_are_taken():
    with connect(channel_max=10, frame_max=4096) as connection:
        assert len([connection.channel() for _ in range(10)]) == 10


def test_many_connections_at_once():
    connections = [connect() for _ in range(100)]
    for number, connection in enumerate(connections):
        channel = connection.channel()
        queue = channel.queue_declare("", exclusive=True).method.queue
        channel.basic_publish("", queue, b"%d" % number)
        assert channel.basic_get(queue, auto_ack=True)[2] == b"%d" % number
    for connection in connections:
        connection.close()


def test_connections_may_name_themselves():
    with connect(client_properties={"connection_name": "conformance", "nested": {"list": [1, None]}}) as connection:
        connection.channel()
