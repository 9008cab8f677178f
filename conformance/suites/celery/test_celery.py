"""Celery's workers and callers over the broker at BROKER_URL."""

import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager

import pytest
from celery import chain, group
from courser_app import add, app, flaky, survive, total


@contextmanager
def worker(name, *options):
    """A worker with two processes, in a group of its own so that it can be killed as a whole."""
    command = [sys.executable, "-m", "celery", "-A", "courser_app", "worker", "-n", f"{name}@courser", "-c", "2"]
    process = subprocess.Popen([*command, "--loglevel", "warning", *options], start_new_session=True)
    try:
        deadline = time.monotonic() + 30
        while not app.control.inspect([f"{name}@courser"], timeout=0.5).ping():
            assert process.poll() is None, "the worker ended"
            assert time.monotonic() < deadline, "the worker does not answer"
        yield process
    finally:
        if process.poll() is None:
            process.terminate()
            try:
                process.wait(15)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()


@pytest.fixture(scope="module")
def running():
    with worker("usual"):
        yield


def test_results_come_by_rpc(running):
    assert add.delay(2, 3).get(timeout=10) == 5


def test_many_results_find_their_callers(running):
    results = [add.delay(n, n) for n in range(100)]
    assert [result.get(timeout=20) for result in results] == [2 * n for n in range(100)]


def test_an_error_reaches_the_caller(running):
    with pytest.raises(TypeError):
        add.delay(1, "x").get(timeout=10)


def test_a_task_is_retried_after_its_countdown(running, tmp_path):
    log = tmp_path / "attempts"
    assert flaky.delay(str(log)).get(timeout=20) == 2
    first, second, third = map(float, log.read_text().split())
    assert second - first >= 0.95
    assert third - second >= 0.95


def test_a_countdown_delays_a_task(running):
    began = time.monotonic()
    assert add.apply_async((1, 1), countdown=1).get(timeout=10) == 2
    assert time.monotonic() - began >= 0.95


def test_chains_and_groups(running):
    assert chain(add.s(1, 2), add.s(4))().get(timeout=10) == 7
    assert sum(group(add.s(n, 1) for n in range(10))().get(timeout=10)) == 55


def test_a_worker_answers_remote_control(running):
    replies = app.control.inspect(timeout=2).registered()
    assert any("courser_app.add" in tasks for tasks in replies.values())


def test_a_task_of_a_killed_worker_is_done_by_another(tmp_path):
    log = tmp_path / "starts"
    queue = "courser-celery-killed"
    with worker("doomed", "-Q", queue) as doomed:
        result = survive.apply_async((str(log), 3), queue=queue)
        deadline = time.monotonic() + 20
        while not log.exists():
            assert time.monotonic() < deadline, "the task did not begin"
            time.sleep(0.05)
        os.killpg(doomed.pid, signal.SIGKILL)
        doomed.wait()
    with worker("heir", "-Q", queue):
        assert result.get(timeout=30) == "done"
    assert len(log.read_text().split()) == 2, "begun by the worker that was killed, and once more"


def test_what_is_sent_with_no_worker_waits():
    queue = "courser-celery-later"
    result = total.apply_async(([1, 2, 3],), queue=queue)
    with worker("late", "-Q", queue):
        assert result.get(timeout=20) == 6
