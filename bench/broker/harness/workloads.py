"""The workloads, and the figures that Courser wants to reach in each."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Goal:
    """What the broker may cost: CPU microseconds per consumed message; latencies in microseconds."""

    # With our perftest, and where a client writes each message by itself, as RabbitMQ PerfTest does.
    cpu_us: float | None = None
    java_cpu_us: float | None = None
    latency_p50_us: float | None = None
    latency_p99_us: float | None = None

    def cost(self, load: str) -> float | None:
        """The goal for the CPU time with this load, if there is one."""
        return {"perftest": self.cpu_us, "java": self.java_cpu_us}.get(load)


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
    # Queues bound to a fanout exchange; 0: queues through the default exchange.
    fanout: int = 0
    # Over which producers and consumers are spread evenly.
    queues: int = 1
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
W3 = {"size_bytes": 1024, "prefetch": PREFETCH, "durable": True, "confirm": CONFIRM}

WORKLOADS = {
    workload.name: workload
    for workload in (
        Workload("W1", "transient, 16 B, automatic ack", 16, Goal(0.10, 2.5)),
        Workload("W2", "transient, 1 KB, manual ack", 1024, Goal(1.2), prefetch=PREFETCH),
        Workload("W3", "persistent, confirms, 1 KB", goal=Goal(2.0, 6), **W3),
        Workload("W4", "as W3, 10 producers, 10 consumers, one queue", goal=Goal(1.5, 7), producers=10, consumers=10, **W3),
        Workload("W5", "as W3, 64 KB", goal=Goal(50), **{**W3, "size_bytes": 65536}),
        Workload("W6", "fanout to 10 queues, 256 B, automatic ack", 256, Goal(0.18), consumers=10, fanout=10),
        Workload("W7t", "transient, 1 KB, 2,000 msg/s", 1024, Goal(22, None, 60, 150), prefetch=PREFETCH, rate=RATE),
        Workload("W7d", "persistent, confirms, 1 KB, 2,000 msg/s", goal=Goal(80, None, 150, 400), rate=RATE, **W3),
        Workload("W3r10", "as W3, 10,000 msg/s", goal=Goal(35), rate=10_000, **W3),
        Workload("W3r50", "as W3, 50,000 msg/s", goal=Goal(6), rate=50_000, **W3),
        Workload("W3p1", "as W3, prefetch 1", goal=Goal(20), **{**W3, "prefetch": 1}),
        Workload("W3q100", "as W3, 100 queues, producers and consumers", goal=Goal(4), producers=100, consumers=100,
                 queues=100, **W3),
        Workload("W3q500", "as W3, 500 queues, producers and consumers", goal=Goal(6), producers=500, consumers=500,
                 queues=500, **W3),
    )
}
# Those that are measured unless told otherwise; the others are variations of W3.
USUAL = ["W1", "W2", "W3", "W4", "W5", "W6", "W7t", "W7d"]

# The run whose peak memory is compared, and the goal for it.
MEMORY_WORKLOAD = "W3"
MEMORY_GOAL_BYTES = 24 << 20
