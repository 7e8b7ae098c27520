"""What the children print: on the terminal with a prefix, and in files of bounded size."""

import logging
import logging.handlers
import sys
import threading
from collections.abc import Iterable
from pathlib import Path

MAX_LINE_CHARACTERS = 4000
MAX_FILE_BYTES = 5 * 2**20
NUM_OLD_FILES = 3
PREFIX_WIDTH = 8


def say(line: str, *, source: str = "llamero") -> None:
    """Print one line with its source; a terminal that is gone is no reason to stop."""
    try:
        sys.stdout.write(f"{source:<{PREFIX_WIDTH}}| {line}\n")
        sys.stdout.flush()
    except OSError:
        return


def open_log(folder: Path, source: str) -> logging.Logger:
    """Give the logger that writes plain lines to the source's own file."""
    logger = logging.getLogger(f"llamero.supervisor.output.{source}")
    logger.propagate = False
    logger.setLevel(logging.INFO)
    if not logger.handlers:
        handler = logging.handlers.RotatingFileHandler(
            folder / f"{source}.log", maxBytes=MAX_FILE_BYTES, backupCount=NUM_OLD_FILES
        )
        handler.setFormatter(logging.Formatter("%(message)s"))
        logger.addHandler(handler)
    return logger


def pump(lines: Iterable[bytes], source: str, log: logging.Logger) -> threading.Thread:
    """Copy lines to terminal and file in a thread that ends with them."""

    def copy() -> None:
        for raw in lines:
            line = raw.decode(errors="replace").rstrip()[:MAX_LINE_CHARACTERS]
            log.info("%s", line)
            say(line, source=source)

    thread = threading.Thread(target=copy, name=f"output-{source}", daemon=True)
    thread.start()
    return thread
