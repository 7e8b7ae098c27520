"""Vectors of all-MiniLM-L6-v2, and of causal models."""

from pathlib import Path

import gguf
import numpy as np
import pytest

from inference.protocol.errors import EngineError, ErrorCode
from inference.protocol.events import Done, FinishReason
from inference.protocol.replicas import ModelKind
from tests.inference.embedding.replicas import running
from tests.inference.engine.fakes import make_job
from tests.tiny_model import LETTERS, add_shape, add_vocabulary, add_weights

pytestmark = pytest.mark.model


def test_similar_texts_have_similar_vectors(minilm_path: Path) -> None:
    texts = ["A cat sits on the mat.", "A kitten rests on a rug.", "Stock markets fell today."]
    with running(minilm_path) as replica:
        cat, kitten, stocks = (rows[0] for rows in replica.embed_texts(texts))
        facts = replica.model.facts()
    assert cat.shape == (384,)
    assert np.linalg.norm(cat) == pytest.approx(1.0, abs=1e-5)
    assert cat @ kitten > 0.5 > cat @ stocks
    assert (facts.pooling, facts.num_dimensions) == ("mean", 384)
    assert (facts.num_prefix_tokens, facts.num_suffix_tokens) == (1, 1)


def test_a_vector_does_not_depend_on_its_batch(minilm_path: Path) -> None:
    texts = [f"text number {index} " + "word " * index for index in range(40)]
    with running(minilm_path) as replica:
        together = replica.embed_texts(texts)
        alone = replica.embed_texts(texts[30:31])
    assert together[30][0] == pytest.approx(alone[0][0], abs=2e-3)


def test_the_longest_input_fits_and_one_token_more_is_refused(minilm_path: Path) -> None:
    with running(minilm_path) as replica:
        assert len(replica.embed_texts(["word " * 510, "a"])) == 2
        with pytest.raises(EngineError, match=r"Input 1 has 513 tokens.*512") as caught:
            replica.embed_texts(["a", "word " * 511])
    assert caught.value.code is ErrorCode.CONTEXT_LENGTH_EXCEEDED


def test_each_pooling_pools_the_same_rows(minilm_path: Path) -> None:
    text = ["The quick brown fox jumps over the lazy dog."]
    vectors = {}
    for pooling in ("none", "mean", "cls", "last"):
        with running(minilm_path, pooling=pooling) as replica:
            vectors[pooling] = replica.embed_texts(text, norm=-1)[0]
    rows = vectors["none"]
    assert len(rows) == 12
    assert vectors["mean"][0] == pytest.approx(rows.mean(axis=0), abs=2e-3)
    assert vectors["cls"][0] == pytest.approx(rows[0], abs=2e-3)
    assert vectors["last"][0] == pytest.approx(rows[-1], abs=2e-3)


@pytest.mark.parametrize("pooling", ["none", "mean", "cls", "last"])
def test_a_causal_model_reads_long_inputs_in_parts(tiny_model_path: Path, pooling: str) -> None:
    inputs = [list(range(3, 303)), [5, 6, 7], list(range(40, 150))]
    found = []
    for budget in (512, 64):
        with running(tiny_model_path, pooling=pooling, step_token_budget=budget) as replica:
            found.append(replica.embed(inputs))
    for whole, parts in zip(*found, strict=True):
        assert whole.shape == parts.shape
        assert parts == pytest.approx(whole, abs=0.05)


@pytest.mark.parametrize("pooling", ["", "mean", "last"])
def test_causal_models_embed_too(tiny_model_path: Path, pooling: str) -> None:
    with running(tiny_model_path, pooling=pooling) as replica:
        vectors = replica.embed_texts(["abc", "abd", "abc"])
        assert replica.model.facts().pooling == (pooling or "last")
    assert vectors[0] == pytest.approx(vectors[2], abs=1e-3)
    assert vectors[0] != pytest.approx(vectors[1], abs=1e-3)


