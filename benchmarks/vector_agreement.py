"""Are our vectors and scores those of llama-server? Odd texts through both, models loaded by each.

Usage: PYTHONPATH=.:platform python benchmarks/vector_agreement.py

all-MiniLM-L6-v2 with three poolings, SmolLM2 by its last token, and two tiny random rerankers: an
encoder, and a causal model with a template. Prints the lowest cosines and the largest differences
of scores.
"""

import json
import sys
import tempfile
import urllib.request
from pathlib import Path
from typing import Any

import numpy as np
from peer import running_peer

from inference.protocol.replicas import ModelKind
from inference.protocol.text import JoinPairs
from inference.text.pairs import PairJoiner
from tests.inference.embedding.replicas import running
from tests.models import fetch_minilm, fetch_smollm2
from tests.tiny_bert import write_tiny_bert
from tests.tiny_reranker import write_tiny_reranker

LEAST_COSINE = 0.9999
# Four-bit weights: even vectors of llama-server, alone and in a batch, are 0.98 apart there.
LEAST_COSINE_OF_SMOLLM2 = 0.999
MOST_DIFFERENCE = 0.002
TEXTS = (
    "A cat sits on the mat.",
    "a",
    "Überraschung: naïve façade, Ångström, déjà vu",
    "日本語のテキスト 中文文本",
    "emoji 👩‍👩‍👧‍👦 and 🏳️‍🌈",
    "def f(x):\n\treturn x ** 2  # code",
    "supercalifragilisticexpialidocious" * 3,
    "   spaces   and\ttabs\r\nand lines\n\n",
    "word " * 400,
    "\u200bzero\u200bwidth \u202eright to left",
    "1234567890 3.14159 -1e-9 0xdeadbeef",
    "!?.,;:'\"()[]{}<>/\\|@#$%^&*~`",
)
DOCUMENTS = ("a cat sat.", "the market fell 3 points", "x", "z " * 40, "what? a, b, c!")
QUERY = "what fell?"


def ask(url: str, body: dict[str, Any]) -> Any:
    """Post JSON and read the answer."""
    request = urllib.request.Request(
        url, json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=60) as response:
        return json.load(response)


def compare_vectors(model: Path, pooling: str) -> float:
    """Give the lowest cosine over all texts, and over all tokens where nothing is pooled."""
    with running_peer(model, slots=8, context_length=512, pooling=pooling) as peer:
        answers = [ask(f"{peer}/embedding", {"content": text})[0] for text in TEXTS]
    theirs = [np.array(answer["embedding"], np.float32) for answer in answers]
    with running(model, pooling=pooling) as replica:
        ours = [replica.embed_texts([text])[0] for text in TEXTS]
    return min(_lowest_cosine(*both) for both in zip(ours, theirs, strict=True))


def compare_scores(model: Path) -> float:
    """Give the largest difference of scores."""
    with running_peer(model, slots=8, context_length=512, pooling="rank") as peer:
        answer = ask(f"{peer}/v1/rerank", {"query": QUERY, "documents": list(DOCUMENTS)})
    theirs = {one["index"]: one["relevance_score"] for one in answer["results"]}
    with running(model, ModelKind.RERANK) as replica:
        pairs = PairJoiner(replica.model).join(JoinPairs(query=QUERY, documents=DOCUMENTS))
        ours = [rows[0, 0] for rows in replica.embed(pairs, norm=-1)]
    assert answer["usage"]["prompt_tokens"] == sum(map(len, pairs)), "pairs are joined otherwise"
    return max(abs(float(score) - theirs[index]) for index, score in enumerate(ours))


def _lowest_cosine(ours: np.ndarray[Any, Any], theirs: np.ndarray[Any, Any]) -> float:
    assert ours.shape == theirs.shape, "not the same tokens"
    lengths = np.linalg.norm(ours, axis=1) * np.linalg.norm(theirs, axis=1)
    return float(((ours * theirs).sum(axis=1) / lengths).min())


def main() -> None:
    """Compare everything, and fail where it differs."""
    minilm, smollm2 = fetch_minilm(), fetch_smollm2()
    cosines = {pooling: compare_vectors(minilm, pooling) for pooling in ("mean", "cls", "none")}
    causal = compare_vectors(smollm2, "last")
    with tempfile.TemporaryDirectory() as folder:
        encoder_path, causal_path = Path(folder) / "encoder.gguf", Path(folder) / "causal.gguf"
        write_tiny_bert(encoder_path)
        write_tiny_reranker(causal_path)
        differences = {path.stem: compare_scores(path) for path in (encoder_path, causal_path)}
    print("lowest cosine:", {name: round(cosine, 6) for name, cosine in cosines.items()})
    print("lowest cosine of SmolLM2:", round(causal, 6))
    print("largest difference of scores:", {k: round(v, 6) for k, v in differences.items()})
    is_like = min(cosines.values()) >= LEAST_COSINE and causal >= LEAST_COSINE_OF_SMOLLM2
    if not is_like or max(differences.values()) > MOST_DIFFERENCE:
        sys.exit("vectors or scores differ")


if __name__ == "__main__":
    main()
