"""How people sign in through an identity provider; off without an issuer."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from django.core.exceptions import ImproperlyConfigured


@dataclass(frozen=True, slots=True, kw_only=True)
class SignInSettings:
    """A provider, and who of its people may enter.

    Groups are the provider's; ``group_map`` leads from them to ours.
    """

    issuer: str
    client_id: str
    client_secret: str = field(default="", repr=False)
    name: str = "single sign-on"
    scopes: tuple[str, ...] = ("openid", "profile", "email")
    username_claim: str = "preferred_username"
    groups_claim: str = "groups"
    staff_groups: frozenset[str] = frozenset()
    superuser_groups: frozenset[str] = frozenset()
    group_map: tuple[tuple[str, str], ...] = ()
    creates_users: bool = True
    session_hours: int = 12

    def __post_init__(self) -> None:
        """Stop the start where something is missing."""
        if not self.issuer:
            return
        if not self.client_id:
            raise ImproperlyConfigured("LLAMERO_OIDC_CLIENT_ID is missing.")
        if not self.staff_groups | self.superuser_groups:
            raise ImproperlyConfigured(
                "LLAMERO_OIDC_STAFF_GROUPS and LLAMERO_OIDC_SUPERUSER_GROUPS are empty: "
                "nobody could sign in."
            )
        if "openid" not in self.scopes:
            raise ImproperlyConfigured("LLAMERO_OIDC_SCOPES must have openid.")
        if self.session_hours < 1:
            raise ImproperlyConfigured("LLAMERO_OIDC_SESSION_HOURS must be 1 or more.")

    @property
    def is_on(self) -> bool:
        """Whether anybody can sign in this way."""
        return bool(self.issuer)


def read_group_map(pairs: Iterable[str]) -> tuple[tuple[str, str], ...]:
    """Read ``theirs:ours`` pairs; the last colon divides, since theirs may be URLs."""
    found = []
    for pair in pairs:
        theirs, _, ours = pair.rpartition(":")
        if not theirs or not ours:
            message = f"LLAMERO_OIDC_GROUPS has {pair!r:.60}, but must be theirs:ours pairs."
            raise ImproperlyConfigured(message)
        found.append((theirs, ours))
    return tuple(found)
