"""Follows tutorials: writes the files that a page shows, runs its commands, and compares what they print.

    python3 follow.py PAGE...

A block ```python file=NAME``` is a file. A block ```console``` has commands behind `$ `, each with what it prints; one with
`terminal=N` has one command that goes on until the end of the page, and what it has printed by then. One with `setup` is not run: it
installs a client library, which is there already.
"""

import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

BLOCK = re.compile(r"^```(\w+)([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# With a slash or, in Java, where that would be the vhost with the empty name, without.
BROKER = re.compile("amqp://guest:guest@localhost:5672/?")
PATIENCE_S = 60
QUIET_S = 1
CONFORMANCE = Path(__file__).resolve().parent.parent
PYTHON = CONFORMANCE / ".cache" / "python" / "bin"


# What the programs of the pages declare, in whatever language. A program that is ended may leave a message behind.
CLEAR = """
import pika, sys
channel = pika.BlockingConnection(pika.URLParameters(sys.argv[1])).channel()
for queue in ["greetings", "tasks", "squares", "jobs", "jobs.failed"]:
    channel.queue_delete(queue)
for exchange in ["events", "later"]:
    channel.exchange_delete(exchange)
"""


class Terminal:
    """A program that runs beside the others."""

    def __init__(self, command: str, expected: str, folder: Path, environment: dict[str, str]):
        self.command, self.expected = command, expected
        self.output = tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen(
            command, shell=True, cwd=folder, env=environment, stdout=self.output, stderr=subprocess.STDOUT,
            start_new_session=True,
            # A program that was started in the background of a shell ignores it, and so do all that it starts.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )

    def printed(self) -> str:
        # The program writes where its descriptor stands, and that is this one: it must not be moved.
        size = os.fstat(self.output.fileno()).st_size
        return os.pread(self.output.fileno(), size, 0).decode()

    def wait_for(self, text: str) -> None:
        end = time.monotonic() + PATIENCE_S
        while len(self.printed()) < len(text) and self.process.poll() is None and time.monotonic() < end:
            time.sleep(0.05)

    def problem(self) -> str | None:
        self.wait_for(self.expected)
        os.killpg(self.process.pid, signal.SIGINT)
        try:
            self.process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            return f"$ {self.command}\ndoes not end at Ctrl-C"
        return compare(self.command, self.expected, self.printed())


def compare(command: str, expected: str, printed: str) -> str | None:
    if printed == expected:
        return None
    return f"$ {command}\nexpected:\n{expected}printed:\n{printed}"


def steps(block: str) -> list[tuple[str, str]]:
    """The commands of a console block, each with what it prints."""
    found = []
    for line in block.splitlines(keepends=True):
        if line.startswith("$ "):
            found.append([line[2:].strip(), ""])
        else:
            found[-1][1] += line
    return [(command, expected) for command, expected in found]


def install_clients(folder: Path) -> None:
    """What the tests of the clients have installed, where programs in a new folder find it."""
    (folder / "node_modules").symlink_to(CONFORMANCE / "node" / "node_modules")
    (folder / "lib").symlink_to(CONFORMANCE / ".cache" / "tutorials" / "lib")
    module = (CONFORMANCE / "go" / "go.mod").read_text()
    (folder / "go.mod").write_text(re.sub(r"^module .*", "module tutorials", module))
    (folder / "go.sum").write_text((CONFORMANCE / "go" / "go.sum").read_text())


def write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def follow(page: Path) -> list[str]:
    uri = os.environ.get("COURSER_TEST_URI")
    subprocess.run([PYTHON / "python", "-c", CLEAR, uri or "amqp://guest:guest@localhost:5672/"], timeout=PATIENCE_S, check=True)
    environment = os.environ | {"PATH": f"{PYTHON}:{os.environ['PATH']}", "PYTHONUNBUFFERED": "1"}
    problems, terminals = [], []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        install_clients(folder)
        blocks = BLOCK.findall(page.read_text())
        # All at once, so that a page needs to compile them only once.
        for _, options, text in blocks:
            if target := re.search(r"file=(\S+)", options):
                write(folder / target[1], BROKER.sub(uri, text) if uri else text)
        for language, options, text in blocks:
            if language != "console" or "setup" in options:
                continue
            if "terminal=" in options:
                [(command, expected)] = steps(text)
                terminals.append(Terminal(command, expected, folder, environment))
                # What comes after it may need it to be there.
                terminals[-1].wait_for(expected.partition("\n")[0])
            else:
                for command, expected in steps(text):
                    done = subprocess.run(
                        command, shell=True, cwd=folder, env=environment, text=True, timeout=PATIENCE_S,
                        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                    )
                    problems.append(compare(command, expected, done.stdout))
        for terminal in terminals:
            terminal.wait_for(terminal.expected)
        # They acknowledge after their last line; pika may not end where it is interrupted amid that.
        time.sleep(QUIET_S if terminals else 0)
        problems += [terminal.problem() for terminal in terminals]
    return [problem for problem in problems if problem]


def main() -> None:
    passed = failed = 0
    for page in map(Path, sys.argv[1:]):
        problems = follow(page)
        passed, failed = passed + (not problems), failed + bool(problems)
        for problem in problems:
            print(f"-- {page.name}:\n{problem}")
    print(f"{passed} passed, {failed} failed")
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
