"""A port for a program that is about to listen; run by itself, it prints one."""

import random
import socket

# Below those that the system gives to whoever connects: one of those may be taken before the program listens, or while it is down.
PORTS = range(20_000, 32_000)
# Apart from what a seed determines: runs side by side may have the same one.
chance = random.SystemRandom()


def free_port() -> int:
    """A port of the loopback at which nobody listens."""
    for _ in range(1000):
        port = chance.choice(PORTS)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
                return port
            except OSError:
                continue
    raise OSError(f"no port from {PORTS.start} to {PORTS.stop - 1} is free")


if __name__ == "__main__":
    print(free_port())
