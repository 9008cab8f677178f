"""Fixtures: a connection and a channel of the test's own, closed behind it, and queues that go with them."""

import pytest

from support.broker import connect, fresh


@pytest.fixture
def connection():
    """A connection that is closed when the test ends, unless the test or the broker has."""
    opened = connect()
    yield opened
    if opened.is_open:
        opened.close()


@pytest.fixture
def channel(connection):
    """A channel on `connection`."""
    return connection.channel()


@pytest.fixture
def queue(channel):
    """The name of an empty exclusive queue, which goes with `connection`."""
    return channel.queue_declare(fresh(), exclusive=True).method.queue
