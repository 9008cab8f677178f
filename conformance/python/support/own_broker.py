"""A broker that a test starts for itself, because of its settings: COURSER_TEST_BINARY is the program."""

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pika

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "lib"))
from ports import free_port  # noqa: E402

START_TIMEOUT_S = 30
RELOADED = "configuration reloaded"


class OwnBroker:
    """Runs in a folder of its own with the settings it is given, as YAML."""

    def __init__(self, folder, settings):
        self.folder, self.port = folder, free_port()
        self.configure(settings)
        self.start()

    def start(self):
        # Settings of the broker under test are none of its business.
        environment = {name: value for name, value in os.environ.items() if not name.startswith("COURSER_")}
        # Its usual address may be another broker's.
        environment["COURSER_MANAGEMENT_LISTEN"] = "none"
        environment["COURSER_METRICS_LISTEN"] = "none"
        with open(self.folder / "broker.log", "a") as log:
            self.process = subprocess.Popen(
                [os.environ["COURSER_TEST_BINARY"], "--config", self.folder / "courser.yaml",
                 "--listen", f"127.0.0.1:{self.port}", "--data-dir", self.folder / "data"],
                stdout=log, stderr=log, env=environment,
            )  # fmt: skip
        self._wait_until("it listens", self._listens, START_TIMEOUT_S)

    def crash(self):
        """`kill -9`, and another start."""
        self.stop()
        self.start()

    def configure(self, settings):
        (self.folder / "courser.yaml").write_text(settings)

    def reconfigure(self, settings):
        """Has the broker read vhosts and policies again. They hold when this returns."""
        told = self.log().count(RELOADED)
        self.configure(settings)
        self.process.send_signal(signal.SIGHUP)
        self._wait_until("it has read its settings", lambda: self.log().count(RELOADED) > told, 10)

    def connect(self, vhost="/", **settings):
        """A blocking pika connection to one of its vhosts."""
        return pika.BlockingConnection(
            pika.ConnectionParameters("127.0.0.1", self.port, vhost, socket_timeout=20, stack_timeout=20, **settings)
        )

    def log(self):
        return (self.folder / "broker.log").read_text()

    def stop(self):
        self.process.kill()
        self.process.wait()

    def _listens(self):
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

    def _wait_until(self, what, condition, timeout_s):
        deadline = time.monotonic() + timeout_s
        while not condition():
            assert self.process.poll() is None, f"the broker has ended: {self.log()}"
            assert time.monotonic() < deadline, f"not within {timeout_s} s: {what}\n{self.log()}"
            time.sleep(0.02)
