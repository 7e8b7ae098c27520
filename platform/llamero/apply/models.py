"""Plan what is to be done for models: versions, then fields; their deployments follow."""

import re
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from django.core.exceptions import ValidationError

from llamero.apply.deployments import plan_deployment
from llamero.apply.document import ModelEntry
from llamero.apply.files import find_version, find_wanted, import_wanted
from llamero.apply.judging import judge, set_values
from llamero.apply.mistakes import ApplyError, Mistakes, place_of
from llamero.apply.outlook import Outlook, look_ahead, look_at
from llamero.apply.steps import Step, list_changes
from models_registry.incoming.wishes import check_wish
from models_registry.models import Model, ModelVersion
from models_registry.names import normalize_name
from models_registry.services.versions import make_current

_MODEL_FIELDS = ("title", "kind", "description", "owned_by")


def plan_model(entry: ModelEntry, place: str, folder: Path) -> list[Step]:
    """Plan all that one model needs, in order, but for its aliases; raises ApplyError."""
    slug = normalize_name(entry.id)
    model = Model.objects.filter(slug=slug).first()
    steps: list[Step] = []
    outlook = look_at(model, entry.kind)
    mistakes = Mistakes()
    with mistakes.gathered():
        outlook = _plan_version(entry, model, place, folder, steps)
    with mistakes.gathered():
        steps += _plan_fields(entry, slug, model, place)
    for index, settings in enumerate(entry.deployments):
        with mistakes.gathered():
            steps += plan_deployment(settings, slug, outlook, f"{place}.deployments[{index}]")
    mistakes.tell()
    return steps


def _plan_version(
    entry: ModelEntry, model: Model | None, place: str, folder: Path, steps: list[Step]
) -> Outlook:
    """Plan what brings the files in, or serves those that are here; gives what comes of it."""
    slug, files_place = normalize_name(entry.id), f"{place}.files"
    wish = {
        "model": slug,
        "title": entry.title or "",
        "kind": entry.kind or "",
        "is_new_version": model is not None,
    }
    _judge_wish(wish, place)
    wanted = find_wanted(entry.files, folder, files_place)
    if not wanted:
        if model is None:
            raise ApplyError(files_place, f"is missing: there is no model {slug} yet")
        return look_at(model, entry.kind)
    version = find_version(model, wanted) if model else None
    if version is None:
        names = ", ".join(file.name for file in wanted)
        words = f"add a version to {slug}: {names}" if model else f"add the model {slug}: {names}"
        run = partial(import_wanted, wanted, wish, files_place)
        outlook = look_ahead(wanted, model, entry.kind, place)
        steps.append(Step(words, files_place, run))
        return outlook
    if not version.is_current:
        run = partial(_serve, version, files_place)
        steps.append(Step(f"serve {version} of {slug}", files_place, run))
    return replace(look_at(model, entry.kind), version=version)


def _judge_wish(wish: dict[str, object], place: str) -> None:
    try:
        check_wish(wish)
    except ValidationError as error:
        told = place_of(error, place)
        told.found = [(re.sub(r"\.model\Z", ".id", at), words) for at, words in told.found]
        raise told from error


def _serve(version: ModelVersion, place: str) -> None:
    try:
        make_current(version=version)
    except ValidationError as error:
        raise place_of(error, place) from error


def _plan_fields(entry: ModelEntry, slug: str, model: Model | None, place: str) -> list[Step]:
    named = {name: getattr(entry, name) for name in _MODEL_FIELDS}
    wanted = {name: value for name, value in named.items() if value is not None}
    judge(Model(slug=slug), wanted, place)
    if model is None:
        # The import knows title and kind; the rest follows it.
        wanted = {name: wanted[name] for name in ("description", "owned_by") if name in wanted}
        changes = dict.fromkeys(wanted, "") if wanted else {}
        words = f"describe {slug}: {', '.join(wanted)}"
    else:
        changes = list_changes(model, wanted)
        words = f"change {slug}: {', '.join(changes.values())}"
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
