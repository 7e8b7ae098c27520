"""An issuer whose tokens count."""

from typing import Any

import pytest
from django.contrib.auth.models import User

from llamero.accounts.models import TokenIssuer
from tests.llamero.accounts.tokens.signing import AUDIENCE, ISSUER, jwks


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
