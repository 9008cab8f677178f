"""Queues: declaring, counting, purging, deleting, and who may see them for how long."""

import pytest
from pika.exceptions import ChannelClosedByBroker, ConsumerCancelled

from support.broker import connect, fresh, settle, wait_until


def is_there(connection, queue):
    """Whether the queue exists."""
    try:
        connection.channel().queue_declare(queue, passive=True)
    except ChannelClosedByBroker as closed:
        assert closed.reply_code == 404
        return False
    return True


def fill(channel, queue, count=3):
    """Publishes `count` messages and knows that they are in the queue."""
    channel.confirm_delivery()
    for number in range(count):
        channel.basic_publish("", queue, b"%d" % number)


def ignore(*_):
    """A consumer's callback that does nothing."""


@pytest.mark.smoke
def test_the_server_names_a_queue(channel):
    first, second = (channel.queue_declare("", exclusive=True).method.queue for _ in range(2))
    assert first.startswith("amq.gen-")
    assert first != second


def test_a_server_named_queue_cannot_be_redeclared_by_its_name(channel):
    name = channel.queue_declare("", exclusive=True).method.queue
    assert channel.queue_declare(name, passive=True).method.queue == name
    with pytest.raises(ChannelClosedByBroker) as caught:
        channel.queue_declare(name, exclusive=True)
    expected = f"ACCESS_REFUSED - queue name '{name}' contains reserved prefix 'amq.*'"
    assert (caught.value.reply_code, caught.value.reply_text) == (403, expected)


def test_the_empty_name_means_the_last_declared_queue(connection, channel):
    name = channel.queue_declare(fresh(), exclusive=True).method.queue
    channel.queue_bind("", "amq.direct", name)
    channel.confirm_delivery()
    channel.basic_publish("amq.direct", name, b"1")
    assert channel.basic_get("", auto_ack=True)[2] == b"1"
    channel.basic_publish("", name, b"2")
    assert channel.queue_purge("").method.message_count == 1
    got = []
    channel.basic_consume("", lambda *message: got.append(message[3]), auto_ack=True)
    channel.basic_publish("", name, b"3")
    wait_until(connection, lambda: got == [b"3"])
    channel.queue_delete("")
    assert not is_there(connection, name)


@pytest.mark.smoke
def test_declare_tells_how_many_messages_and_consumers_there_are(channel, queue):
    fill(channel, queue, 3)
    declared = channel.queue_declare(queue, passive=True).method
    assert (declared.queue, declared.message_count, declared.consumer_count) == (queue, 3, 0)
    assert channel.basic_get(queue)[0].message_count == 2, "left behind this one"
    assert channel.queue_declare(queue, exclusive=True).method.message_count == 2, "only those that are ready"
    channel.basic_qos(prefetch_count=1)
    channel.basic_consume(queue, ignore)
    declared = channel.queue_declare(queue, passive=True).method
    assert (declared.message_count, declared.consumer_count) == (1, 1)


@pytest.mark.smoke
def test_purge_takes_what_is_ready_and_counts_it(channel, queue):
    fill(channel, queue, 5)
    unacked = channel.basic_get(queue)[0].delivery_tag
    assert channel.queue_purge(queue).method.message_count == 4
    assert channel.queue_purge(queue).method.message_count == 0
    channel.basic_nack(unacked)
    assert channel.basic_get(queue)[2] == b"0", "what was delivered is not purged"


def test_delete_counts_what_is_lost(connection, channel):
    queue = channel.queue_declare(fresh()).method.queue
    fill(channel, queue, 4)
    assert channel.queue_delete(queue).method.message_count == 4
    assert not is_there(connection, queue)


def test_a_queue_declared_again_is_empty(channel):
    name = fresh()
    channel.queue_declare(name)
    fill(channel, name)
    channel.queue_bind(name, "amq.direct", name)
    channel.queue_delete(name)
    assert channel.queue_declare(name).method.message_count == 0
    channel.basic_publish("amq.direct", name, b"the binding is gone too")
    assert channel.queue_declare(name, passive=True).method.message_count == 0
    channel.queue_delete(name)


def test_delete_if_unused_and_empty_deletes_what_is_so(connection, channel):
    queue = channel.queue_declare(fresh()).method.queue
    channel.queue_delete(queue, if_unused=True, if_empty=True)
    assert not is_there(connection, queue)


@pytest.mark.parametrize(
    "options", [{"if_empty": True}, {"if_unused": True}, {"if_unused": True, "if_empty": True}], ids=str
)
def test_a_delete_with_a_condition_leaves_what_does_not_meet_it(connection, options):
    queue, keeper = fresh(), connection.channel()
    keeper.queue_declare(queue)
    fill(keeper, queue)
    keeper.basic_qos(prefetch_count=1)
    keeper.basic_consume(queue, ignore)
    with pytest.raises(ChannelClosedByBroker) as caught:
        connection.channel().queue_delete(queue, **options)
    assert caught.value.reply_code == 406
    assert keeper.queue_declare(queue, passive=True).method.message_count == 2
    keeper.queue_delete(queue)


