"""PULL, PUSH, SUB and XPUB: messages between ZeroMQ and AMQP programs."""

import signal
import subprocess
import time

import pika
import pytest
import zmq

from conftest import eventually, free_port, is_routed, take, until_it_flows

FRAMES = [[b"one"], [b"a", b"b", b"c"], [b"", b"", b""], [b"\x00\xff" * 10, b"body"], [b"x" * 5000, b"y" * 70000, b""],
          [b"%d" % n for n in range(512)]]


def test_pull_publishes_to_a_queue_and_push_gives_it_back_frame_by_frame(broker, peers, port):
    out = free_port()
    broker.start(f"""
    - {{socket: pull, bind: "tcp://127.0.0.1:{port}", queue: tasks}}
    - {{socket: push, bind: "tcp://127.0.0.1:{out}", queue: tasks}}
""")
    push = peers(zmq.PUSH, port)
    for frames in FRAMES:
        push.send_multipart(frames)
    pull = peers(zmq.PULL, out)
    assert [pull.recv_multipart() for _ in FRAMES] == FRAMES


def test_an_amqp_program_sees_the_last_frame_as_the_body_and_the_others_in_a_header(broker, peers, port):
    channel = broker.start(f"""
    - {{socket: pull, bind: "tcp://127.0.0.1:{port}", queue: tasks}}
""").connect().channel()
    push = peers(zmq.PUSH, port)
    push.send(b"alone")
    push.send_multipart([b"\x00one", b"two", b"body"])
    first, second = take(channel, "tasks", 2)
    assert (first[2], first[1].headers, first[1].delivery_mode) == (b"alone", None, 2)
    assert (second[2], second[1].headers) == (b"body", {"x-zmq-frames": [b"\x00one", b"two"]})


def test_pull_publishes_to_an_exchange_with_its_routing_key(broker, peers, port):
    channel = broker.start(f"""
    - {{socket: pull, bind: "tcp://127.0.0.1:{port}", exchange: amq.topic, routing_key: in.door}}
""").connect().channel()
    queue = channel.queue_declare("", exclusive=True).method.queue
    channel.queue_bind(queue, "amq.topic", "in.*")
    peers(zmq.PUSH, port).send(b"hello")
    [(method, _, body)] = take(channel, queue, 1)
    assert (method.routing_key, body) == ("in.door", b"hello")


def test_push_keeps_messages_in_the_queue_while_no_peer_takes_them(broker, peers, port):
    channel = broker.start(f"""
    - {{socket: push, bind: "tcp://127.0.0.1:{port}", queue: tasks, prefetch: 10}}
""").connect().channel()
    for number in range(100):
        channel.basic_publish("", "tasks", b"%d" % number)
    eventually(lambda: channel.queue_declare("tasks", passive=True).method.message_count == 90)
    pull = peers(zmq.PULL, port)
    assert [pull.recv() for _ in range(100)] == [b"%d" % number for number in range(100)]
    eventually(lambda: channel.queue_declare("tasks", passive=True).method.message_count == 0)


def test_a_slow_reader_holds_a_push_back_within_its_marks(broker, peers, port):
    channel = broker.start(f"""
    - {{socket: push, bind: "tcp://127.0.0.1:{port}", queue: tasks, high_water_messages: 10}}
""").connect().channel()
    for _ in range(3000):
        channel.basic_publish("", "tasks", bytes(10_000))
    pull = peers(zmq.PULL, port, rcvhwm=1, rcvbuf=8192)
    pull.recv()
    time.sleep(1)
    assert channel.queue_declare("tasks", passive=True).method.message_count > 1000
    for _ in range(2999):
        pull.recv()


def test_a_message_that_is_too_large_for_the_endpoint_is_dead_lettered(broker, peers, port):
    broker.start("    []\n")
    channel = broker.connect().channel()
    channel.queue_declare("dead", durable=True)
    channel.queue_declare("tasks", durable=True, arguments={
        "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"})
    broker.stop()
    channel = broker.start(f"""
    - {{socket: push, bind: "tcp://127.0.0.1:{port}", queue: tasks, max_message_bytes: 1000}}
""").connect().channel()
    channel.basic_publish("", "tasks", bytes(1001))
    channel.basic_publish("", "tasks", b"small")
    assert peers(zmq.PULL, port).recv() == b"small"
    assert len(take(channel, "dead", 1)) == 1


def test_a_full_queue_that_refuses_holds_the_sender_back_and_nothing_is_lost(broker, peers, port):
    broker.start("    []\n")
    connection = broker.connect()
    connection.channel().queue_declare("full", durable=True, arguments={"x-max-length": 5, "x-overflow": "reject-publish"})
    broker.stop()
    channel = broker.start(f"""
    - {{socket: pull, bind: "tcp://127.0.0.1:{port}", queue: full, high_water_messages: 10}}
""").connect().channel()
    push = peers(zmq.PUSH, port, sndhwm=10)
    for number in range(20):
        push.send(b"%d" % number)
    bodies = []
    while len(bodies) < 20:
        taken = take(channel, "full", 1)
        assert taken, bodies
        bodies.append(int(taken[0][2]))
    assert sorted(bodies) == list(range(20))


