"""How sleeping slots are woken: Celery tasks without payload, published off the event loop."""

import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from kombu.exceptions import OperationalError

from inference.protocol.names import TICKET_TASK, ticket_queue
from llamero.celery import app

logger = logging.getLogger(__name__)
MAX_PENDING = 512


class TicketOffice:
    """Publishes tickets from one thread. The watcher asks again for a ticket that was lost."""

    def __init__(self, publish: Callable[[str], None]) -> None:
        self._publish_one = publish
        self._pool = ThreadPoolExecutor(max_workers=1, thread_name_prefix="tickets")
        self._num_pending = 0

    def send(self, replica: str) -> None:
        """Publish a ticket soon; returns at once. Called from the event loop only."""
        if self._num_pending < MAX_PENDING:
            self._num_pending += 1
            self._pool.submit(self._publish, replica)

    def close(self) -> None:
        """Forget what is not published yet."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _publish(self, replica: str) -> None:
        try:
            self._publish_one(replica)
        except OperationalError as error:
            logger.warning("a ticket for %s was not published: %s", replica, error)
        finally:
            self._num_pending -= 1


def send_ticket(replica: str) -> None:
    """Publish one ticket; blocks for a round trip, raises OperationalError at once on failure."""
    app.send_task(TICKET_TASK, queue=ticket_queue(replica), ignore_result=True, retry=False)
