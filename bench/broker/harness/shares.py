"""Where a broker's processor time goes: what its threads are at, as `perf` sees them some hundred times a second."""

import shutil
import subprocess
from collections import Counter
from pathlib import Path

# The system's calls, by what of them is found in a stack.
CALLS = {
    "__x64_sys_fdatasync": "sync",
    "__arm64_sys_fdatasync": "sync",
    "__x64_sys_pwrite64": "write log",
    "__arm64_sys_pwrite64": "write log",
    "__sys_recvfrom": "receive",
    "do_readv": "receive",
    "do_writev": "send",
    "__sys_sendto": "send",
    "do_epoll_wait": "wait, wake",
    "do_futex": "wait, wake",
    "hrtimer_nanosleep": "wait, wake",
    "ksys_write": "wait, wake",
    "__x64_sys_pread64": "read back",
    "__arm64_sys_pread64": "read back",
    "ksys_fadvise64_64": "read back",
}
# A thread that gives its processor away, in none of them.
SWITCH = "__schedule"
# Threads that work in advance.
ASIDE = ("journal-upkeep", "checkpoint")
COPIES = ("memmove", "memcpy", "memset")
SUMS = ("crc32c",)
TITLES = {
    "receive": "receiving: the system copies what has come",
    "send": "sending: the system copies it, and carries it over the loopback to the other program, which it wakes",
    "wait, wake": "waiting for sockets, other threads and a moment's company, and being switched to",
    "write log": "writing to the log's file",
    "sync": "syncing it",
    "read back": "reading messages back from it",
    "aside": "checkpoints and the next segments' space",
    "copies": "copying in the broker",
    "checksums": "checksums of the log",
    "broker": "the rest of the broker",
    "other": "the rest of the system, such as interrupts",
}
SAMPLES_PER_S = 999


class Missing(Exception):
    """`perf` is not there, or may not look."""


class Looking:
    """Looks at a process from now on, until it is asked what it saw."""

    def __init__(self, pid: int, folder: Path, seconds: float):
        if shutil.which("perf") is None:
            raise Missing("perf is not installed (Debian: linux-perf)")
        self.data = folder / "perf.data"
        command = ["perf", "record", "--quiet", "-g", "-F", str(SAMPLES_PER_S), "-o", str(self.data), "-p", str(pid)]
        self.record = subprocess.Popen([*command, "--", "sleep", str(seconds)], stderr=subprocess.PIPE, text=True)

    def shares(self) -> dict[str, float]:
        """Parts of the time, which add up to 1."""
        _, said = self.record.communicate()
        if self.record.returncode != 0:
            raise Missing(f"perf could not look at the broker: {said.strip()}")
        script = ["perf", "script", "-i", str(self.data), "-F", "comm,ip,sym,dso"]
        seen = subprocess.run(script, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=True).stdout
        self.data.unlink()
        counts = Counter(classify(sample.splitlines()) for sample in seen.split("\n\n") if sample.strip())
        whole = counts.total()
        if whole == 0:
            raise Missing("perf saw nothing of the broker")
        return {name: counts[name] / whole for name in TITLES}


def classify(sample: list[str]) -> str:
    """What a thread is at: the first line is its name, the others are what it is in, the innermost first."""
    if sample[0].strip().startswith(ASIDE):
        return "aside"
    frames = sample[1:]
    if not frames:
        return "other"
    if "[kernel" in frames[0]:
        symbols = [frame.split()[1] for frame in frames]
        call = next((CALLS[symbol] for symbol in symbols if symbol in CALLS), "other")
        return "wait, wake" if call == "other" and SWITCH in symbols else call
    if any(name in frames[0] for name in COPIES):
        return "copies"
    return "checksums" if any(name in frames[0] for name in SUMS) else "broker"
