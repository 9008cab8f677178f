"""A broker with a gateway, and clients of both sides."""

import itertools
import logging
import os
import random
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pika
import pytest
import zmq

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "lib"))
from ports import free_port  # noqa: E402

# Each attempt to connect to a broker that starts would be told of.
logging.getLogger("pika").setLevel(logging.CRITICAL)


class Broker:
    """A broker of its own; `endpoints` is the YAML of the gateway's list."""

    def __init__(self, folder):
        self.folder, self.port, self.process, self.connections = folder, free_port(), None, []

    def configure(self, endpoints):
        self.config = self.folder / "courser.yaml"
        self.config.write_text(f"gateway:\n  endpoints:\n{endpoints}")

    def reload(self, endpoints):
        self.configure(endpoints)
        self.process.send_signal(signal.SIGHUP)

    def start(self, endpoints):
        self.configure(endpoints)
        self.log = open(self.folder / "broker.log", "a")
        # The usual address of the HTTP API may be another broker's.
        off = {"COURSER_MANAGEMENT_LISTEN": "none", "COURSER_METRICS_LISTEN": "none"}
        environment = {**os.environ, **off}
        self.process = subprocess.Popen(
            [os.environ["COURSER_TEST_BINARY"], "--config", self.config, "--listen", f"127.0.0.1:{self.port}",
             "--data-dir", self.folder / "data"], stdout=self.log, stderr=self.log, env=environment)
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline and self.process.poll() is None:
            try:
                connection = self.connect(for_thread=True)
                wait_for_queues(connection, set(re.findall(r"queue: (\w+)", endpoints)))
                connection.close()
                return self
            except pika.exceptions.AMQPError:
                time.sleep(0.05)
        raise AssertionError(self.said())

    def said(self):
        return (self.folder / "broker.log").read_text()

    def connect(self, for_thread=False):
        connection = pika.BlockingConnection(pika.ConnectionParameters("127.0.0.1", self.port))
        if not for_thread:
            self.connections.append(connection)
        return connection

    def stop(self, how=signal.SIGTERM):
        # The broker would wait for their answer to its farewell. A connection that a thread serves gives it.
        for connection in self.connections:
            if connection.is_open:
                connection.close()
        self.connections.clear()
        if self.process and self.process.poll() is None:
            self.process.send_signal(how)
            self.process.wait(timeout=40)


def wait_for_queues(connection, names, seconds=2):
    """Endpoints declare their queues soon after the start, if they may."""
    deadline = time.monotonic() + seconds
    for name in names:
        while time.monotonic() < deadline:
            try:
                connection.channel().queue_declare(name, passive=True)
                break
            except pika.exceptions.ChannelClosedByBroker:
                time.sleep(0.02)


@pytest.fixture
def broker(tmp_path):
    broker = Broker(tmp_path)
    yield broker
    broker.stop(signal.SIGKILL)
    print(broker.said())


@pytest.fixture
def port():
    return free_port()


@pytest.fixture
def peers():
    """Makes ZeroMQ sockets: peers(zmq.PUSH, port, option=value)."""
    context, made = zmq.Context(), []

    def make(kind, port=None, subscribe=None, host="127.0.0.1", address=None, **options):
        peer = context.socket(kind)
        made.append(peer)  # Python closes what is not referred to.
        # Long enough for a machine that has much else to do.
        peer.linger, peer.rcvtimeo, peer.sndtimeo = 0, 20_000, 5000
        for name, value in options.items():
            setattr(peer, name, value)
        for prefix in subscribe or []:
            peer.subscribe(prefix)
        peer.connect(address or f"tcp://{host}:{port}")
        return peer

    yield make
    context.destroy(linger=0)


@pytest.fixture
def gem():
    """Runs a Ruby program with the ZeroMQ gem of this repository."""
    lib = Path(__file__).parents[2] / "ruby/courser-zmq/lib"
    started = []

    def run(program, *arguments):
        process = subprocess.Popen(["ruby", "-I", lib, "-r", "courser-zmq", "-e", program, *map(str, arguments)],
                                   stdout=subprocess.PIPE, text=True)
        started.append(process)
        return process

    yield run
    for process in started:
        process.kill()
        process.wait()


def take(channel, queue, count, seconds=10):
    """The next messages of a queue, as (method, properties, body)."""
    taken, deadline = [], time.monotonic() + seconds
    while len(taken) < count and time.monotonic() < deadline:
        method, properties, body = channel.basic_get(queue, auto_ack=True)
        if method:
            taken.append((method, properties, body))
        else:
            time.sleep(0.01)
    return taken


marks = itertools.count()


def until_it_flows(send, receive):
    """Sends marks until they come through, and takes those that are on their way. `receive` may be a socket."""
    if isinstance(receive, zmq.Socket):
        peer = receive
        receive = lambda: peer.recv_multipart()[-1] if peer.poll(200) else None
    for _ in range(100):
        mark = b"mark %d" % next(marks)
        send(mark)
        while (got := receive()) is not None:
            if got == mark:
                return
    raise AssertionError("nothing comes through")


def is_routed(channel, key):
    """Whether some queue takes what is published to `amq.topic` with this key. The channel is in confirm mode."""
    try:
        channel.basic_publish("amq.topic", key, b"", mandatory=True)
        return True
    except pika.exceptions.UnroutableError:
        return False


def eventually(condition, seconds=10):
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        value = condition()
        if value:
            return value
        time.sleep(0.05)
    raise AssertionError("it did not come true")
