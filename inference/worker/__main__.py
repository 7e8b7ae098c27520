"""Run one replica: ``python -m inference.worker``, with its spec in LLAMERO_REPLICA_SPEC."""

import logging
import os
import sys

from inference.node.orphan import die_with_parent
from inference.worker.settings import read_settings

SPIN_COUNT = "1000"


def main() -> int:
    """Serve the replica of the environment; gives the exit code."""
    die_with_parent()
    # Compute threads spin at barriers for milliseconds by default: a replica that shares its cores
    # with anything then slows down twentyfold. Set before the native library is loaded.
    os.environ.setdefault("GOMP_SPINCOUNT", SPIN_COUNT)
    settings = read_settings()
    start_log(settings.log_level)
    # Imported late: a wrong environment is told at once, and the libraries see their variables.
    from inference.worker.lifecycle import Replica

    return Replica(settings).run()


def start_log(level: str) -> None:
    """Log from this level on; raises ValueError for one that does not exist.

    Celery would tell of each ticket, and llama.cpp of each tensor: both only where all is told.
    """
    logging.basicConfig(level=level, format="%(levelname)s %(name)s: %(message)s")
    chosen = logging.getLogger().level
    if chosen > logging.DEBUG:
        for chatty in ("celery", "kombu", "amqp", "inference.backend.native"):
            logging.getLogger(chatty).setLevel(max(chosen, logging.WARNING))


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    sys.stderr.flush()
    # Native threads may still hold the model: leaving without teardown cannot crash on it.
    os._exit(code)
