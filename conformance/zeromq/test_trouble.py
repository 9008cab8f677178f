"""What goes wrong: queues and exchanges that vanish, sizes over the bounds, addresses in use, peers that misbehave."""

import contextlib
import re
import signal
import socket
import threading
import time

import pika
import pytest
import zmq

from conftest import eventually, free_port, is_routed, take
from test_requests import ask


@contextlib.contextmanager
def at_work(worker):
    """Answers requests meanwhile, in a thread of which the socket is not closed meanwhile."""
    stop = threading.Event()

    def work():
        while not stop.is_set():
            if worker.poll(50):
                worker.send(worker.recv().upper())

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def waiting(channel, queue):
    return channel.queue_declare(queue, passive=True).method.message_count


def test_a_queue_that_was_deleted_is_made_again_and_what_came_meanwhile_is_in_it(broker, peers, port):
    broker.start(f"""
    - {{socket: pull, bind: "tcp://127.0.0.1:{port}", queue: tasks}}
""")
    connection = broker.connect()
    channel = connection.channel()
    push = peers(zmq.PUSH, port)
    push.send(b"first")
    assert len(take(channel, "tasks", 1)) == 1
    channel.queue_delete("tasks")
    for number in range(100):
        push.send(b"%d" % number)
    eventually(lambda: "the queue was deleted" in broker.said())

    def exists():
        try:
            return connection.channel().queue_declare("tasks", passive=True)
        except pika.exceptions.ChannelClosedByBroker:
            return False

    eventually(exists)
    bodies = []
    while not bodies or bodies[-1] != b"99":
        bodies += [body for _, _, body in take(channel, "tasks", 1)]
    # The first may come once more, if it was not confirmed yet when the queue was deleted.
    assert [body for body in bodies if body != b"first"] == [b"%d" % number for number in range(100)]


def test_what_a_full_queue_refuses_waits_in_order_and_is_not_tried_all_the_time(broker, peers, port):
    channel = broker.start("    []\n").connect().channel()
    channel.queue_declare("tasks", durable=True, arguments={"x-max-length": 10, "x-overflow": "reject-publish"})
    broker.stop()
    channel = broker.start(f"""
    - {{socket: pull, bind: "tcp://127.0.0.1:{port}", queue: tasks}}
""").connect().channel()
    push = peers(zmq.PUSH, port)
    for number in range(300):
        push.send(b"%d" % number)
    bodies = []
    while len(bodies) < 15:
        eventually(lambda: waiting(channel, "tasks") == 10)
        bodies += [int(body) for _, _, body in take(channel, "tasks", 1)]
    assert bodies == list(range(15))
    time.sleep(2)
    broker.process.send_signal(signal.SIGUSR1)
    refused = eventually(lambda: re.search(r"refused (\d+)", broker.said()))
    # All of them once, and then a few every 100 ms.
    assert int(refused[1]) < 1000


def test_push_router_and_dealer_go_on_after_their_queue_was_deleted(broker, peers, port):
    out, workers = free_port(), free_port()
    channel = broker.start(f"""
    - {{socket: push, bind: "tcp://127.0.0.1:{out}", queue: tasks}}
    - {{socket: router, bind: "tcp://127.0.0.1:{port}", queue: work, timeout_ms: 1000}}
    - {{socket: dealer, bind: "tcp://127.0.0.1:{workers}", queue: work, timeout_ms: 1000}}
""").connect().channel()
    pull = peers(zmq.PULL, out, rcvtimeo=2000)
    asker = peers(zmq.REQ, port, rcvtimeo=2000, req_relaxed=1, req_correlate=1)
    for deleted in ["tasks", "work"]:
        channel.queue_delete(deleted)

    def answers():
        asker.send(b"question")
        try:
            return asker.recv() == b"QUESTION"
        except zmq.Again:
            return False

    def delivers():
        channel.basic_publish("", "tasks", b"task")
        try:
            return pull.recv() == b"task"
        except zmq.Again:
            return False

    with at_work(peers(zmq.REP, workers)):
        eventually(answers, seconds=30)
    eventually(delivers, seconds=30)


def test_xpub_finds_its_exchange_again_when_it_was_deleted_and_made_again(broker, peers, port):
    broker.start("    []\n").connect().channel().exchange_declare("news", "topic", durable=True)
    broker.stop()
    channel = broker.start(f"""
    - {{socket: xpub, bind: "tcp://127.0.0.1:{port}", exchange: news}}
""").connect().channel()
    sub = peers(zmq.SUB, port, subscribe=[b"a."], rcvtimeo=200)

    def arrives():
        channel.basic_publish("news", "a.b", b"body")
        try:
            return sub.recv_multipart() == [b"a.b", b"body"]
        except zmq.Again:
            return False

    eventually(arrives)
    channel.exchange_delete("news")
    channel.exchange_declare("news", "topic", durable=True)
    eventually(arrives, seconds=20)


