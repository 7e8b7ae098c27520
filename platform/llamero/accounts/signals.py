"""Whatever saves or deletes a key, or whose it is, also in the admin: gateways are told.

And a key for certain models is for no others when the last of these is deleted: it is disabled.
"""

from typing import Any

from django.contrib.auth import get_user_model
from django.db.models import Q
from django.db.models.signals import m2m_changed, post_delete, post_save, pre_delete

from llamero.accounts.models import ApiKey, Membership, Team, TokenIssuer
from llamero.accounts.notices import announce_keys, announce_user
from llamero.accounts.services import switch_api_keys
from models_registry.models import Model

_LIMITED = "_keys_limited_to_it"


def connect() -> None:
    """Listen, once a process."""
    for signal in (post_save, pre_delete):
        signal.connect(_on_key, sender=ApiKey, dispatch_uid="rights of a key")
        signal.connect(_on_user, sender=get_user_model(), dispatch_uid="rights of a user")
        signal.connect(_on_team, sender=Team, dispatch_uid="rights of a team")
        signal.connect(_on_issuer, sender=TokenIssuer, dispatch_uid="rights of an issuer")
        signal.connect(_on_membership, sender=Membership, dispatch_uid="rights of a member")
    pre_delete.connect(_before_model_goes, sender=Model, dispatch_uid="keys of a model")
    post_delete.connect(_when_model_is_gone, sender=Model, dispatch_uid="keys of a model")
    m2m_changed.connect(
        _on_models, sender=ApiKey.allowed_models.through, dispatch_uid="models of a key"
    )


def _on_key(instance: ApiKey, *, created: bool = False, **_: Any) -> None:
    if not created:
        announce_keys([instance.pk])


def _on_models(instance: Any, action: str, **_: Any) -> None:
    if action.startswith("post_") and isinstance(instance, ApiKey):
        announce_keys([instance.pk])


def _before_model_goes(instance: Model, **_: Any) -> None:
    keys = ApiKey.objects.filter(allowed_models=instance)
    setattr(instance, _LIMITED, list(keys.values_list("pk", flat=True)))


def _when_model_is_gone(instance: Model, **_: Any) -> None:
    # Several models may go at once: only now it is clear whether any is left.
    limited = instance.__dict__.pop(_LIMITED, ())
    switch_api_keys(keys=ApiKey.objects.filter(pk__in=limited, allowed_models=None), enabled=False)
    announce_keys(limited)


def _on_user(instance: Any, *, created: bool = False, update_fields: Any = None, **_: Any) -> None:
    # Each login saves its time.
    if created or (update_fields and set(update_fields) == {"last_login"}):
        return
    announce_user(instance.pk)
    _announce_keys_of(Q(user=instance))


def _on_team(instance: Team, *, created: bool = False, **_: Any) -> None:
    if not created:
        _announce_keys_of(Q(team=instance))


def _on_issuer(instance: TokenIssuer, *, created: bool = False, **_: Any) -> None:
    if not created:
        _announce_keys_of(Q(issuer=instance))


def _on_membership(instance: Membership, **_: Any) -> None:
    _announce_keys_of(Q(team=instance.team_id, user=instance.user_id))


def _announce_keys_of(owner: Q) -> None:
    announce_keys(ApiKey.objects.filter(owner).values_list("pk", flat=True))
