"""What is measured: clusters of three nodes, and one node beside them, each with an empty folder for data."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

from harness import process
from harness.brokers import Broker

ROOT = Path(__file__).resolve().parent.parent.parent.parent
sys.path.append(str(ROOT / "conformance" / "cluster"))
from nodes import ask, free_port  # noqa: E402

NAMES = "abc"
TITLES = {"one": "Courser, one node", "cluster": "Courser, three nodes", "rabbitmq": "RabbitMQ, three nodes"}
START_LIMIT_S = 60
STOP_LIMIT_S = 30


class Node:
    """A process of a broker: `pid` is that which ends with it."""

    def __init__(self, name: str, pid: int, port: int):
        self.name, self.pid, self.port = name, pid, port

    @property
    def uri(self) -> str:
        return f"amqp://guest:guest@127.0.0.1:{self.port}/%2F"

    def kill(self) -> None:
        """At once, with all its processes."""
        for pid in process.tree(self.pid):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass


class CourserNode(Node):
    """One that can come back."""

    def __init__(self, binary: Path, folder: Path, name: str, settings: list[str]):
        super().__init__(name, 0, free_port())
        self.binary, self.folder, self.settings = binary, folder / name, settings
        self.folder.mkdir(parents=True)
        self.process = None

    def start(self) -> None:
        # The usual addresses may be another broker's.
        off = {"COURSER_MANAGEMENT_LISTEN": "none", "COURSER_METRICS_LISTEN": "none"}
        command = [self.binary, "--listen", f"127.0.0.1:{self.port}", "--data-dir", self.folder / "data", *self.settings]
        with open(self.folder / "broker.log", "a") as log:
            # A session of its own, as a service has.
            self.process = subprocess.Popen(
                command, stdout=log, stderr=log, env={**os.environ, **off}, start_new_session=True
            )
        self.pid = self.process.pid

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def stop(self) -> None:
        """In order."""
        self.process.terminate()
        self.process.wait(STOP_LIMIT_S)

    def status(self) -> dict:
        """What it says of the cluster; nothing while it does not answer."""
        return ask(self.folder / "data" / "ctl.sock") or {}

    def log_end(self) -> str:
        return (self.folder / "broker.log").read_text()[-2000:]


class Courser:
    """One node by itself, or three."""

    def __init__(self, binary: Path, folder: Path, count: int):
        self.folder = folder
        shutil.rmtree(folder, ignore_errors=True)
        peers = [free_port() for _ in range(count)]
        join = ",".join(f"127.0.0.1:{port}" for port in peers)
        self.nodes = []
        for name, port in zip(NAMES, peers):
            settings = ["--cluster-name", "bench", "--node-name", name, "--cluster-listen", f"127.0.0.1:{port}", "--join", join]
            self.nodes.append(CourserNode(binary, folder, name, settings if count > 1 else []))

    def __enter__(self):
        try:
            for node in self.nodes:
                node.start()
            self.leader()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_) -> None:
        for node in self.nodes:
            if node.process and node.process.poll() is None:
                node.kill()
            if (log := node.folder / "broker.log").exists():
                shutil.copy(log, self.folder.parent / f"{node.name}-of-{len(self.nodes)}.log")
        shutil.rmtree(self.folder, ignore_errors=True)

    def leader(self) -> Node:
        """Who serves clients, as a majority of the nodes says."""
        until = time.monotonic() + START_LIMIT_S
        while time.monotonic() < until:
            if len(self.nodes) == 1 and answers(self.nodes[0]):
                return self.nodes[0]
            said = [node.status().get("leader") for node in self.nodes] if len(self.nodes) > 1 else []
            for node in self.nodes:
                if said.count(node.name) * 2 > len(self.nodes) and answers(node):
                    return node
            time.sleep(0.05)
        raise SystemExit(f"error: no leader within {START_LIMIT_S} s; node a said:\n{self.nodes[0].log_end()}")

    def followers(self) -> list[Node]:
        leader = self.leader()
        return [node for node in self.nodes if node is not leader]

    def lag(self, name: str) -> int | None:
        """How many entries a member lacks, as the leader says; nothing while it is not connected."""
        for node in self.nodes:
            if node.process.poll() is None:
                status = node.status()
                if status.get("leader") == node.name:
                    member = next(one for one in status["members"] if one["name"] == name)
                    return member["lag_entries"] if member["connected"] else None
        return None

    def broker(self, at: Node) -> Broker:
        """As a load sees it that connects to this node; what it costs is what all cost."""
        return Broker(at.uri, "Courser", [node.process.pid for node in self.nodes])


class RabbitMQ:
    """Three nodes whose durable queues are quorum queues. A queue's leader is the node on which it was declared."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.nodes: list[Node] = []

    def __enter__(self):
        shutil.rmtree(self.folder, ignore_errors=True)
        script = Path(__file__).resolve().parent.parent / "rabbitmq"
        self.keeper = subprocess.Popen(
            [script, self.folder], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
        )
        for _ in NAMES:
            line = self.keeper.stdout.readline().split()
            if len(line) != 3:
                self.__exit__()
                raise SystemExit("error: RabbitMQ's cluster did not start")
            self.nodes.append(Node(line[0], int(line[1]), int(line[2])))
        self.version = self.keeper.stdout.readline().strip()
        if not self.version:
            self.__exit__()
            raise SystemExit("error: RabbitMQ's nodes did not find each other")
        return self

    def __exit__(self, *_) -> None:
        self.keeper.stdin.close()
        self.keeper.stdout.close()
        self.keeper.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def leader(self) -> Node:
        return self.nodes[0]

    def broker(self, at: Node) -> Broker:
        pids = [pid for node in self.nodes for pid in process.tree(node.pid)]
        return Broker(at.uri, self.version, pids)


def answers(node: Node) -> bool:
    """Whether it lets a client begin."""
    try:
        with socket.create_connection(("127.0.0.1", node.port), timeout=5) as connection:
            connection.sendall(b"AMQP\x00\x00\x09\x01")
            return bool(connection.recv(1))
    except OSError:
        return False
