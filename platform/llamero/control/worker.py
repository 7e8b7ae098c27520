"""The control worker: a Celery worker for control tasks, with the control loop beside it."""

import signal
import socket
import warnings
from typing import Any

from celery.platforms import SecurityWarning  # type: ignore[attr-defined]
from celery.signals import setup_logging, worker_ready, worker_shutting_down
from django.conf import settings
from kombu.asynchronous import Hub

from inference.health.port import open_health_port
from inference.relay.connect import connect
from llamero.api.responses.settling import settle_responses
from llamero.batches.running.runner import BatchRunner
from llamero.celery import app
from llamero.control.loop import ControlLoop
from llamero.control.quarantining import quarantine
from llamero.control.reaping import reap
from llamero.control.reconcile import Controller
from llamero.control.registry_work import look_after_registry
from llamero.control.task_watch import TaskWatch
from llamero.control.tidying import tidy
from llamero.playground.settling import settle_answers
from llamero.usage.alerting import AlertWatch
from llamero.usage.ledger import move_records

QUEUE = "control"
NUM_THREADS = 2


class Loops:
    """What goes on beside the tasks, each on a thread of its own.

    Beat would cost a message and a task a second for each step; a thread in the worker costs
    neither.
    """

    def __init__(self, tasks: TaskWatch) -> None:
        self._controller = Controller()
        self._control = ControlLoop(
            connect(settings.REDIS_URL, max_connections=4),
            (
                self._controller.reconcile,
                reap,
                settle_responses,
                settle_answers,
                quarantine,
                tidy,
                look_after_registry,
                tasks.look,
            ),
        )
        # Apart, so that neither waits for the other: a long queue of records, or a slow webhook.
        self._ledger = ControlLoop(
            connect(settings.REDIS_URL, max_connections=2),
            (move_records, AlertWatch().watch_alerts),
            "ledger",
        )
        self._batches = BatchRunner(connect(settings.REDIS_URL, max_connections=1))
        self.live = {
            **self._control.live,
            **self._ledger.live,
            **self._batches.live,
            "tasks": tasks.judge,
        }
        self.ready = {**self._control.ready, **self._ledger.ready}

    def start(self) -> None:
        """Begin."""
        self._control.start()
        self._ledger.start()
        self._batches.start()

    def stop(self) -> None:
        """End, and let another control worker decide."""
        self._batches.stop()
        self._control.stop()
        self._ledger.stop()
        self._controller.let_go()


def run_control_worker(name: str) -> int:
    """Run until SIGTERM or SIGINT; give the exit code."""
    # Only JSON is accepted, so the risk that Celery warns a superuser of is not there.
    warnings.simplefilter("ignore", SecurityWarning)
    loops = Loops(TaskWatch(QUEUE, NUM_THREADS))
    open_health_port(loops.live, loops.ready)

    def begin(sender: Any, **_: Any) -> None:
        wake_on_signals(sender.hub)
        loops.start()

    def end(**_: Any) -> None:
        loops.stop()

    # Where somebody is connected, Celery leaves the log at the level that the settings gave it.
    setup_logging.connect(lambda **_: None, weak=False)
    worker_ready.connect(begin, weak=False)
    worker_shutting_down.connect(end, weak=False)
    worker = app.Worker(
        hostname=name,
        pool_cls="threads",
        concurrency=NUM_THREADS,
        queues=[QUEUE],
        quiet=True,
        without_gossip=True,
        without_mingle=True,
        without_heartbeat=True,
    )
    worker.start()
    return int(worker.exitcode or 0)


def wake_on_signals(hub: Hub) -> None:
    """Have a signal end the sleep of Celery's loop, which would only look a second later."""
    receiver, sender = socket.socketpair()
    receiver.setblocking(False)
    sender.setblocking(False)
    hub.add_reader(receiver, receiver.recv, 4096)
    signal.set_wakeup_fd(sender.detach(), warn_on_full_buffer=False)
