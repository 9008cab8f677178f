"""The workloads by name."""

from collections.abc import Callable
from dataclasses import dataclass

from . import delayed, expiry, queues, routing, streams


@dataclass(frozen=True)
class Workload:
    """What is measured on a broker of its own."""

    title: str
    measure: Callable
    # Whether RabbitMQ has it, as Debian ships it.
    rabbitmq: bool = True
    # Whether the broker is stopped and started again meanwhile.
    restarts: bool = False


WORKLOADS = {
    "priority": Workload("Priorities: a backlog of 1 KB messages, drained in order", queues.priority),
    "length": Workload("Length limits: 100 bytes a message, no consumer", queues.length),
    "consumers": Workload("Many consumers on one queue", queues.consumers),
    "letters": Workload("Dead letters", queues.dead_letters),
    "topic": Workload("Topic exchange", routing.topic),
    "headers": Workload("Headers exchange", routing.headers),
    "hash": Workload("Consistent hash", routing.consistent_hash),
    "fanout": Workload("Fanout exchange with 10,000 queues", routing.fanout),
    "expiry": Workload("Messages that expire, 100 bytes each", expiry.expiry),
    "stream": Workload("Streams: 1 KB messages", streams.stream),
    "year": Workload("Delayed messages that are due in a year", delayed.year, rabbitmq=False, restarts=True),
    "soon": Workload("Delayed messages that are due within a minute", delayed.soon, rabbitmq=False, restarts=True),
}
