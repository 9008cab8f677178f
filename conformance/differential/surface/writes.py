"""What is written over HTTP, good and bad, one after the other: the status, and the members of a good answer.

Each belongs to its place, as it finds what those before it have left. All is in a vhost and a user of its own.
"""

import json

from .web import shape

VHOST, USER = "surface-w", "surface-w-user"
ALL = {"configure": ".*", "write": ".*", "read": ".*"}
POLICY = {"pattern": "^q", "definition": {"max-length": 10}}
MESSAGE = {"properties": {}, "routing_key": "q", "payload": "m", "payload_encoding": "string"}
TAKE = {"count": 1, "ackmode": "ack_requeue_true", "encoding": "auto"}


def vhosts():
    path = f"vhosts/{VHOST}"
    yield "PUT", path, {}
    yield "PUT", path, {"description": "d", "tags": "a,b", "tracing": False}
    yield "PUT", path, {"default_queue_type": "quorum"}
    yield "PUT", path, {"default_queue_type": "word"}
    yield "PUT", path, {"default_queue_type": "undefined"}
    for body in ("", "{", "[]", '"text"', {"tags": 1}, {"description": 1}, {"tracing": "word"}, {"unknown": 1}):
        yield "PUT", path, body
    yield "POST", f"{path}/start/missing", None
    yield "POST", f"{path}/deletion/protection", None
    yield "DELETE", path, None
    yield "DELETE", f"{path}/deletion/protection", None
    yield "PUT", path, {"default_queue_type": "classic"}
    yield "PUT", "vhosts/", {}
    yield "POST", path, {}
    yield "DELETE", "vhosts/missing", None


def users():
    path = f"users/{USER}"
    yield "PUT", path, {"password": "p", "tags": "management"}
    yield "PUT", path, {"password": "p", "tags": ["monitoring", "management"]}
    yield "PUT", path, {"password_hash": "", "tags": ""}
    yield "PUT", path, {"password_hash": "word", "tags": ""}
    yield "PUT", path, {"password_hash": "kI3GCqW5JLMJa4iX1lo7X4D6XbYqlLgxIs30+P6tENUV2POR", "tags": "unknown"}
    for body in (
        "", "{", {}, {"tags": ""}, {"password": "p"}, {"password": "", "tags": ""}, {"password": 1, "tags": ""},
        {"password": "p", "tags": 1}, {"password": "p", "password_hash": "x", "tags": ""},
        {"password": "p", "tags": "", "hashing_algorithm": "word"}, {"password": None, "tags": ""},
        {"password": "p", "tags": "", "unknown": 1},
    ):  # fmt: skip
        yield "PUT", path, body
    yield "POST", "users/bulk-delete", {"users": ["missing"]}
    yield "POST", "users/bulk-delete", {"users": "missing"}
    yield "POST", "users/bulk-delete", {}
    yield "DELETE", "users/missing", None
    for what in ("max-connections", "max-channels"):
        limit = f"user-limits/{USER}/{what}"
        for body in ({"value": 10}, {"value": -1}, {"value": "word"}, {"value": -2}, {}, {"value": 1.5}, "{"):
            yield "PUT", limit, body
        yield "DELETE", limit, None
        yield "DELETE", limit, None
    yield "PUT", f"user-limits/{USER}/unknown", {"value": 1}
    yield "PUT", "user-limits/missing/max-channels", {"value": 1}


def permissions():
    for path, good in (
        (f"permissions/{VHOST}", ALL),
        (f"topic-permissions/{VHOST}", {"exchange": "amq.topic", "write": ".*", "read": ".*"}),
    ):
        for body in (
            good, good, good | {"write": "("}, good | {"write": 1}, good | {"unknown": 1}, {}, "{", "",
            {name: text for name, text in good.items() if name != "read"},
        ):  # fmt: skip
            yield "PUT", f"{path}/{USER}", body
        yield "PUT", f"{path}/missing", good
        yield "PUT", f"{path.replace(VHOST, 'missing')}/{USER}", good
        yield "DELETE", f"{path}/{USER}", None
        yield "DELETE", f"{path}/{USER}", None
        yield "DELETE", f"{path}/missing", None
        yield "PUT", f"{path}/guest", good
    yield "PUT", f"topic-permissions/{VHOST}/guest", {"exchange": "missing", "write": ".*", "read": ".*"}


