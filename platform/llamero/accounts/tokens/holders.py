"""Who a token is of: a user here, and the key without a text that stands for them."""

from django.db import IntegrityError, transaction
from django.db.models import F, Q

from llamero.accounts.identities import NoUser, find_user
from llamero.accounts.models import ApiKey, Team, TokenIssuer, UserPolicy
from llamero.accounts.services import open_signed_key
from llamero.accounts.tokens.proving import ProvenToken
from llamero.accounts.tokens.refusals import TokenRefused


def known_key(token: ProvenToken) -> Q:
    """Tell by one look whose key stands for a token that was seen before; of several teams none."""
    identity = Q(
        issuer=token.issuer_id,
        user__identities__issuer=F("issuer__issuer"),
        user__identities__subject=token.subject,
    )
    if token.teams is None:
        return identity & Q(team=None)
    return identity & Q(team__name__iexact=token.teams[0]) if len(token.teams) == 1 else Q(pk=None)


def find_key(token: ProvenToken) -> ApiKey:
    """Give the key that stands for a token, made when it is first seen; raises TokenRefused.

    Whatever limits keys, counts what they use and ends them holds for it too.
    """
    try:
        return _make_key(token)
    except IntegrityError:
        # Another request with a token of the same subject was first: it is there now.
        return _make_key(token)


@transaction.atomic
def _make_key(token: ProvenToken) -> ApiKey:
    issuer = TokenIssuer.objects.filter(pk=token.issuer_id).first()
    if issuer is None:
        raise TokenRefused("This token's issuer has just been removed.")
    team = _find_team(token)
    try:
        user = find_user(
            issuer=issuer.issuer,
            subject=token.subject,
            username=token.username,
            policy=UserPolicy(issuer.user_policy),
        )
    except NoUser as reason:
        name = token.username
        raise TokenRefused(f"The user of this token ({name:.150}) {reason}.") from None
    return open_signed_key(issuer=issuer, user=user, team=team)


def _find_team(token: ProvenToken) -> Team | None:
    if token.teams is None:
        return None
    for name in token.teams:
        team = Team.objects.filter(name__iexact=name).first()
        if team is not None:
            return team
    raise TokenRefused("This token names no team of this server.")