def test_a_message_may_be_as_large_as_the_endpoint_allows_and_not_larger(broker, peers, port):
    channel = broker.start(f"""
    - {{socket: pull, bind: "tcp://127.0.0.1:{port}", queue: tasks, max_message_bytes: 100000}}
""").connect().channel()
    push = peers(zmq.PUSH, port)
    for sizes in [[100_000], [100_001], [50_000, 50_000], [50_000, 50_001], [99_489] + [1] * 511, [1] * 513, [7]]:
        push.send_multipart([bytes(size) for size in sizes])
    assert [len(body) + sum(map(len, frames(properties))) for _, properties, body in take(channel, "tasks", 4)] == \
        [100_000, 100_000, 100_000, 7]
    assert broker.said().count("is too large") == 3
    push.send(bytes(1_000_000))
    eventually(lambda: "a peer was disconnected" in broker.said())
    peers(zmq.PUSH, port).send(b"good")
    assert [body for _, _, body in take(channel, "tasks", 1)] == [b"good"]


def frames(properties):
    return (properties.headers or {}).get("x-zmq-frames", [])


def test_ten_thousand_subscriptions_are_compared_exactly(broker, peers, port):
    channel = broker.start(f"""
    - {{socket: xpub, bind: "tcp://127.0.0.1:{port}", exchange: amq.topic}}
""").connect().channel()
    # With its usual mark, libzmq drops most of what is subscribed to before there is a connection.
    sub = peers(zmq.SUB, port, sndhwm=0, subscribe=[b"t%d.x" % number for number in range(10_000)])

    def comes():
        """What comes of some messages, the last of which the subscriber wants in any case."""
        for key in ["t5000.xy", "t1.y", "t10000.x", "t9999.x", "t0.x"]:
            channel.basic_publish("amq.topic", key, b"")
        got = []
        while sub.poll(1000) and b"t0.x" not in got:
            got.append(sub.recv_multipart()[0])
        return got

    eventually(lambda: comes() == [b"t5000.xy", b"t9999.x", b"t0.x"], seconds=30)
    for number in range(1, 10_000):
        sub.unsubscribe(b"t%d.x" % number)
    eventually(lambda: comes() == [b"t0.x"], seconds=30)


@pytest.mark.timeout(240)
def test_after_sixty_six_thousand_subscriptions_only_those_are_bound_that_are_left(broker, peers, port):
    channel = broker.start(f"""
    - {{socket: xpub, bind: "tcp://127.0.0.1:{port}", exchange: amq.topic}}
""").connect().channel()
    channel.confirm_delivery()

    sub = peers(zmq.SUB, port, sndhwm=0, subscribe=[b"t%d." % number for number in range(66_000)])
    eventually(lambda: is_routed(channel, "other"), seconds=60)
    for number in range(1, 66_000):
        sub.unsubscribe(b"t%d." % number)
    eventually(lambda: not is_routed(channel, "other"), seconds=120)
    assert is_routed(channel, "t0.x") and not is_routed(channel, "t1.x")


def test_a_peer_with_more_subscriptions_than_there_is_room_for_is_disconnected(broker, peers, port):
    channel = broker.start(f"""
    - {{socket: xpub, bind: "tcp://127.0.0.1:{port}", exchange: amq.topic, high_water_bytes: 1048576}}
""").connect().channel()
    modest = peers(zmq.SUB, port, subscribe=[b"a."])
    greedy = peers(zmq.SUB, port, sndhwm=0, reconnect_ivl=-1, subscribe=[b"t%d." % number for number in range(5000)])
    # Also when it asks for the same again and again.
    stubborn = peers(zmq.XSUB, port, sndhwm=0, reconnect_ivl=-1)
    eventually(lambda: broker.said().count("need more than high_water_bytes") == 1)
    for _ in range(5000):
        stubborn.send(b"\x01same.")
    eventually(lambda: broker.said().count("need more than high_water_bytes") == 2)
    channel.basic_publish("amq.topic", "a.b", b"body")
    assert modest.recv_multipart() == [b"a.b", b"body"]
    assert not greedy.poll(0)


def test_a_flood_of_strangers_does_not_fill_the_log(broker, peers, port):
    channel = broker.start(f"""
    - {{socket: pull, bind: "tcp://127.0.0.1:{port}", queue: tasks}}
""").connect().channel()
    for _ in range(300):
        with socket.create_connection(("127.0.0.1", port)) as stranger:
            stranger.sendall(b"GET / HTTP/1.0\r\n\r\n")
            stranger.recv(1000)
    peers(zmq.PUSH, port).send(b"good")
    assert [body for _, _, body in take(channel, "tasks", 1)] == [b"good"]
    # Ten in ten seconds.
    assert 1 <= broker.said().count("not let in") <= 30


