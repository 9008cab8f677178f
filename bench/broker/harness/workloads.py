"""The workloads, and the figures that Courser wants to reach in each."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Goal:
    """What the broker may cost: CPU microseconds per consumed message; latencies in microseconds."""

    cpu_us: float
    latency_p50_us: float | None = None
    latency_p99_us: float | None = None


@dataclass(frozen=True)
class Workload:
    """What is published and consumed, in terms that every load tool can be told in."""

    name: str
    title: str
    size_bytes: int
    goal: Goal
    producers: int = 1
    consumers: int = 1
    # 0: automatic acknowledgement.
    prefetch: int = 0
    # Persistent messages in a durable queue.
    durable: bool = False
    # Publishes that may wait for their confirm; 0: none are confirmed.
    confirm: int = 0
    # Queues bound to a fanout exchange; 0: one queue through the default exchange.
    fanout: int = 0
    # Messages a second of each producer; 0: as many as the broker takes.
    rate: int = 0

    @property
    def latency(self) -> str | None:
        """Which latency this workload is about: at a fixed rate, the confirms' if there are any."""
        if not self.rate:
            return None
        return "confirm" if self.confirm else "consumer"


PREFETCH = 100
CONFIRM = 1000
RATE = 2000

WORKLOADS = {
    workload.name: workload
    for workload in (
        Workload("W1", "transient, 16 B, automatic ack", 16, Goal(0.35)),
        Workload("W2", "transient, 1 KB, manual ack", 1024, Goal(2.5), prefetch=PREFETCH),
        Workload("W3", "persistent, confirms, 1 KB", 1024, Goal(4), prefetch=PREFETCH, durable=True, confirm=CONFIRM),
        Workload("W4", "as W3, 10 producers, 10 consumers, one queue", 1024, Goal(2.5), producers=10, consumers=10,
                 prefetch=PREFETCH, durable=True, confirm=CONFIRM),
        Workload("W5", "as W3, 64 KB", 65536, Goal(75), prefetch=PREFETCH, durable=True, confirm=CONFIRM),
        Workload("W6", "fanout to 10 queues, 256 B, automatic ack", 256, Goal(0.45), consumers=10, fanout=10),
        Workload("W7t", "transient, 1 KB, 2,000 msg/s", 1024, Goal(35, 60, 150), prefetch=PREFETCH, rate=RATE),
        Workload("W7d", "persistent, confirms, 1 KB, 2,000 msg/s", 1024, Goal(90, 250, 800), prefetch=PREFETCH,
                 durable=True, confirm=CONFIRM, rate=RATE),
    )
}

# The run whose peak memory is compared, and the goal for it.
MEMORY_WORKLOAD = "W3"
MEMORY_GOAL_BYTES = 24 << 20
