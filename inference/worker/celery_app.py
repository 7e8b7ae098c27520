"""The Celery application of a replica: tickets in, nothing out."""

import warnings
from collections.abc import Callable
from typing import Any

from celery import Celery
from celery.exceptions import SecurityWarning
from celery.signals import setup_logging
from kombu import Queue

from inference.protocol.names import TICKET_TASK, broker_url, ticket_queue


def build_app(redis_url: str, replica: str, take_jobs: Callable[[], None]) -> Celery:
    """Build the application whose one task is a ticket: a slot's right to take jobs."""
    # Without fixups: Celery's own would load Django wherever its settings are named.
    app = Celery("inference.worker", broker=broker_url(redis_url), set_as_current=False, fixups=[])
    app.conf.update(_celery_settings(replica))

    @app.task(name=TICKET_TASK, ignore_result=True, shared=False)
    def use_ticket() -> None:
        take_jobs()

    return app


def _celery_settings(replica: str) -> dict[str, Any]:
    """Give what makes Celery a bell: it carries tickets, JSON alone, and keeps nothing."""
    return {
        "accept_content": ["json"],
        "task_serializer": "json",
        "result_serializer": "json",
        "result_accept_content": ["json"],
        "result_backend": None,
        "task_ignore_result": True,
        "task_store_errors_even_if_ignored": False,
        # A ticket is only a wake-up: it may be lost or come twice, the waiting set is the truth.
        # So none is acknowledged: a server that is out of memory could not note that it must be,
        # which would end the worker.
        "task_acks_late": False,
        "task_reject_on_worker_lost": False,
        "task_default_queue": ticket_queue(replica),
        "task_queues": [Queue(ticket_queue(replica), no_ack=True)],
        "worker_prefetch_multiplier": 1,
        "worker_enable_remote_control": False,
        "worker_send_task_events": False,
        "worker_hijack_root_logger": False,
        "worker_redirect_stdouts": False,
        "worker_cancel_long_running_tasks_on_connection_loss": False,
        "broker_connection_retry_on_startup": True,
        "broker_connection_max_retries": None,
        "broker_pool_limit": 4,
        "broker_transport_options": {
            "socket_timeout": 10,
            "socket_connect_timeout": 3,
            "socket_keepalive": True,
            "retry_on_timeout": True,
            "health_check_interval": 10,
            "max_connections": 20,
        },
    }


def send_ticket(app: Celery, replica: str) -> None:
    """Wake one slot of a replica; raises kombu's OperationalError at once on failure."""
    app.send_task(TICKET_TASK, queue=ticket_queue(replica), ignore_result=True, retry=False)


def run_worker(app: Celery, hostname: str, num_slots: int) -> int:
    """Serve tickets until SIGTERM, from the main thread; gives the exit code."""
    # The warning against root is about pickled messages; this application reads only JSON.
    warnings.simplefilter("ignore", SecurityWarning)
    setup_logging.connect(_keep_log, weak=False)
    worker = app.Worker(
        hostname=hostname,
        pool_cls="threads",
        concurrency=num_slots,
        quiet=True,
        without_gossip=True,
        without_mingle=True,
        without_heartbeat=True,
    )
    worker.start()
    return int(worker.exitcode or 0)


def _keep_log(**_: object) -> None:
    """Leave levels and handlers as they are: Celery sets up its own where nobody is connected."""