def test_an_endpoint_that_waits_for_its_exchange_says_so_once(broker, port):
    broker.start(f"""
    - {{socket: pull, bind: "tcp://127.0.0.1:{port}", exchange: missing}}
""")
    time.sleep(3)
    assert broker.said().count("trying again") == 1


def test_peers_come_over_ipv6_and_ipc_also_after_the_broker_was_killed(broker, peers, port, tmp_path):
    path = tmp_path / "out.ipc"
    endpoints = f"""
    - {{socket: pull, bind: "tcp://[::1]:{port}", queue: tasks}}
    - {{socket: push, bind: "ipc://{path}", queue: tasks}}
"""
    broker.start(endpoints)
    push, pull = peers(zmq.PUSH, port, host="[::1]", ipv6=True), peers(zmq.PULL, address=f"ipc://{path}")
    push.send(b"one")
    assert pull.recv() == b"one"
    broker.stop(signal.SIGKILL)
    broker.start(endpoints)
    push.send(b"two")
    # The first may come once more: that it was handed over may not have been on the disk.
    eventually(lambda: pull.recv() == b"two")
    broker.stop()
    assert not path.exists()


def test_an_address_that_is_taken_is_named(broker, port):
    with socket.create_server(("127.0.0.1", port)):
        with pytest.raises(AssertionError, match="courser: "):
            broker.start(f"    - {{socket: pull, bind: 'tcp://127.0.0.1:{port}', queue: q}}\n")
    assert f"gateway: pull tcp://127.0.0.1:{port}: " in broker.said() and "Address already in use" in broker.said()


def test_an_endpoint_for_larger_messages_than_the_broker_takes_is_refused(broker):
    with pytest.raises(AssertionError, match="courser: "):
        broker.start("    - {socket: pull, bind: 'tcp://127.0.0.1:*', queue: q, max_message_bytes: 20000000}\n")
    assert "max_message_bytes is more than amqp.max_message_bytes, 16777216" in broker.said()


def test_a_worker_that_answers_wrongly_costs_no_room_for_other_requests(broker, peers, port):
    connection = broker.start(f"""
    - {{socket: dealer, bind: "tcp://127.0.0.1:{port}", queue: work, timeout_ms: 500, prefetch: 1}}
""").connect()
    worker = peers(zmq.ROUTER, port)

    def answer(*replies):
        identity, number, delimiter, _ = worker.recv_multipart()
        for reply in replies:
            worker.send_multipart([identity, *reply(number, delimiter)])

    wrong = [lambda number, _: [b"no envelope"], lambda number, _: [number, b"no delimiter"],
             lambda number, delimiter: [number[:4], delimiter, b"x"], lambda number, delimiter: [bytes(8), delimiter, b"x"],
             lambda number, delimiter: [number, delimiter, *[b"x"] * 512]]
    for reply in wrong:
        threading.Thread(target=answer, args=(reply,), daemon=True).start()
        assert ask(connection, [b"x"]) == [None]
    right = lambda number, delimiter: [number, delimiter, b"right"]
    threading.Thread(target=answer, args=(wrong[0], right, right), daemon=True).start()
    assert ask(connection, [b"x"]) == [b"right"]


def test_no_more_requests_are_open_than_the_router_may_have(broker, peers, port):
    channel = broker.start(f"""
    - {{socket: router, bind: "tcp://127.0.0.1:{port}", queue: rpc, timeout_ms: 2000, high_water_messages: 20}}
""").connect().channel()
    dealer = peers(zmq.DEALER, port)
    for number in range(60):
        dealer.send_multipart([b"", b"%d" % number])
    eventually(lambda: waiting(channel, "rpc") == 20)
    time.sleep(0.5)
    for first in range(0, 60, 20):
        taken = take(channel, "rpc", 20)
        assert [int(body) for _, _, body in taken] == list(range(first, first + 20))
        for _, properties, body in taken:
            channel.basic_publish("", properties.reply_to, body, pika.BasicProperties(
                correlation_id=properties.correlation_id))
    assert [int(dealer.recv_multipart()[1]) for _ in range(60)] == list(range(60))


def test_sigusr1_writes_what_was_counted_to_the_log(broker, peers, port):
    channel = broker.start(f"""
    - {{socket: pull, bind: "tcp://127.0.0.1:{port}", exchange: amq.topic}}
""").connect().channel()
    peers(zmq.PUSH, port).send(b"without a queue")
    eventually(lambda: "no queue takes a message" in broker.said())
    broker.process.send_signal(signal.SIGUSR1)
    eventually(lambda: "gateway: so far" in broker.said() and "received 1 (15 bytes)" in broker.said())
    assert channel.is_open
