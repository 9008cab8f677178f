"""Finds programs that two brokers answer differently; `run` starts the brokers and calls this.

main.py search REFERENCE TESTED [--seed N] [--programs N] [--steps N] [--workers N] [--vhosts PREFIX] [--keep FOLDER]
main.py compare REFERENCE TESTED PROGRAM.json...     what differs in these programs, shrunk
main.py record REFERENCE PROGRAM.json...             writes what the reference shows into the files
main.py replay TESTED PROGRAM.json...                whether the broker shows what is in the files
"""

import argparse
import json
import multiprocessing
import re
import signal
import sys
import time
from pathlib import Path

import generate
from execute import Pace, first_difference, run
from peer import Peer
from shrink import shrink


def described(step):
    """A step as one reads and replays it."""
    return json.dumps(step, separators=(", ", ": "))


def print_difference(program, number, step, seen, title):
    lines = [f"-- {title}", "["]
    lines += [f"  {described(each)}{',' if each is not program[-1] else ''}" for each in program]
    place = f"step {number + 1}" if number < len(program) else "the inspection"
    lines += ["]", f"they differ at {place}: {described(step)}"]
    lines += [f"  {name:9} {json.dumps(what)}" for name, what in zip(("reference", "tested"), seen)]
    print("\n".join(lines), flush=True)


def confirmed_difference(program, peers):
    """A difference that is there when there is time enough for everything; twice, as chance has it sometimes."""
    pace = Pace(program, slow=True)
    found = first_difference(program, peers, pace)
    return found and first_difference(program, peers, pace)


def kind(found):
    """What a difference is about, so that a program does not shrink to one with another."""
    if found is None:
        return None
    _, _, seen = found
    channels = [[what for what in each.values() if isinstance(what, dict)] for each in seen]
    names = [sorted({reply[0] for what in each for reply in what.get("replies", ())}) for each in channels]
    texts = [re.findall(r'"text": "([A-Z_]+ - [a-z]+)', json.dumps(each)) for each in seen]
    return names, texts


def shrunk(program, found, peers):
    """A smaller program with the difference; most of those that are tried have none, and show it quickly."""
    wanted = kind(found)

    def differs(smaller):
        paces = (Pace(smaller), Pace(smaller, slow=True))
        return bool(smaller) and all(kind(first_difference(smaller, peers, pace)) == wanted for pace in paces)

    return shrink(program, differs)


def examine(arguments):
    """One random program: (seed, "same" | "unsteady" | "different", program, difference)."""
    seed, options = arguments
    worker = multiprocessing.current_process()._identity[0] - 1
    peers = [Peer(uri, f"{options.vhosts}{worker}") for uri in (options.reference, options.tested)]
    program = generate.program(seed, options.steps)
    try:
        if first_difference(program, peers, Pace(program)) is None:
            return seed, "same", None, None
        found = confirmed_difference(program, peers)
        if found is None:
            return seed, "unsteady", None, None
        # What comes after the difference is not needed.
        number = found[0]
        program = program[: number + 1]
        if options.shrink:
            program = shrunk(program, found, peers)
            found = confirmed_difference(program, peers)
        return (seed, "different", program, found) if found else (seed, "unsteady", None, None)
    except Exception as problem:  # a runner that fails must name its seed
        return seed, f"failed: {problem!r}", program, None


def show(options, seed, result, program, found):
    if found:
        print_difference(program, *found, title=f"seed {seed}, {options.steps} steps")
        if options.keep:
            Path(options.keep, f"seed-{seed}.json").write_text(json.dumps({"program": program}))
    elif result != "same":
        print(f"-- seed {seed}: {result}", flush=True)


def search(options):
    counts, started = {"same": 0, "unsteady": 0, "different": 0, "failed": 0}, time.monotonic()
    seeds = range(options.seed, options.seed + options.programs)
    # An interrupt ends the search here, and tells how far it came.
    ignore = {"initializer": signal.signal, "initargs": (signal.SIGINT, signal.SIG_IGN)}
    with multiprocessing.Pool(options.workers, **ignore) as pool:
        try:
            for seed, result, program, found in pool.imap_unordered(examine, ((seed, options) for seed in seeds)):
                counts[result.split(":")[0]] += 1
                show(options, seed, result, program, found)
        except KeyboardInterrupt:
            print("-- stopped")
    took_s = time.monotonic() - started
    print(f"{sum(counts.values())} programs of {options.steps} steps in {took_s:.0f} s: " +
          ", ".join(f"{count} {name}" for name, count in counts.items()))  # fmt: skip
    return counts["different"] + counts["failed"]


def load(path):
    kept = json.loads(Path(path).read_text())
    return kept if isinstance(kept, dict) else {"program": kept}


def compare(options):
    peers, different = [Peer(options.reference), Peer(options.tested)], 0
    for path in options.files:
        program = load(path)["program"]
        found = confirmed_difference(program, peers)
        if found and options.shrink:
            program = shrunk(program[: found[0] + 1], found, peers)
            found = confirmed_difference(program, peers) or found
        if found:
            different += 1
            print_difference(program, *found, title=path)
    print(f"{len(options.files) - different} same, {different} different")
    return different


def observations(program, peer, slow):
    return [seen for _, (seen,) in run(program, [peer], Pace(program, slow))]


def record(options):
    peer = Peer(options.reference)
    for path in options.files:
        kept = load(path)
        kept["observed"] = observations(kept["program"], peer, slow=True)
        steps = ",\n    ".join(map(described, kept["program"]))
        seen = ",\n    ".join(map(described, kept["observed"]))
        about = json.dumps(kept.get("about", ""))
        text = f'{{\n  "about": {about},\n  "program": [\n    {steps}\n  ],\n  "observed": [\n    {seen}\n  ]\n}}\n'
        Path(path).write_text(text)


def replay(options):
    peer, failed = Peer(options.tested), 0
    for path in options.files:
        kept = load(path)
        for slow in (False, True):
            seen = observations(kept["program"], peer, slow)
            if seen == kept["observed"]:
                break
        else:
            failed += 1
            number = next(place for place, pair in enumerate(zip(seen, kept["observed"])) if pair[0] != pair[1])
            steps = kept["program"]
            step = steps[number] if number < len(steps) else "inspection"
            print_difference(steps, number, step, (kept["observed"][number], seen[number]), title=path)
    print(f"{len(options.files) - failed} passed, {failed} failed")
    return failed


def main():
    parser = argparse.ArgumentParser()
    commands = parser.add_subparsers(dest="command", required=True)
    for command in (search, compare, record, replay):
        one = commands.add_parser(command.__name__)
        if command is not replay:
            one.add_argument("reference")
        if command is not record:
            one.add_argument("tested")
        if command is search:
            for name, default in (("seed", 1), ("programs", 100), ("steps", 25), ("workers", 6)):
                one.add_argument(f"--{name}", type=int, default=default)
            one.add_argument("--vhosts", default="d")
            one.add_argument("--keep")
        else:
            one.add_argument("files", nargs="+")
        if command in (search, compare):
            one.add_argument("--shrink", action=argparse.BooleanOptionalAction, default=True)
        one.set_defaults(call=command)
    options = parser.parse_args()
    sys.exit(1 if options.call(options) else 0)


if __name__ == "__main__":
    main()
