"""The inspector of LoRA adapters: a process of its own, as for models.

Run by inference.gguf.child with the descriptor as argument; writes one Verdict as JSON.
"""

import sys

from inference.gguf.adapter import validate_adapter
from inference.gguf.inspect import judge_files


def main(arguments: list[str]) -> int:
    """Inspect the descriptor named by the argument; give the exit status."""
    return judge_files(arguments, lambda files: validate_adapter(*files[0]))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
