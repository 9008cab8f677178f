"""PLAIN and CURVE: who gets in, and who does not."""

import time

import pytest
import zmq
from zmq.auth.thread import ThreadAuthenticator

from conftest import eventually, take, until_it_flows

SERVER, CLIENT, STRANGER = (zmq.curve_keypair() for _ in range(3))


def plain(port):
    return f"""
    - socket: pull
      bind: tcp://127.0.0.1:{port}
      queue: tasks
      security: {{mechanism: plain, users: {{alice: secret}}}}
"""


def curve(port):
    return f"""
    - socket: pull
      bind: tcp://127.0.0.1:{port}
      queue: tasks
      security:
        mechanism: curve
        public_key: '{SERVER[0].decode()}'
        secret_key: '{SERVER[1].decode()}'
        clients: ['{CLIENT[0].decode()}']
"""


def keys(pair, server=SERVER):
    return {"curve_publickey": pair[0], "curve_secretkey": pair[1], "curve_serverkey": server[0]}


CASES = [
    (plain, {"plain_username": b"alice", "plain_password": b"secret"},
     [{"plain_username": b"alice", "plain_password": b"Secret"}, {"plain_username": b"bob", "plain_password": b"secret"},
      {}, keys(CLIENT)]),
    (curve, keys(CLIENT),
     [keys(STRANGER), keys(CLIENT, server=STRANGER), {}, {"plain_username": b"alice", "plain_password": b"secret"}]),
]


@pytest.mark.parametrize("endpoint, right, wrong", CASES, ids=["plain", "curve"])
def test_only_the_right_credentials_get_in(broker, peers, port, endpoint, right, wrong):
    channel = broker.start(endpoint(port)).connect().channel()
    refused = [peers(zmq.PUSH, port, **credentials) for credentials in wrong]
    for peer in refused:
        peer.send(b"refused")
    good = peers(zmq.PUSH, port, heartbeat_ivl=200, heartbeat_timeout=1000, **right)
    for number in range(100):
        good.send_multipart([b"%d" % number, bytes(10_000)])
    assert [properties.headers["x-zmq-frames"][0] for _, properties, _ in take(channel, "tasks", 100)] == \
        [b"%d" % number for number in range(100)]
    assert take(channel, "tasks", 1, seconds=1) == []
    assert "was not let in" in broker.said()


@pytest.fixture
def server():
    """Makes sockets that bind, as programs do that the gateway connects to: server(zmq.PULL, option=value), with its port.
    `server.auth` decides who gets in."""
    context, made = zmq.Context(), []
    auth = ThreadAuthenticator(context)
    auth.start()

    def make(kind, **options):
        peer = context.socket(kind)
        made.append(peer)
        peer.linger, peer.rcvtimeo, peer.sndtimeo = 0, 15_000, 15_000
        for name, value in options.items():
            setattr(peer, name, value)
        return peer, peer.bind_to_random_port("tcp://127.0.0.1")

    make.auth = auth
    yield make
    auth.stop()
    context.destroy(linger=0)


def test_an_endpoint_that_connects_gives_name_and_password(broker, server):
    server.auth.configure_plain(passwords={"alice": "secret"})
    push, in_port = server(zmq.PUSH, plain_server=True)
    pull, out_port = server(zmq.PULL, plain_server=True)
    security = "security: {mechanism: plain, username: alice, password: secret}"
    broker.start(f"""
    - {{socket: pull, connect: "tcp://127.0.0.1:{in_port}", queue: tasks, {security}}}
    - {{socket: push, connect: "tcp://127.0.0.1:{out_port}", queue: tasks, {security}}}
""")
    for number in range(1000):
        push.send_multipart([b"%d" % number, b"body"])
    assert [int(pull.recv_multipart()[0]) for _ in range(1000)] == list(range(1000))


def client_keys(pair, server=SERVER):
    return f"""security:
        mechanism: curve
        public_key: '{pair[0].decode()}'
        secret_key: '{pair[1].decode()}'
        server_key: '{server[0].decode()}'
"""


