"""What the two embedding routes have in common: inputs checked and cut, vectors computed."""

from dataclasses import dataclass

from inference.protocol.jobs import EUCLIDEAN
from inference.protocol.replicas import ModelFacts
from llamero import dispatch
from llamero.accounts.callers import Caller
from llamero.api.embedding_jobs import VectorRows, compute_vectors
from llamero.api.prompts import PromptText, tokenize_prompts
from llamero.api.truncation import Tokens, Truncation
from llamero.errors import InvalidValue
from models_registry.selectors import ServedModel

MAX_INPUTS = 2048
# What 2048 vectors of 4096 numbers are; token rows of a long text can be far more.
MAX_NUMBERS = 2048 * 4096


@dataclass(frozen=True, slots=True)
class EmbeddingRequest:
    """Inputs of one request; ``param`` is the field they came in."""

    served: ServedModel
    inputs: list[PromptText]
    param: str
    caller: Caller
    truncation: Truncation
    norm: int = EUCLIDEAN
    num_dimensions: int = 0

    def check(self) -> None:
        """Refuse what is wrong whatever the model."""
        check_count(len(self.inputs), self.param)
        for source in self.inputs:
            if source.parts == ("",):
                raise InvalidValue(self.param, f"{source.path} must not be empty.")

    async def facts(self) -> ModelFacts:
        """Give what the loaded model says of itself."""
        return await dispatch.get_dispatcher().facts(self.served.deployment)

    async def compute(self, facts: ModelFacts) -> tuple[VectorRows, int]:
        """Give the vectors, and how many tokens they took."""
        self.truncation.tokens_kept(facts)
        found = await tokenize_prompts(
            self.served.deployment, self.inputs, self.param, parse_special=False
        )
        tokens = [
            self.truncation.fit(source, ids, self.param, facts)
            for source, ids in zip(self.inputs, found, strict=True)
        ]
        if facts.pooling == "none":
            _check_size(tokens, self.param, facts)
        rows = await compute_vectors(
            served=self.served,
            inputs=tokens,
            caller=self.caller,
            norm=self.norm,
            num_dimensions=self.num_dimensions,
        )
        return rows, sum(map(len, tokens))


def check_count(num_inputs: int, param: str) -> None:
    """Refuse too many inputs."""
    if num_inputs > MAX_INPUTS:
        raise InvalidValue(param, f"{param} may hold at most {MAX_INPUTS} items.")


def _check_size(tokens: list[Tokens], param: str, facts: ModelFacts) -> None:
    num_tokens, limit = sum(map(len, tokens)), MAX_NUMBERS // max(1, facts.num_dimensions)
    if num_tokens > limit:
        raise InvalidValue(
            param,
            f"{param} has {num_tokens} tokens together; this model gives a vector for each, "
            f"for at most {limit} in one request.",
        )
