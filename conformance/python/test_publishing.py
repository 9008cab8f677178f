"""Publishing: confirms, what cannot be routed, and bodies of every size."""

import pytest
from pika import BasicProperties
from pika.exceptions import ChannelClosedByBroker, UnroutableError

from support.broker import connect, fresh, wait_until
from support.wire import METHOD, confirmed_by, opened, publish

MIB = 1024 * 1024


@pytest.mark.smoke
def test_a_confirmed_message_is_in_the_queue(channel, queue):
    channel.confirm_delivery()
    for number in range(100):
        channel.basic_publish("", queue, b"%d" % number)
        assert channel.queue_declare(queue, passive=True).method.message_count == number + 1


@pytest.mark.smoke
def test_a_mandatory_message_without_a_queue_comes_back(channel):
    channel.confirm_delivery()
    properties = BasicProperties(content_type="text/plain", headers={"kept": True}, message_id="7")
    with pytest.raises(UnroutableError) as caught:
        channel.basic_publish("amq.direct", "nowhere", b"body", properties, mandatory=True)
    (returned,) = caught.value.messages
    assert (returned.method.reply_code, returned.method.reply_text) == (312, "NO_ROUTE")
    assert (returned.method.exchange, returned.method.routing_key) == ("amq.direct", "nowhere")
    assert (returned.body, returned.properties) == (b"body", properties)
    channel.basic_publish("", channel.queue_declare("", exclusive=True).method.queue, b"x", mandatory=True)


def test_a_return_comes_without_confirms_too(connection, channel):
    returned = []
    channel.add_on_return_callback(lambda *message: returned.append(message[3]))
    channel.basic_publish("", fresh(), b"", mandatory=True)
    channel.basic_publish("amq.fanout", "", bytes(300_000), mandatory=True)
    wait_until(connection, lambda: len(returned) == 2)
    assert [len(body) for body in returned] == [0, 300_000]


def test_the_return_precedes_the_confirm_of_its_message():
    """Among routable messages, whose confirms may be put together: never over a return that is to come."""
    with opened() as wire:
        queue = wire.select_confirms().declare(1, "", bits=4)[0]
        pair = publish(1, "", queue, b"x", bits=1) + publish(1, "", "no.such.queue", b"y", bits=1)
        wire.send(pair * 50)
        outstanding, returned = set(range(1, 101)), 0
        while outstanding:
            received = wire.next_frame()
            if received.kind != METHOD:
                continue  # the content of a return
            if received.method == "basic.return":
                returned += 1
                continue
            assert received.method == "basic.ack"
            unroutable = [tag for tag in confirmed_by(received, outstanding) if tag % 2 == 0]
            assert returned >= max(unroutable, default=0) // 2, "it has come back, and all before it"
        assert returned == 50


def test_confirms_of_unroutable_messages_come_too(channel):
    channel.confirm_delivery()
    for _ in range(10):
        channel.basic_publish("amq.direct", fresh(), b"dropped")


def test_confirms_are_counted_for_each_channel(connection):
    channels = [connection.channel() for _ in range(3)]
    queue = channels[0].queue_declare("", exclusive=True).method.queue
    for channel in channels:
        channel.confirm_delivery()
    for round_number in range(1, 11):
        for channel in channels:
            channel.basic_publish("", queue, b"x")
        assert channels[0].queue_declare(queue, passive=True).method.message_count == 3 * round_number


def test_selecting_confirms_twice_is_good(queue):
    with opened() as wire:
        wire.select_confirms().select_confirms()
        wire.publish_confirmed(1, "", b"x")


SIZES = [0, 1, 2, 255, 4087, 4088, 4089, 8176, 65_536, 131_063, 131_064, 131_065, MIB, 10 * MIB]


def patterned(size):
    """Bytes in which a lost or doubled piece shows."""
    return (bytes(range(251)) * (size // 251 + 1))[:size]


@pytest.mark.parametrize("size", SIZES)
def test_a_body_of_any_size_comes_back(channel, queue, size):
    channel.confirm_delivery()
    body = patterned(size)
    channel.basic_publish("", queue, body)
    assert channel.basic_get(queue, auto_ack=True)[2] == body
    got = []
    channel.basic_consume(queue, lambda *message: got.append(message[3]), auto_ack=True)
    channel.basic_publish("", queue, body)
    wait_until(channel.connection, lambda: got)
    assert got == [body]


@pytest.mark.parametrize("frame_max", [4096, 5000, 131072])
@pytest.mark.parametrize("size", [0, 4088, 100_000, MIB])
def test_a_body_is_split_at_the_frame_size_of_either_side(queue, channel, frame_max, size):
    with connect(frame_max=frame_max) as small:
        sender = small.channel()
        sender.confirm_delivery()
        sender.basic_publish("amq.direct", "unbound", patterned(size))
        name = sender.queue_declare("", exclusive=True).method.queue
        channel.confirm_delivery()
        channel.basic_publish("", name, patterned(size))
        assert sender.basic_get(name, auto_ack=True)[2] == patterned(size)
        sender.basic_publish("", queue, patterned(size))
    assert channel.basic_get(queue, auto_ack=True)[2] == patterned(size)


def test_the_largest_message_is_16_mib(channel, queue):
    channel.confirm_delivery()
    channel.basic_publish("", queue, bytes(16 * MIB))
    assert len(channel.basic_get(queue, auto_ack=True)[2]) == 16 * MIB


def test_a_message_that_is_too_large_costs_only_the_channel(connection, channel, queue):
    with pytest.raises(ChannelClosedByBroker) as caught:
        channel.basic_publish("", queue, bytes(20 * MIB))
        channel.basic_qos()
    assert caught.value.reply_code == 406
    again = connection.channel()
    again.confirm_delivery()
    again.basic_publish("", queue, b"small")
    assert again.basic_get(queue, auto_ack=True)[2] == b"small"


def test_large_and_small_bodies_keep_their_order(channel, queue):
    sizes = [0, 200_000, 1, 4096, 300_000, 0, 20_000, 131_064] * 5
    for size in sizes:
        channel.basic_publish("", queue, patterned(size))
    got = []
    channel.basic_consume(queue, lambda *message: got.append(message[3]), auto_ack=True)
    wait_until(channel.connection, lambda: len(got) == len(sizes))
    assert [len(body) for body in got] == sizes
    assert all(body == patterned(len(body)) for body in got)


def test_one_message_goes_to_many_queues(channel):
    queues = [channel.queue_declare("", exclusive=True).method.queue for _ in range(50)]
    key = fresh("key")
    for name in queues:
        channel.queue_bind(name, "amq.direct", key)
    channel.confirm_delivery()
    channel.basic_publish("amq.direct", key, patterned(150_000))
    for name in queues:
        method, _, body = channel.basic_get(name, auto_ack=True)
        assert (method.exchange, method.routing_key, body) == ("amq.direct", key, patterned(150_000))
