"""The end of a replica's log as it may be shown: no secret, nothing that clients sent. Pure."""

import re
from collections.abc import Iterable, Sequence

MAX_LINES = 30
MAX_LINE_CHARS = 240
HIDDEN = "***"
# A complaint further up is of something else than the end.
_END_LINES = 5
_HARMLESS = ("INFO ", "DEBUG ")
_CREDENTIALS = re.compile(r"(\w+://)[^\s/@]*@")
_KEY_TEXT = re.compile(r"\b(ll[a-z]_|hf_|sk-)[\w-]{8,}")
_BEARER = re.compile(r"(\bBearer\s+)\S+", re.IGNORECASE)
_ASSIGNED = re.compile(r"(\b\w*(?:KEY|TOKEN|SECRET|PASSWORD)\w*\s*[=:]\s*)\S+", re.IGNORECASE)
# The last line of a traceback. Its message may quote what was worked on: the type alone is kept.
_RAISED = re.compile(r"([A-Za-z_][\w.]*(?:Error|Exception|Exit|Interrupt|Warning)): .*")


def end_of_log(lines: Iterable[str]) -> tuple[str, ...]:
    """Give the last lines, each cut and cleaned."""
    cleaned = (_clean(line) for line in lines)
    return tuple(line for line in cleaned if line)[-MAX_LINES:]


def last_complaint(lines: Sequence[str]) -> str:
    """Give the last line that is no harmless report, if it is near the end.

    What has no level counts: native code and tracebacks write such lines.
    """
    said = [line.strip() for line in lines if line.strip()][-_END_LINES:]
    return next((line for line in reversed(said) if not line.startswith(_HARMLESS)), "")


def _clean(line: str) -> str:
    text = "".join(char if char.isprintable() else " " for char in line).rstrip()
    text = _RAISED.sub(rf"\1: {HIDDEN}", text, count=1) if _RAISED.match(text) else text
    text = _CREDENTIALS.sub(rf"\1{HIDDEN}@", text)
    for pattern in (_BEARER, _ASSIGNED):
        text = pattern.sub(rf"\1{HIDDEN}", text)
    return _KEY_TEXT.sub(HIDDEN, text)[:MAX_LINE_CHARS]
