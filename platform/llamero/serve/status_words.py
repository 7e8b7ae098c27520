"""Reason phrases: Twisted knows none of the newer statuses, and calls each "Unknown Status"."""

from http import HTTPStatus

from twisted.web.http import RESPONSES

# What has another name by now, and what no list has: tus's and Anthropic's own.
_OTHERS = {
    413: "Content Too Large",
    422: "Unprocessable Content",
    460: "Checksum Mismatch",
    529: "Overloaded",
}


def status_words(status: int) -> bytes:
    """Give the phrase of a status; empty for one that has none, as HTTP allows."""
    return _WORDS.get(status, b"")


def teach_twisted() -> None:
    """Have every answer carry them."""
    RESPONSES.update(_WORDS)


_WORDS = {
    status: phrase.encode()
    for status, phrase in ({one.value: one.phrase for one in HTTPStatus} | _OTHERS).items()
}
