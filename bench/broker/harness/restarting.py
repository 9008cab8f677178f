"""A broker that is stopped and started again on the same data, unlike those of `brokers`."""

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

START_LIMIT_S = 120
STOP_LIMIT_S = 60


class Restarting:
    """Courser on one data folder, which stops and starts; the folder stays."""

    def __init__(self, binary: Path, folder: Path):
        self.binary, self.folder = binary, folder
        self.process = None
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]

    @property
    def uri(self) -> str:
        """Where it listens, from one start to the next."""
        return f"amqp://guest:guest@127.0.0.1:{self.port}/"

    def start(self) -> float:
        """Seconds until it answers."""
        command = [self.binary, "--listen", f"127.0.0.1:{self.port}", "--data-dir", self.folder / "data"]
        # The usual address of the HTTP API may be another broker's.
        off = {"COURSER_MANAGEMENT_LISTEN": "none", "COURSER_METRICS_LISTEN": "none"}
        environment = {**os.environ, **off}
        with open(self.folder / "broker.log", "a") as log:
            began = time.monotonic()
            self.process = subprocess.Popen(command, stdout=log, stderr=log, env=environment)
        while not self.answers():
            if self.process.poll() is not None or time.monotonic() - began > START_LIMIT_S:
                sys.exit(f"error: the broker did not start:\n{(self.folder / 'broker.log').read_text()[-2000:]}")
            time.sleep(0.002)
        return time.monotonic() - began

    def answers(self) -> bool:
        """Whether it speaks the protocol yet."""
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=START_LIMIT_S) as connection:
                connection.sendall(b"AMQP\x00\x00\x09\x01")
                return bool(connection.recv(1))
        except OSError:
            return False

    def stop(self, how: signal.Signals) -> None:
        """With this signal; waits for its end."""
        self.process.send_signal(how)
        self.process.wait(STOP_LIMIT_S)

    @property
    def pids(self) -> list[int]:
        """Its process, which is another one after each start."""
        return [self.process.pid]
