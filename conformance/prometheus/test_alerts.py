"""The alert rules: they can be evaluated, read what is there, fire where they should; and what their runbooks say can be run."""

import os
import re
import shlex
import subprocess

import pika
from conftest import CONFIGURATION, ROOT, RULES, wait_until

RUNBOOKS = ROOT / "docs/runbooks.md"
# What the broker under test does not have: volumes of Kubernetes, certificates.
ELSEWHERE = re.compile("kubelet_.*|courser_certificate_expiry_timestamp_seconds")


def test_the_alert_rules_can_be_evaluated_and_are_quiet(world):
    def evaluated():
        rules = [rule for group in world.api("rules")["groups"] for rule in group["rules"]]
        assert not [rule for rule in rules if rule.get("lastError")], rules
        return rules if rules and all(rule["health"] == "ok" for rule in rules) else None

    rules = wait_until("all rules are evaluated", evaluated)
    # The load drops messages, and the disk of a busy machine may be slow or fill up; nothing else is wrong.
    noisy = {rule["name"] for rule in rules if rule["state"] != "inactive"}
    assert noisy <= {"CourserMessagesDropped", "CourserDiskFillsUp", "CourserSlowDisk"}, noisy


def test_each_rule_reads_metrics_that_are_there(world):
    names = set(re.findall(r"\b(?:up|(?:rabbitmq|courser|kubelet)_\w+)(?=[{\s])", RULES.read_text()))
    assert len(names) > 25, names
    for name in sorted(names):
        if not ELSEWHERE.fullmatch(name):
            world.wait_for(name, lambda values: True)


def test_each_rule_fires_where_it_should_and_nowhere_else():
    tests = RULES.with_suffix(".test.yml")
    tested = subprocess.run(["promtool", "test", "rules", tests], capture_output=True, text=True, timeout=60)
    assert tested.returncode == 0, tested.stdout + tested.stderr


def test_the_configuration_that_we_ship_is_valid():
    subprocess.run(["promtool", "check", "config", CONFIGURATION], check=True, capture_output=True, timeout=60)


def test_the_commands_of_the_runbooks_run(world):
    """At a node of the cluster; with what stands for an object put in its place."""
    commands = re.findall(r"`(courser ctl [^`]+)`", RUNBOOKS.read_text().replace("\n  ", " "))
    assert len(commands) > 10, commands
    place = {"QUEUE": "orders", "EXCHANGE": "amq.direct", "KEY": "orders", "NODE": "b", "courser": os.environ["COURSER_TEST_BINARY"]}

    def run(command):
        words = [place.get(word, word) for word in shlex.split(command)]
        words[2:2] = ["--data-dir", world.member_data("a")]
        return subprocess.run(words, capture_output=True, text=True, timeout=60)

    def declare():
        with pika.BlockingConnection(pika.ConnectionParameters("127.0.0.1", world.cluster_amqp)) as connection:
            connection.channel().queue_declare(place["QUEUE"])
            return True

    wait_until("the cluster takes clients", declare)
    # The lead is given away last: while it moves, nothing else is answered.
    for command in sorted(set(commands), key=lambda command: ("transfer" in command, command)):
        done = run(command)
        assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
