"""Who a request is from, and what they may do."""

from dataclasses import dataclass, replace
from typing import Any

from django.contrib.auth.models import AbstractBaseUser

from llamero.accounts.networks import Network, is_within
from llamero.accounts.scopes import DEFAULT_SCOPES, Scope

# No model has this number.
_NO_MODEL = 0


@dataclass(frozen=True, slots=True)
class Grant:
    """What a token allows at most; ``models`` None: all that its key may use."""

    scopes: frozenset[Scope]
    models: frozenset[int] | None

    def as_document(self) -> dict[str, Any]:
        """Give it as JSON, to be kept with what goes on by itself."""
        models = None if self.models is None else sorted(self.models)
        return {"scopes": sorted(self.scopes), "models": models}


def read_grant(document: dict[str, Any] | None) -> Grant | None:
    """Read what was kept; None where no token was there."""
    if document is None:
        return None
    models = document["models"]
    scopes = frozenset(Scope(name) for name in document["scopes"] if name in Scope.values)
    return Grant(scopes, None if models is None else frozenset(models))


@dataclass(frozen=True, slots=True)
class Caller:
    """Who a request is from: a key of a user, of a team or of both, or a user in a browser.

    ``owner`` names whose work it is in the data plane. No ``allowed_models`` means all of them, no
    ``networks`` any address. ``priority`` is the class that its jobs wait in. A token ``ends_at``
    a time, in seconds since 1970, and gives its key no more than its ``grant``.
    """

    user: AbstractBaseUser | None
    key_id: int | None
    owner: str
    allowed_models: frozenset[int] = frozenset()
    priority: int = 0
    team_id: int | None = None
    scopes: frozenset[Scope] = DEFAULT_SCOPES
    networks: tuple[Network, ...] = ()
    ends_at: float | None = None
    grant: Grant | None = None

    @property
    def is_authenticated(self) -> bool:
        """Always: whoever is a caller has shown who they are (REST framework asks)."""
        return True

    def may_use(self, model_pk: int) -> bool:
        """Whether this caller may use a model."""
        return not self.allowed_models or model_pk in self.allowed_models

    def within(self, grant: Grant | None) -> "Caller":
        """Give the same caller with no more than a grant allows."""
        if grant is None:
            return self
        allowed = self.allowed_models
        if grant.models is not None:
            # An empty set would be all models.
            both = grant.models & allowed if allowed else grant.models
            allowed = both or frozenset({_NO_MODEL})
        return replace(
            self,
            scopes=self.scopes & grant.scopes,
            allowed_models=allowed,
            grant=grant,
        )

    def may_come_from(self, address: str) -> bool:
        """Whether this caller may call from an address."""
        return not self.networks or is_within(address, self.networks)


def key_owner(key_id: int) -> str:
    """Name the work of a key."""
    return f"key:{key_id}"


def user_owner(user_id: int) -> str:
    """Name the work of a user in a browser."""
    return f"user:{user_id}"


def read_owner(owner: str) -> tuple[str, int]:
    """Take a name apart: its kind, and the number behind it (0 where there is none)."""
    kind, _, number = owner.partition(":")
    return kind, int(number) if number.isdecimal() else 0
