"""Follows tutorials: writes the files that a page shows, runs its commands, and compares what they print.

    python3 follow.py PAGE...

A block ```python file=NAME``` is a file. A block ```console``` has commands behind `$ `, each with what it prints; one with
`terminal=N` has one command that goes on until the end of the page, and what it has printed by then.
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
BROKER = "amqp://guest:guest@localhost:5672/"
PATIENCE_S = 60
PYTHON = Path(__file__).resolve().parent.parent / ".cache" / "python" / "bin"


class Terminal:
    """A program that runs beside the others."""

    def __init__(self, command: str, expected: str, folder: Path, environment: dict[str, str]):
        self.command, self.expected = command, expected
        self.output = tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen(
            command, shell=True, cwd=folder, env=environment, stdout=self.output, stderr=subprocess.STDOUT,
            start_new_session=True,
            # Whoever was started in the background of a shell ignores it, and so do all that it starts.
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


def follow(page: Path) -> list[str]:
    uri = os.environ.get("COURSER_TEST_URI", BROKER)
    environment = os.environ | {"PATH": f"{PYTHON}:{os.environ['PATH']}", "PYTHONUNBUFFERED": "1"}
    problems, terminals = [], []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for language, options, text in BLOCK.findall(page.read_text()):
            if target := re.search(r"file=(\S+)", options):
                (folder / target[1]).write_text(text.replace(BROKER, uri))
            elif language == "console" and "terminal=" in options:
                [(command, expected)] = steps(text)
                terminals.append(Terminal(command, expected, folder, environment))
                # What comes after it may need it to be there.
                terminals[-1].wait_for(expected.partition("\n")[0])
            elif language == "console":
                for command, expected in steps(text):
                    done = subprocess.run(
                        command, shell=True, cwd=folder, env=environment, text=True, timeout=PATIENCE_S,
                        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                    )
                    problems.append(compare(command, expected, done.stdout))
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
