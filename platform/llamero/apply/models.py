"""Plan what is to be done for models: versions, fields, aliases, deployments."""

from functools import partial
from pathlib import Path
from typing import Any

from django.core.exceptions import ValidationError
from django.db import models

from llamero.apply.document import ApplyError, ModelEntry, place_of
from llamero.apply.files import find_version, find_wanted, import_wanted
from llamero.apply.steps import Step, list_changes
from models_registry.incoming.wishes import check_wish
from models_registry.models import Deployment, Model, ModelAlias, ModelVersion
from models_registry.models.profile import PROFILE_FIELDS
from models_registry.models.request_defaults import REQUEST_DEFAULT_FIELDS
from models_registry.names import normalize_name
from models_registry.services.deployments import create_deployment, restart_deployments
from models_registry.services.versions import make_current

_MODEL_FIELDS = ("title", "kind", "description", "owned_by")
_DEPLOYMENT_FIELDS = (
    "enabled",
    "share",
    "min_replicas",
    "max_replicas",
    "idle_timeout_seconds",
    "target_ttft_seconds",
    "ignores_memory",
    "text_retention_days",
    *REQUEST_DEFAULT_FIELDS,
)


def plan_model(entry: ModelEntry, place: str, folder: Path) -> list[Step]:
    """Plan all that one model needs, in order; raises ApplyError."""
    slug = normalize_name(entry.id)
    model = Model.objects.filter(slug=slug).first()
    steps = _plan_version(entry, slug, model, place, folder)
    steps += _plan_fields(entry, slug, model, place)
    steps += _plan_aliases(entry, slug, model, place)
    for index, settings in enumerate(entry.deployments):
        steps += _plan_deployment(settings, slug, f"{place}.deployments[{index}]")
    return steps


def _plan_version(
    entry: ModelEntry, slug: str, model: Model | None, place: str, folder: Path
) -> list[Step]:
    files_place = f"{place}.files"
    wanted = find_wanted(entry.files, folder, files_place)
    if not wanted:
        if model is None:
            raise ApplyError(files_place, f"is missing: there is no model {slug} yet")
        return []
    version = find_version(model, wanted) if model else None
    if version is not None:
        if version.is_current:
            return []
        words = f"serve {version} of {slug}"
        return [Step(words, files_place, partial(_serve, version, files_place))]
    wish = {
        "model": slug,
        "title": entry.title or "",
        "kind": entry.kind or "",
        "is_new_version": model is not None,
    }
    _judge_wish(wish, place)
    names = ", ".join(file.name for file in wanted)
    words = f"add a version to {slug}: {names}" if model else f"add the model {slug}: {names}"
    return [Step(words, files_place, partial(import_wanted, wanted, wish, files_place))]


def _judge_wish(wish: dict[str, object], place: str) -> None:
    try:
        check_wish(wish)
    except ValidationError as error:
        name, messages = next(iter(error.message_dict.items()))
        raise ApplyError(f"{place}.{'id' if name == 'model' else name}", messages[0]) from error


def _serve(version: ModelVersion, place: str) -> None:
    try:
        make_current(version=version)
    except ValidationError as error:
        raise place_of(error, place) from error


def _plan_fields(entry: ModelEntry, slug: str, model: Model | None, place: str) -> list[Step]:
    named = {name: getattr(entry, name) for name in _MODEL_FIELDS}
    wanted = {name: value for name, value in named.items() if value is not None}
    if model is None:
        # The import knows title and kind; the rest follows it.
        wanted = {name: wanted[name] for name in ("description", "owned_by") if name in wanted}
        changes = dict.fromkeys(wanted, "") if wanted else {}
        words = f"describe {slug}: {', '.join(wanted)}"
    else:
        changes = list_changes(model, wanted)
        words = f"change {slug}: {', '.join(changes.values())}"
        _judge(Model(slug=slug, title=model.title), wanted, place)
    if not changes:
        return []
    return [Step(words, place, partial(_change_model, slug, wanted, place))]


def _change_model(slug: str, wanted: dict[str, Any], place: str) -> None:
    model = Model.objects.get(slug=slug)
    _set(model, wanted)
    try:
        model.full_clean()
    except ValidationError as error:
        raise place_of(error, place) from error
    model.save(update_fields=[*wanted, "updated_at"])


