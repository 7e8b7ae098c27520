"""What the OAuth library calls the provider by: addresses that were looked at, and no others."""

import json
from typing import Any
from urllib.parse import urlencode

from authlib.oauth2.auth import ClientAuth

from llamero.egress import ask_document


class PinnedSession:
    """The one call of an HTTP session that a code's exchange for a token makes."""

    def post(
        self, url: str, *, data: dict[str, str], headers: dict[str, str], auth: ClientAuth
    ) -> "TokenAnswer":
        """Send a form, as who we are; raises UnsafeAddress or FetchFailed."""
        _, headers, body = auth.prepare("POST", url, headers, urlencode(data))
        return TokenAnswer(ask_document(url, body.encode(), headers))


class TokenAnswer:
    """An answer that came with 200, as the library reads it."""

    status_code = 200

    def __init__(self, body: bytes) -> None:
        self._body = body

    def json(self) -> Any:
        """Read it; raises ValueError."""
        return json.loads(self._body)

    def raise_for_status(self) -> None:
        """Do nothing: another status gives no answer."""
