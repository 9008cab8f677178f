"""What looks like a mistake and is none."""

from pika import BasicProperties

from support.broker import USER, fresh


def test_deleting_what_is_missing_is_good(channel):
    assert channel.queue_delete(fresh()).method.message_count == 0
    channel.exchange_delete(fresh("x"))


def test_unbinding_what_is_not_bound_is_good(channel, queue):
    channel.queue_unbind(queue, "amq.direct", "never bound")
    channel.queue_unbind(fresh(), "amq.direct", "no such queue")
    channel.queue_unbind(queue, fresh("x"), "no such exchange")
    channel.exchange_unbind("amq.fanout", "amq.direct", "never bound")
    channel.exchange_unbind(fresh("x"), "amq.direct", "no such exchange")


def test_binding_twice_is_good_and_routes_once(channel, queue):
    key = fresh("key")
    channel.queue_bind(queue, "amq.direct", key)
    channel.queue_bind(queue, "amq.direct", key)
    channel.confirm_delivery()
    channel.basic_publish("amq.direct", key, b"once")
    assert channel.queue_declare(queue, passive=True).method.message_count == 1


def test_an_unroutable_message_without_mandatory_is_dropped(channel):
    channel.confirm_delivery()
    channel.basic_publish("", fresh(), b"dropped")
    channel.basic_publish("amq.fanout", fresh(), b"dropped")


def test_arguments_the_broker_does_not_know_make_no_difference(channel):
    name = fresh()
    channel.queue_declare(name, exclusive=True, arguments={"x-conformance": 1})
    channel.queue_declare(name, exclusive=True)
    channel.queue_declare(name, exclusive=True, arguments={"x-conformance": "other", "x-more": [1, {"a": None}]})


def test_acknowledging_all_of_nothing_is_good(channel):
    channel.basic_ack(0, multiple=True)
    channel.basic_nack(0, multiple=True)
    channel.basic_qos(prefetch_count=1)


def test_a_redeclare_that_agrees_is_good(channel):
    queue, exchange = fresh(), fresh("x")
    for _ in range(2):
        channel.queue_declare(queue, exclusive=True, durable=True, auto_delete=True)
        channel.exchange_declare(exchange, "topic", durable=False, auto_delete=True, internal=True)
    channel.exchange_delete(exchange)


def test_a_passive_declare_does_not_compare(channel):
    queue, exchange = fresh(), fresh("x")
    channel.queue_declare(queue, exclusive=True)
    channel.queue_declare(queue, passive=True, durable=True)
    channel.exchange_declare(exchange, "direct", auto_delete=True)
    channel.exchange_declare(exchange, "fanout", passive=True)
    channel.exchange_delete(exchange)


def test_one_s_own_user_id_is_good(channel, queue):
    channel.basic_publish("", queue, b"", BasicProperties(user_id=USER))
    assert channel.basic_get(queue, auto_ack=True)[1].user_id == USER


def test_durable_means_nothing_for_an_exclusive_queue(channel, queue):
    channel.queue_declare(queue, exclusive=True, durable=True)
    channel.queue_declare(queue, exclusive=True, durable=False)
