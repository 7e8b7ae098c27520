"""Keys and teams in the admin."""

from llamero.accounts.admin import api_key, team

__all__ = ["api_key", "team"]
