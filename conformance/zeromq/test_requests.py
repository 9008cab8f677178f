"""ROUTER and DEALER: requests and replies."""

import threading
import time

import pika
import pytest
import zmq

from conftest import eventually


def serve(connection, queue, answer):
    """Answers the requests of a queue until the connection is closed."""
    channel = connection.channel()
    channel.queue_declare(queue, durable=True)

    def on_request(channel, method, properties, body):
        reply = answer(properties, body)
        if reply is not None:
            channel.basic_publish("", properties.reply_to, reply, pika.BasicProperties(
                correlation_id=properties.correlation_id, headers=properties.headers))
        channel.basic_ack(method.delivery_tag)

    channel.basic_consume(queue, on_request)
    threading.Thread(target=lambda: consume(channel), daemon=True).start()


def consume(channel):
    try:
        channel.start_consuming()
    except (pika.exceptions.AMQPError, OSError):
        pass


def start_router(broker, port, timeout_ms):
    broker.start(f"""
    - {{socket: router, bind: "tcp://127.0.0.1:{port}", queue: rpc, timeout_ms: {timeout_ms}}}
""")
    return broker


@pytest.fixture
def router(broker, port):
    return start_router(broker, port, 1000)


@pytest.fixture
def patient_router(broker, port):
    """Waits for replies longer than any machine takes."""
    return start_router(broker, port, 60_000)


def test_a_req_peer_gets_the_reply_of_an_amqp_server(router, peers, port):
    serve(router.connect(for_thread=True), "rpc", lambda _, body: body.upper())
    for number in range(3):
        req = peers(zmq.REQ, port)
        req.send(b"hello %d" % number)
        assert req.recv() == b"HELLO %d" % number


def test_frames_of_requests_and_envelopes_come_back_whole(router, peers, port):
    serve(router.connect(for_thread=True), "rpc", lambda _, body: body)
    dealer = peers(zmq.DEALER, port)
    messages = [[b"a", b"b"], [b"hop", b"hop2", b"", b"x", b"", b"y"], [b"", b"q"], [b"", b""]]
    for frames in messages:
        dealer.send_multipart(frames)
    assert [dealer.recv_multipart() for _ in messages] == messages


def test_a_thousand_replies_find_who_asked(patient_router, peers, port):
    serve(patient_router.connect(for_thread=True), "rpc", lambda _, body: b"re " + body)
    dealers = [peers(zmq.DEALER, port) for _ in range(4)]
    for number in range(250):
        for index, dealer in enumerate(dealers):
            dealer.send_multipart([b"", b"%d %d" % (index, number)])
    for index, dealer in enumerate(dealers):
        assert [dealer.recv_multipart()[1] for _ in range(250)] == [b"re %d %d" % (index, n) for n in range(250)]


def test_a_peer_that_does_not_read_costs_others_no_reply(patient_router, peers, port):
    serve(patient_router.connect(for_thread=True), "rpc", lambda _, body: body)
    silent = peers(zmq.DEALER, port, rcvhwm=1)
    for _ in range(300):
        silent.send_multipart([b"", bytes(100_000)])
    dealer = peers(zmq.DEALER, port)
    for number in range(100):
        dealer.send_multipart([b"", b"%d" % number])
    assert [dealer.recv_multipart()[1] for _ in range(100)] == [b"%d" % number for number in range(100)]


def test_an_unanswered_request_is_forgotten_and_the_next_works(router, peers, port):
    serve(router.connect(for_thread=True), "rpc", lambda _, body: None if body == b"lost" else body)
    dealer = peers(zmq.DEALER, port)
    dealer.send(b"lost")
    time.sleep(1.5)
    dealer.send(b"found")
    assert dealer.recv() == b"found"


def test_a_reply_for_a_peer_that_is_gone_is_dropped(router, peers, port):
    serve(router.connect(for_thread=True), "rpc", lambda _, body: time.sleep(0.3) or body)
    gone = peers(zmq.DEALER, port)
    gone.send(b"gone")
    time.sleep(0.1)
    gone.close()
    stays = peers(zmq.DEALER, port)
    stays.send(b"stays")
    assert stays.recv() == b"stays"


@pytest.fixture
def dealer(broker, port):
    broker.start(f"""
    - {{socket: dealer, bind: "tcp://127.0.0.1:{port}", queue: work, timeout_ms: 1000, prefetch: 20}}
""")
    return broker


def ask(connection, bodies, **properties):
    """Sends requests by direct reply-to; gives the replies as far as they come in two seconds."""
    channel = connection.channel()
    replies = {}
    channel.basic_consume("amq.rabbitmq.reply-to", lambda _c, _m, properties, body: replies.__setitem__(
        properties.correlation_id, body), auto_ack=True)
    for number, body in enumerate(bodies):
        channel.basic_publish("", "work", body, pika.BasicProperties(
            reply_to="amq.rabbitmq.reply-to", correlation_id=str(number), **properties))
    deadline = time.monotonic() + 2
    while len(replies) < len(bodies) and time.monotonic() < deadline:
        connection.process_data_events(0.05)
    return [replies.get(str(number)) for number in range(len(bodies))]


def work(rep, count):
    for _ in range(count):
        frames = rep.recv_multipart()
        rep.send_multipart([frame.upper() for frame in frames])


def test_rep_workers_share_the_requests_of_a_queue(dealer, peers, port):
    workers = [peers(zmq.REP, port) for _ in range(2)]
    time.sleep(0.3)
    for worker in workers:
        threading.Thread(target=work, args=(worker, 50), daemon=True).start()
    assert ask(dealer.connect(), [b"job %d" % n for n in range(100)]) == [b"JOB %d" % n for n in range(100)]


def test_a_request_that_no_worker_answers_is_rejected(dealer, peers, port):
    connection = dealer.connect()
    channel = connection.channel()
    silent = peers(zmq.ROUTER, port)
    assert ask(connection, [b"x"]) == [None]
    assert silent.recv_multipart()[-1] == b"x"
    assert channel.queue_declare("work", passive=True).method.message_count == 0
    worker = peers(zmq.REP, port)
    silent.close()
    threading.Thread(target=work, args=(worker, 1), daemon=True).start()
    # The first may still go to who was silent.
    eventually(lambda: ask(connection, [b"y"]) == [b"Y"])


def test_a_request_without_reply_to_is_rejected(dealer, peers, port):
    channel = dealer.connect().channel()
    channel.basic_publish("", "work", b"whom to tell?")
    eventually(lambda: channel.queue_declare("work", passive=True).method.message_count == 0)
    worker = peers(zmq.REP, port, rcvtimeo=500)
    with pytest.raises(zmq.Again):
        worker.recv()
