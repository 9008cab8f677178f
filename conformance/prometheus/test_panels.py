"""Every panel of every dashboard has something to show."""

import json
import math
import subprocess

import pytest
from conftest import ROOT, RULES, wait_until
from panels import PANELS, WINDOW

DASHBOARD = ROOT / "deploy/grafana/courser.json"


def own_panels():
    for panel in json.loads(DASHBOARD.read_text())["panels"]:
        for target in panel.get("targets", []):
            yield panel["title"], target["expr"]


def with_variables(expression):
    for variable, value in (("$__rate_interval", WINDOW), ("$job", "courser"), ("$instance", ".*")):
        expression = expression.replace(variable, value)
    return expression


@pytest.mark.parametrize("panel, expression, is_busy", PANELS, ids=[panel[0] for panel in PANELS])
def test_a_panel_of_rabbitmqs_overview_fills(world, panel, expression, is_busy):
    def is_enough(values):
        assert len(values) == 1, f"{panel}: {values}"
        return values[0] > 0 if is_busy else not math.isnan(values[0])

    world.wait_for(expression, is_enough)


def test_every_panel_of_our_dashboard_fills(world):
    panels = list(own_panels())
    assert len(panels) > 30
    for _, expression in panels:
        world.wait_for(with_variables(expression), lambda values: True)


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
    for name in (
        "up", "rabbitmq_alarms_memory_used_watermark", "rabbitmq_alarms_free_disk_space_watermark",
        "rabbitmq_disk_space_available_bytes", "courser_memory_used_bytes", "courser_memory_limit_bytes",
        "courser_journal_sync_duration_seconds_bucket", "rabbitmq_queue_messages_ready", "rabbitmq_queue_consumers",
        "rabbitmq_detailed_queue_messages_ready", "rabbitmq_global_messages_unroutable_dropped_total",
        "rabbitmq_process_open_fds", "rabbitmq_process_max_fds", "rabbitmq_auth_attempts_failed_total",
    ):  # fmt: skip
        assert name in RULES.read_text()
        world.wait_for(name, lambda values: True)


@pytest.mark.parametrize(
    "path",
    ["/metrics", "/metrics/per-object", "/metrics/memory-breakdown", "/metrics/detailed?family=queue_metrics"],
)
def test_promtool_reads_every_page(world, path):
    checked = subprocess.run(
        ["promtool", "check", "metrics"], input=world.page(path), capture_output=True, text=True, timeout=60
    )
    # 3 says that names are not as Prometheus recommends them: they are RabbitMQ's.
    assert checked.returncode in (0, 3), checked.stderr


def test_the_configuration_that_we_ship_is_valid():
    config = ROOT / "deploy/prometheus/prometheus.yml"
    subprocess.run(["promtool", "check", "config", config], check=True, capture_output=True, timeout=60)
