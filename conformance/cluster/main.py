"""Does bad things to a cluster under load, and checks that nothing that was confirmed is lost. See README.md."""

import argparse
import random
import subprocess
import sys
import tempfile
import time

import faults
from load import Consumer, Publisher
from nodes import PATIENCE_S, Cluster


def lost(publishers, consumers):
    """What was confirmed and never came."""
    taken = {(publisher, number) for one in consumers for publisher, number, *_ in one.taken}
    return [
        (publisher.number, number)
        for publisher in publishers
        for number in publisher.confirmed
        if (publisher.number, number) not in taken
    ]


def out_of_order(publishers, consumer):
    """Where a message came for the first time after a later one of its publisher, on the same connection. With one consumer
    that is an error: what comes again comes marked as a redelivery. On a new connection those begin that were on their way on
    the one before, which a new leader does not know."""
    last, found, seen = {}, [], set()
    for publisher, number, redelivered, connection in consumer.taken:
        if (publisher, number) in seen or redelivered:
            continue
        seen.add((publisher, number))
        if number < last.get((publisher, connection), -1):
            found.append((publisher, number))
        last[publisher, connection] = max(number, last.get((publisher, connection), -1))
    return found


def drain(consumer):
    """Waits until nothing has come for a while."""
    until = time.monotonic() + PATIENCE_S
    while time.monotonic() < until and time.monotonic() - consumer.idle_since < 5:
        time.sleep(0.1)


def play(options, folder):
    cluster = Cluster(options.binary, folder, options.nodes, options.groups)
    # A vhost in each group, with publishers and a consumer of its own.
    vhosts = cluster.vhosts()
    everywhere = range(options.publishers * len(vhosts))
    publishers = [Publisher(cluster.nodes, vhosts[number % len(vhosts)], number) for number in everywhere]
    consumers = [Consumer(cluster.nodes, vhost) for vhost in vhosts]
    failures = 0
    go = None
    try:
        cluster.start()
        cluster.leader()
        cluster.make_vhosts()
        if options.go:
            addresses = [f"127.0.0.1:{node.amqp}" for node in cluster.nodes]
            go = subprocess.Popen(
                [options.go, *addresses], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
            )
        for client in [*publishers, *consumers]:
            client.start()
        everything = faults.ALL if options.groups == 1 else [*faults.OF_GROUPS, *faults.ALL]
        chosen = [getattr(faults, options.fault)] if options.fault else everything
        for number in range(options.rounds):
            fault = chosen[number % len(chosen)]
            time.sleep(1)
            before = [len(one.confirmed) for one in publishers]
            fault(cluster, options.seconds)
            cluster.leader()
            began = time.monotonic()
            while silent := cluster.silent(publishers, before):
                assert time.monotonic() - began < PATIENCE_S, f"no confirm in {silent} after {fault.__name__}"
                time.sleep(0.05)
            confirmed = sum(len(one.confirmed) for one in publishers)
            print(f"   {number + 1}. {fault.__name__}: {confirmed} confirmed", flush=True)
        for publisher in publishers:
            publisher.end()
        for consumer in consumers:
            drain(consumer)
            consumer.end()
        if go is not None:
            said, _ = go.communicate("", timeout=2 * PATIENCE_S)
            print(f"   amqp091-go: {said.strip()}", flush=True)
            failures += go.returncode != 0
        gone = lost(publishers, consumers)
        wrong_order = [found for consumer in consumers for found in out_of_order(publishers, consumer)]
        problems = [one.problem for one in [*publishers, *consumers] if one.problem]
        confirmed = sum(len(one.confirmed) for one in publishers)
        gap = max(
            (b - a for one in publishers for a, b in zip(one.confirmed_at, one.confirmed_at[1:])),
            default=0,
        )
        print(
            f"   {confirmed} confirmed, {sum(len(one.taken) for one in consumers)} taken, longest wait for a confirm {gap:.1f} s",
            flush=True,
        )
        for what, found in (("lost", gone), ("out of order", wrong_order), ("problems", problems)):
            if found:
                failures += 1
                print(f"   {what}: {len(found)}: {found[:10]}", flush=True)
        if confirmed == 0:
            failures += 1
            print("   nothing was confirmed: nothing was tried", flush=True)
    except (AssertionError, subprocess.TimeoutExpired) as error:
        failures += 1
        print(f"   {error}", flush=True)
    finally:
        if go is not None:
            go.kill()
        cluster.close()
    return failures


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--binary", required=True, help="the broker")
    parser.add_argument("--go", help="the program of ../go/clusterload, to work beside pika")
    parser.add_argument("--rounds", type=int, help="faults, one after the other [default: each once]")
    parser.add_argument("--seconds", type=float, default=3, help="how long each lasts")
    parser.add_argument("--nodes", type=int, default=3)
    parser.add_argument("--groups", type=int, default=1, help="groups of the cluster, with a vhost in each")
    parser.add_argument("--publishers", type=int, default=2, help="in each vhost")
    parser.add_argument("--fault", choices=[one.__name__ for one in faults.ALL + faults.OF_GROUPS], help="only this one")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    parser.add_argument("--keep", help="a folder for the nodes' folders and logs, which is kept")
    options = parser.parse_args()
    if options.rounds is None:
        options.rounds = len(faults.ALL) + (len(faults.OF_GROUPS) if options.groups > 1 else 0)
    random.seed(options.seed)
    groups = f"--groups {options.groups} " if options.groups > 1 else ""
    print(f"== cluster: {options.rounds} faults, {groups}--seed {options.seed}", flush=True)
    if options.keep:
        failures = play(options, options.keep)
    else:
        with tempfile.TemporaryDirectory() as folder:
            failures = play(options, folder)
    passed = options.rounds if failures == 0 else 0
    print(f"{passed} passed, {failures} failed")
    sys.exit(failures != 0)


if __name__ == "__main__":
    main()
