"""Whom X-Forwarded-For may name."""

from types import SimpleNamespace
from typing import Any

import pytest
from twisted.web.http_headers import Headers

from llamero.serve.requests import LimitedRequest


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ([b"192.0.2.7"], [b"192.0.2.7"]),
        ([b"10.0.0.1, 192.0.2.7"], [b"192.0.2.7"]),
        ([b"10.0.0.1", b"127.0.0.1,192.0.2.7 "], [b"192.0.2.7"]),
        (None, None),
    ],
)
def test_a_client_cannot_put_an_address_before_the_proxys(
    given: list[bytes] | None, kept: list[bytes] | None
) -> None:
    headers = Headers({} if given is None else {b"X-Forwarded-For": given})
    request: Any = SimpleNamespace(requestHeaders=headers)
    LimitedRequest._keep_last_hop(request)
    assert headers.getRawHeaders(b"x-forwarded-for") == kept
