"""The issuers whose tokens count, with their keys: a second old at most."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from llamero.accounts.models.token_issuer import TokenIssuer
from llamero.accounts.tokens.discovery import discover
from llamero.accounts.tokens.key_material import PublicKey, read_jwks, read_keys
from llamero.accounts.tokens.key_sets import KeySet, StaticKeys
from llamero.egress import FetchFailed, UnsafeAddress, fetch_document
from llamero.expiring_cache import ExpiringCache

Keys = KeySet | StaticKeys


@dataclass(frozen=True, slots=True)
class KnownIssuer:
    """An issuer as it was set up at ``version``, and where its keys are."""

    settings: TokenIssuer
    keys: Keys

    @property
    def version(self) -> str:
        """What is another one after each change."""
        return f"{self.settings.pk} {self.settings.changed_at.isoformat()}"


# By what their keys come from, so that keys outlive changes of all else.
_key_sets: dict[tuple[str, str, str], Keys] = {}
_MAX_KEY_SETS = 256
recent_issuers: ExpiringCache[dict[str, KnownIssuer]] = ExpiringCache(lifetime_seconds=1.0)


def find_issuer(iss: object) -> KnownIssuer | None:
    """Give the enabled issuer of this name, letter by letter."""
    known = recent_issuers.recall("all", _read_issuers) or {}
    return known.get(iss) if isinstance(iss, str) else None


class CannotReadKeys(Exception):
    """The keys of an issuer are not to be had. Its text is for the operator."""


def read_keys_of(row: TokenIssuer) -> Sequence[PublicKey]:
    """Give the keys of an issuer, read now; blocks. Raises CannotReadKeys."""
    try:
        if row.keys:
            return read_keys(row.keys)
        return read_jwks(json.loads(fetch_document(_find_jwks(row.jwks_url, row.issuer))))
    except (FetchFailed, UnsafeAddress, ValueError, RecursionError) as error:
        raise CannotReadKeys(f"The keys cannot be read: {error}") from error


def _read_issuers() -> dict[str, KnownIssuer]:
    rows = TokenIssuer.objects.filter(enabled=True)
    return {row.issuer: KnownIssuer(row, _keys_of(row)) for row in rows}


def _keys_of(row: TokenIssuer) -> Keys:
    source = (row.issuer, row.jwks_url, row.keys)
    found = _key_sets.get(source)
    if found is None:
        if len(_key_sets) >= _MAX_KEY_SETS:
            _key_sets.clear()
        found = _key_sets[source] = _open(row)
    return found


def _open(row: TokenIssuer) -> Keys:
    if row.keys:
        return StaticKeys(read_keys(row.keys))
    return KeySet(partial(_find_jwks, row.jwks_url, row.issuer))


def _find_jwks(jwks_url: str, issuer: str) -> str:
    return jwks_url or discover(issuer).jwks_uri
