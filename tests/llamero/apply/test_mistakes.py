"""All that is wrong in a file is told at once, and what was meant; settings have a table."""

import re
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError
from django.db.models import Field

from llamero.accounts.models import ApiKey, Team
from llamero.apply.deployments import SETTINGS
from models_registry.models import Deployment, Model, ModelAlias
from tests.llamero.apply.test_apply import GOOD, apply, folder, quick_inspection, quick_probe
from tests.processes import ROOT
from tests.tiny_lora import write_lora

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
    bad = bad.replace("title: Tiny", "tittle: Tiny\n    title: 5")
    with pytest.raises(CommandError) as caught:
        apply(folder, bad)
    assert [line.split(": ")[1] for line in str(caught.value).splitlines()] == [
        "models[0].tittle",
        "models[0].title",
        "models[0].deployments[0].num_slot",
        "models[0].deployments[0].weights",
        "models[0].deployments[0].share",
        "models[0].aliases[0]",
        "keys[0].user",
        "keys[0].models[0]",
    ]


def test_mistakes_of_shape_are_told_for_each_entry(folder: Path) -> None:
    with pytest.raises(CommandError) as caught:
        apply(folder, GOOD.replace("title: Tiny", "title: 5").replace("user: ada", "login: ada"))
    places = [line.split(": ")[1] for line in str(caught.value).splitlines()]
    assert places == ["models[0].title", "keys[0].login", "keys[0].user"]


@pytest.mark.parametrize(
    ("before", "after", "place"),
    [
        ("num_slots: 2", "min_replicas: 3", "models[0].deployments[0].min_replicas: Cannot be"),
        ("num_slots: 2", "kv_cells: 999", "models[0].deployments[0].kv_cells: Only a unified"),
        ("num_slots: 2", "speculation: draft", "models[0].deployments[0].draft_version: Choose"),
        ("num_slots: 2", "target_ttft_seconds: .nan", "deployments[0].target_ttft_seconds: must"),
        ("num_slots: 2", "num_slots: [2]", "num_slots: must be a whole number, and is a list"),
        ("title: Tiny", "kind: rerank", "deployments[0].default_seed: A model of kind rerank"),
        ("description: A small one.", f"owned_by: {'x' * 101}", "models[0].owned_by: Ensure"),
        ("[wee]", "[tiny]", "models[0].aliases[0]: tiny is there already, at models[0].id"),
        ("[wee]", "[taken]", "models[0].aliases[0]: taken is an alias of other: list"),
        ("[wee]", "[other]", "models[0].aliases[0]: other is the id of a model"),
        ("id: tiny", "id: taken", "models[0].id: This name is already an alias of a model."),
        ("path: tiny.gguf", "path: ~nobody-here/x.gguf", "models[0].files[0].path: Could not"),
        ("path: tiny.gguf", "path: lora.gguf", "models[0].files: lora.gguf is a LoRA adapter"),
        ("name: ci", "name: ''", "keys[0].name: This field cannot be blank."),
        ("user: ada", "user: ada\n    team: reds", "keys[0].user: ada is no member of reds."),
    ],
)
def test_what_does_not_fit_together_is_told_before_anything_is_done(
    folder: Path, before: str, after: str, place: str
) -> None:
    other = Model.objects.create(slug="other", title="Other")
    ModelAlias.objects.create(model=other, name="taken")
    Team.objects.create(name="reds")
    write_lora(folder / "lora.gguf", seed=1)
    good = GOOD.replace("num_slots: 2", "num_slots: 2\n        default_seed: 1")
    assert before in good
    with pytest.raises(CommandError) as caught:
        apply(folder, good.replace(before, after))
    assert place in str(caught.value)
    assert list(Model.objects.all()) == [other]
    assert not ApiKey.objects.exists()


def test_an_alias_goes_to_another_model_in_one_go(folder: Path) -> None:
    apply(folder, GOOD)
    moved = GOOD.replace("[wee]", "[]").replace("keys:", "  - {id: big, aliases: [wee]}\nkeys:")
    Model.objects.create(slug="big", title="Big")
    assert apply(folder, moved).splitlines() == ["call tiny wee no more", "call big wee as well"]
    assert ModelAlias.objects.get().model.slug == "big"


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
