"""Which broker the tests speak to, and where it may differ from the one that they describe.

COURSER_TEST_URI    the broker's address, amqp://user:password@host:port/vhost
COURSER_TEST_BROKER its product and version as it announces them; the runner asks it and sets this
"""

import os
import uuid

import pika
import pytest

URI = os.environ.get("COURSER_TEST_URI", "amqp://guest:guest@127.0.0.1:5672/%2F")
PARAMETERS = pika.URLParameters(URI)
HOST, PORT = PARAMETERS.host, PARAMETERS.port
USER, PASSWORD = PARAMETERS.credentials.username, PARAMETERS.credentials.password

ON_REFERENCE = os.environ.get("COURSER_TEST_BROKER", "").startswith("RabbitMQ 3.")
"""True against RabbitMQ 3: the suite was checked against it, but describes the behaviour of 4.3."""


def reference_differs(expected, *, reference):
    """The value to expect: `expected`, but `reference` where the broker under test is RabbitMQ 3."""
    return reference if ON_REFERENCE else expected


def skip_where_reference_differs(why):
    """Marks a test that RabbitMQ 3 cannot pass, because 4.3, or this project on purpose, differs."""
    return pytest.mark.skipif(ON_REFERENCE, reason=f"the reference differs: {why}")


def fresh(kind="q"):
    """A name that no other test and no earlier run has used."""
    return f"conformance.{kind}.{uuid.uuid4().hex[:12]}"


def connect(**settings):
    """A blocking pika connection to the broker under test; `settings` are pika's own parameters."""
    parameters = pika.URLParameters(URI)
    parameters.socket_timeout = parameters.stack_timeout = 20
    parameters.connection_attempts = 1
    for name, value in settings.items():
        setattr(parameters, name, value)
    return pika.BlockingConnection(parameters)


def wait_until(connection, condition, timeout_s=10):
    """Serves the connection's events until `condition()` holds; fails when it does not in time."""
    step_s = 0.05
    for _ in range(int(timeout_s / step_s)):
        if condition():
            return
        connection.process_data_events(time_limit=step_s)
    assert condition(), f"not within {timeout_s} s"


def settle(connection, quiet_s=0.3):
    """Serves events for a moment, for tests that something does *not* happen."""
    connection.process_data_events(time_limit=quiet_s)


def polled(channel, queue):
    """Takes all messages out of the queue: (method, body) of each."""
    while True:
        method, _, body = channel.basic_get(queue, auto_ack=True)
        if method is None:
            return
        yield method, body


def bodies(channel, queue):
    """Takes all messages out of the queue, and returns their texts."""
    return [body.decode() for _, body in polled(channel, queue)]
