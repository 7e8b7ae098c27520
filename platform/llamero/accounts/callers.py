"""Who a request is from, and what they may do."""

from dataclasses import dataclass

from django.contrib.auth.models import AbstractBaseUser

from llamero.accounts.networks import Network, is_within
from llamero.accounts.scopes import DEFAULT_SCOPES, Scope


@dataclass(frozen=True, slots=True)
class Caller:
    """Who a request is from: a key of a user, of a team or of both, or a user in a browser.

    ``owner`` names whose work it is in the data plane. No ``allowed_models`` means all of them, no
    ``networks`` any address. ``priority`` is the class that its jobs wait in.
    """

    user: AbstractBaseUser | None
    key_id: int | None
    owner: str
    allowed_models: frozenset[int] = frozenset()
    priority: int = 0
    team_id: int | None = None
    scopes: frozenset[Scope] = DEFAULT_SCOPES
    networks: tuple[Network, ...] = ()

    @property
    def is_authenticated(self) -> bool:
        """Always: whoever is a caller has shown who they are (REST framework asks)."""
        return True

    def may_use(self, model_pk: int) -> bool:
        """Whether this caller may use a model."""
        return not self.allowed_models or model_pk in self.allowed_models

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