def queues():
    path = f"queues/{VHOST}/q"
    yield "PUT", path, {"durable": True, "auto_delete": False, "arguments": {}}
    yield "PUT", path, {"durable": True, "auto_delete": False, "arguments": {}}
    yield "PUT", path, {"durable": False}
    yield "PUT", path, {"durable": True, "arguments": {"x-message-ttl": 1000}}
    for name, body in enumerate((
        {}, "", "{", "[]", {"durable": "word"}, {"durable": "true"}, {"durable": 1}, {"arguments": []},
        {"arguments": 1}, {"arguments": {"x-max-length": -1}}, {"arguments": {"x-max-length": "5"}},
        {"arguments": {"x-max-length": 5.0}}, {"arguments": {"x-max-length": 1.5}},
        {"arguments": {"x-queue-type": "no"}},
        {"arguments": {"x-unknown": [1, {"a": None}]}}, {"node": "missing"}, {"unknown": 1}, {"auto_delete": "word"},
        {"exclusive": True}, {"arguments": {"x-queue-type": "quorum"}, "durable": False}, {"auto_delete": None},
    )):  # fmt: skip
        yield "PUT", f"queues/{VHOST}/q{name}", body
    yield "PUT", f"queues/{VHOST}/amq.mine", {}
    yield "PUT", f"queues/{VHOST}/", {}
    yield "PUT", f"queues/{VHOST}/{'a' * 256}", {}
    yield "PUT", "queues/missing/q", {}
    yield "POST", path, {}
    yield "DELETE", f"queues/{VHOST}/missing", None
    yield "DELETE", "queues/missing/q", None
    yield "POST", f"{path}/actions", {"action": "sync"}
    yield "POST", f"{path}/actions", {"action": "word"}
    yield "POST", f"{path}/actions", {}


def exchanges():
    path = f"exchanges/{VHOST}/x"
    yield "PUT", path, {"type": "direct", "durable": True}
    yield "PUT", path, {"type": "direct", "durable": True}
    yield "PUT", path, {"type": "fanout", "durable": True}
    for name, body in enumerate((
        {}, "", "{", {"type": "unknown"}, {"type": 1}, {"type": "direct", "durable": "word"},
        {"type": "direct", "arguments": []}, {"type": "direct", "internal": True}, {"type": "direct", "internal": 1},
        {"type": "direct", "arguments": {"alternate-exchange": 1}}, {"type": "topic", "unknown": 1},
    )):  # fmt: skip
        yield "PUT", f"exchanges/{VHOST}/x{name}", body
    yield "PUT", f"exchanges/{VHOST}/amq.mine", {"type": "direct"}
    yield "PUT", f"exchanges/{VHOST}/amq.direct", {"type": "direct", "durable": True}
    yield "PUT", "exchanges/missing/x", {"type": "direct"}
    yield "DELETE", f"exchanges/{VHOST}/amq.direct", None
    yield "DELETE", f"exchanges/{VHOST}/amq.default", None
    yield "DELETE", f"exchanges/{VHOST}/missing", None


def bindings():
    path = f"bindings/{VHOST}/e/x/q/q"
    for body in (
        {"routing_key": "k", "arguments": {}}, {"routing_key": "k"}, {}, "", "{", {"routing_key": 1},
        {"arguments": []}, {"arguments": 1}, {"arguments": {"x-match": "word"}}, {"unknown": 1},
    ):  # fmt: skip
        yield "POST", path, body
    yield "POST", f"bindings/{VHOST}/e/x/e/amq.fanout", {"routing_key": "k"}
    yield "POST", f"bindings/{VHOST}/e/missing/q/q", {}
    yield "POST", f"bindings/{VHOST}/e/x/q/missing", {}
    yield "POST", f"bindings/{VHOST}/e/amq.default/q/q", {}
    yield "POST", f"bindings/{VHOST}/x/x/q/q", {}
    yield "DELETE", f"{path}/k", None
    yield "DELETE", f"{path}/k", None
    yield "DELETE", f"{path}/~", None
    yield "DELETE", f"bindings/{VHOST}/e/x/q/missing/k", None
    yield "PUT", path, {}


