"""The inspector: a process that reads headers of open files and says whether they may be loaded.

Run by inference.gguf.child with the descriptors as arguments; writes one Verdict as JSON.
"""

import os
import sys
from collections.abc import Callable, Sequence

import msgspec

from inference.gguf.child import Verdict, answer
from inference.gguf.limits import GIB, die_with_parent, limit_process
from inference.gguf.validator import validate_files
from inference.gguf.verdict import GgufRejected

Files = Sequence[tuple[int, int]]


def main(arguments: list[str]) -> int:
    """Inspect the descriptors named by the arguments; give the exit status."""
    return judge_files(arguments, validate_files)


def judge_files(arguments: list[str], judge: Callable[[Files], msgspec.Struct]) -> int:
    """Limit this process, judge the descriptors named by the arguments, answer."""
    die_with_parent()
    descriptors = [int(argument) for argument in arguments]
    max_open_files = 16 + len(descriptors)
    limit_process(address_space_bytes=GIB, cpu_seconds=30, max_open_files=max_open_files)
    try:
        facts = judge([(fd, os.fstat(fd).st_size) for fd in descriptors])
    except GgufRejected as error:
        return answer(
            Verdict(
                verdict="rejected",
                code=error.code,
                reason=error.reason,
                byte_offset=error.byte_offset,
            )
        )
    return answer(Verdict(verdict="ok", facts=msgspec.Raw(msgspec.json.encode(facts))))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
