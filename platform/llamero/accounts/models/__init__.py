"""Users' teams, and the keys of both."""

from llamero.accounts.models.api_key import PRIORITIES, ApiKey, KeyState, Priority
from llamero.accounts.models.team import Membership, Team, TeamRole
from llamero.accounts.models.token_issuer import Identity, TokenIssuer, UserPolicy

__all__ = [
    "PRIORITIES",
    "ApiKey",
    "Identity",
    "KeyState",
    "Membership",
    "Priority",
    "Team",
    "TeamRole",
    "TokenIssuer",
    "UserPolicy",
]