def test_an_alarm_of_the_broker_holds_senders_back_and_nothing_is_lost(broker, peers, port):
    channel = broker.start(f"""
    - {{socket: pull, bind: "tcp://127.0.0.1:{port}", queue: tasks, high_water_messages: 10, persistent: false}}
limits:
  memory_high_bytes: 100000
""").connect().channel()
    push = peers(zmq.PUSH, port, sndhwm=10, sndtimeo=1000)
    sent = 0
    with pytest.raises(zmq.Again):
        while sent < 20_000:
            push.send(b"%d" % sent + bytes(10_000))
            sent += 1
    assert 50 < sent < 20_000
    taken = take(channel, "tasks", sent, seconds=30)
    assert [int(body.rstrip(b"\0")) for _, _, body in taken] == list(range(sent))


def test_sub_publishes_with_the_first_frame_as_routing_key(broker, peers, port):
    channel = broker.start(f"""
    - {{socket: sub, bind: "tcp://127.0.0.1:{port}", exchange: amq.topic, subscribe: [weather.]}}
""").connect().channel()
    queue = channel.queue_declare("", exclusive=True).method.queue
    channel.queue_bind(queue, "amq.topic", "#")
    pub = peers(zmq.PUB, port)

    def arrived():
        taken = take(channel, queue, 1, seconds=0.2)
        return taken[0][2] if taken else None

    until_it_flows(lambda mark: pub.send_multipart([b"weather.mark", mark]), arrived)
    pub.send_multipart([b"sports.news", b"no"])
    pub.send_multipart([b"weather.bern", b"rain"])
    pub.send(b"weather.alone")
    first, second = take(channel, queue, 2)
    assert (first[0].routing_key, first[2], first[1].headers) == ("weather.bern", b"rain", {"x-zmq-frames": [b"weather.bern"]})
    assert (second[0].routing_key, second[2], second[1].headers) == ("weather.alone", b"weather.alone", {"x-zmq-frames": []})


def test_xpub_gives_subscribers_exactly_what_begins_with_their_prefix(broker, peers, port):
    channel = broker.start(f"""
    - {{socket: xpub, bind: "tcp://127.0.0.1:{port}", exchange: amq.topic}}
""").connect().channel()
    wide = peers(zmq.SUB, port, subscribe=[b""])
    narrow = peers(zmq.SUB, port, subscribe=[b"a.bc", b"z"])
    for key, sub in [("a.bc", narrow), ("z", narrow), ("mark", wide)]:
        until_it_flows(lambda mark: channel.basic_publish("amq.topic", key, mark), sub)
    keys = ["a.b", "a.bc", "a.bcd.e", "b", "zoo", ""]
    for key in keys:
        channel.basic_publish("amq.topic", key, b"body")
    assert [wide.recv_multipart() for _ in keys] == [[key.encode(), b"body"] for key in keys]
    assert [narrow.recv_multipart()[0] for _ in range(3)] == [b"a.bc", b"a.bcd.e", b"zoo"]


def test_xpub_loses_nothing_of_a_burst_within_its_bounds(broker, peers, port):
    channel = broker.start(f"""
    - {{socket: xpub, bind: "tcp://127.0.0.1:{port}", exchange: amq.topic}}
""").connect().channel()
    sub = peers(zmq.SUB, port, rcvhwm=1, subscribe=[b""])
    until_it_flows(lambda mark: channel.basic_publish("amq.topic", "mark", mark), sub)
    # More than the system's buffers take while the subscriber rests, and less than the endpoint's bounds.
    bodies = [b"%06d" % number + bytes(40_000) for number in range(600)]
    for body in bodies:
        channel.basic_publish("amq.topic", "burst", body)
    time.sleep(1)
    assert [sub.recv_multipart()[1][:6] for _ in bodies] == [body[:6] for body in bodies]


def test_xpub_stops_what_no_peer_subscribes_to_any_more(broker, peers, port):
    channel = broker.start(f"""
    - {{socket: xpub, bind: "tcp://127.0.0.1:{port}", exchange: amq.topic}}
""").connect().channel()
    channel.confirm_delivery()

    assert not is_routed(channel, "a.b")
    first = peers(zmq.SUB, port, subscribe=[b"a."])
    second = peers(zmq.SUB, port, subscribe=[b"a."])
    send = lambda mark: channel.basic_publish("amq.topic", "a.b", mark)
    until_it_flows(send, first)
    until_it_flows(send, second)
    first.close()
    time.sleep(0.3)
    assert is_routed(channel, "a.b")
    second.unsubscribe(b"a.")
    eventually(lambda: not is_routed(channel, "a.b"))
    third, fourth = (peers(zmq.SUB, port, subscribe=[b"a."]) for _ in range(2))
    until_it_flows(send, third)
    until_it_flows(send, fourth)
    third.unsubscribe(b"a.")
    time.sleep(0.3)
    assert is_routed(channel, "a.b")


