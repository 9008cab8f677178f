"""Policies and operator policies: settings for queues and exchanges by their names, also while they are in use."""

import json

import pytest

from support.broker import bodies, wait_until


def policy(name, pattern, definition, **more):
    return {"name": name, "pattern": pattern, "definition": definition, **more}


def settings(*policies, operator=()):
    """JSON is YAML."""
    return json.dumps({"policies": policies, "operator_policies": operator})


FEW = policy("few", r"^few\.", {"max-length": 2}, apply_to="queues")


@pytest.fixture
def begin(own_broker):
    """Starts a broker with policies. Returns it and a channel in confirm mode."""
    opened = []

    def begin(*policies, operator=()):
        broker = own_broker(settings(*policies, operator=operator))
        opened.append(broker.connect())
        channel = opened[0].channel()
        channel.confirm_delivery()
        return broker, channel

    yield begin
    for connection in opened:
        connection.close()


def fill(channel, queue, count=4):
    for number in range(count):
        channel.basic_publish("", queue, b"%d" % number)


def kept(channel, queue):
    return channel.queue_declare(queue, passive=True).method.message_count


def test_a_policy_gives_its_settings_to_the_queues_that_it_names(begin):
    _, channel = begin(FEW)
    for queue in ("few.a", "more"):
        channel.queue_declare(queue)
        fill(channel, queue)
    assert bodies(channel, "few.a") == ["2", "3"]
    assert kept(channel, "more") == 4


def test_a_policy_dead_letters(begin):
    definition = {"max-length": 1, "message-ttl": 200, "dead-letter-exchange": "", "dead-letter-routing-key": "dead"}
    _, channel = begin(policy("dying", "^dying$", definition))
    for queue in ("dead", "dying"):
        channel.queue_declare(queue)
    fill(channel, "dying", 2)
    wait_until(channel.connection, lambda: kept(channel, "dead") == 2)
    deaths = [channel.basic_get("dead", auto_ack=True)[1].headers["x-death"][0]["reason"] for _ in range(2)]
    assert deaths == ["maxlen", "expired"]


def test_the_smaller_of_argument_and_policy_counts(begin):
    _, channel = begin(FEW)
    for length, queue in ((1, "few.1"), (3, "few.3")):
        channel.queue_declare(queue, arguments={"x-max-length": length})
        fill(channel, queue)
    assert (kept(channel, "few.1"), kept(channel, "few.3")) == (1, 2)


def test_the_policy_of_the_highest_priority_counts_alone(begin):
    higher = policy("higher", "a$", {"message-ttl": 60_000}, priority=1)
    _, channel = begin(FEW, higher)
    for queue in ("few.a", "few.b"):
        channel.queue_declare(queue)
        fill(channel, queue)
    assert (kept(channel, "few.a"), kept(channel, "few.b")) == (4, 2)


def test_an_operator_policy_limits_what_others_allow(begin):
    _, channel = begin(
        policy("plenty", ".*", {"max-length": 100, "overflow": "drop-head"}),
        operator=[policy("no more", ".*", {"max-length": 3})],
    )
    channel.queue_declare("a")
    channel.queue_declare("b", arguments={"x-max-length": 2})
    for queue in "ab":
        fill(channel, queue)
    assert (kept(channel, "a"), kept(channel, "b")) == (3, 2)


def test_a_policy_names_the_alternate_of_an_exchange(begin):
    _, channel = begin(policy("spare", "^x$", {"alternate-exchange": "amq.fanout"}, apply_to="exchanges"))
    channel.exchange_declare("x", "direct")
    channel.queue_declare("rest")
    channel.queue_bind("rest", "amq.fanout")
    channel.basic_publish("x", "nowhere", b"rest", mandatory=True)
    assert bodies(channel, "rest") == ["rest"]


def test_policies_change_while_queues_are_in_use(begin):
    broker, channel = begin()
    channel.queue_declare("few.a")
    fill(channel, "few.a")
    broker.reconfigure(settings(FEW))
    wait_until(channel.connection, lambda: kept(channel, "few.a") == 2)
    fill(channel, "few.a", 1)
    assert bodies(channel, "few.a") == ["3", "0"]
    broker.reconfigure(settings())
    fill(channel, "few.a")
    assert kept(channel, "few.a") == 4


def test_an_operator_policy_comes_and_goes_too(begin):
    broker, channel = begin(policy("plenty", ".*", {"max-length": 100}))
    channel.queue_declare("q")
    fill(channel, "q")
    plenty = policy("plenty", ".*", {"max-length": 100})
    broker.reconfigure(settings(plenty, operator=[policy("one", "^q$", {"max-length": 1})]))
    wait_until(channel.connection, lambda: kept(channel, "q") == 1)
    broker.reconfigure(settings(plenty))
    fill(channel, "q")
    assert kept(channel, "q") == 5
