"""PLAIN and CURVE: who gets in, and who does not."""

import pytest
import zmq

from conftest import take

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
