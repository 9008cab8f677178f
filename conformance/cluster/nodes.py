"""Nodes of a cluster as processes on this machine, each behind a proxy that can be cut."""

import http.client
import json
import pathlib
import signal
import socket
import subprocess
import threading
import time

PATIENCE_S = 60


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Proxy:
    """Passes on what other nodes say to one, until it is cut."""

    def __init__(self, target):
        self.target = target
        self.is_cut = False
        self.open = set()
        self.lock = threading.Lock()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                incoming, _ = self.listener.accept()
            except OSError:
                return
            if self.is_cut:
                incoming.close()
                continue
            try:
                outgoing = socket.create_connection(("127.0.0.1", self.target), timeout=5)
            except OSError:
                incoming.close()
                continue
            outgoing.settimeout(None)
            with self.lock:
                self.open |= {incoming, outgoing}
            for source, sink in ((incoming, outgoing), (outgoing, incoming)):
                threading.Thread(target=self.carry, args=(source, sink), daemon=True).start()

    def carry(self, source, sink):
        try:
            while data := source.recv(65536):
                sink.sendall(data)
        except OSError:
            pass
        for one in (source, sink):
            with self.lock:
                self.open.discard(one)
            one.close()

    def cut(self):
        self.is_cut = True
        with self.lock:
            open_now = list(self.open)
        for one in open_now:
            try:
                one.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def mend(self):
        self.is_cut = False

    def close(self):
        self.listener.close()
        self.cut()


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost", timeout=5)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(str(self.path))


class Node:
    def __init__(self, binary, folder, name):
        self.binary, self.name = binary, name
        self.folder = pathlib.Path(folder) / name
        self.folder.mkdir()
        self.amqp, self.peers = free_port(), free_port()
        self.proxy = Proxy(self.peers)
        self.process = None
        self.is_stopped = False

    def start(self, join):
        log = open(self.folder.parent / f"{self.name}.log", "ab")
        environment = {
            "COURSER_CLUSTER_ADVERTISE": f"127.0.0.1:{self.proxy.port}",
            "COURSER_MANAGEMENT_LISTEN": "none",
            "COURSER_METRICS_LISTEN": "none",
            # Small, so that a node that was away for some seconds may need a copy of the whole log.
            "COURSER_JOURNAL_SEGMENT_BYTES": str(1 << 20),
            "COURSER_JOURNAL_CHECKPOINT_AFTER_BYTES": str(1 << 20),
        }
        arguments = ["--cluster-name", "nemesis", "--node-name", self.name]
        arguments += ["--cluster-listen", f"127.0.0.1:{self.peers}", "--join", join]
        arguments += ["--listen", f"127.0.0.1:{self.amqp}", "--data-dir", str(self.folder / "data")]
        # A socket's path has to be short: the broker runs where it is.
        self.process = subprocess.Popen(
            [self.binary, *arguments], env=environment, stdout=log, stderr=log
        )
        log.close()

    def kill(self):
        self.resume()
        self.process.kill()
        self.process.wait()

    def end(self):
        """Stops it in order."""
        self.resume()
        self.process.terminate()
        try:
            self.process.wait(timeout=PATIENCE_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise

    def pause(self):
        self.process.send_signal(signal.SIGSTOP)
        self.is_stopped = True

    def resume(self):
        if self.is_stopped:
            self.process.send_signal(signal.SIGCONT)
            self.is_stopped = False

    def is_running(self):
        return self.process is not None and self.process.poll() is None

    def status(self):
        """What the node says of the cluster; nothing if it does not answer."""
        connection = UnixConnection(self.folder / "data" / "ctl.sock")
        try:
            connection.request("GET", "/api/cluster")
            answer = connection.getresponse()
            return json.loads(answer.read()) if answer.status == 200 else None
        except (OSError, ValueError, http.client.HTTPException):
            return None
        finally:
            connection.close()


class Cluster:
    def __init__(self, binary, folder, count):
        self.nodes = [Node(binary, folder, name) for name in "abcdefg"[:count]]
        self.join = ",".join(f"127.0.0.1:{node.proxy.port}" for node in self.nodes)

    def start(self):
        for node in self.nodes:
            self.start_node(node)

    def start_node(self, node):
        node.start(self.join)

    def leader(self):
        """The node that leads, as a majority of those that answer says."""
        until = time.monotonic() + PATIENCE_S
        while time.monotonic() < until:
            votes = {}
            for node in self.nodes:
                if node.is_running() and not node.is_stopped:
                    status = node.status() or {}
                    if status.get("leader"):
                        votes[status["leader"]] = votes.get(status["leader"], 0) + 1
            for name, count in votes.items():
                if count * 2 > len(self.nodes):
                    return next(node for node in self.nodes if node.name == name)
            time.sleep(0.1)
        raise AssertionError(f"no leader within {PATIENCE_S} s")

    def close(self):
        for node in self.nodes:
            if node.is_running():
                node.kill()
            node.proxy.close()
