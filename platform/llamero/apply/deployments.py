"""Plan what is to be done for deployments, whose settings are named as the columns are."""

from copy import copy
from functools import partial
from typing import Any

from django.core.exceptions import ValidationError

from llamero.apply.judging import judge, set_values
from llamero.apply.mistakes import ApplyError, Mistakes, place_of
from llamero.apply.outlook import Outlook
from llamero.apply.shapes import suggest
from llamero.apply.steps import Step, list_changes
from models_registry.models import Deployment, Model
from models_registry.models.profile import PROFILE_FIELDS
from models_registry.models.request_defaults import REQUEST_DEFAULT_FIELDS
from models_registry.services.defaults import default_profile
from models_registry.services.deployments import create_deployment, restart_deployments

SETTINGS = (
    "enabled",
    "share",
    "min_replicas",
    "max_replicas",
    "idle_timeout_seconds",
    "target_ttft_seconds",
    "ignores_memory",
    "text_retention_days",
    *PROFILE_FIELDS,
    *REQUEST_DEFAULT_FIELDS,
)


def plan_deployment(
    settings: dict[str, Any], slug: str, outlook: Outlook, place: str
) -> list[Step]:
    """Plan one deployment of a model; raises ApplyError."""
    name = settings.get("name")
    if not isinstance(name, str) or not name:
        # Told when the file was read; the rest is judged nevertheless.
        name = ""
    deployment = Deployment.objects.select_related("model").filter(slug=name).first()
    wanted = _judge_settings(deployment, settings | {"name": name}, place)
    _judge_together(deployment, wanted, outlook, place)
    if deployment is None:
        run = partial(_create_deployment, slug, name, wanted, place)
        return [Step(f"deploy {slug} as {name}", place, run)]
    if deployment.model.slug != slug:
        words = f"{name} is a deployment of {deployment.model}; choose another name"
        raise ApplyError(f"{place}.name", words)
    changes = list_changes(deployment, wanted)
    if not changes:
        return []
    words = f"change the deployment {name}: {', '.join(changes.values())}"
    return [Step(words, place, partial(_change_deployment, name, wanted, place))]


def _judge_settings(
    deployment: Deployment | None, settings: dict[str, Any], place: str
) -> dict[str, Any]:
    mistakes = Mistakes()
    row = deployment or Deployment()
    wanted = {key: value for key, value in settings.items() if key != "name"}
    for key in [key for key in wanted if key not in SETTINGS]:
        with mistakes.gathered():
            raise ApplyError(f"{place}.{key}", _describe_unknown(str(key)))
        del wanted[key]
    with mistakes.gathered():
        wanted = judge(row, wanted, place)
    if row.pk is None:
        with mistakes.gathered():
            judge(row, {"slug": settings["name"]}, f"{place}.name", is_whole=True)
    mistakes.tell()
    return wanted


def _judge_together(
    deployment: Deployment | None, wanted: dict[str, Any], outlook: Outlook, place: str
) -> None:
    """Judge settings by each other, and by the model, as they will be."""
    if deployment is not None:
        trial, version = copy(deployment), deployment.pinned_version or outlook.version
    else:
        trial, version = Deployment(), outlook.version
        if outlook.kind is not None:
            set_values(trial, default_profile(Model(kind=outlook.kind), version))
    set_values(trial, wanted)
    if found := trial.find_conflicts(outlook.kind, version):
        raise place_of(ValidationError(found), place)


def _describe_unknown(key: str) -> str:
    """Say which setting is meant, by its name or by what the form calls it; else name them all."""
    fields: list[Any] = [Deployment._meta.get_field(name) for name in SETTINGS]
    labels = {_as_name(str(field.verbose_name)): field.name for field in fields}
    # Names come last: where one is what the form calls another, it is the name that counts.
    known = labels | {name: name for name in SETTINGS}
    return f"is no setting of a deployment; {suggest(_as_name(key), known)}"


def _as_name(text: str) -> str:
    return "_".join(text.lower().replace("-", " ").split())


def _create_deployment(slug: str, name: str, wanted: dict[str, Any], place: str) -> None:
    try:
        create_deployment(model=Model.objects.get(slug=slug), slug=name, **wanted)
    except ValidationError as error:
        raise place_of(error, place) from error


def _change_deployment(name: str, wanted: dict[str, Any], place: str) -> None:
    deployment = Deployment.objects.get(slug=name)
    changed = set(list_changes(deployment, wanted))
    set_values(deployment, wanted)
    try:
        deployment.full_clean()
    except ValidationError as error:
        raise place_of(error, place) from error
    deployment.save(update_fields=[*wanted, "updated_at"])
    if changed & set(PROFILE_FIELDS):
        restart_deployments(deployments=Deployment.objects.filter(slug=name))
