"""Brokers: each run gets a fresh one, with an empty data folder."""

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from . import process

HERE = Path(__file__).resolve().parent.parent
TITLES = {
    "courser": "Courser",
    "courser-tls": "Courser (TLS)",
    "courser-managed": "Courser (HTTP API)",
    "courser-watched": "Courser (watched)",
    "rabbitmq": "RabbitMQ",
    "rabbitmq3": "RabbitMQ 3",
    "lavinmq": "LavinMQ",
    "strangeq": "StrangeQ",
}
COMMANDS = {
    "courser": "courser --listen 127.0.0.1:PORT --data-dir FOLDER",
    "courser-tls": "the same with --config FILE, which names a certificate and an address for TLS",
    "courser-managed": "the same with COURSER_MANAGEMENT_LISTEN and COURSER_METRICS_LISTEN",
    "courser-watched": "the same, asked every second as by the web page and Prometheus",
    "rabbitmq": "rabbitmq-server (own node, ports, folders)",
    "rabbitmq3": "rabbitmq-server (own node, ports, folders)",
    "lavinmq": "lavinmq --config EMPTY --data-dir FOLDER --amqp-port PORT",
    "strangeq": "amqp-server --config FILE (its defaults but for address and folder)",
}
# Brokers that are measured where the machine has their programs.
PROGRAMS = {"lavinmq": "lavinmq", "strangeq": "amqp-server"}


def usual() -> list[str]:
    """Those that are measured unless told otherwise."""
    return ["courser", "rabbitmq", *(name for name, program in PROGRAMS.items() if shutil.which(program))]


@dataclass
class Broker:
    """A running broker."""

    uri: str
    # As it announces itself, `RabbitMQ 4.3.6`.
    version: str
    # All its processes.
    pids: list[int]


class Serving:
    """Runs a broker for the time of a `with` block; its data is deleted at the end."""

    def __init__(self, name: str, folder: Path, courser: Path | None, plugins: str = ""):
        """`plugins` of RabbitMQ's, separated by commas, are switched on."""
        self.command = [str(HERE / "serve"), name, str(folder), str(courser) if name.startswith("courser") else plugins]
        self.folder = folder

    def __enter__(self) -> Broker:
        shutil.rmtree(self.folder, ignore_errors=True)
        # A session of its own: Ctrl-C is for the harness, which then closes the pipe.
        self.keeper = subprocess.Popen(
            self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
        )
        line = self.keeper.stdout.readline()
        if not line:
            self.__exit__()
            raise SystemExit(f"error: {' '.join(self.command)} did not start")
        pid, uri, version = line.strip().split(" ", 2)
        return Broker(uri, version, process.tree(int(pid)))

    def __exit__(self, *_) -> None:
        self.keeper.stdin.close()
        self.keeper.stdout.close()
        self.keeper.wait()
        shutil.rmtree(self.folder, ignore_errors=True)
