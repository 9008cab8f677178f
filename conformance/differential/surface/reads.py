"""All that can be read over HTTP: the status, and each member of the answer with its types."""

from urllib.parse import unquote

from .scene import QUEUES, USER
from .web import shape

QUEUE_PATHS = [f"queues/{{vhost}}/{queue}" for queue in QUEUES]
PATHS = [
    "overview", "cluster-name", "nodes", "nodes/{node}", "nodes/{node}/memory", "extensions", "auth",
    "auth/attempts/{node}", "auth/hash_password/secret", "whoami", "version", "definitions", "definitions/{vhost}",
    "connections", "connections/{connection}", "connections/{connection}/channels", "connections/username/{login}",
    "vhosts/{vhost}/connections", "channels", "channels/{channel}", "vhosts/{vhost}/channels", "consumers",
    "consumers/{vhost}", "exchanges", "exchanges/{vhost}", "exchanges/{vhost}/{exchange}",
    "exchanges/{vhost}/amq.default", "exchanges/{vhost}/{exchange}/bindings/source",
    "exchanges/{vhost}/{exchange}/bindings/destination", "queues", "queues/detailed", "queues/{vhost}", *QUEUE_PATHS,
    "queues/{vhost}/s-classic/bindings", "queues/quorum/{vhost}/s-quorum/status", "queues?page=1&page_size=2",
    "queues?columns=name,messages", "queues/{vhost}?disable_stats=true", "queues/{vhost}?name=s-&use_regex=true&page=1",
    "exchanges?page=1", "connections?page=1", "channels?page=1", "vhosts?sort=name&sort_reverse=true",
    "queues?page=0", "queues?page=word", "queues?page=1&page_size=10000", "queues?page=99",
    "bindings", "bindings/{vhost}", "bindings/{vhost}/e/{exchange}/q/s-classic",
    "bindings/{vhost}/e/amq.fanout/e/{exchange}",
    "vhosts", "vhosts/{vhost}", "vhosts/{vhost}/permissions", "vhosts/{vhost}/topic-permissions", "users",
    "users/without-permissions", "users/{user}", "users/{user}/permissions", "users/{user}/topic-permissions",
    "user-limits", "user-limits/{user}", "permissions", "permissions/{vhost}/{user}", "topic-permissions",
    "topic-permissions/{vhost}/{user}", "parameters", "parameters/vhost-limits", "parameters/vhost-limits/{vhost}",
    "parameters/vhost-limits/{vhost}/limits", "global-parameters", "global-parameters/s-global", "policies",
    "policies/{vhost}", "policies/{vhost}/s-policy", "operator-policies", "operator-policies/{vhost}",
    "operator-policies/{vhost}/s-operator", "vhost-limits", "vhost-limits/{vhost}", "feature-flags",
    "deprecated-features", "deprecated-features/used", "aliveness-test/{vhost}", "health/checks/alarms",
    "health/checks/local-alarms", "health/checks/certificate-expiration/1/months",
    "health/checks/certificate-expiration/1/word", "health/checks/port-listener/1", "health/checks/port-listener/word",
    "health/checks/protocol-listener/amqp", "health/checks/protocol-listener/mqtt", "health/checks/virtual-hosts",
    "health/checks/node-is-quorum-critical", "health/checks/node-is-mirror-sync-critical",
    "health/checks/ready-to-serve-clients", "health/checks/below-node-connection-limit", "health/checks/is-in-service",
    "health/checks/metadata-store/initialized", "health/checks/metadata-store/initialized/with-data",
    "health/checks/quorum-queues-without-elected-leaders/all-vhosts",
    "health/checks/quorum-queues-without-elected-leaders/vhost/{vhost}",
    "rebalance/queues", "nodes/missing", "connections/missing", "channels/missing", "consumers/missing",
    "exchanges/missing", "exchanges/{vhost}/missing", "exchanges/{vhost}/missing/bindings/source", "queues/missing",
    "queues/{vhost}/missing", "queues/{vhost}/missing/bindings", "bindings/missing",
    "bindings/{vhost}/e/{exchange}/q/missing", "vhosts/missing", "vhosts/missing/permissions", "users/missing",
    "users/missing/permissions", "permissions/{vhost}/missing", "topic-permissions/{vhost}/missing",
    "parameters/missing", "parameters/missing/{vhost}/name", "global-parameters/missing", "policies/{vhost}/missing",
    "vhost-limits/missing", "user-limits/missing", "definitions/missing", "missing", "",
]  # fmt: skip
# Read with other logins too.
GUARDED = ("overview", "nodes", "queues/{vhost}", "users", "definitions", "policies", "whoami", "connections")


def observe(web, names):
    """{(request, "status" or a member): the status or the member's types} for one broker."""
    seen = {}
    for path in PATHS:
        status, said = web.ask("GET", "/api/" + path.format(**names))
        request = f"GET {path}"
        seen[request, "status"] = str(status)
        if status == 200:
            for member, types in sorted(shape(said).items()):
                if "page=" in path and "[]" in member:
                    continue
                # Some are named by the node.
                member = member.replace(unquote(names["node"]), "NODE") or "itself"
                seen[request, member] = " or ".join(sorted(types))
    for login, name in (("", "no login"), ("guest:wrong", "a wrong password"), (f"{USER}:p", "a plain user")):
        for path in GUARDED:
            status, _ = web.ask("GET", "/api/" + path.format(**names), login=login)
            seen[f"GET {path} with {name}", "status"] = str(status)
    return seen


def outermost(seen, other):
    """What was seen, without the members of what the other does not have."""
    kept = {}
    for (request, member), types in seen.items():
        parents = [member[:end] or "itself" for end in range(len(member)) if member[end] in ".["]
        if all((request, parent) in other for parent in parents if (request, parent) in seen):
            kept[request, member] = types
    return kept
