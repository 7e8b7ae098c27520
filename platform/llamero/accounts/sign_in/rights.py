"""What the provider's groups mean here: who may enter, and as what. Everybody else may not."""

import logging

from django.contrib.auth.models import Group, User
from django.db import IntegrityError, transaction

from llamero.accounts.identities import NoUser, find_user
from llamero.accounts.models import Identity, UserPolicy
from llamero.accounts.sign_in.attempt import SignInFailed
from llamero.accounts.sign_in.config import SignInSettings
from llamero.accounts.tokens.claims import read_names, read_subject, read_username
from llamero.accounts.tokens.reading import Claims
from llamero.accounts.tokens.refusals import TokenRefused

logger = logging.getLogger(__name__)


def admit(claims: Claims, config: SignInSettings) -> User:
    """Give the user whom the provider vouches for, with the rights of now; raises SignInFailed.

    Who is in no group that may enter loses the rights they had, and is not made a user.
    """
    groups = frozenset(read_names(claims, config.groups_claim))
    may_enter = bool(groups & (config.staff_groups | config.superuser_groups))
    try:
        subject = read_subject(claims)
        if not may_enter:
            _shut_out(subject, config)
            raise SignInFailed(f"None of your groups at {config.name} may enter here.")
        username = read_username(claims, config.username_claim)
        try:
            user = _settle(subject, username, config)
        except IntegrityError:
            # The same person, in another tab, was first: they are there now.
            user = _settle(subject, username, config)
    except TokenRefused as error:
        logger.warning("Nobody was signed in: %s", error.message)
        raise SignInFailed(f"{config.name} did not say who you are.") from error
    except NoUser as reason:
        raise SignInFailed(f"Your account at {config.name} ({username}) {reason}.") from None
    if not user.is_active:
        raise SignInFailed("Your account is disabled here.")
    _give_rights(user, groups, config)
    return user


@transaction.atomic
def _settle(subject: str, username: str, config: SignInSettings) -> User:
    policy = UserPolicy.CREATED if config.creates_users else UserPolicy.EXISTING
    return find_user(issuer=config.issuer, subject=subject, username=username, policy=policy)


def _shut_out(subject: str, config: SignInSettings) -> None:
    known = Identity.objects.filter(issuer=config.issuer, subject=subject).select_related("user")
    for identity in known:
        _give_rights(identity.user, frozenset(), config)


@transaction.atomic
def _give_rights(user: User, groups: frozenset[str], config: SignInSettings) -> None:
    """Have a user be what their groups say; groups of ours that no other leads to stay."""
    is_superuser = bool(groups & config.superuser_groups)
    is_staff = is_superuser or bool(groups & config.staff_groups)
    if (user.is_staff, user.is_superuser) != (is_staff, is_superuser):
        user.is_staff, user.is_superuser = is_staff, is_superuser
        user.save(update_fields=("is_staff", "is_superuser"))
    ours = Group.objects.filter(name__in=[name for _, name in config.group_map])
    earned = {name for theirs, name in config.group_map if theirs in groups}
    user.groups.remove(*(group for group in ours if group.name not in earned))
    user.groups.add(*(group for group in ours if group.name in earned))
