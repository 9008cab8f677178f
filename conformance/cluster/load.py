"""Clients that publish with confirms and consume through any node, and write down what they were told."""

import random
import threading
import time

import pika
from pika.adapters.utils.connection_workflow import AMQPConnectorException

QUEUE = "nemesis"


def connect(nodes, vhost):
    """A connection to a vhost through any node that lets one in."""
    node = random.choice(nodes)
    return pika.BlockingConnection(
        pika.ConnectionParameters(
            "127.0.0.1",
            node.amqp,
            vhost,
            heartbeat=5,
            blocked_connection_timeout=10,
            socket_timeout=5,
            stack_timeout=10,
        )
    )


class Client(threading.Thread):
    """Works on a connection until it is lost, and then on another one."""

    def __init__(self, nodes, vhost):
        super().__init__(daemon=True)
        self.nodes, self.vhost = nodes, vhost
        self.ends = threading.Event()
        self.problem = None

    def run(self):
        while not self.ends.is_set():
            connection = None
            try:
                connection = connect(self.nodes, self.vhost)
                self.work(connection)
            except (pika.exceptions.AMQPError, AMQPConnectorException, OSError):
                time.sleep(0.1)
            except Exception as error:  # noqa: BLE001: it is what the run reports
                self.problem = repr(error)
                return
            finally:
                try:
                    if connection is not None and connection.is_open:
                        connection.close()
                except Exception:  # noqa: BLE001: it was lost meanwhile
                    pass

    def end(self):
        self.ends.set()
        self.join(timeout=60)
        assert not self.is_alive(), "a client hangs"


class Publisher(Client):
    """Publishes numbers in order; `confirmed` has those that were confirmed, in that order."""

    def __init__(self, nodes, vhost, number):
        super().__init__(nodes, vhost)
        self.number = number
        self.next = 0
        self.confirmed = []
        self.confirmed_at = []

    def work(self, connection):
        channel = connection.channel()
        channel.queue_declare(QUEUE, durable=True)
        channel.confirm_delivery()
        properties = pika.BasicProperties(delivery_mode=2)
        while not self.ends.is_set():
            # One that was not confirmed is not sent again: it may be there or not.
            number, self.next = self.next, self.next + 1
            body = f"{self.number} {number} ".encode().ljust(200, b".")
            channel.basic_publish("", QUEUE, body, properties, mandatory=True)
            self.confirmed.append(number)
            self.confirmed_at.append(time.monotonic())


class Consumer(Client):
    """Takes and acknowledges; `taken` has what came, in its order, with whether it was a redelivery and
    on which of its connections."""

    def __init__(self, nodes, vhost):
        super().__init__(nodes, vhost)
        self.taken = []
        self.connections = 0
        self.idle_since = time.monotonic()

    def work(self, connection):
        channel = connection.channel()
        channel.queue_declare(QUEUE, durable=True)
        channel.basic_qos(prefetch_count=100)
        self.connections += 1
        for method, _, body in channel.consume(QUEUE, inactivity_timeout=0.2):
            if method is not None:
                publisher, number, _ = body.split(b" ", 2)
                self.taken.append((int(publisher), int(number), method.redelivered, self.connections))
                self.idle_since = time.monotonic()
                channel.basic_ack(method.delivery_tag)
            if self.ends.is_set():
                return
