"""What the system knows about processes: CPU time and memory, from /proc."""

import os
import re
import time
from pathlib import Path

SECTOR_BYTES = 512
TICKS_PER_S = os.sysconf("SC_CLK_TCK")


def tree(root_pid: int) -> list[int]:
    """The process and all that descend from it."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and (fields := _stat(int(entry.name))):
            children.setdefault(int(fields[1]), []).append(int(entry.name))
    found = [root_pid]
    for pid in found:
        found.extend(children.get(pid, []))
    return found


def is_alive(pid: int) -> bool:
    """Whether the process has not ended; one that was not waited for yet has."""
    fields = _stat(pid)
    return fields is not None and fields[0] not in "ZX"


def cpu_s(pids: list[int]) -> float:
    """User and system time that the processes have used, in seconds. One that has ended counts nothing."""
    return sum(_cpu_s(pid) for pid in pids)


def machine_cpu_s() -> tuple[float, float]:
    """Seconds that all processes of the machine have used, and that the host gave to other machines instead."""
    with open("/proc/stat") as stat:
        user, nice, system, _idle, _iowait, irq, softirq, steal = map(int, stat.readline().split()[1:9])
    return (user + nice + system + irq + softirq) / TICKS_PER_S, steal / TICKS_PER_S


def peak_rss_bytes(pids: list[int]) -> int:
    """The processes' largest resident sets, added up."""
    return _status_bytes(pids, "VmHWM")


def rss_bytes(pids: list[int]) -> int:
    """The processes' resident sets, added up."""
    return _status_bytes(pids, "VmRSS")


def disk_written_bytes(folder: Path) -> int:
    """Bytes written to the disk of this folder, by any process. What /proc/PID/io counts for one process is of no use: it
    takes a small write into a large folio of the page cache for a write of all of it, and sockets for files."""
    device = folder.stat().st_dev
    try:
        fields = Path(f"/sys/dev/block/{os.major(device)}:{os.minor(device)}/stat").read_text().split()
    except OSError:
        return 0
    return int(fields[6]) * SECTOR_BYTES


def _cpu_s(pid: int) -> float:
    """Of one process: by its clock, which counts nanoseconds; /proc/PID/stat counts hundredths of a second."""
    try:
        # As clock_getcpuclockid() makes it.
        return time.clock_gettime(~pid << 3 | 2)
    except OSError:
        return 0


def _status_bytes(pids: list[int], field: str) -> int:
    total = 0
    for pid in pids:
        try:
            match = re.search(rf"{field}:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
        except OSError:
            continue
        total += int(match[1]) * 1024 if match else 0
    return total


def _stat(pid: int) -> list[str] | None:
    """The fields of /proc/PID/stat behind the name, which may itself hold blanks and parentheses."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
