"""What a program finds again after `kill -9`. How little is lost under load is for the crash tests."""

from pika import BasicProperties

from support.broker import bodies, wait_until


def opened(broker):
    channel = broker.connect().channel()
    channel.confirm_delivery()
    return channel


def test_confirmed_messages_and_what_was_declared_survive(own_broker):
    broker = own_broker("")
    channel = opened(broker)
    channel.exchange_declare("x", "topic", durable=True)
    channel.queue_declare("kept", durable=True)
    channel.queue_declare("transient")
    channel.queue_bind("kept", "x", "a.#")
    for number in range(3):
        channel.basic_publish("x", "a.b", b"%d" % number, BasicProperties(delivery_mode=2), mandatory=True)
    channel.basic_ack(channel.basic_get("kept")[0].delivery_tag)
    channel.queue_declare("kept", passive=True)
    # An ack is not answered; what is confirmed after it comes after it in the log.
    channel.basic_publish("x", "a", b"3", BasicProperties(delivery_mode=2), mandatory=True)
    broker.crash()
    channel = opened(broker)
    assert bodies(channel, "kept") == ["1", "2", "3"]
    channel.basic_publish("x", "a", b"again", mandatory=True)
    assert bodies(channel, "kept") == ["again"]
    assert channel.queue_declare("transient").method.message_count == 0


def test_a_delayed_message_survives(own_broker):
    broker = own_broker("")
    channel = opened(broker)
    channel.exchange_declare("later", "x-delayed-message", durable=True, arguments={"x-delayed-type": "fanout"})
    channel.queue_declare("q", durable=True)
    channel.queue_bind("q", "later")
    channel.basic_publish("later", "", b"late", BasicProperties(delivery_mode=2, headers={"x-delay": 1000}))
    broker.crash()
    channel = opened(broker)
    wait_until(channel.connection, lambda: channel.queue_declare("q", passive=True).method.message_count == 1)
    assert bodies(channel, "q") == ["late"]


def test_a_stream_and_a_transaction_survive(own_broker):
    broker = own_broker("")
    channel = broker.connect().channel()
    channel.tx_select()
    channel.queue_declare("log", durable=True, arguments={"x-queue-type": "stream"})
    channel.queue_declare("q", durable=True)
    for queue in ("log", "q"):
        channel.basic_publish("", queue, b"committed", BasicProperties(delivery_mode=2))
    channel.tx_commit()
    channel.basic_publish("", "q", b"not committed", BasicProperties(delivery_mode=2))
    broker.crash()
    channel = opened(broker)
    assert bodies(channel, "q") == ["committed"]
    channel.basic_qos(prefetch_count=1)
    got = []
    channel.basic_consume("log", lambda *one: got.append(one[3]), arguments={"x-stream-offset": "first"})
    wait_until(channel.connection, lambda: got == [b"committed"])
