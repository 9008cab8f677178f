"""A broker under load, a cluster of three nodes, and a Prometheus that reads their metrics each second."""

import json
import os
import re
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

import pika
import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "conformance" / "lib"))
from ports import free_port  # noqa: E402

RULES = ROOT / "deploy/prometheus/courser.rules.yml"
CONFIGURATION = ROOT / "deploy/prometheus/prometheus.yml"
PATIENCE_S = 60


def wait_until(what, check):
    deadline = time.monotonic() + PATIENCE_S
    while True:
        try:
            if result := check():
                return result
        except (OSError, pika.exceptions.AMQPError):
            pass
        assert time.monotonic() < deadline, f"{what}: not within {PATIENCE_S} s"
        time.sleep(0.2)


class Load:
    """Does again and again what each panel counts."""

    def __init__(self, port):
        self.parameters = pika.ConnectionParameters("127.0.0.1", port)
        self.stopping, self.error = threading.Event(), None
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def run(self):
        try:
            connection = pika.BlockingConnection(self.parameters)
            channel = connection.channel()
            channel.confirm_delivery()
            for queue in ("waiting", "polled", "automatic", "manual"):
                channel.queue_declare(queue)
            channel.basic_consume("automatic", lambda *_: None, auto_ack=True)
            deliveries = connection.channel()
            deliveries.basic_consume("manual", self.delivered)
            held = connection.channel()
            held.basic_publish("", "waiting", b"held")
            held.basic_publish("", "waiting", b"ready")
            wait_until("a message", lambda: held.basic_get("waiting")[0])
            while not self.stopping.is_set():
                self.work(channel)
                connection.process_data_events(0.02)
            connection.close()
        except Exception as error:  # Told by the test that waits for data.
            self.error = error

    def work(self, channel):
        for body in (b"small", b"x" * 5000):
            for queue in ("automatic", "manual"):
                channel.basic_publish("", queue, body)
        channel.basic_publish("", "nowhere", b"dropped")
        try:
            channel.basic_publish("", "nowhere", b"returned", mandatory=True)
        except pika.exceptions.UnroutableError:
            pass
        channel.basic_publish("", "polled", b"first")
        channel.basic_publish("", "polled", b"second")
        channel.basic_get("polled", auto_ack=True)
        method, _, _ = channel.basic_get("polled")
        channel.basic_ack(method.delivery_tag)
        channel.basic_get("polled")
        channel.queue_declare("short-lived")
        channel.queue_delete("short-lived")
        with pika.BlockingConnection(self.parameters) as other:
            other.channel().close()

    @staticmethod
    def delivered(channel, method, _properties, _body):
        if method.redelivered:
            channel.basic_ack(method.delivery_tag)
        else:
            channel.basic_nack(method.delivery_tag, requeue=True)

    def stop(self):
        self.stopping.set()
        self.thread.join(PATIENCE_S)


class World:
    def __init__(self, folder):
        self.folder, self.processes = folder, []
        self.amqp, self.metrics, self.web = free_port(), free_port(), free_port()
        self.load = None

    def start(self):
        off = {name: value for name, value in os.environ.items() if not name.startswith("COURSER_")}
        binary = os.environ["COURSER_TEST_BINARY"]
        environment = {
            **off,
            "COURSER_MANAGEMENT_LISTEN": "none",
            "COURSER_METRICS_LISTEN": f"127.0.0.1:{self.metrics}",
        }
        broker = [binary, "--listen", f"127.0.0.1:{self.amqp}", "--data-dir", self.folder / "data"]
        self.spawn("broker", broker, environment)
        members = self.start_cluster(binary, off)
        wait_until("the broker shows its metrics", lambda: self.page("/metrics"))
        wait_until("it listens", lambda: socket.create_connection(("127.0.0.1", self.amqp)).close() is None)
        self.load = Load(self.amqp)
        targets = ", ".join(f"'127.0.0.1:{port}'" for port in (self.metrics, *members))
        # What of each queue is read is what the configuration that we ship reads.
        detailed = re.search(r"params: ({.*})", CONFIGURATION.read_text())[1]
        (self.folder / "prometheus.yml").write_text(
            "global: {scrape_interval: 1s, evaluation_interval: 1s}\n"
            f"rule_files: [{RULES}]\n"
            "scrape_configs:\n"
            f"- {{job_name: courser, static_configs: [{{targets: [{targets}]}}]}}\n"
            f"- {{job_name: courser-queues, metrics_path: /metrics/detailed, params: {detailed}, "
            f"static_configs: [{{targets: ['127.0.0.1:{self.metrics}']}}]}}\n"
        )
        self.spawn("prometheus", [
            "prometheus", f"--config.file={self.folder}/prometheus.yml", f"--storage.tsdb.path={self.folder}/tsdb",
            f"--web.listen-address=127.0.0.1:{self.web}",
        ], off)  # fmt: skip
        wait_until("Prometheus is ready", lambda: self.http(self.web, "/-/ready"))

    def start_cluster(self, binary, environment):
        """Three nodes with two groups, of which the first can be reached by clients; the ports of their metrics."""
        nodes = {name: free_port() for name in "abc"}
        self.cluster_amqp = free_port()
        join = ",".join(f"127.0.0.1:{port}" for port in nodes.values())
        metrics = []
        for name, port in nodes.items():
            metrics.append(free_port())
            self.spawn(f"node-{name}", [
                binary, "--cluster-name", "three", "--node-name", name, "--cluster-listen", f"127.0.0.1:{port}", "--join", join,
                "--listen", f"127.0.0.1:{self.cluster_amqp if name == 'a' else free_port()}", "--data-dir", self.member_data(name),
            ], {
                **environment,
                "COURSER_MANAGEMENT_LISTEN": "none",
                "COURSER_METRICS_LISTEN": f"127.0.0.1:{metrics[-1]}",
                "COURSER_CLUSTER_GROUPS": "2",
                "COURSER_CLUSTER_SECRET": "known-to-all-three-nodes",
            })  # fmt: skip
        led = "courser_cluster_has_leader 1"
        wait_until("the nodes have a leader", lambda: all(led in self.http(port, "/metrics") for port in metrics))
        return metrics

    def member_data(self, name):
        return self.folder / f"data-{name}"

    def spawn(self, name, command, environment):
        with open(self.folder / f"{name}.log", "w") as log:
            self.processes.append(subprocess.Popen(command, stdout=log, stderr=log, env=environment))

    def stop(self):
        if self.load:
            self.load.stop()
        for process in reversed(self.processes):
            process.terminate()
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    @staticmethod
    def http(port, path):
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=20) as answer:
            return answer.read().decode()

    def page(self, path):
        """A page of metrics."""
        return self.http(self.metrics, path)

    def api(self, path):
        """What Prometheus answers."""
        try:
            return json.loads(self.http(self.web, f"/api/v1/{path}"))["data"]
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{path}: {error.read().decode()}") from error

    def query(self, expression):
        """The values of an expression as it is now."""
        found = self.api("query?" + urllib.parse.urlencode({"query": expression}))
        return [float(row["value"][1]) for row in found["result"]]

    def wait_for(self, expression, is_enough):
        def check():
            assert self.load.error is None, self.load.error
            values = self.query(expression)
            return values and is_enough(values)

        wait_until(expression, check)


@pytest.fixture(scope="session")
def world(tmp_path_factory):
    world = World(tmp_path_factory.mktemp("prometheus"))
    try:
        world.start()
        yield world
    finally:
        world.stop()