def _plan_aliases(entry: ModelEntry, slug: str, model: Model | None, place: str) -> list[Step]:
    if entry.aliases is None:
        return []
    wanted = [normalize_name(name) for name in entry.aliases]
    present = set(model.aliases.values_list("name", flat=True)) if model else set()
    steps: list[Step] = []
    for index, name in enumerate(wanted):
        alias_place = f"{place}.aliases[{index}]"
        if name in present or name in wanted[:index]:
            continue
        _judge(ModelAlias(), {"name": name}, alias_place, is_whole=True)
        run = partial(_add_alias, slug, name, alias_place)
        steps.append(Step(f"call {slug} {name} as well", alias_place, run))
    for name in sorted(present - set(wanted)):
        run = partial(_remove_alias, slug, name)
        steps.append(Step(f"call {slug} {name} no more", f"{place}.aliases", run))
    return steps


def _add_alias(slug: str, name: str, place: str) -> None:
    alias = ModelAlias(model=Model.objects.get(slug=slug), name=name)
    try:
        alias.full_clean()
    except ValidationError as error:
        raise place_of(error, place) from error
    alias.save()


def _remove_alias(slug: str, name: str) -> None:
    ModelAlias.objects.filter(model__slug=slug, name=name).delete()


def _plan_deployment(settings: dict[str, Any], slug: str, place: str) -> list[Step]:
    name = str(settings["name"])
    wanted = {key: value for key, value in settings.items() if key != "name"}
    for key in wanted:
        if key not in (*_DEPLOYMENT_FIELDS, *PROFILE_FIELDS):
            raise ApplyError(f"{place}.{key}", "is no setting of a deployment")
    deployment = Deployment.objects.select_related("model").filter(slug=name).first()
    if deployment is None:
        wanted = _judge(Deployment(), wanted, place)
        _judge(Deployment(), {"slug": name}, f"{place}.name", is_whole=True)
        run = partial(_create_deployment, slug, name, wanted, place)
        return [Step(f"deploy {slug} as {name}", place, run)]
    if deployment.model.slug != slug:
        words = f"{name} is a deployment of {deployment.model}; choose another name"
        raise ApplyError(f"{place}.name", words)
    wanted = _judge(deployment, wanted, place)
    changes = list_changes(deployment, wanted)
    if not changes:
        return []
    words = f"change the deployment {name}: {', '.join(changes.values())}"
    return [Step(words, place, partial(_change_deployment, name, wanted, place))]


def _create_deployment(slug: str, name: str, wanted: dict[str, Any], place: str) -> None:
    try:
        create_deployment(model=Model.objects.get(slug=slug), slug=name, **wanted)
    except ValidationError as error:
        raise place_of(error, place) from error


def _change_deployment(name: str, wanted: dict[str, Any], place: str) -> None:
    deployment = Deployment.objects.get(slug=name)
    changed = set(list_changes(deployment, wanted))
    _set(deployment, wanted)
    try:
        deployment.full_clean()
    except ValidationError as error:
        raise place_of(error, place) from error
    deployment.save(update_fields=[*wanted, "updated_at"])
    if changed & set(PROFILE_FIELDS):
        restart_deployments(deployments=Deployment.objects.filter(slug=name))


def _judge(
    row: models.Model, wanted: dict[str, Any], place: str, *, is_whole: bool = False
) -> dict[str, Any]:
    """Give values as their fields take them; raises ApplyError that names the field.

    With ``is_whole`` the place is that of the one value itself.
    """
    found: dict[str, Any] = {}
    for name, value in wanted.items():
        field = row._meta.get_field(name)
        at = place if is_whole else f"{place}.{name}"
        if isinstance(value, bool) != isinstance(field, models.BooleanField):
            kind = "true or false" if isinstance(field, models.BooleanField) else "no truth value"
            raise ApplyError(at, f"must be {kind}")
        try:
            found[name] = field.clean(value, row)  # type: ignore[union-attr]
        except ValidationError as error:
            raise ApplyError(at, " ".join(error.messages)) from error
    return found


def _set(row: models.Model, wanted: dict[str, Any]) -> None:
    for name, value in wanted.items():
        setattr(row, name, value)
