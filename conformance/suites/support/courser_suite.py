"""A pytest plug-in for the tests of others: leaves out what `conformance/README.md` lists, with the reason given there.

COURSER_SUITE names the suite. The rows of the list look like this, with a pattern for the test's id:

    | aiormq | `*amqps*` | the brokers of the suites listen without TLS |
"""

import fnmatch
import os
import re
from pathlib import Path

import aiomisc
import pytest
from yarl import URL

# Limits of time that are meant for a machine with nothing else to do.
limited_to = aiomisc.timeout
aiomisc.timeout = lambda seconds: limited_to(4 * seconds)

ROW = re.compile(r"^\| (?P<suite>[\w-]+) \| `(?P<pattern>[^`]+)` \| (?P<reason>.+) \|$")


def exceptions(suite):
    """Patterns of tests that are left out, and why."""
    readme = Path(__file__).parents[2] / "README.md"
    rows = map(ROW.match, readme.read_text().splitlines())
    return [(row["pattern"], row["reason"]) for row in rows if row and row["suite"] == suite]


def pytest_collection_modifyitems(config, items):
    if os.environ.get("COURSER_SUITE_ALL"):
        return
    listed = exceptions(os.environ["COURSER_SUITE"])
    unused = {pattern for pattern, _ in listed}
    for item in items:
        for pattern, reason in listed:
            # A bracket is one: ids have them around parameters.
            if fnmatch.fnmatchcase(item.nodeid, pattern.replace("[", "[[]")):
                item.add_marker(pytest.mark.skip(reason=reason))
                unused.discard(pattern)
    if unused and os.environ.get("COURSER_SUITE_WHOLE") and not config.getoption("lf", False):
        raise pytest.UsageError(f"conformance/README.md lists what is not there: {', '.join(sorted(unused))}")


@pytest.fixture(scope="session")
def rabbitmq_container():
    """aiormq's source distribution lacks this fixture and the next; aio-pika has its own."""
    from tests.docker_client import DockerClient

    return DockerClient().run("", [])


@pytest.fixture(scope="session")
def amqp_direct_url(rabbitmq_container):
    """As above."""
    port = rabbitmq_container.ports["5672/tcp"]
    return URL.build(scheme="amqp", user="guest", password="guest", host="127.0.0.1", port=port, path="//")
