"""Follows a guide of docs/: runs the commands of its `console` blocks in their order, and compares what they print.

    python3 guides.py PAGE

The commands are those of a machine with the package: /var/lib/courser, /etc/courser and /backup are folders here, and systemctl,
journalctl, ssh and sudo are the scripts of stand-ins/. A broker runs when the page begins. Before the first block `console cluster` it
gives way to a cluster of the machines a, b and c, of which a is the one where the commands run.

A block ```LANGUAGE file=NAME``` is a file. A command without output on the page has to succeed, whatever it prints. One with output
has to print that; `[...]` on the page stands for anything, and for any lines where it is a line by itself.
"""

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from follow import BLOCK, PATIENCE_S, PYTHON, install_clients, steps, write

HERE = Path(__file__).resolve().parent
BINARY = os.environ["COURSER_TEST_BINARY"]
ADDRESSES = {"a": "127.0.0.1", "b": "127.0.0.2", "c": "127.0.0.3"}
PLACES = {"/var/lib/courser": "a/data", "/etc/courser": "a/etc", "/backup": "backup"}
NODE = """
cluster:
  name: prod
  node_name: {name}
  listen: {address}:5680
  join: [{join}]
management: {{ listen: "{address}:15672" }}
metrics: {{ listen: "{address}:15692" }}
"""


class Machines:
    """The folders of the machines, and what the commands of a page find there."""

    def __init__(self, folder: Path):
        self.folder, self.in_cluster = folder, False
        (folder / "bin").mkdir()
        (folder / "bin" / "courser").symlink_to(BINARY)
        (folder / "backup").mkdir()
        (folder / "work").mkdir()
        install_clients(folder / "work")
        path = f"{HERE / 'stand-ins'}:{folder / 'bin'}:{PYTHON}:{os.environ['PATH']}"
        self.environment = os.environ | {
            "PATH": path, "COURSER_TEST_MACHINES": str(folder),
            "COURSER_DATA_DIR": str(folder / "a" / "data"), "PYTHONUNBUFFERED": "1",
        }
        self.make("a")
        self.well("systemctl start courser")

    def make(self, name: str, settings: str = "") -> None:
        shutil.rmtree(self.folder / name, ignore_errors=True)
        (self.folder / name / "etc").mkdir(parents=True)
        settings = f"data_dir: {self.folder / name / 'data'}\nlisten: [{ADDRESSES[name]}:5672]\n{settings}"
        (self.folder / name / "etc" / "courser.yaml").write_text(settings)

    def found_cluster(self) -> None:
        if self.in_cluster:
            return
        self.in_cluster = True
        self.stop()
        join = ", ".join(f"{address}:5680" for address in ADDRESSES.values())
        for name, address in ADDRESSES.items():
            self.make(name, NODE.format(name=name, address=address, join=join))
        for name in ADDRESSES:
            self.well(f"COURSER_TEST_FORMS=1 ssh {name} systemctl start courser")
        self.well("until courser ctl -q await_online_nodes 3; do sleep 0.1; done")

    def local(self, text: str) -> str:
        """A command or a file of the page, with the places where things are here."""
        for there, here in PLACES.items():
            text = re.sub(rf"(?<![\w/.]){there}\b", str(self.folder / here), text)
        return text

    def printed(self, text: str) -> str:
        """What a command has printed, with the places that the page has."""
        for there, here in PLACES.items():
            text = text.replace(str(self.folder / here), there)
        return text

    def run(self, command: str) -> subprocess.CompletedProcess:
        # A file, since a broker that the command leaves behind would keep a pipe open.
        with tempfile.TemporaryFile("w+") as output:
            done = subprocess.run(
                ["timeout", str(PATIENCE_S), "bash", "-c", command], cwd=self.folder / "work", env=self.environment,
                stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
            )
            output.seek(0)
            return subprocess.CompletedProcess(command, done.returncode, output.read())

    def well(self, command: str) -> None:
        done = self.run(command)
        assert done.returncode == 0, f"{command} ends with {done.returncode}:\n{done.stdout}\n{self.run('journalctl').stdout}"

    def end_programs(self) -> None:
        """Ends what commands have left behind in the folder of the page."""
        for process in Path("/proc").glob("[0-9]*"):
            try:
                if process.joinpath("cwd").readlink() == self.folder / "work":
                    os.kill(int(process.name), signal.SIGKILL)
            except OSError:
                continue

    def stop(self) -> None:
        for name in ADDRESSES:
            if (self.folder / name).exists():
                self.run(f"ssh {name} systemctl kill courser")


def is_as_expected(expected: str, printed: str) -> bool:
    pattern = re.escape(expected).replace(re.escape("[...]\n"), r"(?:.*\n)*?").replace(re.escape("[...]"), ".*")
    # An answer over HTTP may end without a line break.
    return re.fullmatch(pattern, printed if printed.endswith("\n") else f"{printed}\n") is not None


def follow(page: Path, machines: Machines) -> list[str]:
    problems = []
    for language, options, text in BLOCK.findall(page.read_text()):
        if target := re.search(r"file=(\S+)", options):
            write(machines.folder / "work" / machines.local(target[1]), machines.local(text))
        elif language == "console":
            if "cluster" in options.split():
                machines.found_cluster()
            for command, expected in steps(text.replace("\\\n", "")):
                done = machines.run(machines.local(command))
                printed = machines.printed(done.stdout)
                if expected and not is_as_expected(expected, printed):
                    problems.append(f"$ {command}\nexpected:\n{expected}printed:\n{printed}")
                elif not expected and done.returncode != 0:
                    problems.append(f"$ {command}\nends with {done.returncode}:\n{printed}")
    return problems


def main() -> None:
    # An end by a time limit ends the brokers too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("the time is over"))
    page = Path(sys.argv[1])
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        machines = Machines(Path(folder))
        try:
            problems = follow(page, machines)
        finally:
            machines.end_programs()
            machines.stop()
    for problem in problems:
        print(f"-- {page.name}:\n{problem}")
    print(f"{int(not problems)} passed, {int(bool(problems))} failed")
    sys.exit(bool(problems))


if __name__ == "__main__":
    main()
