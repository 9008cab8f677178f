"""Nodes of a cluster as processes on this machine, each behind a proxy that can be cut."""

import http.client
import json
import pathlib
import random
import signal
import socket
import subprocess
import sys
import time
import urllib.parse

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
from ports import free_port  # noqa: E402
from proxy import Proxy, owner  # noqa: E402

PATIENCE_S = 60


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost", timeout=5)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(str(self.path))


def request(path, method, what, body=None):
    """The status and the text that the node with this socket answers; `None` and why, if it does not."""
    connection = UnixConnection(path)
    try:
        connection.request(method, what, None if body is None else json.dumps(body))
        answer = connection.getresponse()
        return answer.status, answer.read()
    except (OSError, http.client.HTTPException) as error:
        return None, repr(error)
    finally:
        connection.close()


def ask(path):
    """What the node with this socket says of the cluster; nothing if it does not answer."""
    status, text = request(path, "GET", "/api/cluster")
    try:
        return json.loads(text) if status == 200 else None
    except ValueError:
        return None


class SmallDisk:
    """A file system in memory, in which a folder can be that is to run out of space."""

    SIZE_BYTES = 256 << 20

    def __init__(self, folder):
        """Raises `OSError` where nothing may be mounted."""
        self.folder = folder
        command = ["mount", "-t", "tmpfs", "-o", f"size={self.SIZE_BYTES}", "courser-test", folder]
        if subprocess.run(command, capture_output=True).returncode != 0:
            raise OSError("nothing may be mounted here")

    def fill(self):
        """No byte is left."""
        with open(self.folder / "filler", "wb", buffering=0) as filler:
            for size in (1 << 20, 4096):
                try:
                    while True:
                        filler.write(bytes(size))
                except OSError:
                    pass

    def free(self):
        (self.folder / "filler").unlink(missing_ok=True)

    def close(self):
        subprocess.run(["umount", "--lazy", self.folder], check=False)


class Node:
    def __init__(self, binary, folder, name, whose):
        self.binary, self.name = binary, name
        self.folder = pathlib.Path(folder) / name
        self.folder.mkdir()
        self.amqp, self.peers = free_port(), free_port()
        self.proxy = Proxy(self.peers, whose)
        self.disk = None
        # Settings besides, as variables of the environment.
        self.settings = {}
        self.process = None
        self.is_stopped = False

    def start(self, join):
        log = open(self.folder.parent / f"{self.name}.log", "ab")
        environment = {
            "COURSER_CLUSTER_ADVERTISE": self.address,
            "COURSER_MANAGEMENT_LISTEN": "none",
            "COURSER_METRICS_LISTEN": "none",
            # Small, so that a node that was away for some seconds may need a copy of the whole log.
            "COURSER_JOURNAL_SEGMENT_BYTES": str(1 << 20),
            "COURSER_JOURNAL_CHECKPOINT_AFTER_BYTES": str(1 << 20),
            **self.settings,
        }
        arguments = ["--cluster-name", "nemesis", "--node-name", self.name]
        arguments += ["--cluster-listen", f"127.0.0.1:{self.peers}", "--join", join]
        arguments += ["--listen", f"127.0.0.1:{self.amqp}", "--data-dir", str(self.data)]
        # A socket's path has to be short: the broker runs where it is.
        self.process = subprocess.Popen(
            [self.binary, *arguments], env=environment, stdout=log, stderr=log
        )
        log.close()

    def kill(self):
        self.resume()
        self.process.kill()
        self.process.wait()

    def drain(self):
        """As an operator does before it is stopped; not every moment is good for that."""
        command = [self.binary, "ctl", "--data-dir", str(self.data), "cluster", "drain"]
        until = time.monotonic() + PATIENCE_S
        while (done := subprocess.run(command, capture_output=True, text=True)).returncode != 0:
            assert time.monotonic() < until, f"node {self.name} can't be drained: {done.stderr}"
            time.sleep(0.5)

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

    @property
    def data(self):
        return self.folder / "data"

    @property
    def address(self):
        """Where the others reach it."""
        return f"127.0.0.1:{self.proxy.port}"

    def log(self):
        return (self.folder.parent / f"{self.name}.log").read_text(errors="replace")

    def status(self):
        """What the node says of the cluster; nothing if it does not answer."""
        return ask(self.data / "ctl.sock")


