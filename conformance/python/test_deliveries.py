"""Consuming: order, prefetch, acknowledgements one by one and many at once, and what comes back."""


import pytest

from support.broker import connect, fresh, polled, settle, skip_where_reference_differs, wait_until


class Inbox:
    """A consumer that keeps what it gets: `bodies`, `tags` and `redelivered`, one entry a message."""

    def __init__(self, channel, queue, **options):
        self.channel = channel
        self.bodies, self.tags, self.redelivered = [], [], []
        self.tag = channel.basic_consume(queue, self._on_message, **options)

    def _on_message(self, _channel, method, _properties, body):
        assert method.consumer_tag == self.tag
        self.bodies.append(body.decode())
        self.tags.append(method.delivery_tag)
        self.redelivered.append(method.redelivered)

    def wait(self, count):
        """Until `count` messages are there, and no more come for a moment."""
        wait_until(self.channel.connection, lambda: len(self.bodies) >= count)
        settle(self.channel.connection, 0.1)
        assert len(self.bodies) == count
        return self


def fill(channel, queue, bodies):
    """Publishes and knows that all is in the queue."""
    with connect() as another:
        publisher = another.channel()
        publisher.confirm_delivery()
        for body in bodies:
            publisher.basic_publish("", queue, body.encode())


def take(channel, queue):
    """basic.get of everything, acknowledged: [(body, redelivered)]."""
    return [(body.decode(), method.redelivered) for method, body in polled(channel, queue)]


@pytest.mark.smoke
def test_messages_come_in_order(channel, queue):
    sent = [str(number) for number in range(500)]
    fill(channel, queue, sent[:250])
    inbox = Inbox(channel, queue, auto_ack=True)
    fill(channel, queue, sent[250:])
    inbox.wait(500)
    assert inbox.bodies == sent
    assert inbox.tags == list(range(1, 501))
    assert not any(inbox.redelivered)


@pytest.mark.smoke
def test_get_takes_one_and_says_how_many_are_left(channel, queue):
    assert channel.basic_get(queue) == (None, None, None)
    fill(channel, queue, "ab")
    method, _, body = channel.basic_get(queue)
    assert (body, method.delivery_tag, method.redelivered, method.message_count) == (b"a", 1, False, 1)
    assert (method.exchange, method.routing_key) == ("", queue)
    channel.basic_ack(1)
    assert take(channel, queue) == [("b", False)]


@pytest.mark.smoke
def test_prefetch_limits_what_is_unacknowledged(channel, queue):
    fill(channel, queue, "abcdefgh")
    channel.basic_qos(prefetch_count=3)
    inbox = Inbox(channel, queue).wait(3)
    channel.basic_ack(inbox.tags[1])
    assert inbox.wait(4).bodies == list("abcd")
    channel.basic_ack(inbox.tags[3], multiple=True)
    assert inbox.wait(7).bodies == list("abcdefg")
    channel.basic_reject(inbox.tags[4], requeue=False)
    assert inbox.wait(8).bodies == list("abcdefgh")


def test_prefetch_counts_for_each_consumer_made_after_it(channel, queue):
    channel.basic_qos(prefetch_count=2)
    first = Inbox(channel, queue)
    channel.basic_qos(prefetch_count=1)
    second = Inbox(channel, queue)
    fill(channel, queue, "abcdefgh")
    first.wait(2)
    second.wait(1)


def test_a_global_prefetch_is_one_limit_for_the_channel(channel, queue):
    channel.basic_qos(prefetch_count=3, global_qos=True)
    first, second = Inbox(channel, queue), Inbox(channel, queue)
    fill(channel, queue, "abcdefgh")
    wait_until(channel.connection, lambda: len(first.bodies) + len(second.bodies) >= 3)
    settle(channel.connection)
    assert len(first.bodies) + len(second.bodies) == 3
    channel.basic_ack(max(first.tags + second.tags), multiple=True)
    wait_until(channel.connection, lambda: len(first.bodies) + len(second.bodies) == 6)


