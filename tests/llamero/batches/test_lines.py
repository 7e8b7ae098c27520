"""Each line of a file is judged, and what is wrong is told with its place."""

import json
import random
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from pytest_django.fixtures import Settings

from llamero.batches.line_ranges import LineRanges
from llamero.batches.running.lines import MAX_ERRORS, LineReader, examine
from tests.llamero.api.batches.helpers import make_line

CHAT = "/v1/chat/completions"


def judge(path: Path, *lines: bytes) -> list[tuple[str, int | None, str | None]]:
    path.write_bytes(b"".join(lines))
    return [(e["code"], e["line"], e["param"]) for e in examine(path, CHAT).errors]


def changed(**changes: Any) -> bytes:
    line = json.loads(make_line(1)) | changes
    return json.dumps({k: v for k, v in line.items() if v is not None}).encode() + b"\n"


@pytest.mark.parametrize(
    ("line", "code", "param"),
    [
        (b"{\n", "invalid_json_line", None),
        (b"[]\n", "invalid_json_line", None),
        (b'{"custom_id": "a", "custom_id": "b"}\n', "invalid_json_line", None),
        (b'{"custom_id": "\\ud800"}\n', "invalid_json_line", None),
        (b"\xff\n", "invalid_json_line", None),
        (b"[" * 5000 + b"\n", "invalid_json_line", None),
        (changed(custom_id=None), "missing_required_parameter", "custom_id"),
        (changed(custom_id=7), "invalid_value", "custom_id"),
        (changed(custom_id="x" * 513), "invalid_custom_id", "custom_id"),
        (changed(method="GET"), "invalid_method", "method"),
        (changed(url="/v1/completions"), "mismatched_url", "url"),
        (changed(body=None), "missing_required_parameter", "body"),
        (changed(body=[]), "invalid_value", "body"),
        (changed(body={}), "missing_required_parameter", "body.model"),
        (make_line(1, model="other"), "mismatched_model", "body.model"),
        (make_line(1, stream=True), "stream_not_supported", "body.stream"),
        (make_line(1, background=True), "background_not_supported", "body.background"),
        (make_line(0), "duplicate_custom_id", "custom_id"),
    ],
)
def test_a_bad_line_is_named(tmp_path: Path, line: bytes, code: str, param: str | None) -> None:
    found = judge(tmp_path / "input", make_line(0), b"\n", line, make_line(2))
    assert found == [(code, 3, param)]


def test_blank_lines_and_odd_ends_are_no_harm(tmp_path: Path) -> None:
    path = tmp_path / "input"
    path.write_bytes(b"\xef\xbb\xbf" + make_line(0) + b" \r\n\r\n" + make_line(1).rstrip())
    found = examine(path, CHAT)
    assert (found.num_lines, found.model, found.errors) == (2, "smol", [])
    reader = LineReader(path)
    assert [(one.number, one.line.custom_id) for one in reader.read()] == [(0, "r0"), (1, "r1")]
    assert reader.read() == []


def test_a_file_without_requests_is_an_error(tmp_path: Path) -> None:
    assert judge(tmp_path / "input", b"\n \n") == [("empty_file", None, None)]


def test_there_are_limits(tmp_path: Path, settings: Settings) -> None:
    path = tmp_path / "input"
    assert len(judge(path, *[b"x\n"] * (MAX_ERRORS + 9))) == MAX_ERRORS
    settings.MAX_BATCH_LINES = 2
    assert judge(path, *map(make_line, range(3))) == [("too_many_requests", 3, None)]
    settings.MAX_BODY_BYTES = 1000
    long = make_line(1, user="x" * 20_000)
    assert judge(path, make_line(0), long, b"x\n") == [("line_too_long", 2, None)]


def test_ranges_are_a_set_of_lines() -> None:
    rng = random.Random(5)
    for _ in range(50):
        ranges, lines = LineRanges(), set[int]()
        for line in rng.choices(range(40), k=30):
            ranges.add(line)
            lines.add(line)
            ranges = LineRanges(json.loads(json.dumps(ranges.as_list())))
        assert {line for line in range(-1, 41) if line in ranges} == lines
        assert len(ranges) == len(lines)
        pairs = ranges.as_list()
        assert all(a[1] + 1 < b[0] for a, b in pairwise(pairs))
