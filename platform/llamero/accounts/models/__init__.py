"""Users' teams, and the keys of both."""

from llamero.accounts.models.api_key import ApiKey, KeyState
from llamero.accounts.models.team import Membership, Team, TeamRole

__all__ = ["ApiKey", "KeyState", "Membership", "Team", "TeamRole"]
