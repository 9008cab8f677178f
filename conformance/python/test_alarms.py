"""What publishers hear when memory is short, and who may go on."""

from pika import BasicProperties

from support.broker import wait_until


def test_publishers_are_told_when_memory_is_short_and_when_there_is_room_again(own_broker):
    broker = own_broker("limits:\n  memory_high_bytes: 5000000\n")
    publisher, consumer = broker.connect(), broker.connect()
    told = []
    publisher.add_on_connection_blocked_callback(lambda _, frame: told.append(frame.method.reason))
    publisher.add_on_connection_unblocked_callback(lambda *_: told.append("room"))
    channel = publisher.channel()
    channel.queue_declare("q")
    # A message that is not kept on the disk needs memory.
    channel.basic_publish("", "q", bytes(10_000_000), BasicProperties(delivery_mode=1))
    wait_until(publisher, lambda: told)
    assert told == ["low on memory"]

    other = consumer.channel()
    method, _, body = other.basic_get("q")
    assert len(body) == 10_000_000, "consumers go on"
    other.basic_ack(method.delivery_tag)
    other.queue_declare("q", passive=True)
    wait_until(publisher, lambda: len(told) == 2)
    assert told == ["low on memory", "room"]
    channel.confirm_delivery()
    channel.basic_publish("", "q", b"small", mandatory=True)
    publisher.close()
    consumer.close()