def test_an_endpoint_that_connects_shows_its_key(broker, server):
    server.auth.configure_curve_callback(credentials_provider=Allowed([CLIENT[0]]))
    curve = {"curve_server": True, "curve_secretkey": SERVER[1], "curve_publickey": SERVER[0]}
    pub, in_port = server(zmq.PUB, sndhwm=0, **curve)
    pull, out_port = server(zmq.PULL, **curve)
    channel = broker.start(f"""
    - socket: sub
      connect: tcp://127.0.0.1:{in_port}
      exchange: amq.topic
      {client_keys(CLIENT)}
    - socket: push
      connect: tcp://127.0.0.1:{out_port}
      queue: tasks
      {client_keys(CLIENT)}
""").connect().channel()
    channel.queue_bind("tasks", "amq.topic", "a.#")
    until_it_flows(lambda mark: pub.send_multipart([b"a.", mark]), pull)
    for number in range(1000):
        pub.send_multipart([b"a.%d" % number, bytes(1000)])
    assert [pull.recv_multipart()[0] for _ in range(1000)] == [b"a.%d" % number for number in range(1000)]


class Allowed:
    """Says which keys get in."""

    def __init__(self, keys):
        self.keys = {zmq.utils.z85.decode(key) for key in keys}

    def callback(self, domain, key):
        return zmq.utils.z85.decode(key) in self.keys


def fill(broker, count):
    channel = broker.connect().channel()
    channel.queue_declare("tasks", durable=True)
    for number in range(count):
        channel.basic_publish("", "tasks", b"%d" % number)
    return channel


def test_an_endpoint_whose_password_is_refused_says_so_keeps_its_messages_and_tries_again(broker, server):
    server.auth.configure_plain(passwords={"alice": "other"})
    pull, port = server(zmq.PULL, plain_server=True)
    broker.start(f"""
    - {{socket: push, connect: "tcp://127.0.0.1:{port}", queue: tasks,
       security: {{mechanism: plain, username: alice, password: secret}}}}
""")
    channel = fill(broker, 100)
    eventually(lambda: "not let in" in broker.said())
    assert channel.queue_declare("tasks", passive=True).method.message_count == 100 - 64
    server.auth.configure_plain(passwords={"alice": "secret"})
    assert [int(pull.recv()) for _ in range(100)] == list(range(100))
    eventually(lambda: "gateway: connected" in broker.said())


@pytest.mark.parametrize("pair, known", [(STRANGER, SERVER), (CLIENT, STRANGER)], ids=["unknown", "wrong-server"])
def test_an_endpoint_whose_keys_are_wrong_says_so_and_keeps_its_messages(broker, server, pair, known):
    allowed = Allowed([CLIENT[0]])
    server.auth.configure_curve_callback(credentials_provider=allowed)
    pull, port = server(zmq.PULL, curve_server=True, curve_secretkey=SERVER[1], curve_publickey=SERVER[0])
    broker.start(f"""
    - socket: push
      connect: tcp://127.0.0.1:{port}
      queue: tasks
      {client_keys(pair, server=known)}
""")
    channel = fill(broker, 100)
    eventually(lambda: "not let in" in broker.said())
    assert broker.said().count("not let in") < 5
    if known == SERVER:
        allowed.keys.add(zmq.utils.z85.decode(STRANGER[0]))
        assert [int(pull.recv()) for _ in range(100)] == list(range(100))
    else:
        assert channel.queue_declare("tasks", passive=True).method.message_count == 100 - 64


def test_an_endpoint_without_a_peer_says_so_once_and_goes_on_when_one_comes(broker, server, port):
    broker.start(f"""
    - {{socket: push, connect: "tcp://127.0.0.1:{port}", queue: tasks}}
""")
    fill(broker, 100)
    eventually(lambda: "no peer answers" in broker.said())
    time.sleep(2)
    assert broker.said().count("no peer answers") == 1
    pull, _ = server(zmq.PULL)
    pull.bind(f"tcp://127.0.0.1:{port}")
    assert [int(pull.recv()) for _ in range(100)] == list(range(100))
