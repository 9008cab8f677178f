"""The floor of a confirm at a fixed rate: a program that does nothing but read a message, write it to a file, sync that
and answer. What a broker takes beyond it is the broker's; the rest is timers, wakes, sockets and the disk."""

import os
import resource
import socket
import time
from pathlib import Path

BLOCK_BYTES = 4096
BLOCKS = 512
# With more, one message at a time is answered later than the next is due.
RATE_MAX = 2000


def floor(folder: Path, rate: int, size_bytes: int, seconds: float = 1.0) -> dict:
    """Latencies from the time at which a message is due until its answer is there, in microseconds, and the system's CPU
    time in the program that answers, per message. How late the sender's own timer comes is part of the latency, and told."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        client = socket.create_connection(listener.getsockname())
        served = os.fork()
        if served == 0:
            client.close()
            _child(listener, folder / "floor", size_bytes)
    with client:
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_stime
        _exchange(client, size_bytes)
        late_us, answered_us = _paced(client, rate, size_bytes, round(rate * seconds))
    _, status = os.waitpid(served, 0)
    if status != 0:
        raise SystemExit("error: the program that measures the floor of a confirm has failed")
    system_s = resource.getrusage(resource.RUSAGE_CHILDREN).ru_stime - before
    count = len(answered_us)
    return {
        "rate": rate,
        "late_p50_us": late_us[count // 2],
        "p50_us": answered_us[count // 2],
        "p99_us": answered_us[count * 99 // 100],
        "system_us": system_s * 1e6 / count,
    }


def _child(listener: socket.socket, path: Path, size_bytes: int) -> None:
    """Serves, and ends the process whatever happens: it is a copy of one that has other things to do."""
    try:
        _serve(listener, path, size_bytes)
    except BaseException as problem:
        print(f"the floor of a confirm: {problem}", flush=True)
        os._exit(1)
    os._exit(0)


def _serve(listener: socket.socket, path: Path, size_bytes: int) -> None:
    connection, _ = listener.accept()
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        # A file whose blocks exist, as a log's do.
        os.write(handle, bytes(BLOCKS * BLOCK_BYTES))
        os.fsync(handle)
        offset = 0
        while message := connection.recv(size_bytes, socket.MSG_WAITALL):
            os.pwrite(handle, message, offset)
            os.fdatasync(handle)
            connection.send(b"\0")
            offset = (offset + size_bytes) % ((BLOCKS - 1) * BLOCK_BYTES)
    finally:
        os.close(handle)
        path.unlink()


def _exchange(client: socket.socket, size_bytes: int) -> None:
    client.sendall(bytes(size_bytes))
    if not client.recv(1):
        raise SystemExit("error: the program that measures the floor of a confirm has ended")


def _paced(client: socket.socket, rate: int, size_bytes: int, count: int) -> tuple[list[float], list[float]]:
    """Microseconds by which each message was late, and until it was answered; sorted."""
    late_us, answered_us = [], []
    start_ns = time.perf_counter_ns()
    for number in range(count):
        due_ns = start_ns + number * 1_000_000_000 // rate
        wait_ns = due_ns - time.perf_counter_ns()
        if wait_ns > 0:
            time.sleep(wait_ns / 1e9)
        late_us.append((time.perf_counter_ns() - due_ns) / 1000)
        _exchange(client, size_bytes)
        answered_us.append((time.perf_counter_ns() - due_ns) / 1000)
    return sorted(late_us), sorted(answered_us)
