"""What is served follows from enabled deployments and ready versions."""

from typing import Any

import pytest

from inference.protocol.replicas import ModelKind
from models_registry.models import Deployment, DeploymentState, ModelAlias, VersionState
from models_registry.selectors import (
    find_served_model,
    list_deployment_targets,
    list_served_models,
)
from tests.models_registry.factories import make_deployment, make_model, make_version

pytestmark = pytest.mark.django_db


def test_a_model_is_found_by_slug_and_alias() -> None:
    model = make_model()
    make_version(model, facts={"num_params": 7})
    make_deployment(model, num_slots=3)
    ModelAlias.objects.create(model=model, name="small")
    for name in ("tiny", "small"):
        served = find_served_model(name)
        assert served is not None
        assert (served.id, served.deployment, served.kind) == ("tiny", "tiny", ModelKind.CHAT)
        assert (served.profile.num_slots, served.facts["num_params"]) == (3, 7)
        assert served.aliases == ("small",)


@pytest.mark.parametrize("name", ["", "Tiny", "tiny ", "TINY", "tiny\x00", "tin", "../tiny"])
def test_names_are_matched_exactly(name: str) -> None:
    model = make_model()
    make_version(model)
    make_deployment(model)
    assert find_served_model(name) is None


def test_without_a_ready_version_or_an_enabled_deployment_nothing_is_served() -> None:
    disabled, loading, bare = make_model("disabled"), make_model("loading"), make_model("bare")
    make_version(disabled)
    make_deployment(disabled, enabled=False)
    make_version(loading, state=VersionState.PROBING, is_current=False)
    make_deployment(loading)
    make_version(bare)
    assert list_served_models() == []


def test_a_quarantined_version_is_not_served() -> None:
    model = make_model()
    make_version(model, state=VersionState.QUARANTINED, reason="changed")
    make_deployment(model)
    assert find_served_model("tiny") is None
    assert list_deployment_targets()[0].files == ()


def test_a_pinned_version_wins_over_the_current_one() -> None:
    model = make_model()
    old = make_version(model, is_current=False, sha256="b" * 64)
    make_version(model, number=2)
    make_deployment(model, pinned_version=old)
    assert list_deployment_targets()[0].sha256 == ("b" * 64,)


def test_a_ready_deployment_is_preferred() -> None:
    model = make_model()
    make_version(model)
    make_deployment(model, "first")
    make_deployment(model, "second", state=DeploymentState.READY)
    make_deployment(model, "third", state=DeploymentState.READY)
    assert [served.deployment for served in list_served_models()] == ["second"]


def test_each_read_takes_few_queries(django_assert_num_queries: Any) -> None:
    for slug in ("a", "b", "c"):
        model = make_model(slug)
        make_version(model, sha256=slug * 64)
        make_deployment(model)
    with django_assert_num_queries(2):
        assert find_served_model("b") is not None
    with django_assert_num_queries(2):
        assert len(list_served_models()) == 3
    with django_assert_num_queries(3):
        assert all(target.files for target in list_deployment_targets())


def test_what_is_served_is_told_not_what_the_file_is() -> None:
    model = make_model()
    make_version(model, is_current=True, facts={"quantization": "Q4_1"})
    deployment = make_deployment(model)
    assert find_served_model(model.slug).quantization == "Q4_1"  # type: ignore[union-attr]
    Deployment.objects.filter(pk=deployment.pk).update(weight_type="q8_0")
    assert find_served_model(model.slug).quantization == "Q8_0"  # type: ignore[union-attr]
