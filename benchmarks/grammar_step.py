"""What a grammar costs per token: ours, and llama.cpp's own sampler on the same vocabulary.

python benchmarks/grammar_step.py [MODEL.gguf]
"""

import ctypes
import sys
import time
from pathlib import Path

import llama_cpp
import numpy as np

sys.path[:0] = [str(Path(__file__).parent.parent)]

from inference.backend.grammar_sampler import Constraint, Spelling  # noqa: E402
from inference.backend.llama_model import LlamaModel, load_model  # noqa: E402
from inference.protocol.errors import EngineError  # noqa: E402
from inference.protocol.replicas import ModelKind, ReplicaSpec  # noqa: E402
from inference.text.json_schema import schema_to_grammar  # noqa: E402
from tests.models import fetch_smollm2  # noqa: E402

ANY_JSON = schema_to_grammar({}, param="schema")
BOUNDED = schema_to_grammar({"type": "string", "maxLength": 2000}, param="schema")
EXPLODING = 'root ::= "a" root "b" | "a" root "c" | ""'
CASES = {
    "JSON, at its start": (ANY_JSON, ""),
    "JSON, in a string": (ANY_JSON, '{"key": "value'),
    "JSON, behind a key": (ANY_JSON, '{"key"'),
    "string of up to 2000": (BOUNDED, '"value'),
    "exploding, 10 deep": (EXPLODING, "a" * 10),
}
_CANDIDATE = np.dtype([("id", np.int32), ("logit", np.float32), ("p", np.float32)])


def main() -> None:
    path = Path(sys.argv[1]) if len(sys.argv) > 1 else fetch_smollm2()
    spec = ReplicaSpec(
        replica="r",
        deployment="d",
        model="m",
        kind=ModelKind.CHAT,
        files=(str(path),),
        sha256=("",),
    )
    model = load_model(spec, lambda _: None)
    model.grammars.find(ANY_JSON)
    print(f"{'microseconds':24} {'all tokens, first':>18} {'again':>8} {'llama.cpp':>10}")
    for name, (grammar, text) in CASES.items():
        first, again = measure_ours(model, grammar, text)
        print(f"{name:24} {first:>18} {again:>8} {measure_native(model, grammar, text):>10}")


def measure_ours(model: LlamaModel, grammar: str, text: str) -> tuple[str, str]:
    """Judge all tokens behind a text, twice."""
    begun = time.perf_counter()
    row = np.zeros(model.num_vocab, np.float32)
    try:
        constraint = Constraint(model.grammars.find(grammar), Spelling(model))
        constraint.begin_with(text.encode())
        begun = time.perf_counter()
        constraint.restrict(row)
    except EngineError:
        return f"refused in {(time.perf_counter() - begun) * 1e6:.0f}", "-"
    first = time.perf_counter() - begun
    begun = time.perf_counter()
    constraint.restrict(row)
    return f"{first * 1e6:.0f}", f"{(time.perf_counter() - begun) * 1e6:.0f}"


def measure_native(model: LlamaModel, grammar: str, text: str) -> str:
    """Have llama.cpp judge all tokens behind the same text."""
    sampler = llama_cpp.llama_sampler_init_grammar(model.vocab, grammar.encode(), b"root")
    for token in model.tokenize(text, add_special=False, parse_special=False):
        llama_cpp.llama_sampler_accept(sampler, token)
    candidates = np.zeros(model.num_vocab, _CANDIDATE)
    candidates["id"] = np.arange(model.num_vocab)
    array = llama_cpp.llama_token_data_array()
    array.data = ctypes.cast(candidates.ctypes.data, llama_cpp.llama_token_data_p)
    array.size, array.selected, array.sorted = len(candidates), -1, False
    begun = time.perf_counter()
    llama_cpp.llama_sampler_apply(sampler, ctypes.byref(array))
    seconds = time.perf_counter() - begun
    llama_cpp.llama_sampler_free(sampler)
    return f"{seconds * 1e6:.0f}"


if __name__ == "__main__":
    main()
