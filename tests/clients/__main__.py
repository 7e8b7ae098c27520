"""Run other people's clients against a real Llamero: ``python -m tests.clients PYTHON FILES…``.

Pairs of an interpreter and the file it runs with pytest: the clients' dependencies would not fit
into one environment, nor into the project's own.
"""

import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.live import CHAT_MODEL, EMBEDDING_MODEL, running_llamero
from tests.models import fetch_minilm, fetch_smollm2

FOLDER = Path(__file__).parent


def main(pairs: list[str]) -> int:
    """Run each; gives the exit code of the first that failed."""
    codes = []
    with (
        TemporaryDirectory(prefix="clients") as home,
        running_llamero(Path(home), chat=fetch_smollm2(), embedding=fetch_minilm()) as live,
    ):
        given = {
            "LLAMERO_URL": live.base_url,
            "LLAMERO_KEY": live.api_key,
            "LLAMERO_CHAT": CHAT_MODEL,
            "LLAMERO_EMBEDDING": EMBEDDING_MODEL,
        }
        environment = {name: text for name, text in os.environ.items() if name != "PYTHONPATH"}
        for python, file in zip(pairs[::2], pairs[1::2], strict=True):
            command = [python, "-m", "pytest", "-q", "-c", "pytest.ini", file]
            codes.append(subprocess.run(command, cwd=FOLDER, env=environment | given).returncode)
    return next((code for code in codes if code), 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
