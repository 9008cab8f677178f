"""Fixtures: a connection and a channel of the test's own, closed behind it, and queues that go with them."""

import os

import pytest

from support.broker import connect, fresh
from support.own_broker import OwnBroker


@pytest.fixture
def connection():
    """A connection that is closed when the test ends, unless the test or the broker has."""
    opened = connect()
    yield opened
    if opened.is_open:
        opened.close()


@pytest.fixture
def channel(connection, request):
    """A channel on `connection`. Where tests are marked with `confirms`, a publish returns when the message is where it
    should be."""
    opened = connection.channel()
    if request.node.get_closest_marker("confirms"):
        opened.confirm_delivery()
    return opened


@pytest.fixture
def queue(channel):
    """The name of an empty exclusive queue, which goes with `connection`."""
    return channel.queue_declare(fresh(), exclusive=True).method.queue


@pytest.fixture
def exchange(channel):
    """Declares exchanges of the type asked for; they are deleted behind the test."""
    made = []

    def make(kind, **options):
        made.append(fresh(f"x.{kind}"))
        channel.exchange_declare(made[-1], kind, **options)
        return made[-1]

    yield make
    with connect() as another:
        for name in made:
            another.channel().exchange_delete(name)


@pytest.fixture
def own_broker(tmp_path):
    """Starts a broker with the settings that it is given (YAML); its log is shown where the test fails."""
    if "COURSER_TEST_BINARY" not in os.environ:
        pytest.skip("COURSER_TEST_BINARY names no broker that could be started with other settings")
    started = []

    def start(settings):
        started.append(OwnBroker(tmp_path, settings))
        return started[-1]

    yield start
    for broker in started:
        broker.stop()
        print(broker.log())
