"""Publishes persistent messages one by one through the first of some nodes that lets it in, and prints when each was confirmed, by
the system's monotonic clock in seconds. Ends with its stdin. usage: publisher QUEUE URI..."""

import sys
import threading
import time

import pika
from pika.adapters.utils.connection_workflow import AMQPConnectorException

PAUSE_S = 0.002
RETRY_S = 0.02


def main():
    queue, *uris = sys.argv[1:]
    ends = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.read(), ends.set()), daemon=True).start()
    tries = 0
    while not ends.is_set():
        try:
            publish(queue, uris[tries % len(uris)], ends)
        except (pika.exceptions.AMQPError, AMQPConnectorException, OSError):
            tries += 1
            time.sleep(RETRY_S)


def publish(queue, uri, ends):
    parameters = pika.URLParameters(uri)
    parameters.connection_attempts = 1
    parameters.socket_timeout = parameters.stack_timeout = 15
    connection = pika.BlockingConnection(parameters)
    channel = connection.channel()
    channel.queue_declare(queue, durable=True)
    channel.confirm_delivery()
    properties = pika.BasicProperties(delivery_mode=2)
    while not ends.is_set():
        channel.basic_publish("", queue, b"." * 1024, properties, mandatory=True)
        print(f"{time.monotonic():.6f}", flush=True)
        time.sleep(PAUSE_S)
    connection.close()


main()
