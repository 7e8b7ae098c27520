"""The control worker: a Celery worker for control tasks, with the control loop beside it."""

from typing import Any

from celery.signals import worker_ready, worker_shutting_down
from django.conf import settings

from inference.relay.connect import connect
from llamero.celery import app
from llamero.control.loop import ControlLoop
from llamero.control.reaping import reap
from llamero.control.reconcile import reconcile

# Beat would cost a message and a task a second for each step; a thread in the worker costs neither.
ARGUMENTS = (
    "worker",
    "--pool=threads",
    "--concurrency=2",
    "--queues=control",
    "--loglevel=INFO",
    "--without-gossip",
    "--without-mingle",
    "--without-heartbeat",
)


def run_control_worker(name: str) -> None:
    """Run until SIGTERM or SIGINT."""
    loop = ControlLoop(connect(settings.REDIS_URL, max_connections=4), (reconcile, reap))

    def begin(**_: Any) -> None:
        loop.start()

    def end(**_: Any) -> None:
        loop.stop()

    worker_ready.connect(begin, weak=False)
    worker_shutting_down.connect(end, weak=False)
    app.worker_main([*ARGUMENTS, f"--hostname={name}"])
