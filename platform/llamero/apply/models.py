"""Plan what is to be done for models: versions, fields, aliases; their deployments follow."""

from functools import partial
from pathlib import Path
from typing import Any

from django.core.exceptions import ValidationError

from llamero.apply.deployments import plan_deployment
from llamero.apply.document import ApplyError, Mistakes, ModelEntry, place_of
from llamero.apply.files import find_version, find_wanted, import_wanted
from llamero.apply.judging import judge, set_values
from llamero.apply.steps import Step, list_changes
from models_registry.incoming.wishes import check_wish
from models_registry.models import Model, ModelAlias, ModelVersion
from models_registry.names import normalize_name
from models_registry.services.versions import make_current

_MODEL_FIELDS = ("title", "kind", "description", "owned_by")


def plan_model(entry: ModelEntry, place: str, folder: Path) -> list[Step]:
    """Plan all that one model needs, in order; raises ApplyError."""
    slug = normalize_name(entry.id)
    model = Model.objects.filter(slug=slug).first()
    steps: list[Step] = []
    mistakes = Mistakes()
    with mistakes.gathered():
        steps += _plan_version(entry, slug, model, place, folder)
    with mistakes.gathered():
        steps += _plan_fields(entry, slug, model, place)
    with mistakes.gathered():
        steps += _plan_aliases(entry, slug, model, place)
    for index, settings in enumerate(entry.deployments):
        with mistakes.gathered():
            steps += plan_deployment(settings, slug, f"{place}.deployments[{index}]")
    mistakes.tell()
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
        judge(Model(slug=slug, title=model.title), wanted, place)
    if not changes:
        return []
    return [Step(words, place, partial(_change_model, slug, wanted, place))]


def _change_model(slug: str, wanted: dict[str, Any], place: str) -> None:
    model = Model.objects.get(slug=slug)
    set_values(model, wanted)
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
        judge(ModelAlias(), {"name": name}, alias_place, is_whole=True)
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
