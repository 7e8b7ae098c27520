"""What the children print: on the terminal with a prefix, and in files of bounded size."""

import logging
import logging.handlers
import sys
import threading
from pathlib import Path
from typing import IO

MAX_LINE_CHARACTERS = 4000
MAX_FILE_BYTES = 5 * 2**20
NUM_OLD_FILES = 3
PREFIX_WIDTH = 8


def say(line: str, *, source: str = "llamero") -> None:
    """Print one line with its source."""
    show(f"{source:<{PREFIX_WIDTH}}| {line}")


def show(text: str) -> None:
    """Print text as it is; a terminal that is gone is no reason to stop."""
    try:
        sys.stdout.write(f"{text}\n")
        sys.stdout.flush()
    except OSError:
        return


def open_log(folder: Path, source: str) -> logging.Logger:
    """Give the logger that writes plain lines to the source's own file."""
    # A logger of our own, outside the registry: it ends with its owner.
    logger = logging.Logger(source)  # noqa: LOG001
    handler = logging.handlers.RotatingFileHandler(
        folder / f"{source}.log", maxBytes=MAX_FILE_BYTES, backupCount=NUM_OLD_FILES, delay=True
    )
    handler.setFormatter(logging.Formatter("%(message)s"))
    logger.addHandler(handler)
    return logger


def close_log(logger: logging.Logger) -> None:
    """Close the logger's file; a later line opens it again."""
    for handler in logger.handlers:
        handler.close()


def pump(
    stream: IO[bytes], source: str, log: logging.Logger, *, is_shown: bool
) -> threading.Thread:
    """Copy lines to the file, and to the terminal if shown, in a thread that ends with them."""

    def copy() -> None:
        with stream:
            for raw in stream:
                line = raw.decode(errors="replace").rstrip()[:MAX_LINE_CHARACTERS]
                log.info("%s", line)
                if is_shown:
                    say(line, source=source)

    thread = threading.Thread(target=copy, name=f"output-{source}", daemon=True)
    thread.start()
    return thread