class Cluster:
    def __init__(self, binary, folder, count, groups=1):
        def make(name):
            node = Node(binary, folder, name, lambda port, to: owner(self.nodes, port, to))
            node.settings["COURSER_CLUSTER_GROUPS"] = str(groups)
            return node

        self.groups = groups
        self.make, self.made = make, 0
        self.nodes = [make(name) for name in "abcdefg"[:count]]
        self.join = ",".join(node.address for node in self.nodes)
        try:
            self.nodes[0].disk = SmallDisk(self.nodes[0].folder)
        except OSError:
            pass

    def start(self):
        for node in self.nodes:
            self.start_node(node)

    def start_node(self, node):
        node.start(self.join)

    def one_more(self):
        """A node that is no member yet."""
        self.made += 1
        self.nodes.append(self.make(f"new{self.made}"))
        return self.nodes[-1]

    def forget(self, node):
        """One that is a member no more."""
        self.nodes.remove(node)
        node.proxy.close()

    def vhosts(self):
        """One in each group."""
        return ["/", *(f"group {number}" for number in range(1, self.groups))]

    def make_vhosts(self):
        """In a cluster that has just formed, as soon as it has its groups."""
        for number, vhost in enumerate(self.vhosts()[1:], 1):
            path = urllib.parse.quote(vhost, safe="")
            self.order("PUT", f"/api/vhosts/{path}", {"group": number})
            everything = {"configure": ".*", "write": ".*", "read": ".*"}
            self.order("PUT", f"/api/permissions/{path}/guest", everything)

    def group_of(self, vhost):
        path = f"/api/vhosts/{urllib.parse.quote(vhost, safe='')}"
        until = time.monotonic() + PATIENCE_S
        while time.monotonic() < until:
            status, text = request(self.leader().data / "ctl.sock", "GET", path)
            if status == 200:
                return json.loads(text).get("group", 0)
            time.sleep(0.2)
        raise AssertionError(f"no node says where vhost {vhost} is: {status} {text}")

    def begin_move(self, vhost, group):
        self.order("PUT", f"/api/cluster/moves/{urllib.parse.quote(vhost, safe='')}", {"group": group})

    def move(self, vhost, group):
        """Moves a vhost, and waits until it is there."""
        self.begin_move(vhost, group)
        until = time.monotonic() + PATIENCE_S
        while self.group_of(vhost) != group:
            assert time.monotonic() < until, f"vhost {vhost} is not in group {group} after {PATIENCE_S} s"
            time.sleep(0.1)

    def silent(self, publishers, before):
        """The vhosts in which nothing was confirmed since then."""
        heard = {one.vhost for one, old in zip(publishers, before) if len(one.confirmed) > old}
        return [vhost for vhost in self.vhosts() if vhost not in heard]

    def any_leader(self):
        """The node that leads any one of the groups."""
        home = self.leader()
        number = random.randrange(self.groups)
        if number == 0:
            return home
        groups = (home.status() or {}).get("groups", [])
        name = next((one["leader"] for one in groups if one["group"] == number), None)
        return next((node for node in self.nodes if node.name == name and node.is_running()), home)

    def leader(self):
        """The node that leads home, as a majority of those that answer says."""
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
        ended = [f"{node.name} has ended: {node.log()[-500:]}" for node in self.nodes if not node.is_running()]
        raise AssertionError(f"no leader within {PATIENCE_S} s; {'; '.join(ended) or 'all nodes run'}")

    def order(self, method, what, body=None):
        """Has the node that leads do something; its members may just be changing."""
        until, answer, is_asked = time.monotonic() + PATIENCE_S, None, False
        while time.monotonic() < until:
            answer = request(self.leader().data / "ctl.sock", method, what, body)
            # A change of leader may take the answer away, and not what was done.
            is_gone = is_asked and method == "DELETE" and answer[0] == 404
            if answer[0] is not None and answer[0] < 300 or is_gone:
                return
            is_asked = True
            time.sleep(0.5)
        raise AssertionError(f"{method} {what} was not done within {PATIENCE_S} s: {answer}")

    def member(self, name):
        """What the node that leads says of this one."""
        members = (self.leader().status() or {}).get("members", [])
        return next((one for one in members if one["name"] == name), None)

    def followers(self):
        leader = self.leader()
        return [node for node in self.nodes if node is not leader]

    def wait_for_voter(self, node):
        """Until it votes, is connected and lacks next to nothing; false if its process ends."""
        until, member = time.monotonic() + PATIENCE_S, {}
        while time.monotonic() < until:
            if not node.is_running():
                return False
            member = self.member(node.name) or {}
            is_there = member.get("role") == "leader" or (
                member.get("role") == "follower" and member["connected"] and (member["lag_entries"] or 0) < 100
            )
            if is_there and self.votes_everywhere(node):
                return True
            time.sleep(0.1)
        logs = "".join(f"\n{one.name}: {one.log()[-2000:]}" for one in self.nodes)
        raise AssertionError(
            f"node {node.name} did not catch up within {PATIENCE_S} s; the leader says {member}, it says {node.status()}; "
            f"the logs end {logs}"
        )

    def votes_everywhere(self, node):
        """In all groups, as who leads each of them says."""
        said = {one.name: one.status() or {} for one in self.nodes if one.is_running() and not one.is_stopped}
        for number in range(1, self.groups):
            of = {name: next((g for g in status.get("groups", []) if g["group"] == number), {}) for name, status in said.items()}
            led = [group for name, group in of.items() if group.get("leader") == name]
            if not led or node.name not in led[0]["voters"]:
                return False
            if led[0]["lag_entries"].get(node.name, 0) >= 100:
                return False
        return True

    def close(self):
        for node in self.nodes:
            if node.is_running():
                node.kill()
            node.proxy.close()
            if node.disk:
                node.disk.close()
