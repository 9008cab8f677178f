"""What the figures were made on: the machine, the versions, and what its disk takes to sync."""

import os
import platform
import re
import subprocess
import time
from pathlib import Path

FLOOR_WRITES = 500
FLOOR_BYTES = 4096


def describe(data_folder: Path) -> dict:
    """The machine in words and numbers, with how busy it was before."""
    cpu = re.search(r"model name\s*:\s*(.+)", Path("/proc/cpuinfo").read_text())
    memory = re.search(r"MemTotal:\s+(\d+) kB", Path("/proc/meminfo").read_text())
    return {
        "cpu": cpu[1].strip() if cpu else platform.machine(),
        "cores": os.cpu_count(),
        "memory_bytes": int(memory[1]) * 1024 if memory else None,
        "kernel": platform.release(),
        "system": _system_name(),
        "file_system": output("findmnt", "--noheadings", "--output", "FSTYPE", "--target", str(data_folder)),
        "load_average_before": os.getloadavg()[0],
    }


def versions(java: bool) -> dict:
    """Of the tools that take part; the brokers' own come from themselves."""
    found = {
        "rustc": output("rustc", "--version").removeprefix("rustc "),
        "commit": output("git", "rev-parse", "--short=12", "HEAD"),
        "python": platform.python_version(),
    }
    if output("git", "status", "--porcelain", "--untracked-files=no"):
        found["commit"] += " and uncommitted changes"
    if java:
        found["java"] = output("java", "--version").splitlines()[0]
    return found


def sync_floor(folder: Path) -> dict:
    """How long writing 4 KiB and fdatasync take in a file whose blocks exist: no confirm can be faster than one of
    these, but many can share one."""
    path = folder / "floor"
    times_us = []
    handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        os.write(handle, bytes(FLOOR_WRITES * FLOOR_BYTES))
        os.fsync(handle)
        block = b"\x5a" * FLOOR_BYTES
        for index in range(FLOOR_WRITES):
            start_ns = time.perf_counter_ns()
            os.pwrite(handle, block, index * FLOOR_BYTES)
            os.fdatasync(handle)
            times_us.append((time.perf_counter_ns() - start_ns) / 1000)
    finally:
        os.close(handle)
        path.unlink()
    times_us.sort()
    return {"p50_us": times_us[FLOOR_WRITES // 2], "p99_us": times_us[FLOOR_WRITES * 99 // 100]}


def output(*command: str) -> str:
    """What a command prints, or an empty text when it is missing or fails."""
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""


def _system_name() -> str:
    match = re.search(r'PRETTY_NAME="(.+)"', Path("/etc/os-release").read_text())
    return match[1] if match else platform.system()