def test_both_limits_hold_together(channel, queue):
    channel.basic_qos(prefetch_count=4)
    channel.basic_qos(prefetch_count=2, global_qos=True)
    inbox = Inbox(channel, queue)
    fill(channel, queue, "abcdefgh")
    inbox.wait(2)


def test_prefetch_0_is_no_limit(channel, queue):
    channel.basic_qos(prefetch_count=1)
    channel.basic_qos(prefetch_count=0)
    inbox = Inbox(channel, queue)
    fill(channel, queue, [str(number) for number in range(300)])
    inbox.wait(300)


def test_prefetch_does_not_count_for_get_and_auto_ack(channel, queue):
    channel.basic_qos(prefetch_count=1)
    fill(channel, queue, "abcdef")
    for expected in (b"a", b"b", b"c"):
        assert channel.basic_get(queue)[2] == expected
    Inbox(channel, queue, auto_ack=True).wait(3)


def test_an_ack_of_many_covers_all_before_it_on_the_channel(connection, channel, queue):
    fill(channel, queue, "abcdef")
    inbox = Inbox(channel, queue).wait(6)
    channel.basic_ack(inbox.tags[3], multiple=True)
    channel.close()
    assert take(connection.channel(), queue) == [("e", True), ("f", True)]


def test_tag_0_means_all(connection, channel, queue):
    fill(channel, queue, "abc")
    Inbox(channel, queue).wait(3)
    channel.basic_ack(0, multiple=True)
    channel.close()
    assert take(connection.channel(), queue) == []


def test_acks_may_come_in_any_order(connection, channel, queue):
    fill(channel, queue, "abcdef")
    inbox = Inbox(channel, queue).wait(6)
    for position in (5, 0, 3, 1):
        channel.basic_ack(inbox.tags[position])
    channel.close()
    assert take(connection.channel(), queue) == [("c", True), ("e", True)]


@pytest.mark.smoke
def test_a_requeued_message_goes_back_to_its_place(channel, queue):
    fill(channel, queue, "abcdef")
    tags = [channel.basic_get(queue)[0].delivery_tag for _ in range(4)]
    channel.basic_nack(tags[2], requeue=True)
    channel.basic_reject(tags[0], requeue=True)
    channel.basic_nack(tags[3], requeue=True)
    expected = [("a", True), ("c", True), ("d", True), ("e", False), ("f", False)]
    assert take(channel, queue) == expected


def test_a_nack_of_many_keeps_the_order(channel, queue):
    fill(channel, queue, "abcdef")
    tags = [channel.basic_get(queue)[0].delivery_tag for _ in range(5)]
    channel.basic_ack(tags[1])
    channel.basic_nack(tags[3], multiple=True, requeue=True)
    assert take(channel, queue) == [("a", True), ("c", True), ("d", True), ("f", False)]


def test_a_nack_of_many_without_requeue_drops_them(connection, channel, queue):
    fill(channel, queue, "abc")
    tags = [channel.basic_get(queue)[0].delivery_tag for _ in range(3)]
    channel.basic_nack(tags[1], multiple=True, requeue=False)
    channel.close()
    assert take(connection.channel(), queue) == [("c", True)]


def test_a_requeued_message_comes_again_to_its_only_consumer(channel, queue):
    fill(channel, queue, "ab")
    channel.basic_qos(prefetch_count=1)
    inbox = Inbox(channel, queue).wait(1)
    channel.basic_nack(inbox.tags[0], requeue=True)
    inbox.wait(2)
    assert (inbox.bodies, inbox.redelivered, inbox.tags) == (["a", "a"], [False, True], [1, 2])


def test_redelivered_stays(channel, queue):
    fill(channel, queue, "a")
    for times in range(4):
        method, _, _ = channel.basic_get(queue)
        assert method.redelivered == (times > 0)
        channel.basic_nack(method.delivery_tag, requeue=True)


