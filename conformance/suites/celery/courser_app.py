"""A small Celery application: what programs do with a broker through Celery."""

import os
import time
from pathlib import Path

from celery import Celery

app = Celery("courser_app", broker=os.environ["BROKER_URL"], backend="rpc://")
app.conf.update(
    result_persistent=True,
    task_default_queue="courser-celery",
    worker_prefetch_multiplier=1,
    broker_connection_retry_on_startup=True,
)


@app.task
def add(a, b):
    return a + b


@app.task
def total(numbers):
    return sum(numbers)


@app.task(bind=True, max_retries=3)
def flaky(self, log):
    """Fails twice, and leaves a line in a file for each attempt."""
    with Path(log).open("a") as attempts:
        attempts.write(f"{time.time()}\n")
    if self.request.retries < 2:
        raise self.retry(countdown=1)
    return self.request.retries


@app.task(acks_late=True, reject_on_worker_lost=True)
def survive(log, seconds):
    """Leaves a line in a file when it begins, and takes its time."""
    with Path(log).open("a") as starts:
        starts.write(f"{os.getpid()}\n")
    time.sleep(seconds)
    return "done"
