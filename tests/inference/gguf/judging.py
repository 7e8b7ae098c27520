"""Judge bytes in this process, as the inspector would in its own."""

import contextlib
import os
import tempfile

from inference.gguf.summary import ModelSummary
from inference.gguf.validator import validate_files
from inference.gguf.verdict import GgufRejected


def judge(*contents: bytes) -> ModelSummary:
    """Validate files with these contents; raises GgufRejected."""
    with contextlib.ExitStack() as stack:
        files = []
        for content in contents:
            stream = stack.enter_context(tempfile.TemporaryFile())
            stream.write(content)
            stream.flush()
            files.append((stream.fileno(), os.fstat(stream.fileno()).st_size))
        return validate_files(files)


def code_of(*contents: bytes) -> str:
    """Give the code that these files are rejected with, or “ok”."""
    try:
        judge(*contents)
    except GgufRejected as error:
        assert error.reason
        return error.code
    return "ok"
