"""The identity provider of the settings."""

from functools import cache
from typing import TYPE_CHECKING

from django.conf import settings

from llamero.accounts.sign_in.config import SignInSettings

if TYPE_CHECKING:
    from llamero.accounts.sign_in.provider import Provider


def get_provider() -> "Provider":
    """Give the provider; only where sign-in is on."""
    return _provider_of(settings.SIGN_IN)


@cache
def _provider_of(config: SignInSettings) -> "Provider":
    # Its libraries take a third of a second to import, which most deployments never need.
    from llamero.accounts.sign_in.provider import Provider

    return Provider(config)
