"""Every status that an answer of ours may have has its own phrase."""

from http import HTTPStatus

import pytest
from twisted.web.http import RESPONSES

from llamero.serve.status_words import status_words, teach_twisted


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (413, b"Content Too Large"),
        (422, b"Unprocessable Content"),
        (429, b"Too Many Requests"),
        (431, b"Request Header Fields Too Large"),
        (460, b"Checksum Mismatch"),
        (507, b"Insufficient Storage"),
        (529, b"Overloaded"),
        (499, b""),
    ],
)
def test_words(status: int, words: bytes) -> None:
    assert status_words(status) == words


def test_the_server_knows_every_status_that_has_a_name() -> None:
    teach_twisted()
    assert {
        status: RESPONSES.get(status) for status in HTTPStatus if not RESPONSES.get(status)
    } == {}
