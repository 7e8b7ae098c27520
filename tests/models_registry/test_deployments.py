"""Deployments get fitting defaults, refuse nonsense, and are changed by the column."""

from typing import Any

import pytest
from django.core.exceptions import ValidationError

from inference.protocol.replicas import ModelKind, RuntimeProfile
from models_registry.models import Deployment, DeploymentState, VersionState
from models_registry.selectors import estimate_deployment
from models_registry.services.deployments import (
    create_deployment,
    enable_deployments,
    restart_deployments,
)
from models_registry.services.versions import make_current, quarantine_version
from tests.models_registry.factories import make_deployment, make_facts, make_model, make_version

pytestmark = pytest.mark.django_db
FACTS = make_facts(context_length=32_768)


def test_a_chat_model_gets_a_bounded_context() -> None:
    model = make_model("org/chat:1b")
    make_version(model, facts=FACTS)
    deployment = create_deployment(model=model)
    assert deployment.slug == "org-chat-1b"
    assert (deployment.context_length, deployment.num_slots) == (8192, 16)
    assert deployment.state == DeploymentState.PENDING
    estimate = estimate_deployment(deployment)
    assert estimate is not None
    assert estimate.host.cache_bytes == 16 * 8192 * 2 * 11_520


def test_an_embedding_model_gets_the_context_it_was_trained_for() -> None:
    model = make_model(kind=ModelKind.EMBEDDING)
    make_version(model, facts={"context_length": 512})
    assert create_deployment(model=model).context_length == 512


def test_the_profile_is_what_the_columns_say() -> None:
    deployment = Deployment(tensor_split="3,1", pooling="mean", num_threads=2)
    assert deployment.profile == RuntimeProfile(
        tensor_split=(3.0, 1.0), pooling="mean", num_threads=2
    )
    assert Deployment().profile == RuntimeProfile()


@pytest.mark.parametrize(
    "fields",
    [
        {"context_length": 0},
        {"context_length": -1},
        {"context_length": 10**9},
        {"context_length": 2**27, "num_slots": 256},
        {"num_slots": 0},
        {"num_slots": 257},
        {"num_slots": 200, "step_token_budget": 100},
        {"tensor_split": "1,x"},
        {"tensor_split": "nan"},
        {"tensor_split": "-1"},
        {"cache_type_k": "q9"},
        {"cache_type_v": "q8_0", "flash_attention": "off"},
        {"flash_attention": "maybe"},
        {"split_mode": "tensor"},
        {"tensor_split": "1,1", "split_mode": "none"},
        {"tensor_split": "0,0"},
        {"kv_cells": 10_000},
        {"kv_cells": 100, "is_kv_unified": True},
        {"kv_cells": 2**31, "is_kv_unified": True},
        {"is_deterministic": True, "is_kv_unified": True},
        {"is_deterministic": True, "speculation": "ngram"},
        {"speculation": "guess"},
        {"num_draft_tokens": 0},
        {"numa": "mirror"},
        {"prefix_sharing": "world"},
        {"prefix_host_bytes": -1},
        {"num_threads_batch": -1},
        {"min_replicas": 2, "max_replicas": 1},
        {"job_timeout_seconds": 0},
        {"slug": "../x"},
    ],
)
def test_nonsense_is_refused_by_field(fields: dict[str, Any]) -> None:
    model = make_model()
    with pytest.raises(ValidationError) as caught:
        create_deployment(model=model, **fields)
    assert set(caught.value.message_dict) & set(fields)
    assert not Deployment.objects.exists()


@pytest.mark.parametrize("field", ["speculation", "serves_embeddings", "is_context_shifting"])
def test_an_embedding_model_generates_nothing(field: str) -> None:
    model = make_model(kind=ModelKind.EMBEDDING)
    fields: dict[str, Any] = {field: "ngram" if field == "speculation" else True}
    with pytest.raises(ValidationError) as caught:
        create_deployment(model=model, **fields)
    assert set(caught.value.message_dict) == {field}


def test_heads_that_blocks_do_not_divide_take_no_quantized_cells() -> None:
    model = make_model()
    make_version(model, facts={"key_length": 80, "value_length": 64})
    with pytest.raises(ValidationError) as caught:
        create_deployment(model=model, cache_type_k="q4_0", cache_type_v="q8_0")
    assert set(caught.value.message_dict) == {"cache_type_k"}


def vocabulary(**changes: Any) -> dict[str, Any]:
    """Give the facts of a vocabulary."""
    return {"tokenizer": "gpt2", "num_vocab": 1000, "vocab_hash": "abc"} | changes


@pytest.mark.parametrize(
    ("facts", "is_good"),
    [
        ({}, True),
        ({"num_vocab": 1064, "vocab_hash": "other"}, True),
        ({"num_vocab": 2000}, False),
        ({"vocab_hash": "other"}, False),
        ({"tokenizer": "llama"}, False),
        ({"architecture": "bert"}, False),
    ],
)
def test_a_draft_model_must_know_the_same_tokens(facts: dict[str, Any], is_good: bool) -> None:
    model = make_model()
    make_version(model, facts=vocabulary())
    draft = make_version(make_model("small"), facts=vocabulary(**facts))
    if is_good:
        create_deployment(model=model, speculation="draft", draft_version=draft)
        return
    with pytest.raises(ValidationError) as caught:
        create_deployment(model=model, speculation="draft", draft_version=draft)
    assert set(caught.value.message_dict) == {"draft_version"}


def test_a_draft_model_is_asked_for_and_cannot_be_the_model_itself() -> None:
    model = make_model()
    version = make_version(model, facts=vocabulary())
    for draft in (None, version):
        with pytest.raises(ValidationError) as caught:
            create_deployment(model=model, speculation="draft", draft_version=draft)
        assert set(caught.value.message_dict) == {"draft_version"}


def test_a_version_of_another_model_cannot_be_pinned() -> None:
    other = make_version(make_model("other"))
    with pytest.raises(ValidationError):
        create_deployment(model=make_model(), pinned_version=other)


def test_restart_and_switch_work_on_many_at_once() -> None:
    for slug in ("a", "b"):
        make_deployment(make_model(slug))
    assert restart_deployments(deployments=Deployment.objects.all()) == 2
    assert enable_deployments(deployments=Deployment.objects.all(), is_enabled=False) == 2
    assert enable_deployments(deployments=Deployment.objects.all(), is_enabled=False) == 0
    assert set(Deployment.objects.values_list("generation", "enabled")) == {(2, False)}


def test_another_current_version_replaces_replicas_that_follow_it() -> None:
    model = make_model()
    first = make_version(model)
    second = make_version(model, number=2, is_current=False)
    follows, pinned = make_deployment(model), make_deployment(model, "p", pinned_version=first)
    make_current(version=second)
    make_current(version=second)
    for deployment, generation in ((follows, 2), (pinned, 1)):
        deployment.refresh_from_db()
        assert deployment.generation == generation
    first.refresh_from_db()
    assert not first.is_current


def test_only_a_ready_version_can_be_current() -> None:
    model = make_model()
    rejected = make_version(model, state=VersionState.REJECTED, reason="bad", is_current=False)
    with pytest.raises(ValidationError):
        make_current(version=rejected)


def test_a_version_moves_along_its_arrows_only() -> None:
    version = make_version(make_model())
    quarantine_version(version=version, reason="The stored file has changed.")
    with pytest.raises(ValidationError):
        quarantine_version(version=version, reason="again")
