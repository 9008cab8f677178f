"""What is there when the HTTP API is read: one of everything, with a client that consumes."""

import time
from urllib.parse import quote

from .caller import Caller

VHOST, USER = "surface", "surface-user"
QUEUES = ("s-classic", "s-quorum", "s-stream")
EXCHANGE = "s-x"
EVERYTHING = {"configure": ".*", "write": ".*", "read": ".*"}
POLICY = {"pattern": "^s-", "definition": {"max-length-bytes": 1_000_000}, "apply-to": "queues", "priority": 1}
LIMITS = {"max-connections": 100, "max-queues": 100}


def make(web):
    """Vhost, user and what belongs to them; over HTTP."""
    for path, body in (
        (f"vhosts/{VHOST}", {"description": "surface", "tags": "a"}),
        (f"users/{USER}", {"password": "p", "tags": "management"}),
        (f"permissions/{VHOST}/{web.user}", EVERYTHING),
        (f"permissions/{VHOST}/{USER}", EVERYTHING),
        (f"topic-permissions/{VHOST}/{USER}", {"exchange": "amq.topic", "write": ".*", "read": ".*"}),
        (f"policies/{VHOST}/s-policy", POLICY),
        (f"operator-policies/{VHOST}/s-operator", POLICY),
        (f"vhost-limits/{VHOST}/max-connections", {"value": LIMITS["max-connections"]}),
        (f"vhost-limits/{VHOST}/max-queues", {"value": LIMITS["max-queues"]}),
        (f"user-limits/{USER}/max-connections", {"value": 10}),
        (f"user-limits/{USER}/max-channels", {"value": 10}),
        ("global-parameters/s-global", {"value": {"a": 1}}),
        (f"exchanges/{VHOST}/{EXCHANGE}", {"type": "fanout", "arguments": {"alternate-exchange": "amq.fanout"}}),
        *((f"queues/{VHOST}/{queue}", {"durable": True, "arguments": {"x-queue-type": queue[2:]}}) for queue in QUEUES),
    ):
        status, said = web.ask("PUT", f"/api/{path}", body)
        assert status in (201, 204), f"PUT {path}: {status} {said}"
    for queue in QUEUES:
        web.ask("POST", f"/api/bindings/{VHOST}/e/{EXCHANGE}/q/{queue}", {"routing_key": "k", "arguments": {"a": 1}})
    web.ask("POST", f"/api/bindings/{VHOST}/e/amq.fanout/e/{EXCHANGE}", {})


def unmake(web):
    """All of it goes, also what a run before has left."""
    for path in (f"vhosts/{VHOST}", f"users/{USER}", "global-parameters/s-global"):
        web.ask("DELETE", f"/api/{path}")


def enliven(uri):
    """A client with consumers, confirms, a polled and an unacknowledged message."""
    client = Caller(uri, VHOST)
    client.call("basic.qos", {"prefetch_count": 1})
    client.call("confirm.select", {})
    for queue in QUEUES:
        for body in ("m1", "m2"):
            client.publish(queue, {"delivery_mode": 2, "headers": {"h": 1}}, body)
        client.call("basic.consume", {"queue": queue, "consumer_tag": f"{queue}-tag", "arguments": {"x-priority": 1}})
    client.call("basic.get", {"queue": "s-classic"})
    client.publish("missing", {}, "lost")
    return client


def names(web, seconds):
    """The parts of paths that a broker makes up; waits for its statistics to know of the client."""
    end = time.monotonic() + seconds
    while True:
        connections = web.ask("GET", f"/api/vhosts/{VHOST}/connections")[1]
        channels = web.ask("GET", f"/api/vhosts/{VHOST}/channels")[1]
        if (connections and channels) or time.monotonic() > end:
            break
        time.sleep(0.5)
    node = web.ask("GET", "/api/nodes")[1][0]["name"]
    return {
        "vhost": VHOST, "user": USER, "node": quote(node, safe=""), "exchange": EXCHANGE,
        "connection": quote(connections[0]["name"], safe=""), "channel": quote(channels[0]["name"], safe=""),
        "login": web.user,
    }  # fmt: skip