def messages():
    publish, take = f"exchanges/{VHOST}/amq.default/publish", f"queues/{VHOST}/q/get"
    yield "POST", publish, MESSAGE
    yield "POST", publish, MESSAGE | {"payload": "bQ==", "payload_encoding": "base64"}
    yield "POST", publish, MESSAGE | {"routing_key": "missing"}
    for change in (
        {"payload_encoding": "word"}, {"payload": 1}, {"payload": "%", "payload_encoding": "base64"},
        {"properties": []},
        {"properties": {"delivery_mode": 2, "headers": {"a": [1, {"b": None}]}, "expiration": "100000"}},
        {"properties": {"delivery_mode": "word"}}, {"properties": {"expiration": "word"}},
        {"properties": {"unknown": 1}},
        {"properties": {"priority": 300}}, {"properties": {"headers": 1}}, {"routing_key": 1}, {"properties": 1},
        {"properties": {"user_id": "someone"}}, {"properties": {"timestamp": "word"}}, {"properties": {"headers": []}},
    ):  # fmt: skip
        yield "POST", publish, MESSAGE | change
    for left_out in MESSAGE:
        yield "POST", publish, {name: one for name, one in MESSAGE.items() if name != left_out}
    yield "POST", publish, "{"
    yield "POST", publish, ""
    yield "POST", f"exchanges/{VHOST}/missing/publish", MESSAGE
    yield "POST", "exchanges/missing/x/publish", MESSAGE
    for ackmode in ("ack_requeue_true", "reject_requeue_true", "reject_requeue_false", "ack_requeue_false", "word"):
        yield "POST", take, TAKE | {"ackmode": ackmode}
    for change in (
        {"count": 0}, {"count": -1}, {"count": "1"}, {"count": "word"}, {"count": 1.5}, {"encoding": "base64"},
        {"encoding": "word"}, {"truncate": 1}, {"truncate": "word"}, {"truncate": -1}, {"requeue": True},
        {"unknown": 1},
    ):  # fmt: skip
        yield "POST", take, TAKE | change
    for left_out in TAKE:
        yield "POST", take, {name: one for name, one in TAKE.items() if name != left_out}
    yield "POST", take, "{"
    yield "POST", f"queues/{VHOST}/missing/get", TAKE
    yield "DELETE", f"queues/{VHOST}/q?if-empty=true", None
    yield "DELETE", f"queues/{VHOST}/q/contents", None
    yield "DELETE", f"queues/{VHOST}/q/contents", None
    yield "DELETE", f"queues/{VHOST}/missing/contents", None
    yield "POST", take, TAKE


def policies():
    for kind in ("policies", "operator-policies"):
        path = f"{kind}/{VHOST}/p"
        for body in (
            POLICY, POLICY, {}, "", "{", {"pattern": "^q"},
            {"definition": {"max-length": 1}}, POLICY | {"pattern": "("},
            POLICY | {"definition": {}}, POLICY | {"definition": []}, POLICY | {"definition": {"unknown": 1}},
            POLICY | {"definition": {"max-length": "word"}}, POLICY | {"definition": {"max-length": -1}},
            POLICY | {"priority": "word"}, POLICY | {"priority": 1.5}, POLICY | {"priority": "5"},
            POLICY | {"priority": -1},
            POLICY | {"apply-to": "word"}, POLICY | {"apply-to": "exchanges"}, POLICY | {"unknown": 1},
            POLICY | {"apply-to": "quorum_queues"}, POLICY | {"apply-to": 1}, POLICY | {"pattern": 1},
        ):  # fmt: skip
            yield "PUT", path, body
        for definition in (*({key: value} for key, value in POLICY_KEYS), *RETRIES):
            yield "PUT", path, {"pattern": "^none$", "definition": definition}
        yield "PUT", f"{kind}/missing/p", POLICY
        yield "DELETE", path, None
        yield "DELETE", path, None


POLICY_KEYS = [
    ("max-length", 1), ("max-length-bytes", 1), ("message-ttl", 1), ("message-ttl", -1), ("expires", 1), ("expires", 0),
    ("overflow", "drop-head"), ("overflow", "word"), ("dead-letter-exchange", "x"), ("dead-letter-exchange", 1),
    ("dead-letter-routing-key", "k"), ("dead-letter-strategy", "at-least-once"), ("dead-letter-strategy", "word"),
    ("delivery-limit", 1), ("delivery-limit", -1), ("delivery-limit", "word"), ("consumer-timeout", 1000),
    ("consumer-timeout", 0), ("consumer-disconnected-timeout", 1000), ("delayed-retry-type", "all"),
    ("delayed-retry-type", "word"), ("delayed-retry-min", 1), ("delayed-retry-max", 1), ("alternate-exchange", "x"),
    ("queue-mode", "lazy"), ("queue-version", 2), ("queue-version", 3), ("max-age", "1D"), ("max-age", "word"),
    ("stream-max-segment-size-bytes", 1000), ("stream-filter-size-bytes", 16), ("queue-leader-locator", "balanced"),
    ("queue-leader-locator", "word"), ("initial-cluster-size", 1), ("target-group-size", 1), ("ha-mode", "all"),
    ("max-in-memory-length", 1), ("federation-upstream-set", "all"), ("max-priority", 5),
    ("single-active-consumer", True),
]  # fmt: skip

RETRIES = [
    {"delayed-retry-type": kind, "delayed-retry-min": shortest, "delayed-retry-max": longest}
    for kind, shortest, longest in (("all", 100, 200), ("failed", 200, 100), ("disabled", 0, -1), ("word", 1, 2))
]


