"""A deployment's settings for vectors must fit what its model is for."""

from typing import Any

import pytest

from inference.protocol.replicas import ModelKind
from models_registry.models import Deployment
from models_registry.models.profile_rules import find_contradictions, find_misfits


@pytest.mark.parametrize(
    ("kind", "fields", "wrong"),
    [
        (ModelKind.EMBEDDING, {"pooling": "cls", "min_dimensions": 64}, None),
        (ModelKind.EMBEDDING, {"pooling": "rank"}, "pooling"),
        (ModelKind.CHAT, {"serves_embeddings": True, "pooling": "rank"}, "pooling"),
        (ModelKind.CHAT, {"serves_embeddings": True, "pooling": "mean"}, None),
        (ModelKind.RERANK, {"pooling": "rank"}, None),
        (ModelKind.RERANK, {"pooling": "mean"}, "pooling"),
        (ModelKind.RERANK, {"min_dimensions": 1}, "min_dimensions"),
    ],
)
def test_pooling_and_shortening_fit_the_kind(
    kind: ModelKind, fields: dict[str, Any], wrong: str | None
) -> None:
    errors = find_contradictions(Deployment(**fields), kind)
    assert list(errors) == ([wrong] if wrong else [])


def test_vectors_cannot_be_kept_longer_than_they_are() -> None:
    facts = {"embedding_length": 384}
    assert not find_misfits(Deployment(min_dimensions=384), facts)
    assert list(find_misfits(Deployment(min_dimensions=385), facts)) == ["min_dimensions"]
