"""Runs the gateway under load for some minutes, with peers that come and go, and checks that nothing is lost and that the
broker's memory stays flat. usage: soak.py [SECONDS]   COURSER_TEST_BINARY names the broker."""

import sys
import tempfile
import threading
import time
from pathlib import Path

import pika
import zmq

from conftest import Broker, free_port

SECONDS = int(sys.argv[1]) if len(sys.argv) > 1 else 600
BODY = bytes(300)
AHEAD_MAX = 5000
# Longer than the gateway may hold a sender back: see docs/zeromq.md.
HEARTBEAT_MS = 30_000

context = zmq.Context()
ends_at = time.monotonic() + SECONDS
counts = dict.fromkeys(["pushed", "pulled", "topics", "requests", "visits"], 0)
problems = []


def peer(kind, port, **options):
    made = context.socket(kind)
    made.linger, made.rcvtimeo, made.sndtimeo = 1000, 10_000, 10_000
    for name, value in options.items():
        setattr(made, name, value)
    made.connect(f"tcp://127.0.0.1:{port}")
    return made


def running():
    return time.monotonic() < ends_at and not problems


def worker(function):
    def run(*arguments):
        try:
            function(*arguments)
        except Exception as problem:
            problems.append(f"{function.__name__}: {problem!r}")
    return run


@worker
def push(port):
    sender = peer(zmq.PUSH, port, heartbeat_ivl=HEARTBEAT_MS)
    while running():
        if counts["pushed"] - counts["pulled"] > AHEAD_MAX:
            time.sleep(0.001)
            continue
        sender.send_multipart([b"%d" % counts["pushed"], BODY])
        counts["pushed"] += 1
    sender.close()


@worker
def pull(port):
    receiver = peer(zmq.PULL, port, heartbeat_ivl=HEARTBEAT_MS)
    while running() or counts["pulled"] < counts["pushed"]:
        number, body = receiver.recv_multipart()
        assert int(number) == counts["pulled"] and body == BODY, f"{number} came, {counts['pulled']} is due"
        counts["pulled"] += 1


@worker
def topics(in_port, out_port):
    """One subscriber listens all the time; others come and go, and some do not read."""
    subscriber = peer(zmq.SUB, out_port)
    subscriber.subscribe(b"tick.")
    publisher = peer(zmq.PUB, in_port)
    time.sleep(1)
    while running():
        publisher.send_multipart([b"tick.%d" % counts["topics"], BODY])
        key, _ = subscriber.recv_multipart()
        assert key == b"tick.%d" % counts["topics"], key
        counts["topics"] += 1


@worker
def visitors(out_port, router_port):
    while running():
        idle = peer(zmq.SUB, out_port, rcvhwm=1)
        idle.subscribe(b"tick.")
        gone = peer(zmq.DEALER, router_port)
        gone.send(b"gone before the reply")
        time.sleep(0.2)
        idle.close()
        gone.close()
        counts["visits"] += 1


@worker
def ask(router_port):
    requester = peer(zmq.REQ, router_port)
    while running():
        requester.send(b"%d" % counts["requests"])
        assert requester.recv() == b"%d" % counts["requests"]
        counts["requests"] += 1


@worker
def answer(broker):
    channel = broker.connect(for_thread=True).channel()
    channel.queue_declare("rpc", durable=True)

    def reply(channel, method, properties, body):
        channel.basic_publish("", properties.reply_to, body, pika.BasicProperties(correlation_id=properties.correlation_id))
        channel.basic_ack(method.delivery_tag)

    channel.basic_consume("rpc", reply)
    while running():
        channel.connection.process_data_events(1)


def resident_kb(broker):
    return int(next(line.split()[1] for line in Path(f"/proc/{broker.process.pid}/status").open() if "VmRSS" in line))


def main():
    global ends_at
    ports = [free_port() for _ in range(5)]
    with tempfile.TemporaryDirectory() as folder:
        broker = Broker(Path(folder)).start("".join(
            f"    - {{socket: {socket}, bind: 'tcp://127.0.0.1:{port}', {target}, peers_max: 100}}\n"
            for socket, port, target in zip(
                ["pull", "push", "sub", "xpub", "router"], ports,
                ["queue: soak", "queue: soak", "exchange: amq.topic", "exchange: amq.topic", "queue: rpc"])))
        ends_at = time.monotonic() + SECONDS
        work = [(push, ports[0]), (pull, ports[1]), (topics, ports[2], ports[3]), (visitors, ports[3], ports[4]),
                (ask, ports[4]), (answer, broker)]
        threads = [threading.Thread(target=function, args=arguments, daemon=True) for function, *arguments in work]
        for thread in threads:
            thread.start()
        sizes = []
        while running():
            time.sleep(min(10, SECONDS / 10))
            sizes.append(resident_kb(broker))
            print(f"{sizes[-1] // 1024} MB", counts, flush=True)
        for thread in threads:
            thread.join(30)
        broker.stop()
        print(*[line for line in broker.said().splitlines() if "gateway: stopped" in line], sep="\n")
    third = max(len(sizes) // 3, 1)
    if max(sizes[-third:]) > max(sizes[:third]) * 1.3 + 16 * 1024:
        problems.append(f"memory grows: {sizes} KB")
    if counts["pushed"] != counts["pulled"]:
        problems.append(f"{counts['pushed']} pushed, {counts['pulled']} pulled")
    print(*problems, sep="\n")
    return 1 if problems else 0


sys.exit(main())
