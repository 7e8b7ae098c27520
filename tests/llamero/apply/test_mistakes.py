"""All that is wrong in a file is told at once, and what was meant; settings have a table."""

import re
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError
from django.db.models import Field

from llamero.apply.deployments import SETTINGS
from models_registry.models import Deployment
from tests.llamero.apply.test_apply import GOOD, apply, folder, quick_inspection, quick_probe
from tests.processes import ROOT

__all__ = ["folder", "quick_inspection", "quick_probe"]

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("quick_probe", "quick_inspection")]


@pytest.mark.parametrize(
    ("key", "words"),
    [
        ("num_slot", "did you mean num_slots?"),
        ("slots", "did you mean num_slots?"),
        ("weights", "did you mean weight_type?"),
        ("Temperature", "did you mean default_temperature?"),
        ("colour", "there are cache_type_k, cache_type_v, context_length, default_"),
    ],
)
def test_what_was_meant_is_told(folder: Path, key: str, words: str) -> None:
    with pytest.raises(CommandError) as caught:
        apply(folder, GOOD.replace("num_slots: 2", f"{key}: 2"))
    place = f"models[0].deployments[0].{key}: is no setting of a deployment; {words}"
    assert place in str(caught.value)


def test_a_value_that_is_none_of_some_is_told_with_those_that_are(folder: Path) -> None:
    with pytest.raises(CommandError, match="There are an empty text, q8_0, f16"):
        apply(folder, GOOD.replace("num_slots: 2", "weight_type: q4"))


def test_all_mistakes_are_told_at_once(folder: Path) -> None:
    bad = GOOD.replace("num_slots: 2", "num_slot: 2\n        weights: q8_0\n        share: -1")
    bad = bad.replace("[wee]", "[../x]").replace("user: ada", "user: bob").replace("[tiny]", "[x]")
    with pytest.raises(CommandError) as caught:
        apply(folder, bad)
    assert [line.split(": ")[1] for line in str(caught.value).splitlines()] == [
        "models[0].aliases[0]",
        "models[0].deployments[0].num_slot",
        "models[0].deployments[0].weights",
        "models[0].deployments[0].share",
        "keys[0].user",
        "keys[0].models[0]",
    ]


def test_mistakes_of_shape_are_told_for_each_entry(folder: Path) -> None:
    with pytest.raises(CommandError) as caught:
        apply(folder, GOOD.replace("title: Tiny", "title: 5").replace("user: ada", "login: ada"))
    places = [line.split(": ")[1] for line in str(caught.value).splitlines()]
    assert places == ["models[0].title", "keys[0]"]


def describe(field: "Field[Any, Any]") -> str:
    """Give a setting's row of the table."""
    default = field.get_default()
    shown = "" if default in (None, "") else f"`{str(default).lower()}`"
    values = ", ".join(f"`{value}`" if value else "empty" for value, _ in field.choices or ())
    return f"| `{field.name}` | {field.verbose_name} | {shown} | {values} |"


def test_the_table_of_settings_is_that_of_the_columns() -> None:
    text = (ROOT / "docs" / "deployment-settings.md").read_text()
    rows = re.findall(r"^\| `.*", text, re.MULTILINE)
    assert rows == [describe(Deployment._meta.get_field(name)) for name in SETTINGS]  # type: ignore[arg-type]
