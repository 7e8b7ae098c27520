"""An issuer whose tokens count, and no memory of other tests' tokens."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib.auth.models import User

from llamero.accounts.models import TokenIssuer
from llamero.accounts.selectors import recent_callers
from llamero.accounts.tokens.issuers import recent_issuers
from llamero.accounts.tokens.proving import recent_tokens
from tests.llamero.accounts.tokens.signing import AUDIENCE, ISSUER, jwks

_CACHES = (recent_callers, recent_issuers, recent_tokens)


@pytest.fixture(autouse=True)
def forget_tokens() -> Iterator[None]:
    yield from _clear()


def _clear() -> Iterator[None]:
    for cache in _CACHES:
        cache.clear()  # type: ignore[attr-defined]
    yield
    for cache in _CACHES:
        cache.clear()  # type: ignore[attr-defined]


def make_issuer(**fields: Any) -> TokenIssuer:
    """Make an issuer with pasted keys of each kind, as the admin would."""
    issuer = TokenIssuer(
        **{"name": "Id", "issuer": ISSUER, "audiences": [AUDIENCE], "keys": keys()} | fields
    )
    issuer.full_clean()
    issuer.save()
    return issuer


def keys() -> str:
    return jwks("rsa", "p256", "p384", "p521", "ed25519")


@pytest.fixture
def issuer(ada: User) -> TokenIssuer:
    return make_issuer(algorithms=["RS256", "PS256", "ES256", "ES384", "ES512", "EdDSA"])
