"""Plan what is to be done for keys. Their texts are made here, and told once."""

from collections.abc import Callable
from functools import partial

from django.contrib.auth.models import User
from django.core.exceptions import ValidationError

from llamero.accounts.models import PRIORITIES, ApiKey, Team
from llamero.accounts.networks import read_networks
from llamero.accounts.notices import announce_keys
from llamero.accounts.scopes import Scope
from llamero.accounts.services import issue_api_key
from llamero.apply.document import KeyEntry
from llamero.apply.judging import judge
from llamero.apply.mistakes import ApplyError, Mistakes, place_of
from llamero.apply.steps import Step, list_changes
from models_registry.models import Model

Tell = Callable[[str, str], None]


def plan_key(entry: KeyEntry, place: str, tell: Tell, coming: frozenset[str]) -> list[Step]:
    """Plan a key; ``tell`` is given its name and text if it is made. ``coming`` are models too."""
    user: User | None = None
    team: Team | None = None
    networks: list[str] = []
    mistakes = Mistakes()
    with mistakes.gathered():
        judge(ApiKey(), {"name": entry.name}, place)
    with mistakes.gathered():
        user = _find_user(entry, place)
    with mistakes.gathered():
        team = _find_team(entry, place)
    with mistakes.gathered():
        networks = _read_networks(entry, place)
    with mistakes.gathered():
        _check_words(entry, place, coming)
    with mistakes.gathered():
        _check_member(user, team, place)
    mistakes.tell()
    found = ApiKey.objects.filter(name=entry.name, user=user, team=team, revoked_at=None).first()
    if found is None:
        run = partial(_issue, entry, user, team, networks, place, tell)
        return [Step(f"issue the key {entry.name} of {user or team}", place, run)]
    wanted = {
        "scopes": list(entry.scopes),
        "networks": networks,
        "enabled": entry.enabled,
        "priority": PRIORITIES[entry.priority],
    }
    changes = list_changes(found, wanted)
    before = sorted(found.allowed_models.values_list("slug", flat=True))
    if before != sorted(set(entry.models)):
        changes["models"] = f"models {before} -> {sorted(set(entry.models))}"
    if not changes:
        return []
    words = f"change the key {entry.name} of {user or team}: {', '.join(changes.values())}"
    return [Step(words, place, partial(_change, found, wanted, entry, place))]


def _issue(
    entry: KeyEntry,
    user: User | None,
    team: Team | None,
    networks: list[str],
    place: str,
    tell: Tell,
) -> None:
    try:
        issued = issue_api_key(
            name=entry.name,
            user=user,
            team=team,
            scopes=[Scope(name) for name in entry.scopes],
            allowed_models=_find_models(entry, place),
            networks=networks,
            enabled=entry.enabled,
            priority=PRIORITIES[entry.priority],
        )
    except ValidationError as error:
        raise place_of(error, place) from error
    tell(entry.name, issued.secret_text)


def _change(key: ApiKey, wanted: dict[str, object], entry: KeyEntry, place: str) -> None:
    for name, value in wanted.items():
        setattr(key, name, value)
    try:
        key.full_clean()
    except ValidationError as error:
        raise place_of(error, place) from error
    key.save(update_fields=list(wanted))
    key.allowed_models.set(_find_models(entry, place))
    announce_keys([key.pk])


def _find_models(entry: KeyEntry, place: str) -> list[Model]:
    found = {model.slug: model for model in Model.objects.filter(slug__in=entry.models)}
    for index, slug in enumerate(entry.models):
        if slug not in found:
            raise ApplyError(f"{place}.models[{index}]", f"there is no model {slug}")
    return list(found.values())


def _find_user(entry: KeyEntry, place: str) -> User | None:
    if entry.user is None:
        if entry.team is None:
            raise ApplyError(f"{place}.user", "is missing: name a user, or a team")
        return None
    user = User.objects.filter(username=entry.user).first()
    if user is None:
        raise ApplyError(f"{place}.user", f"there is no user {entry.user}")
    return user


def _check_member(user: User | None, team: Team | None, place: str) -> None:
    try:
        ApiKey(user=user, team=team).clean()
    except ValidationError as error:
        raise place_of(error, place) from error


def _find_team(entry: KeyEntry, place: str) -> Team | None:
    if entry.team is None:
        return None
    team = Team.objects.filter(name__iexact=entry.team).first()
    if team is None:
        raise ApplyError(f"{place}.team", f"there is no team {entry.team}")
    return team


def _read_networks(entry: KeyEntry, place: str) -> list[str]:
    try:
        return [str(network) for network in read_networks(entry.ips)]
    except ValueError as error:
        raise ApplyError(f"{place}.ips", str(error)) from error


def _check_words(entry: KeyEntry, place: str, coming: frozenset[str]) -> None:
    if entry.priority not in PRIORITIES:
        words = f"there is no priority {entry.priority}; there are {', '.join(PRIORITIES)}"
        raise ApplyError(f"{place}.priority", words)
    for index, name in enumerate(entry.scopes):
        if name not in Scope.values:
            words = f"there is no scope {name}; there are {', '.join(Scope)}"
            raise ApplyError(f"{place}.scopes[{index}]", words)
    known = set(Model.objects.filter(slug__in=entry.models).values_list("slug", flat=True))
    for index, slug in enumerate(entry.models):
        if slug not in known | coming:
            raise ApplyError(f"{place}.models[{index}]", f"there is no model {slug}")
