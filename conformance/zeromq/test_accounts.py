"""Peers of one endpoint that work as different users, in different vhosts."""

import pika
import pytest
import zmq

from conftest import eventually, take
from test_requests import serve
from test_security import CLIENT, SERVER, STRANGER, keys

VHOSTS = """
vhosts: [{name: blue}, {name: green}]
"""
PLAIN = """security:
        mechanism: plain
        users:
          plain: secret
          blue: {secret: secret, vhost: blue}
          green: {secret: secret, user: guest, password: guest, vhost: green}
"""


def curve(clients):
    return f"""security:
        mechanism: curve
        public_key: '{SERVER[0].decode()}'
        secret_key: '{SERVER[1].decode()}'
        clients:
{clients}
"""


def named(name):
    return {"plain_username": name.encode(), "plain_password": b"secret"}


def in_vhost(broker, vhost):
    connection = pika.BlockingConnection(pika.ConnectionParameters("127.0.0.1", broker.port, vhost))
    broker.connections.append(connection)
    return connection


def test_pull_publishes_what_a_peer_sends_in_its_vhost(broker, peers, port):
    broker.start(f"""
    - socket: pull
      bind: tcp://127.0.0.1:{port}
      queue: tasks
      {PLAIN}{VHOSTS}""")
    vhosts = {"plain": "/", "blue": "blue", "green": "green"}
    senders = {name: peers(zmq.PUSH, port, **named(name)) for name in vhosts}
    for number in range(300):
        for name, sender in senders.items():
            sender.send_multipart([b"frame", f"{name} {number}".encode()])
    for name, vhost in vhosts.items():
        taken = take(in_vhost(broker, vhost).channel(), "tasks", 301, seconds=3)
        assert [body.decode() for _, _, body in taken] == [f"{name} {number}" for number in range(300)]


def test_sub_publishes_what_a_peer_with_a_key_sends_in_its_vhost(broker, peers, port):
    broker.start(f"""
    - socket: sub
      bind: tcp://127.0.0.1:{port}
      exchange: amq.topic
      {curve(f"          - '{CLIENT[0].decode()}'" + chr(10) + f"          - {{key: '{STRANGER[0].decode()}', vhost: blue}}")}{VHOSTS}""")
    queues = []
    for vhost in ["/", "blue"]:
        channel = in_vhost(broker, vhost).channel()
        channel.queue_declare("seen")
        channel.queue_bind("seen", "amq.topic", "#")
        queues.append(channel)
    publishers = [peers(zmq.PUB, port, **keys(pair)) for pair in [CLIENT, STRANGER]]

    def both_arrive():
        for index, publisher in enumerate(publishers):
            publisher.send(b"of %d" % index)
        return all(take(channel, "seen", 1, seconds=0.2) for channel in queues)

    eventually(both_arrive)
    for index, channel in enumerate(queues):
        assert {body for _, _, body in take(channel, "seen", 1000, seconds=0.5)} <= {b"of %d" % index}


def test_router_asks_in_the_vhost_of_the_peer_and_replies_find_back(broker, peers, port):
    broker.start(f"""
    - socket: router
      bind: tcp://127.0.0.1:{port}
      queue: rpc
      {PLAIN}{VHOSTS}""")
    for vhost in ["/", "blue"]:
        connection = pika.BlockingConnection(pika.ConnectionParameters("127.0.0.1", broker.port, vhost))
        serve(connection, "rpc", lambda _, body, vhost=vhost: vhost.encode() + body)
    askers = {vhost: peers(zmq.DEALER, port, **named(name)) for name, vhost in [("plain", "/"), ("blue", "blue")]}
    for number in range(100):
        for asker in askers.values():
            asker.send_multipart([b"", b"%d" % number])
    for vhost, asker in askers.items():
        assert [asker.recv_multipart()[1] for _ in range(100)] == [b"%s%d" % (vhost.encode(), n) for n in range(100)]


def test_a_peer_whose_vhost_is_missing_is_told_of_in_the_log_and_published_when_it_is_there(broker, peers, port):
    endpoints = f"""
    - socket: pull
      bind: tcp://127.0.0.1:{port}
      queue: tasks
      {PLAIN}"""
    broker.start(endpoints)
    peers(zmq.PUSH, port, **named("blue")).send(b"waits")
    eventually(lambda: "530" in broker.said() and 'vhost="blue"' in broker.said())
    broker.reload(endpoints + VHOSTS)
    eventually(lambda: "configuration reloaded" in broker.said())
    channel = in_vhost(broker, "blue").channel()
    eventually(lambda: channel.queue_declare("tasks", durable=True).method.message_count == 1)


@pytest.mark.parametrize("endpoint, complaint", [
    ("{socket: pull, bind: 'tcp://127.0.0.1:1', queue: q, user: bob}", "user 'bob'"),
    ("{socket: pull, bind: 'tcp://127.0.0.1:1', queue: q, password: wrong}", "user 'guest'"),
    ("{socket: pull, bind: 'tcp://127.0.0.1:1', queue: q, security: {mechanism: plain, users: {a: {secret: s, user: bob}}}}",
     "user 'bob'"),
    ("{socket: push, bind: 'tcp://127.0.0.1:1', queue: q, security: {mechanism: plain, users: {a: {secret: s, vhost: v}}}}",
     "give other peers another endpoint"),
])
def test_what_the_broker_or_the_socket_cannot_do_is_refused_at_start(broker, endpoint, complaint):
    with pytest.raises(AssertionError, match="courser: "):
        broker.start(f"    - {endpoint}\n")
    assert complaint in broker.said()