def test_recover_gives_all_unacknowledged_back(channel, queue):
    fill(channel, queue, "abcd")
    tags = [channel.basic_get(queue)[0].delivery_tag for _ in range(3)]
    channel.basic_ack(tags[1])
    channel.basic_recover(requeue=True)
    assert take(channel, queue) == [("a", True), ("c", True), ("d", False)]


@pytest.mark.parametrize("ending", ["channel", "connection"])
def test_closing_gives_back_what_is_unacknowledged(channel, ending):
    queue = fresh()
    with connect() as another:
        consumer = another.channel()
        consumer.queue_declare(queue)
        fill(channel, queue, "abc")
        Inbox(consumer, queue).wait(3)
        consumer.close() if ending == "channel" else another.close()
        inbox = Inbox(channel, queue).wait(3)
        assert (inbox.bodies, inbox.redelivered) == (list("abc"), [True] * 3)
        channel.queue_delete(queue)


def test_cancel_stops_the_flow_and_leaves_the_unacknowledged(channel, queue):
    channel.basic_qos(prefetch_count=2)
    fill(channel, queue, "abcd")
    inbox = Inbox(channel, queue).wait(2)
    assert channel.basic_cancel(inbox.tag) == []
    fill(channel, queue, "e")
    settle(channel.connection)
    assert inbox.bodies == ["a", "b"]
    channel.basic_ack(inbox.tags[0])
    channel.basic_nack(inbox.tags[1], requeue=True)
    assert [body for body, _ in take(channel, queue)] == list("bcde")


@skip_where_reference_differs("it refuses to stop the flow")
def test_a_client_stops_and_starts_the_flow(connection, channel, queue):
    got = []
    channel.basic_consume(queue, lambda *one: got.append(one[3]), auto_ack=True)
    assert channel.flow(False) is False
    fill(channel, queue, ["1", "2"])
    settle(connection)
    assert got == []
    assert channel.flow(True) is True
    wait_until(connection, lambda: got == [b"1", b"2"])


def test_consumers_take_turns(channel, queue):
    channel.basic_qos(prefetch_count=100)
    inboxes = [Inbox(channel, queue) for _ in range(3)]
    fill(channel, queue, [str(number) for number in range(30)])
    for inbox in inboxes:
        inbox.wait(10)
        assert inbox.bodies == sorted(inbox.bodies, key=int)


def test_an_exclusive_consumer_leaves_its_queue_and_its_tag_to_others(channel, queue):
    inbox = Inbox(channel, queue, exclusive=True)
    channel.basic_cancel(inbox.tag)
    fill(channel, queue, "a")
    Inbox(channel, queue, consumer_tag=inbox.tag).wait(1)


def test_a_slow_consumer_does_not_slow_the_others(channel):
    """One never acknowledges, one never reads its socket: a third gets everything else without delay."""
    shared = channel.queue_declare(fresh()).method.queue
    stuck_queue = channel.queue_declare(fresh()).method.queue
    with connect() as slow, connect() as stuck:
        slow_channel, stuck_channel = slow.channel(), stuck.channel()
        slow_channel.basic_qos(prefetch_count=1)
        slow_channel.basic_consume(shared, lambda *_: None)
        stuck_channel.basic_consume(stuck_queue, lambda *_: None, auto_ack=True)
        with connect() as another:
            publisher = another.channel()
            publisher.confirm_delivery()
            for _ in range(64):  # 32 MB for a socket that is not read
                publisher.basic_publish("", stuck_queue, bytes(500_000))
        inbox = Inbox(channel, shared, auto_ack=True)
        fill(channel, shared, [str(number) for number in range(1000)])
        wait_until(channel.connection, lambda: len(inbox.bodies) >= 999, timeout_s=20)
        channel.queue_delete(shared)
        channel.queue_delete(stuck_queue)
