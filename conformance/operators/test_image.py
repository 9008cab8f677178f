"""The image, as its file and compose.yaml say to run it: a broker that users from outside of the container can log in to.

Docker is not needed: the broker gets the variables that the image and the command give it. What comes over a published port does not
come from the container's own loopback; here, it comes from ADDRESS.
"""

import base64
import os
import re
import shlex
import socket
import struct
import subprocess
import tempfile
import time
import unittest
import urllib.error
import urllib.request
from pathlib import Path

DEPLOY = Path(__file__).resolve().parents[2] / "deploy"
DOCKERFILE = (DEPLOY / "docker/Dockerfile").read_text()
COMPOSE = (DEPLOY / "compose.yaml").read_text()
# An address of this machine that is no loopback's.
ADDRESS = "192.0.2.1"
PATIENCE_S = 30


def joined(text, prefix=""):
    """Lines that a backslash continues, as one."""
    return re.sub(r"\\\n" + prefix + r"\s*", "", text)


def image_environment():
    """What ENV sets."""
    (line,) = re.findall(r"^ENV (.*)$", joined(DOCKERFILE), re.MULTILINE)
    return dict(pair.split("=", 1) for pair in shlex.split(line))


def run_line():
    """The options of `docker run`, each with its values."""
    (line,) = re.findall(r"^# *docker run (.*)$", joined(DOCKERFILE, "#"), re.MULTILINE)
    options, words = {}, shlex.split(line)
    while words[0].startswith("--"):
        options.setdefault(words.pop(0), []).append(words.pop(0))
    assert words == ["courser"], words
    return options


def compose_environment(given):
    """The variables of the service, with those that are given to Docker Compose."""
    found = re.findall(r"^ +(COURSER_\w+): (.*)$", COMPOSE, re.MULTILINE)
    fill = re.compile(r"\$\{(\w+):[-?]([^}]*)\}")
    return {name: fill.sub(lambda one: given.get(one[1], one[2]), value.strip('"')) for name, value in found}


class Broker:
    def __init__(self, environment):
        self.folder = tempfile.TemporaryDirectory()
        kept = {name: value for name, value in os.environ.items() if not name.startswith("COURSER_")}
        self.log = open(f"{self.folder.name}/log", "w+")
        self.process = subprocess.Popen(
            [os.environ["COURSER_TEST_BINARY"]], env={**kept, **environment, "COURSER_DATA_DIR": f"{self.folder.name}/data"},
            stdout=self.log, stderr=self.log,
        )  # fmt: skip

    def __enter__(self):
        deadline = time.monotonic() + PATIENCE_S
        while True:
            try:
                for port in (5672, 15672, 15692):
                    socket.create_connection((ADDRESS, port)).close()
                return self
            except OSError:
                assert self.process.poll() is None and time.monotonic() < deadline, Path(self.log.name).read_text()
                time.sleep(0.1)

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(PATIENCE_S)
        self.log.close()
        self.folder.cleanup()


def amqp_login(user, password):
    """Whether connection.start-ok is answered with connection.tune."""
    with socket.create_connection((ADDRESS, 5672), PATIENCE_S) as connection:
        assert connection.getpeername()[0] == connection.getsockname()[0] == ADDRESS
        connection.sendall(b"AMQP\x00\x00\x09\x01")
        stream = connection.makefile("rb")

        def method():
            kind, _, size = struct.unpack(">BHI", stream.read(7))
            payload = stream.read(size + 1)
            return kind, *struct.unpack_from(">HH", payload)

        assert method() == (1, 10, 10)
        response = f"\0{user}\0{password}".encode()
        payload = struct.pack(">HHI", 10, 11, 0) + b"\x05PLAIN" + struct.pack(">I", len(response)) + response + b"\x05en_US"
        connection.sendall(struct.pack(">BHI", 1, 0, len(payload)) + payload + b"\xce")
        try:
            return method() == (1, 10, 30)
        except struct.error:
            return False


def api_login(user, password):
    request = urllib.request.Request(f"http://{ADDRESS}:15672/api/whoami")
    request.add_header("authorization", "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode())
    try:
        with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:
            return answer.status == 200
    except urllib.error.HTTPError as error:
        error.close()
        return False


class ImageTest(unittest.TestCase):
    def logs_in(self, environment):
        user, password = environment["COURSER_AUTH_USER"], environment["COURSER_AUTH_PASSWORD"]
        for login in (amqp_login, api_login):
            self.assertTrue(login(user, password), login)
            self.assertFalse(login(user, "wrong"), login)
            self.assertFalse(login("guest", "guest"), login)

    def test_the_line_of_docker_run_gives_a_broker_that_one_can_log_in_to(self):
        options = run_line()
        published = {one.rpartition(":")[2] for one in options["--publish"]}
        self.assertEqual(published, {"5672", "15672"})
        volumes = [one.partition(":")[2] for one in options["--volume"]]
        self.assertEqual(volumes, [image_environment()["COURSER_DATA_DIR"]])
        environment = {**image_environment(), **dict(one.split("=", 1) for one in options["--env"])}
        with Broker(environment):
            self.logs_in(environment)

    def test_compose_gives_a_broker_that_one_can_log_in_to(self):
        environment = {**image_environment(), **compose_environment({"COURSER_AUTH_PASSWORD": "of one's own"})}
        self.assertEqual(environment["COURSER_AUTH_PASSWORD"], "of one's own")
        with Broker(environment):
            self.logs_in(environment)

    def test_the_image_alone_lets_no_user_in_from_outside(self):
        with Broker(image_environment()):
            self.assertFalse(amqp_login("guest", "guest"))
            self.assertFalse(api_login("guest", "guest"))


if __name__ == "__main__":
    unittest.main()
