"""Keys, teams and identity providers in the admin."""

from llamero.accounts.admin import api_key, identity, team, token_issuer

__all__ = ["api_key", "identity", "team", "token_issuer"]