@pytest.mark.parametrize("name", ["grüße 🐇", "n" * 255, "../../escape", "a/b", " ", "%2F", "null\x00inside"])
def test_any_name_of_at_most_255_bytes_is_good(connection, channel, name):
    channel.queue_declare(name, exclusive=True)
    fill(channel, name, 1)
    assert channel.basic_get(name, auto_ack=True)[2] == b"0"
    channel.queue_delete(name)
    assert not is_there(connection, name)


@pytest.mark.smoke
def test_an_exclusive_queue_goes_with_its_connection():
    name = fresh()
    for durable in (False, True, False):  # at once, and whatever the last one was
        with connect() as connection:
            channel = connection.channel()
            assert channel.queue_declare(name, exclusive=True, durable=durable).method.message_count == 0
            fill(channel, name)
    with connect() as connection:
        assert not is_there(connection, name)


def test_an_exclusive_queue_outlives_its_channel(connection, channel, queue):
    channel.close()
    assert is_there(connection, queue)


def test_anyone_may_publish_to_an_exclusive_queue(channel, queue):
    with connect() as another:
        fill(another.channel(), queue, 1)
    assert channel.basic_get(queue, auto_ack=True)[2] == b"0"


@pytest.mark.parametrize("ending", ["cancel", "close the channel", "close the connection"])
def test_an_auto_delete_queue_goes_with_its_last_consumer(connection, ending):
    queue = fresh()
    with connect() as another:
        channel = another.channel()
        channel.queue_declare(queue, auto_delete=True)
        assert is_there(connection, queue), "not before it has had one"
        tags = [channel.basic_consume(queue, ignore) for _ in range(2)]
        channel.basic_cancel(tags[0])
        assert is_there(connection, queue), "one consumer is left"
        if ending == "cancel":
            channel.basic_cancel(tags[1])
        elif ending == "close the channel":
            channel.close()
        else:
            another.close()
            # Not promised for the very moment of close-ok, other than for exclusive queues.
            wait_until(connection, lambda: not is_there(connection, queue))
        assert not is_there(connection, queue)


def test_a_get_is_no_consumer(connection, channel):
    queue = channel.queue_declare(fresh(), auto_delete=True).method.queue
    channel.basic_get(queue, auto_ack=True)
    assert is_there(connection, queue)
    channel.queue_delete(queue)


@pytest.mark.parametrize("by", ["another connection", "another channel"])
def test_a_consumer_is_told_when_its_queue_is_deleted(connection, channel, by):
    queue, cancelled = fresh(), []
    channel.add_on_cancel_callback(lambda method: cancelled.append(method.method.consumer_tag))
    channel.queue_declare(queue)
    tag = channel.basic_consume(queue, ignore)
    if by == "another connection":
        with connect() as another:
            another.channel().queue_delete(queue)
    else:
        connection.channel().queue_delete(queue)
    wait_until(connection, lambda: cancelled == [tag])
    channel.queue_declare("", exclusive=True)
    settle(connection)
    assert cancelled == [tag], "told once"


def test_consuming_by_generator_ends_when_the_queue_is_deleted(channel, queue):
    messages = channel.consume(queue, inactivity_timeout=5)
    with connect() as another:
        fill(another.channel(), queue, 1)
    assert next(messages)[2] == b"0"
    channel.queue_delete(queue)
    with pytest.raises((StopIteration, ConsumerCancelled)):
        next(messages)


def test_a_thousand_queues_on_one_connection(channel):
    names = [channel.queue_declare("", exclusive=True).method.queue for _ in range(1000)]
    assert len(set(names)) == 1000
    channel.confirm_delivery()
    for name in names[::100]:
        channel.basic_publish("", name, name.encode())
        assert channel.basic_get(name, auto_ack=True)[2] == name.encode()


def test_a_binding_may_have_arguments_that_mean_nothing(channel, queue):
    channel.queue_bind(queue, "amq.direct", queue, arguments={"x-conformance": 1})
    channel.confirm_delivery()
    channel.basic_publish("amq.direct", queue, b"routed")
    assert channel.basic_get(queue, auto_ack=True)[2] == b"routed"
    channel.queue_unbind(queue, "amq.direct", queue)
    channel.basic_publish("amq.direct", queue, b"another binding, without the argument, was removed")
    assert channel.basic_get(queue, auto_ack=True)[2] is not None
