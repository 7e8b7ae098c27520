"""Examine files that lie on disk: open them safely, then run the inspector and the probe."""

import contextlib
import os
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from inference.gguf.adapter import AdapterSummary
from inference.gguf.child import (
    ADAPTER_INSPECTION,
    FILE_INSPECTION,
    INSPECTION,
    PROBE,
    TEMPLATE_READING,
    WITH_ADAPTER,
    run_stage,
)
from inference.gguf.header import HEADER_BYTES
from inference.gguf.inspect_template import TemplateFacts
from inference.gguf.recognise import FileFacts
from inference.gguf.summary import ModelSummary
from inference.gguf.verdict import GgufRejected

MAX_FILES = 1000


@contextlib.contextmanager
def open_regular(path: Path) -> Iterator[int]:
    """Open a regular file for reading; links, folders, pipes and devices are refused."""
    try:
        # Without O_NONBLOCK opening a pipe would wait for a writer.
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        if path.is_symlink():
            reason = f"{path.name!r} is a link: give the file itself."
            raise GgufRejected("not_a_file", reason) from error
        reason = f"Cannot open {path.name!r}: {error.strerror}."
        raise GgufRejected("not_a_file", reason) from error
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise GgufRejected("not_a_file", f"{path.name!r} is not a regular file.")
        yield fd
    finally:
        os.close(fd)


def inspect_files(paths: Sequence[Path]) -> ModelSummary:
    """Read and check the headers in a process of their own; raises GgufRejected."""
    with _open_all(paths) as descriptors:
        for fd in descriptors:
            size_bytes = os.fstat(fd).st_size
            if size_bytes < HEADER_BYTES and len(descriptors) > 1:
                raise GgufRejected("truncated", f"A file has only {size_bytes} bytes.", 0)
        return msgspec.json.decode(run_stage(INSPECTION, descriptors), type=ModelSummary)


def inspect_file(path: Path, size_bytes: int) -> FileFacts | None:
    """Say what a file is that will have ``size_bytes``; None while its header is not all there.

    Raises GgufRejected for what cannot become a good file, whatever comes.
    """
    with _open_all([path]) as descriptors:
        try:
            answer = run_stage(FILE_INSPECTION, descriptors, str(size_bytes))
        except GgufRejected as error:
            if error.code == "shrank" and os.fstat(descriptors[0]).st_size < size_bytes:
                return None
            raise
    return msgspec.json.decode(answer, type=FileFacts)


def inspect_adapter(path: Path) -> AdapterSummary:
    """Read and check an adapter's header in a process of its own; raises GgufRejected."""
    with _open_all([path]) as descriptors:
        answer = run_stage(ADAPTER_INSPECTION, descriptors)
    return msgspec.json.decode(answer, type=AdapterSummary)


def read_chat_template(path: Path) -> TemplateFacts:
    """Read the template of a model's first shard, in a process of its own; raises GgufRejected."""
    with _open_all([path]) as descriptors:
        return msgspec.json.decode(run_stage(TEMPLATE_READING, descriptors), type=TemplateFacts)


def probe_files(paths: Sequence[Path]) -> None:
    """Load the model in a process of its own and decode a token; raises GgufRejected."""
    with _open_all(paths) as descriptors:
        run_stage(PROBE, descriptors)


def probe_adapter(paths: Sequence[Path], adapter: Path) -> None:
    """Load a model with an adapter, likewise, and decode a token under it; raises GgufRejected."""
    with _open_all([*paths, adapter]) as descriptors:
        run_stage(PROBE, descriptors, WITH_ADAPTER)


@contextlib.contextmanager
def _open_all(paths: Sequence[Path]) -> Iterator[list[int]]:
    if not 1 <= len(paths) <= MAX_FILES:
        raise GgufRejected("not_a_file", f"Give 1 to {MAX_FILES} files.")
    with contextlib.ExitStack() as stack:
        yield [stack.enter_context(open_regular(path)) for path in paths]
