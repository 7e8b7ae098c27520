"""The answers of a batch on disk: a handful written together, each line once.

Whoever claims a batch writes to files of its own. How much of them counts is written into the
database with the numbers of the lines, in one statement that only succeeds for the current claim.
So what a process wrote just before it died, or after another took over, is no part of the answer.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

import msgspec
from django.db import transaction

from llamero.batches import store
from llamero.batches.line_ranges import LineRanges
from llamero.batches.models import Batch, BatchState, Purpose
from llamero.batches.running.answering import Answer
from llamero.batches.running.usage import add_usage, read_usage
from llamero.batches.services import keep_file, move_on, note_progress
from llamero.batches.store import NewFile

OUTPUT, ERRORS = "output", "errors"
_COPIED_AT_ONCE = 1 << 20
_WRITE = os.O_WRONLY | os.O_CREAT
_FIELDS = {OUTPUT: "output_file", ERRORS: "error_file"}


class AnswerDocument(msgspec.Struct, frozen=True):
    """What a request got."""

    status_code: int
    request_id: str
    body: msgspec.Raw


class ErrorDocument(msgspec.Struct, frozen=True):
    """Why a request was not made."""

    code: str
    message: str


class ResultDocument(msgspec.Struct, frozen=True):
    """A line of an output or error file."""

    id: str
    custom_id: str
    response: AnswerDocument | None
    error: ErrorDocument | None


@dataclass(frozen=True, slots=True)
class Result:
    """What became of a line; ``document`` is its line in the ``kind`` of file."""

    number: int
    kind: str
    document: bytes
    usage: dict[str, int]


def answered(batch_id: str, number: int, custom_id: str, answer: Answer) -> Result:
    """Give the result of a request that was answered, well or not."""
    body = msgspec.Raw(answer.body)
    response = AnswerDocument(answer.status, answer.request_id, body)
    document = ResultDocument(_result_id(batch_id, number), custom_id, response, None)
    kind = OUTPUT if answer.is_good else ERRORS
    usage = read_usage(answer.body) if answer.is_good else {}
    return Result(number, kind, msgspec.json.encode(document) + b"\n", usage)


def not_made(batch_id: str, number: int, custom_id: str, code: str, message: str) -> Result:
    """Give the result of a request that nobody made."""
    error = ErrorDocument(code, message)
    document = ResultDocument(_result_id(batch_id, number), custom_id, None, error)
    return Result(number, ERRORS, msgspec.json.encode(document) + b"\n", {})


class ResultWriter:
    """Writes the results of a claimed batch. Everything here blocks, and for one caller at a time.

    After any failure let go of it, and claim the batch anew.
    """

    def __init__(self, batch: Batch) -> None:
        self._batch = batch
        self.done = LineRanges(batch.done)
        self._earlier: list[list[int]] = batch.parts
        self._num_bytes = {OUTPUT: 0, ERRORS: 0}

    def write(self, results: Sequence[Result]) -> None:
        """Write results, and note that they are; those of lines that are done are dropped."""
        batch, done = self._batch, LineRanges(self.done.as_list())
        num_lines, usage = {OUTPUT: 0, ERRORS: 0}, dict(batch.usage)
        texts: dict[str, list[bytes]] = {OUTPUT: [], ERRORS: []}
        for result in results:
            if result.number not in done:
                done.add(result.number)
                texts[result.kind].append(result.document)
                num_lines[result.kind] += 1
                add_usage(usage, result.usage)
        num_bytes = {kind: self._append(kind, b"".join(lines)) for kind, lines in texts.items()}
        note_progress(
            batch=batch,
            done=done.as_list(),
            parts=[*self._earlier, [batch.claim, num_bytes[OUTPUT], num_bytes[ERRORS]]],
            num_completed=batch.num_completed + num_lines[OUTPUT],
            num_failed=batch.num_failed + num_lines[ERRORS],
            usage=usage,
        )
        self.done, self._num_bytes = done, num_bytes

    def _append(self, kind: str, text: bytes) -> int:
        """Write behind what counts; give how much counts then."""
        size = self._num_bytes[kind]
        if not text:
            return size
        fd = os.open(_part_path(self._batch, self._batch.claim, kind), _WRITE, 0o600)
        with os.fdopen(fd, "wb") as file:
            file.truncate(size)
            file.seek(size)
            file.write(text)
            file.flush()
            os.fsync(fd)
        return size + len(text)


def finish(batch: Batch, state: BatchState) -> bool:
    """Make the files of a claimed batch and end it; False where it is in another state by now."""
    made: dict[str, str] = {}
    try:
        with transaction.atomic():
            for kind, name in _FIELDS.items():
                made[name] = _gather(batch, kind)
            if not move_on(batch=batch, to=state, done=[], parts=[], **made):
                raise _OtherState
    except BaseException as error:
        for file_id in filter(None, made.values()):
            store.remove(file_id)
        if isinstance(error, _OtherState):
            return False
        raise
    store.remove_work(batch.id)
    return True


class _OtherState(Exception):
    """Undoes what was written for a state that a batch cannot have any more."""


def _gather(batch: Batch, kind: str) -> str:
    """Put together what counts of all parts; give the file's id, or nothing where there is none."""
    sizes = [(claim, output if kind == OUTPUT else errors) for claim, output, errors in batch.parts]
    if not any(size for _, size in sizes):
        return ""
    with NewFile() as new:
        for claim, size in sizes:
            if size:
                _copy(batch, claim, kind, size, new)
        return keep_file(
            new=new,
            owner=batch.owner,
            key_id=batch.api_key_id,
            purpose=Purpose.BATCH_OUTPUT,
            filename=f"{batch.id}_{kind}.jsonl",
            seconds=batch.output_seconds,
        ).id


def _copy(batch: Batch, claim: int, kind: str, size: int, new: NewFile) -> None:
    with _part_path(batch, claim, kind).open("rb") as file:
        while size:
            data = file.read(min(size, _COPIED_AT_ONCE))
            if not data:
                raise OSError(f"answers of {batch.id} are missing on disk")
            new.write(data)
            size -= len(data)


def _part_path(batch: Batch, claim: int, kind: str) -> Path:
    return store.work_folder(batch.id) / f"{claim}.{kind}.jsonl"


def _result_id(batch_id: str, number: int) -> str:
    """Name a result by its place: the same, whoever makes it."""
    digest = blake2b(f"{batch_id}:{number}".encode(), digest_size=16).hexdigest()
    return f"batch_req_{digest}"
