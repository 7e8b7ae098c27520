"""Published names are typable, unambiguous, and never read like paths out of somewhere."""

import pytest
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction

from models_registry.models import Model, ModelAlias, ModelVersion, VersionState
from models_registry.names import normalize_name, validate_published_name
from tests.models_registry.factories import make_model, make_version


@pytest.mark.parametrize("name", ["a", "smollm2-135m", "org/model:q4_0", "v1.2", "0"])
def test_usual_names_pass(name: str) -> None:
    validate_published_name(name)


@pytest.mark.parametrize(
    "name",
    ["", "../x", "a/../b", "a//b", "a/", "/a", ".a", "-a", "%2e", "A", "a b", "a\x00", "é", "a\n"],
)
def test_names_that_confuse_are_refused(name: str) -> None:
    with pytest.raises(ValidationError):
        validate_published_name(name)


def test_names_are_folded() -> None:
    assert normalize_name(" SmolLM2 ") == "smollm2"
    assert normalize_name("e\u0301") == "\u00e9"


@pytest.mark.django_db
def test_slugs_and_aliases_share_one_space() -> None:
    model = make_model("tiny")
    ModelAlias.objects.create(model=model, name="small")
    with pytest.raises(ValidationError):
        Model(slug="Small", title="x").full_clean()
    with pytest.raises(ValidationError):
        Model(slug="TINY ", title="x").full_clean()
    with pytest.raises(ValidationError):
        ModelAlias(model=model, name="tiny").full_clean()


@pytest.mark.django_db
def test_the_database_guards_the_states() -> None:
    model = make_model()
    make_version(model)
    for fields in (
        {"number": 2, "state": VersionState.READY, "is_current": True},
        {"number": 2, "state": VersionState.PROBING, "is_current": True},
        {"number": 2, "state": VersionState.REJECTED},
        {"number": 2, "state": "odd"},
        {"number": 1},
    ):
        with pytest.raises(IntegrityError), transaction.atomic():
            ModelVersion.objects.create(model=model, **fields)
