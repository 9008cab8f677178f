"""Crashes a broker again and again and looks at what is left. See README.md."""

import argparse
import os
import random
import shutil
import signal
import sys
from pathlib import Path

from broker import Broker, BrokerError, free_port

CACHE = Path(__file__).resolve().parent.parent / ".cache" / "crash"


def arguments():
    parser = argparse.ArgumentParser(prog="conformance/crash/run", description=__doc__)
    parser.add_argument("--binary", required=True, help="the broker (default: it is built)")
    parser.add_argument("--rounds", type=int, default=5, help="default 5; a long run has 50 or more")
    parser.add_argument("--seed", type=int, default=None, help="repeats the choices of a run, though not its moments")
    parser.add_argument("--seconds-per-round", type=float, default=2.0, help="the longest time under load, default 2")
    parser.add_argument("--power", action="store_true", help="the power goes too: what was not synced is lost (needs root)")
    parser.add_argument("--lie", action="store_true", help="with --power: syncs do nothing, and messages have to be missed")
    parser.add_argument("--no-faults", action="store_true", help="only the rounds")
    given = parser.parse_args()
    if not 0 < given.seconds_per_round <= 10:
        parser.error("--seconds-per-round has to be more than 0 and at most 10")
    return given


def keep_failed(broker, name, problems):
    """Sets the folder of what failed aside, and says where it is."""
    (broker.folder / "problems.txt").write_text(problems + "\n")
    kept = CACHE / "failed" / name
    shutil.rmtree(kept, ignore_errors=True)
    kept.parent.mkdir(parents=True, exist_ok=True)
    # Sockets can't be copied.
    shutil.copytree(broker.folder, kept, ignore=shutil.ignore_patterns("*.sock"))
    print(f"     kept: {kept}: broker.log; data as it is now; at-the-stop: data as the last round left it", flush=True)


def run_faults(binary, port, power):
    """Gives (passed, failed)."""
    import faults

    results = []
    for test in faults.WITHOUT_POWER if power else faults.ALL:
        folder = CACHE / "faults"
        shutil.rmtree(folder, ignore_errors=True)
        disk = mounted(folder / "disk") if power else None
        broker = Broker(binary, folder, port, disk)
        try:
            test(broker)
            results.append(True)
            print(f"   ok   {test.__name__}", flush=True)
        except (BrokerError, AssertionError, OSError, ValueError) as error:
            results.append(False)
            print(f"   FAIL {test.__name__}: {error}", flush=True)
            keep_failed(broker, test.__name__, str(error))
        finally:
            broker.kill()
            if disk:
                disk.close()
    return results.count(True), results.count(False)


def mounted(folder):
    """A disk whose power can go."""
    import lossy

    try:
        return lossy.Mounted(folder)
    except OSError as error:
        sys.exit(f"--power needs root and /dev/fuse, to mount a file system: {error}")


def run_rounds(given, seed, port):
    """Gives (passed, failed). A failed round is followed by one with an empty data folder."""
    from rounds import Failed, Rounds

    passed = failed = 0
    folder = CACHE / "rounds"
    shutil.rmtree(folder, ignore_errors=True)
    disk = mounted(folder / "disk") if given.power else None
    broker = Broker(given.binary, folder, port, disk)
    try:
        rounds = Rounds(broker, seed, given.seconds_per_round)
        for number in range(1, given.rounds + 1):
            try:
                line = rounds.run(number)
                passed += 1
                print(f"   ok   {number}/{given.rounds} {line}", flush=True)
            except (Failed, BrokerError, AssertionError, OSError) as error:
                failed += 1
                broker.kill()
                text = "\n".join(dict.fromkeys([str(error), *rounds.model.problems]))
                print(f"   FAIL {number}/{given.rounds} with --seed {seed}: {text}", flush=True)
                keep_failed(broker, f"seed-{seed}-round-{number}", text)
                rounds.begin_anew()
            if given.lie:
                # From the second round on: what is confirmed in it has to be missed.
                disk.tell("lie")
    finally:
        broker.kill()
        if disk:
            disk.close()
    return passed, failed


def main():
    given = arguments()
    # As a wish to stop: the broker is killed on the way out.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    seed = random.randrange(1_000_000) if given.seed is None else given.seed
    port = free_port()
    # The client reads where the broker is when it is first imported, which the functions above do.
    os.environ["COURSER_TEST_URI"] = f"amqp://guest:guest@127.0.0.1:{port}/%2F"
    passed = failed = 0
    if not given.no_faults:
        passed, failed = run_faults(given.binary, port, given.power)
    print(f"   {given.rounds} rounds with --seed {seed}", flush=True)
    more_passed, more_failed = run_rounds(given, seed, port)
    if given.lie:
        # The test of the test.
        more_passed, more_failed = (1, 0) if more_failed else (0, 1)
    passed, failed = passed + more_passed, failed + more_failed
    print(f"{passed} passed, {failed} failed")
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
