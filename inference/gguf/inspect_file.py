"""The inspector of one file that may not be whole yet; run by inference.gguf.child.

Arguments: the descriptor, and how large the file will be.
"""

import sys

from inference.gguf.inspect import Files, judge_files
from inference.gguf.recognise import FileFacts, recognise_file


def main(arguments: list[str]) -> int:
    """Say what the file is; give the exit status."""
    descriptor, size_bytes = arguments

    def judge(files: Files) -> FileFacts:
        [(opened, _)] = files
        return recognise_file(opened, int(size_bytes))

    return judge_files([descriptor], judge)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