def test_an_end_token_is_added_where_the_file_says_so(tmp_path: Path) -> None:
    path = tmp_path / "ended.gguf"
    writer = gguf.GGUFWriter(path, "llama")
    num_vocab = add_vocabulary(writer, LETTERS)
    writer.add_add_eos_token(True)
    add_shape(writer)
    writer.add_pooling_type(gguf.PoolingType.LAST)
    add_weights(writer, num_vocab, np.random.default_rng(0))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    with running(path) as replica:
        facts = replica.model.facts()
        tokens = replica.tokenize("abc")
        assert (tokens[0], tokens[-1]) == (facts.bos_token_id, facts.eos_token_id)
        assert (facts.num_prefix_tokens, facts.num_suffix_tokens) == (1, 1)
        assert facts.pooling == "last"


@pytest.mark.parametrize("sizes", [(100, 300), (128, 1), (37, 200)])
def test_any_context_and_budget_can_be_loaded(minilm_path: Path, sizes: tuple[int, int]) -> None:
    context_length, budget = sizes
    with running(
        minilm_path, context_length=context_length, step_token_budget=budget, num_slots=1
    ) as replica:
        inputs = [[101, *[2000] * (context_length - 2), 102], [101, 2000, 102]] * 3
        assert len(replica.embed(inputs)) == 6


@pytest.mark.parametrize(
    ("kind", "pooling", "message"),
    [
        (ModelKind.EMBEDDING, "magic", "known are none, mean, cls, last, rank"),
        (ModelKind.EMBEDDING, "rank", "kind must be rerank"),
        (ModelKind.RERANK, "mean", "leave pooling empty"),
    ],
)
def test_a_pooling_that_cannot_be_is_refused_at_load(
    tiny_model_path: Path, kind: ModelKind, pooling: str, message: str
) -> None:
    with pytest.raises(EngineError, match=message), running(tiny_model_path, kind, pooling=pooling):
        pass


def test_a_chat_model_answers_both_at_once(smollm2_path: Path) -> None:
    profile = {"context_length": 1024, "num_slots": 2, "prefill_chunk": 32}
    with running(smollm2_path, ModelKind.CHAT, serves_embeddings=True, **profile) as replica:
        prompt = tuple(replica.tokenize("Once upon a time"))
        for name in ("one", "two"):
            replica.runner.submit(
                make_job(name, prompt_tokens=prompt, max_tokens=900, ignore_eos=True)
            )
        replica.inbox.wait_for_event("one")
        long, short = replica.tokenize("word " * 100), replica.tokenize("A cat.")
        rows = replica.collect(replica.submit([long, short]))
        # Chat went on while the input was read, and the input did not wait for its end.
        assert 2 <= len(replica.inbox.so_far("one").token_ids) < 900
        for name in ("one", "two"):
            replica.runner.cancel(name)
            replica.inbox.wait_for_end(name)
        alone = replica.embed([short])
        stats = replica.runner.stats()
    assert rows[1] == pytest.approx(alone[0], abs=0.02)
    assert (stats.num_jobs_done, stats.num_jobs_cancelled) == (2, 2)
    assert stats.num_prompt_tokens >= 100


def test_unloading_ends_jobs_in_flight_as_worth_a_retry(tiny_model_path: Path) -> None:
    with running(tiny_model_path, ModelKind.CHAT, serves_embeddings=True) as replica:
        embedding = replica.submit([list(range(3, 303))] * 500)
        replica.runner.submit(make_job("chat", max_tokens=8000, ignore_eos=True))
        replica.inbox.wait_for_event(embedding.id)
    for job in (embedding.id, "chat"):
        failed = replica.inbox.wait_for_end(job).failed
        assert failed.code == ErrorCode.ENGINE_LOST and failed.is_retryable
    with pytest.raises(EngineError):
        replica.submit([[3]])


def test_a_running_embedding_can_be_cancelled(tiny_model_path: Path) -> None:
    with running(tiny_model_path) as replica:
        job = replica.submit([list(range(3, 303))] * 500)
        replica.inbox.wait_for_event(job.id)
        replica.runner.cancel(job.id)
        done = replica.inbox.wait_for_end(job.id).events[-1]
        assert isinstance(done, Done) and done.finish_reason is FinishReason.CANCELLED
        assert len(replica.embed([[5, 6]])) == 1
