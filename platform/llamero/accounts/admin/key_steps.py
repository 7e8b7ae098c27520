"""What can be done with a key on its own page: refuse it for a while, or end it."""

from llamero.accounts.models import ApiKey
from llamero.accounts.services import revoke_api_keys, switch_api_keys
from models_registry.admin.confirmed import Step

_CUT = "Requests of it that run are cut off."


def list_key_steps(key: ApiKey) -> list[Step]:
    """Give the steps that make sense in its state; what was revoked stays so."""
    if key.revoked_at is not None:
        return []
    return [DISABLE if key.enabled else ENABLE, REVOKE]


def _foretell_disable(key: ApiKey) -> list[str]:
    return [f"{key} will be refused until somebody enables it again.", _CUT]


def _disable(key: ApiKey) -> str:
    switch_api_keys(keys=[key], enabled=False)
    return f"{key} is refused now."


def _foretell_enable(key: ApiKey) -> list[str]:
    return [f"{key} opens again what it may, as long as it has not expired."]


def _enable(key: ApiKey) -> str:
    switch_api_keys(keys=[key], enabled=True)
    return f"{key} is enabled."


def _foretell_revoke(key: ApiKey) -> list[str]:
    return [
        f"{key} ends for good: it cannot be enabled again, and an old text of it ends, too.",
        _CUT,
        "Its use, its limits, its batches and its stored responses stay.",
    ]


def _revoke(key: ApiKey) -> str:
    revoke_api_keys(keys=[key])
    return f"{key} is revoked."


DISABLE = Step("disable", "Disable", "pause", _foretell_disable, _disable)
ENABLE = Step("enable", "Enable", "play_arrow", _foretell_enable, _enable)
REVOKE = Step("revoke", "Revoke", "block", _foretell_revoke, _revoke, is_dangerous=True)
