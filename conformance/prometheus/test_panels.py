"""Every panel of every dashboard has something to show."""

import json
import math
import subprocess

import pytest
from conftest import ROOT
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
    assert len(panels) > 40
    for _, expression in panels:
        world.wait_for(with_variables(expression), lambda values: True)


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
