"""A sign-in that was begun, and how it may end."""

from dataclasses import dataclass


class SignInFailed(Exception):
    """Somebody could not be signed in. Its text is for them; the reason is in the log."""


class ProviderAway(SignInFailed):
    """The provider cannot be asked now: nobody is to blame who tried to sign in."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """What is remembered of somebody who was sent to the provider, until they come back."""

    state: str
    nonce: str
    verifier: str
