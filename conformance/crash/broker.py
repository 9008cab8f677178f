"""The broker's process: started, killed at once or after a while, stopped politely."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "lib"))
from ports import free_port  # noqa: E402, F401 -- for those who start a broker, too

START_TIMEOUT_S = 60
STOP_TIMEOUT_S = 30


class BrokerError(Exception):
    """The process did not do what it was told."""


class Broker:
    """Runs in a folder of its own: settings in `courser.yaml`, everything it keeps in `data`, its log beside it."""

    def __init__(self, binary, folder, port, disk=None):
        """`disk` is a `lossy.Mounted`, on which the data are then, and whose power goes with every stop."""
        self.binary, self.folder, self.port, self.disk = binary, Path(folder), port, disk
        self.losses = 0
        self.log_path = self.folder / "broker.log"
        self.process = None
        self.ready_s = 0.1
        self.folder.mkdir(parents=True, exist_ok=True)
        self.configure()

    @property
    def data(self):
        # Not at the top: that the folders above have their names is up to the broker too.
        return Path(self.disk.folder) / "srv" / "data" if self.disk else self.folder / "data"

    @property
    def journal(self):
        return self.data / "journal"

    def configure(self, memory_high_bytes=0, log="info,courser=debug", **journal):
        """`journal` are settings of its section."""
        lines = [f"listen: ['127.0.0.1:{self.port}']", f"data_dir: {self.data}"]
        lines += ["limits:", f"  memory_high_bytes: {memory_high_bytes}", "log:", f"  level: {log}"]
        if journal:
            lines += ["journal:", *(f"  {key}: {value}" for key, value in journal.items())]
        (self.folder / "courser.yaml").write_text("\n".join(lines) + "\n")

    def spawn(self):
        """Starts the process and does not wait."""
        environment = {key: value for key, value in os.environ.items() if not key.startswith("COURSER_")}
        environment["RUST_BACKTRACE"] = "1"
        # Its usual address may be another broker's.
        environment["COURSER_MANAGEMENT_LISTEN"] = "none"
        environment["COURSER_METRICS_LISTEN"] = "none"
        with self.log_path.open("ab") as log:
            self.process = subprocess.Popen(
                [self.binary, "--config", self.folder / "courser.yaml"],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment,
            )  # fmt: skip

    def start(self):
        """Starts it and waits until it listens, which is when everything is recovered."""
        started = time.monotonic()
        self.spawn()
        while time.monotonic() - started < START_TIMEOUT_S:
            if self.process.poll() is not None:
                raise BrokerError(f"the broker ended while it started: {self.last_line()}")
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self.port)) == 0:
                    self.ready_s = time.monotonic() - started
                    return
            time.sleep(0.005)
        raise BrokerError(f"the broker does not listen after {START_TIMEOUT_S} s")

    def refused_start(self):
        """Starts it expecting that it ends by itself; gives its last line."""
        self.spawn()
        try:
            code = self.process.wait(START_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            raise BrokerError("the broker started, which it should have refused") from None
        finally:
            self.kill()
        if code <= 0:
            raise BrokerError(f"the broker ended with {code} instead of an error")
        return self.last_line()

    def kill(self):
        """As a crash of the process does: nothing is said, nothing is finished."""
        if self.process is not None:
            if self.disk:
                self.disk.tell("off")
            self.process.kill()
            self.process.wait()
            self.process = None
            self.lose_power()

    def lose_power(self):
        """With what was not synced; a process that still runs could not change anything since the power went."""
        if self.disk:
            self.losses += 1
            self.disk.tell(f"on {self.losses}")

    def stop(self):
        """SIGTERM, and it has to end by itself without an error."""
        self.process.send_signal(signal.SIGTERM)
        try:
            code = self.process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            raise BrokerError(f"the broker still runs {STOP_TIMEOUT_S} s after SIGTERM") from None
        self.process = None
        self.lose_power()
        if code != 0:
            raise BrokerError(f"the broker ended with {code} after SIGTERM: {self.last_line()}")

    def check_alive(self):
        if self.process.poll() is not None:
            raise BrokerError(f"the broker ended by itself with {self.process.returncode}: {self.last_line()}")

    def last_line(self):
        lines = self.log_path.read_text(errors="replace").strip().splitlines()
        return lines[-1] if lines else "(nothing in its log)"

    def complaints(self, offset):
        """Lines of the log from `offset` on that must not be there, and the log's new length."""
        with self.log_path.open("rb") as log:
            log.seek(offset)
            text = log.read()
        lines = text.decode(errors="replace").splitlines()
        # Without power there is no disk, and the broker says so.
        off = "Input/output error" if self.disk else None
        found = [line for line in lines if " ERROR " in line or "panicked" in line]
        return [line for line in found if off is None or off not in line], offset + len(text)

    def keep(self, name):
        """A copy of the data as it is now; the last copy of this name is replaced."""
        copy = self.folder / name
        shutil.rmtree(copy, ignore_errors=True)
        subprocess.run(["cp", "-r", "--sparse=always", self.data, copy], check=True)
        return copy

    def start_over(self):
        """Forgets all data."""
        self.kill()
        shutil.rmtree(self.data.parent if self.disk else self.data, ignore_errors=True)
