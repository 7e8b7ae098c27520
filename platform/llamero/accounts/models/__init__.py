"""Users' teams, and the keys of both."""

from llamero.accounts.models.api_key import ApiKey, KeyState
from llamero.accounts.models.team import Membership, Team, TeamRole
from llamero.accounts.models.token_issuer import Identity, TokenIssuer, UserPolicy

__all__ = [
    "ApiKey",
    "Identity",
    "KeyState",
    "Membership",
    "Team",
    "TeamRole",
    "TokenIssuer",
    "UserPolicy",
]
