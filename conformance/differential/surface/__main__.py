"""Compares all of it and checks the list of known differences; `--note` writes the list anew."""

import argparse
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from . import declarations, differences, reads, scene, writes
from .caller import Caller
from .web import Web

LISTED = Path(__file__).with_name("differences.txt")
DECLARED = "surface-declared"
# Statistics come late: reads are repeated for so long until they show nothing but what is listed.
PATIENCE_S = 60


def part(line):
    """What a line of the list is about."""
    return {"GET": "reads", "PUT": "writes", "POST": "writes", "DELETE": "writes"}.get(line.split()[0], "declarations")


def compare_declarations(both, _listed, webs, uris):
    for web in webs:
        web.ask("DELETE", f"/api/vhosts/{DECLARED}")
        web.ask("PUT", f"/api/vhosts/{DECLARED}", {})
        web.ask("PUT", f"/api/permissions/{DECLARED}/{web.user}", scene.EVERYTHING)
    seen = both(declarations.observe, [Caller(uri, DECLARED) for uri in uris])
    for web in webs:
        web.ask("DELETE", f"/api/vhosts/{DECLARED}")
    return differences.lines(*seen, together=True)


def compare_writes(both, _listed, webs, _uris):
    return differences.lines(*both(writes.observe, webs))


def compare_reads(both, listed, webs, uris):
    both(scene.unmake, webs)
    both(scene.make, webs)
    clients = both(scene.enliven, uris)
    names = both(lambda web: scene.names(web, PATIENCE_S), webs)
    end = time.monotonic() + PATIENCE_S
    while True:
        one, other = both(lambda pair: reads.observe(*pair), zip(webs, names))
        found = differences.lines(reads.outermost(one, other), reads.outermost(other, one))
        if set(found) == {line for line in listed if part(line) == "reads"} or time.monotonic() > end:
            break
        time.sleep(2)
    for client in clients:
        client.end()
    both(scene.unmake, webs)
    return found


PARTS = {"declarations": compare_declarations, "writes": compare_writes, "reads": compare_reads}


def main():
    parser = argparse.ArgumentParser(prog="surface")
    for name in ("reference", "tested", "reference_http", "tested_http"):
        parser.add_argument(name)
    parser.add_argument("--note", action="store_true")
    parser.add_argument("--only", choices=PARTS, action="append")
    options = parser.parse_args()
    uris = options.reference, options.tested
    webs = [Web(uri) for uri in (options.reference_http, options.tested_http)]
    listed, found, wanted = differences.load(LISTED), [], options.only or list(PARTS)

    def both(call, of):
        with ThreadPoolExecutor(2) as pool:
            return list(pool.map(call, of))

    for name in wanted:
        different = PARTS[name](both, listed, webs, uris)
        print(f"{name}: {len(different)} lines", flush=True)
        found += different
    if options.note:
        found += [line for line in listed if part(line) not in wanted]
        return differences.note(LISTED, found, listed)
    wrong = differences.check(found, {line: why for line, why in listed.items() if part(line) in wanted})
    print("\n".join(wrong) or "nothing but what is listed")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