def test_xpub_forgets_what_peers_wanted_that_went_away(broker, peers, port):
    channel = broker.start(f"""
    - {{socket: xpub, bind: "tcp://127.0.0.1:{port}", exchange: amq.topic}}
""").connect().channel()
    channel.confirm_delivery()
    stays = peers(zmq.SUB, port, subscribe=[b"stays."])
    goes = peers(zmq.SUB, port, sndhwm=0, subscribe=[b"t%d." % number for number in range(2000)])

    # More than there are bindings for, so everything is bound.
    eventually(lambda: is_routed(channel, "unwanted.topic"))
    goes.close()
    eventually(lambda: not is_routed(channel, "unwanted.topic") and not is_routed(channel, "t1."))
    channel.basic_publish("amq.topic", "stays.here", b"")
    assert stays.recv_multipart()[0] == b"stays.here"


def test_messages_of_sub_leave_xpub_as_they_came(broker, peers, port):
    out = free_port()
    broker.start(f"""
    - {{socket: sub, bind: "tcp://127.0.0.1:{port}", exchange: amq.topic}}
    - {{socket: xpub, bind: "tcp://127.0.0.1:{out}", exchange: amq.topic}}
""")
    sub = peers(zmq.SUB, out, subscribe=[b""])
    pub = peers(zmq.PUB, port)
    until_it_flows(lambda mark: pub.send_multipart([b"mark", mark]), sub)
    for frames in FRAMES:
        pub.send_multipart(frames)
    assert [sub.recv_multipart() for _ in FRAMES] == FRAMES


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_peers_go_on_after_the_broker_was_restarted(broker, peers, port, how):
    endpoints = f"""
    - {{socket: pull, bind: "tcp://127.0.0.1:{port}", queue: tasks}}
"""
    broker.start(endpoints)
    push = peers(zmq.PUSH, port)
    push.send(b"before")
    channel = broker.connect().channel()
    eventually(lambda: channel.queue_declare("tasks", passive=True).method.message_count == 1)
    # A queue counts what the disk may not have yet. The confirm of a later message says that it has.
    channel.confirm_delivery()
    channel.basic_publish("", "tasks", b"confirmed", pika.BasicProperties(delivery_mode=2))
    broker.stop(how)
    channel = broker.start(endpoints).connect().channel()
    push.send(b"after")
    assert [body for _, _, body in take(channel, "tasks", 3)] == [b"before", b"confirmed", b"after"]


def test_what_was_taken_before_a_stop_is_published(broker, peers, port):
    endpoints = f"""
    - {{socket: pull, bind: "tcp://127.0.0.1:{port}", queue: tasks}}
"""
    broker.start(endpoints)
    push = peers(zmq.PUSH, port)
    for number in range(1000):
        push.send(b"%d" % number)
    channel = broker.connect().channel()
    eventually(lambda: channel.queue_declare("tasks", passive=True).method.message_count == 1000)
    broker.stop()
    channel = broker.start(endpoints).connect().channel()
    assert [int(body) for _, _, body in take(channel, "tasks", 1000)] == list(range(1000))


def test_a_broken_peer_costs_other_peers_nothing(broker, peers, port):
    import socket
    channel = broker.start(f"""
    - {{socket: pull, bind: "tcp://127.0.0.1:{port}", queue: tasks, max_message_bytes: 1000}}
""").connect().channel()
    with socket.create_connection(("127.0.0.1", port)) as garbage:
        garbage.sendall(bytes(range(256)) * 100)
    peers(zmq.PUSH, port).send(bytes(2000))
    good = peers(zmq.PUSH, port)
    good.send(b"good")
    assert [body for _, _, body in take(channel, "tasks", 1)] == [b"good"]


def test_more_peers_than_allowed_are_sent_away(broker, peers, port):
    channel = broker.start(f"""
    - {{socket: pull, bind: "tcp://127.0.0.1:{port}", queue: tasks, peers_max: 2}}
""").connect().channel()
    good = [peers(zmq.PUSH, port) for _ in range(2)]
    for peer in good:
        peer.send(b"good")
    assert len(take(channel, "tasks", 2)) == 2
    late = peers(zmq.PUSH, port)
    events = late.get_monitor_socket(zmq.EVENT_DISCONNECTED)
    assert events.poll(5000), "still connected"
    good[0].send(b"still")
    assert [body for _, _, body in take(channel, "tasks", 1)] == [b"still"]


