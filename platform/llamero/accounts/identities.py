"""Who somebody is here whom an identity provider knows."""

import logging

from django.contrib.auth.models import User
from django.core.exceptions import ValidationError

from llamero.accounts.models import Identity, UserPolicy

logger = logging.getLogger(__name__)


class NoUser(Exception):
    """Somebody is nobody here. Its text is for them."""


def find_user(*, issuer: str, subject: str, username: str, policy: UserPolicy) -> User:
    """Give the user of a subject, who is settled by name when first seen; raises NoUser.

    Also IntegrityError, where another request has just settled the same.
    """
    known = Identity.objects.filter(issuer=issuer, subject=subject).select_related("user").first()
    if known is not None:
        return known.user
    user = User.objects.filter(username=username).first()
    if policy == UserPolicy.CREATED:
        if user is not None:
            # Else whoever can choose a name there would become who has that name here.
            logger.warning("%s names the user %s, who is not of it", issuer, user.pk)
            raise NoUser("has a name that is taken here")
        user = _make_user(username)
    elif user is None:
        raise NoUser("is unknown here")
    elif user.identities.filter(issuer=issuer).exists():
        logger.warning("%s names the user %s for a second subject", issuer, user.pk)
        raise NoUser("has a name that is another's here")
    Identity.objects.create(issuer=issuer, subject=subject, user=user)
    return user


def _make_user(username: str) -> User:
    """Make a user without a password."""
    user = User(username=username)
    user.set_unusable_password()
    try:
        user.full_clean()
    except ValidationError:
        raise NoUser("has a name that cannot be used here") from None
    user.save()
    return user
