"""Send made-up requests to every route: ``python -m tests.fuzz [--cases 10000] [--only REGEX]``.

No answer may be a 5xx (but for 501), each must be as the API's description says, and a request
with one right answer must get it before and after. schemathesis makes the requests up; it has a
virtual environment of its own, whose command is named by SCHEMATHESIS.
"""

import argparse
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any

import httpx2

from tests.fuzz.document import narrow
from tests.fuzz.instance import FuzzedLlamero

CONFIG = Path(__file__).with_name("schemathesis.toml")


def main() -> int:
    """Fuzz; gives the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.split(":")[0])
    parser.add_argument("--cases", type=int, default=10_000, help="how many in all, about")
    parser.add_argument("--only", default="", help="a pattern of paths")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    with FuzzedLlamero() as llamero:
        expected = llamero.ask_canary()
        document = narrow(httpx2.get(f"{llamero.base_url}/openapi.json").json())
        num_cases = max(1, options.cases // count_operations(document, options.only))
        code = run_schemathesis(llamero, document, num_cases, options)
        for line in llamero.troubles:
            print(line)
        if llamero.ask_canary() != expected:
            print("The canary's answer is another than before.")
            return 1
    return code


def count_operations(document: dict[str, Any], only: str) -> int:
    """Count the methods of the routes that are meant."""
    meant = [methods for path, methods in document["paths"].items() if re.search(only, path)]
    return sum(map(len, meant)) or 1


def run_schemathesis(
    llamero: FuzzedLlamero, document: dict[str, Any], num_cases: int, options: argparse.Namespace
) -> int:
    """Send so many requests to each operation; gives the exit code."""
    with NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(document, file)
        file.flush()
        command = [
            os.environ.get("SCHEMATHESIS", "schemathesis"),
            f"--config-file={CONFIG}",
            "run",
            file.name,
            f"--url={llamero.base_url}",
            "--phases=coverage,fuzzing",
            f"--max-examples={num_cases}",
            f"--seed={options.seed}",
            *([f"--include-path-regex={options.only}"] if options.only else []),
        ]
        return subprocess.run(command, env=os.environ | {"FUZZ_KEY": llamero.key}).returncode


if __name__ == "__main__":
    sys.exit(main())