def parameters():
    for what in ("max-connections", "max-queues"):
        path = f"vhost-limits/{VHOST}/{what}"
        for body in ({"value": 10}, {"value": -1}, {"value": "word"}, {"value": 1.5}, {"value": None}, {}, "{", ""):
            yield "PUT", path, body
        yield "DELETE", path, None
        yield "DELETE", path, None
    yield "PUT", f"vhost-limits/{VHOST}/unknown", {"value": 1}
    yield "PUT", "vhost-limits/missing/max-queues", {"value": 1}
    for component in ("vhost-limits", "unknown"):
        path = f"parameters/{component}/{VHOST}/limits"
        for body in ({"value": {"max-queues": 100}}, {"value": {"unknown": 1}}, {"value": 1}, {}, "{", ""):
            yield "PUT", path, body
        yield "DELETE", path, None
        yield "DELETE", path, None
    for body in ({"value": {"a": 1}}, {"value": "text"}, {"value": None}, {}, "{", ""):
        yield "PUT", "global-parameters/surface-w", body
    yield "DELETE", "global-parameters/surface-w", None
    yield "DELETE", "global-parameters/surface-w", None
    yield "PUT", "cluster-name", {}
    yield "PUT", "cluster-name", {"name": 1}
    yield "PUT", "cluster-name", "{"


def definitions():
    for body in (
        "", "{", "[]", {"queues": [{"name": "d", "durable": True, "arguments": {}}]}, {"queues": 1}, {"queues": [{}]},
        {"exchanges": [{"name": "d", "type": "unknown"}]}, {"unknown": []},
        {"bindings": [{"source": "missing", "destination": "q", "destination_type": "queue", "routing_key": "k",
                       "arguments": {}}]},
    ):  # fmt: skip
        yield "POST", f"definitions/{VHOST}", body
    yield "POST", "definitions", {}
    yield "POST", "definitions", "{"
    yield "POST", "definitions", {"permissions": [{"user": "missing", "vhost": VHOST, **ALL}]}
    yield "POST", "definitions/missing", {}
    yield "PUT", "definitions", {}


def operations():
    for path in ("connections/missing", "connections/username/missing", "auth/attempts", "reset", "missing"):
        yield "DELETE", path, None
    for path in ("rebalance/queues", "missing", "overview", "login"):
        yield "POST", path, {}
    for path in ("feature-flags/missing/enable", "feature-flags/quorum_queue/enable", "whoami", "nodes"):
        yield "PUT", path, {}
    yield "POST", f"queues/quorum/{VHOST}/q/replicas/add", {"node": "missing"}
    yield "DELETE", f"queues/quorum/{VHOST}/q/replicas/delete", {"node": "missing"}


def endings():
    yield "DELETE", f"exchanges/{VHOST}/x?if-unused=true", None
    yield "DELETE", f"exchanges/{VHOST}/x", None
    yield "DELETE", f"exchanges/{VHOST}/x", None
    yield "DELETE", f"queues/{VHOST}/q?if-unused=true", None
    yield "DELETE", f"queues/{VHOST}/q", None
    yield "DELETE", f"users/{USER}", None
    yield "DELETE", f"users/{USER}", None
    yield "DELETE", f"vhosts/{VHOST}", None
    yield "DELETE", f"vhosts/{VHOST}", None


def steps():
    """All requests: (method, path, body)."""
    for group in (
        vhosts, users, permissions, queues, exchanges, bindings, messages, policies, parameters, definitions,
        operations, endings,
    ):  # fmt: skip
        yield from group()


def clean(web):
    """Takes away what a run before has left."""
    web.ask("DELETE", f"/api/vhosts/{VHOST}/deletion/protection")
    for path in (f"vhosts/{VHOST}", f"users/{USER}", "global-parameters/surface-w"):
        web.ask("DELETE", f"/api/{path}")


def named(seen, request, body):
    """The request and its body, with a number where it is not the first of its kind."""
    text = body if isinstance(body, str) and body else json.dumps(body)
    cases = [text, *(f"{text} again{' again' * number}" for number in range(9))]
    return next((request, case) for case in cases if (request, case) not in seen)


def observe(web):
    """{(request, its body and which of the same it is): the status, and what a good answer says} for one broker."""
    seen = {}
    clean(web)
    for method, path, body in steps():
        status, said = web.ask(method, f"/api/{path}", body)
        members = sorted(member for member in shape(said) if member) if said and status < 300 else []
        seen[named(seen, f"{method} {path}", body)] = " ".join([str(status), *members])
    clean(web)
    return seen