def test_a_python_push_a_ruby_sub_and_a_pika_consumer_exchange_messages(broker, peers, gem, port):
    """The example of docs/zeromq.md."""
    out = free_port()
    channel = broker.start(f"""
    - {{socket: pull, bind: "tcp://127.0.0.1:{port}", exchange: amq.topic, routing_key: sensors.door}}
    - {{socket: xpub, bind: "tcp://127.0.0.1:{out}", exchange: amq.topic}}
""").connect().channel()
    queue = channel.queue_declare("", exclusive=True).method.queue
    ruby = gem("""
        ZMQ::Context.open do |context|
          sub = context.open(:sub, connect: ARGV[0], subscribe: 'sensors.')
          puts 'ready'
          $stdout.flush
          puts sub.receive_message(timeout: 10).inspect
        end
    """, f"tcp://127.0.0.1:{out}")
    assert ruby.stdout.readline() == "ready\n"

    def is_bound():
        """Asks with a key that the binding matches and the subscription does not."""
        try:
            return channel.basic_publish("amq.topic", "sensors", b"", mandatory=True) or True
        except pika.exceptions.UnroutableError:
            return False

    channel.confirm_delivery()
    eventually(is_bound)
    channel.queue_bind(queue, "amq.topic", "sensors.#")
    peers(zmq.PUSH, port).send(b"open")
    [(method, _, body)] = take(channel, queue, 1)
    assert (method.routing_key, body) == ("sensors.door", b"open")
    assert ruby.stdout.readline() == '["sensors.door", "open"]\n'


def test_a_ruby_push_and_a_bunny_consumer_exchange_messages(broker, gem, port):
    broker.start(f"""
    - {{socket: pull, bind: "tcp://127.0.0.1:{port}", queue: tasks}}
""")
    ruby = gem("""
        require 'bunny'
        queue = Bunny.new(ARGV[1]).start.create_channel.queue('tasks', durable: true)
        ZMQ::Context.open do |context|
          push = context.open(:push, connect: ARGV[0])
          push.send_message('first', 'body')
          sleep 0.01 until (popped = queue.pop).last
          p popped[1].headers.to_a, popped[2]
        end
    """, f"tcp://127.0.0.1:{port}", f"amqp://guest:guest@127.0.0.1:{broker.port}")
    assert ruby.stdout.read() == '[["x-zmq-frames", ["first"]]]\n"body"\n'


@pytest.mark.parametrize("endpoint, complaint", [
    ("{socket: pull, bnd: 'tcp://127.0.0.1:1', queue: q}", "unknown key 'bnd'; did you mean 'bind'?"),
    ("{socket: pair, bind: 'tcp://127.0.0.1:1', queue: q}", "unknown variant `pair`"),
    ("{socket: pull, bind: 'tcp://0.0.0.0:5', queue: q}", "can be reached from other machines"),
    ("{socket: pull, bind: 'udp://127.0.0.1:5', queue: q}", "is no address"),
    ("{socket: pull, bind: 'tcp://127.0.0.1:1'}", "give queue or exchange"),
    ("{socket: push, bind: 'tcp://127.0.0.1:1', exchange: e}", "queue is missing"),
    ("{socket: pull, bind: 'tcp://127.0.0.1:1', queue: q, security: {mechanism: gssapi}}", "unknown variant `gssapi`"),
])
def test_settings_that_cannot_work_are_refused(broker, endpoint, complaint):
    with pytest.raises(AssertionError, match="courser: "):
        broker.start(f"    - {endpoint}\n")
    assert complaint in broker.said()


def test_an_endpoint_whose_vhost_or_exchange_is_missing_says_so_and_works_when_they_are_there(broker, peers, port):
    other = free_port()
    endpoints = f"""
    - {{socket: pull, bind: "tcp://127.0.0.1:{port}", queue: tasks, vhost: later}}
    - {{socket: pull, bind: "tcp://127.0.0.1:{other}", exchange: later}}
"""
    channel = broker.start(endpoints).connect().channel()
    for to in [port, other]:
        peers(zmq.PUSH, to).send(b"waits")
    eventually(lambda: "530" in broker.said() and "404" in broker.said())
    broker.reload(endpoints + "\nvhosts: [{name: later}]\n")
    channel.exchange_declare("later", "fanout")
    channel.queue_declare("seen")
    channel.queue_bind("seen", "later")
    eventually(lambda: "configuration reloaded" in broker.said())
    in_vhost = pika.BlockingConnection(pika.ConnectionParameters("127.0.0.1", broker.port, "later"))
    broker.connections.append(in_vhost)
    assert [body for _, _, body in take(channel, "seen", 1)] == [b"waits"]
    eventually(lambda: in_vhost.channel().queue_declare("tasks", durable=True).method.message_count == 1)
