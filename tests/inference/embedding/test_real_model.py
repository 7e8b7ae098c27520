"""Vectors of all-MiniLM-L6-v2, and of a causal model."""

import base64
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from inference.engine.build import build_engine
from inference.protocol.errors import EngineError, ErrorCode
from inference.protocol.events import Vectors
from inference.protocol.jobs import EmbeddingJob
from inference.protocol.replicas import ModelKind, ReplicaSpec, RuntimeProfile
from tests.inference.engine.inbox import Inbox

pytestmark = pytest.mark.model


def embed(path: Path, texts: Sequence[str], profile: RuntimeProfile) -> list[np.ndarray[Any, Any]]:
    inbox = Inbox()
    spec = ReplicaSpec(
        replica="r",
        deployment="d",
        model="m",
        kind=ModelKind.EMBEDDING,
        files=(str(path),),
        sha256=("",),
        profile=profile,
    )
    loaded = build_engine(spec, inbox, lambda _: None)
    inputs = tuple(
        tuple(loaded.model.tokenize(text, add_special=True, parse_special=False)) for text in texts
    )
    loaded.runner.start()
    try:
        loaded.runner.submit(
            EmbeddingJob(
                id="job",
                deployment="d",
                owner="o",
                gateway="g",
                inputs=inputs,
                deadline=time.time() + 100,
            )
        )
        outcome = inbox.wait_for_end("job")
        assert outcome.done.num_prompt_tokens == sum(map(len, inputs))
    finally:
        loaded.runner.stop()
    return [
        np.frombuffer(base64.b64decode(vector), "<f4")
        for event in outcome.events
        if isinstance(event, Vectors)
        for vector in event.vectors
    ]


def test_similar_texts_have_similar_vectors(minilm_path: Path) -> None:
    texts = ["A cat sits on the mat.", "A kitten rests on a rug.", "Stock markets fell today."]
    cat, kitten, stocks = embed(minilm_path, texts, RuntimeProfile())
    assert cat.shape == (384,)
    assert np.linalg.norm(cat) == pytest.approx(1.0, abs=1e-5)
    assert cat @ kitten > 0.5 > cat @ stocks


def test_a_vector_does_not_depend_on_its_batch(minilm_path: Path) -> None:
    texts = [f"text number {index} " + "word " * index for index in range(40)]
    together = embed(minilm_path, texts, RuntimeProfile())
    alone = embed(minilm_path, texts[30:31], RuntimeProfile())
    assert together[30] == pytest.approx(alone[0], abs=2e-3)


def test_the_longest_input_fits_and_one_token_more_is_refused(minilm_path: Path) -> None:
    assert len(embed(minilm_path, ["word " * 510], RuntimeProfile())) == 1
    with pytest.raises(EngineError, match=r"513 tokens.*512") as caught:
        embed(minilm_path, ["word " * 511], RuntimeProfile())
    assert caught.value.code is ErrorCode.CONTEXT_LENGTH_EXCEEDED


@pytest.mark.parametrize("pooling", ["", "mean", "last"])
def test_causal_models_embed_too(tiny_model_path: Path, pooling: str) -> None:
    vectors = embed(tiny_model_path, ["abc", "abd", "abc"], RuntimeProfile(pooling=pooling))
    assert vectors[0] == pytest.approx(vectors[2], abs=1e-3)
    assert vectors[0] != pytest.approx(vectors[1], abs=1e-3)


def test_an_unknown_pooling_is_refused(tiny_model_path: Path) -> None:
    with pytest.raises(EngineError, match="known are"):
        embed(tiny_model_path, ["abc"], RuntimeProfile(pooling="magic"))
