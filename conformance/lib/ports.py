"""A port for a program that is about to listen; run by itself, it prints one."""

import fcntl
import os
import socket
import tempfile
from pathlib import Path

# Below those that the system gives to clients that connect: one of those may be taken before the program listens, or while it is down.
PORTS = range(20_000, 32_000)
# The port that was given last. All runs of this user share it, so that a port is given again only when all others have been.
LAST = Path(tempfile.gettempdir()) / f"courser-test-port-{os.getuid()}"


def free_port() -> int:
    """A port of the loopback that no program listens at, and that was given to no other caller lately."""
    with open(os.open(LAST, os.O_RDWR | os.O_CREAT, 0o600), "r+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        last = file.read().strip()
        start = (int(last) if last.isdigit() else PORTS.start) - PORTS.start
        for step in range(1, len(PORTS) + 1):
            port = PORTS[(start + step) % len(PORTS)]
            if is_free(port):
                file.seek(0)
                file.write(f"{port}\n")
                return port
    raise OSError(f"no port from {PORTS.start} to {PORTS.stop - 1} is free")


def is_free(port) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
            return True
        except OSError:
            return False


if __name__ == "__main__":
    print(free_port())
