"""Load by pika: each producer and consumer is a process with a connection of its own, and a call for each message.

Prints rates every second as RabbitMQ PerfTest does; `bench/broker/run --load pika` measures with it.
"""

import argparse
import multiprocessing
import signal
import time

import pika


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--uri", required=True)
    for option, default in (("producers", 1), ("consumers", 1), ("size", 1024), ("prefetch", 0), ("confirm", 0),
                            ("fanout", 0), ("queues", 1), ("rate", 0), ("seconds", 30)):  # fmt: skip
        parser.add_argument(f"--{option}", type=int, default=default)
    parser.add_argument("--durable", action="store_true")
    options = parser.parse_args()
    exchange, queues = topology(options)
    roles = [(publish, number) for number in range(options.producers)]
    roles += [(consume, number) for number in range(options.consumers)]
    counters = [multiprocessing.Value("Q", 0, lock=False) for _ in roles]
    workers = [
        multiprocessing.Process(target=role, args=(options, exchange, queues[number % len(queues)], counter), daemon=True)
        for (role, number), counter in zip(roles, counters)
    ]
    for worker in workers:
        worker.start()
    before, at = (0, 0), time.monotonic()
    end = at + options.seconds
    while at < end and all(worker.is_alive() for worker in workers):
        time.sleep(1)
        now = time.monotonic()
        totals = (sum(c.value for c in counters[: options.producers]), sum(c.value for c in counters[options.producers :]))
        sent, received = ((total - last) / (now - at) for total, last in zip(totals, before))
        print(f"published: {sent:.0f} msg/s, consumed: {received:.0f} msg/s", flush=True)
        before, at = totals, now
    failed = [worker for worker in workers if not worker.is_alive()]
    for worker in workers:
        worker.terminate()
    raise SystemExit(1 if failed else 0)


def topology(options):
    """Declares what is published to; (exchange, names of the queues)."""
    connection = pika.BlockingConnection(pika.URLParameters(options.uri))
    channel = connection.channel()
    names = [f"bench-{number}" for number in range(1, max(options.fanout, options.queues) + 1)]
    exchange = "bench" if options.fanout else ""
    if exchange:
        channel.exchange_declare(exchange, "fanout", durable=options.durable)
    for name in names:
        channel.queue_declare(name, durable=options.durable)
        if exchange:
            channel.queue_bind(name, exchange)
    connection.close()
    return exchange, names


class Producer:
    """Publishes as fast as confirms and the rate allow."""

    def __init__(self, options, exchange, queue, counter):
        self.options, self.counter = options, counter
        self.exchange, self.key = exchange, "" if exchange else queue
        self.body = bytes(options.size)
        self.properties = pika.BasicProperties(delivery_mode=2 if options.durable else 1)
        # Delivery tags without a confirm, in order; and whether `publish` will be called again.
        self.open, self.waiting = {}, False
        self.connection = pika.SelectConnection(pika.URLParameters(options.uri), on_open_callback=self.connected)

    def connected(self, connection):
        connection.channel(on_open_callback=self.opened)

    def opened(self, channel):
        self.channel, self.start_s, self.sent = channel, time.monotonic(), 0
        if self.options.confirm:
            channel.confirm_delivery(self.confirmed, callback=lambda _: self.publish())
        else:
            self.publish()

    def confirmed(self, frame):
        """An ack of one message, or of all up to it."""
        tag = frame.method.delivery_tag
        if frame.method.multiple:
            while self.open and (oldest := next(iter(self.open))) <= tag:
                del self.open[oldest]
        else:
            self.open.pop(tag, None)
        if not self.waiting and len(self.open) < self.options.confirm:
            self.waiting = True
            self.connection.ioloop.add_callback_threadsafe(self.publish)

    def publish(self):
        """Some messages, then the event loop has its turn: confirms have to be read."""
        self.waiting = False
        for _ in range(100):
            if self.options.confirm and len(self.open) >= self.options.confirm:
                return
            if self.options.rate and (early_s := self.start_s + self.sent / self.options.rate - time.monotonic()) > 0:
                self.waiting = True
                self.connection.ioloop.call_later(early_s, self.publish)
                return
            self.channel.basic_publish(self.exchange, self.key, self.body, self.properties)
            self.sent += 1
            if self.options.confirm:
                self.open[self.sent] = None
            self.counter.value = self.sent
        self.waiting = True
        self.connection.ioloop.add_callback_threadsafe(self.publish)


def publish(options, exchange, queue, counter):
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    Producer(options, exchange, queue, counter).connection.ioloop.start()


def consume(options, _exchange, queue, counter):
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    channel = pika.BlockingConnection(pika.URLParameters(options.uri)).channel()
    if options.prefetch:
        channel.basic_qos(prefetch_count=options.prefetch)

    def deliver(channel, method, _properties, _body):
        counter.value += 1
        if options.prefetch:
            channel.basic_ack(method.delivery_tag)

    channel.basic_consume(queue, deliver, auto_ack=not options.prefetch)
    channel.start_consuming()


if __name__ == "__main__":
    main()
