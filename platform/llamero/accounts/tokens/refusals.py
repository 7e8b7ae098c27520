"""Why a token is refused, in two kinds: what is not proved, and what is proved and no good."""

from rest_framework.exceptions import AuthenticationFailed

from llamero.errors import LlameroError

RETRY_SECONDS = 5.0


class UnprovenToken(Exception):
    """No issuer of ours has signed this: to the client it is a wrong key. Its text is for logs."""


class TokenRefused(AuthenticationFailed):
    """A token of an issuer of ours that does not count; whoever has it may know why."""

    def __init__(self, message: str, code: str = "invalid_token") -> None:
        super().__init__(message, code)
        self.message = message

    @property
    def challenge(self) -> str:
        """The WWW-Authenticate header that says so (RFC 6750)."""
        shown = "".join(one for one in self.message if " " <= one <= "~" and one not in '"\\')
        return f'Bearer error="invalid_token", error_description="{shown}"'


def token_expired() -> TokenRefused:
    """Tell of a token that was good once."""
    return TokenRefused("This token has expired.", "token_expired")


def issuer_unavailable() -> LlameroError:
    """Tell that nobody can say now whether a token is good."""
    message = "The keys of this token's issuer cannot be read right now. Please try again."
    return LlameroError(503, "issuer_unavailable", message, retry_after=RETRY_SECONDS)
