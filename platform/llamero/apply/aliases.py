"""Plan other names of models. They are taken away first, so that one can go to another model."""

from collections.abc import Sequence
from functools import partial

from django.core.exceptions import ValidationError

from llamero.apply.document import ModelEntry
from llamero.apply.judging import judge
from llamero.apply.mistakes import ApplyError, Mistakes, place_of
from llamero.apply.steps import Step
from models_registry.models import Model, ModelAlias
from models_registry.names import normalize_name


def plan_removals(entries: Sequence[ModelEntry]) -> list[Step]:
    """Plan to take away the names that the file does not give any more."""
    steps: list[Step] = []
    for index, (slug, aliases) in enumerate(_named(entries)):
        if aliases is None:
            continue
        known = ModelAlias.objects.filter(model__slug=slug).exclude(name__in=aliases)
        for name in known.values_list("name", flat=True):
            words = f"call {slug} {name} no more"
            steps.append(Step(words, f"models[{index}].aliases", partial(_remove, slug, name)))
    return steps


def plan_additions(entries: Sequence[ModelEntry]) -> list[Step]:
    """Plan to give names; raises ApplyError for those that cannot be given."""
    steps: list[Step] = []
    mistakes = Mistakes()
    named = _named(entries)
    clearing = {slug for slug, aliases in named if aliases is not None}
    # Read once: a file may give thousands.
    slugs = set(Model.objects.values_list("slug", flat=True))
    owners = dict(ModelAlias.objects.values_list("name", "model__slug"))
    for index, (slug, aliases) in enumerate(named):
        for number, name in enumerate(aliases or ()):
            place = f"models[{index}].aliases[{number}]"
            with mistakes.gathered():
                judge(ModelAlias(), {"name": name}, place, is_whole=True)
                if name in slugs:
                    raise ApplyError(place, f"{name} is the id of a model")
                if owners.get(name) != slug:
                    steps.append(_plan_addition(slug, name, owners.get(name), clearing, place))
    mistakes.tell()
    return steps


def _named(entries: Sequence[ModelEntry]) -> list[tuple[str, list[str] | None]]:
    return [
        (normalize_name(one.id), one.aliases and [normalize_name(name) for name in one.aliases])
        for one in entries
    ]


def _plan_addition(slug: str, name: str, owner: str | None, clearing: set[str], place: str) -> Step:
    if owner is not None and owner not in clearing:
        words = f"{name} is an alias of {owner}: list the aliases of {owner} here without it"
        raise ApplyError(place, words)
    return Step(f"call {slug} {name} as well", place, partial(_add, slug, name, place))


def _add(slug: str, name: str, place: str) -> None:
    alias = ModelAlias(model=Model.objects.get(slug=slug), name=name)
    try:
        alias.full_clean()
    except ValidationError as error:
        raise place_of(error, place) from error
    alias.save()


def _remove(slug: str, name: str) -> None:
    ModelAlias.objects.filter(model__slug=slug, name=name).delete()
