"""llama-server's completion documents: the whole answer, and what its stream ends with."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from inference.protocol.events import Candidate, Done, FinishReason, TokenLogprob
from llamero.api.collect import Choice, timings_object
from llamero.api.native.completion_request import CompletionRequest
from llamero.api.native.generation_settings import ModelSide, describe_settings
from llamero.api.openai.logprobs import finite, token_bytes, token_text
from llamero.api.sampling import sampling_of_choice

_NONE = object()
_STOP_TYPES = {
    FinishReason.EOS: "eos",
    FinishReason.STOP: "word",
    FinishReason.LENGTH: "limit",
    FinishReason.CANCELLED: "none",
}


def describe_probabilities(
    entries: Iterable[TokenLogprob], *, is_post_sampling: bool
) -> list[dict[str, Any]]:
    """Give ``completion_probabilities``: log-probabilities, or probabilities after sampling."""
    top_name = "top_probs" if is_post_sampling else "top_logprobs"
    return [
        _candidate(entry.chosen, is_post_sampling)
        | {top_name: [_candidate(one, is_post_sampling) for one in entry.top]}
        for entry in entries
    ]


@dataclass(slots=True)
class CompletionAnswer:
    """Writes the documents of one request."""

    model: str
    request: CompletionRequest
    prompts: tuple[str, ...]
    num_prompt_tokens: tuple[int, ...]
    model_side: ModelSide

    def whole(self, choice: Choice) -> dict[str, Any]:
        """Give the answer of one choice."""
        document = self.ending(choice.index, choice.done, choice.slot)
        document["content"] = choice.text
        document["has_new_line"] = "\n" in choice.text
        if self.request.return_tokens:
            document["tokens"] = choice.token_ids
        if choice.logprobs:
            document["completion_probabilities"] = self.probabilities(choice.logprobs)
        return self.select(document)

    def probabilities(self, entries: Iterable[TokenLogprob]) -> list[dict[str, Any]]:
        """Give the probabilities of some tokens."""
        is_post_sampling = self.request.settings.post_sampling_probs
        return describe_probabilities(entries, is_post_sampling=is_post_sampling)

    def ending(self, index: int, done: Done, slot: int) -> dict[str, Any]:
        """Give what is known at the end of a choice, without its text."""
        settings = self.request.settings
        sampling = sampling_of_choice(settings.sampling, index % settings.num_choices)
        return {
            "index": index,
            "content": "",
            "tokens": [],
            "id_slot": slot,
            "stop": True,
            "model": self.model,
            "tokens_predicted": done.num_completion_tokens,
            "tokens_evaluated": done.num_prompt_tokens,
            "generation_settings": describe_settings(
                sampling, settings, self.request.n_predict, self.model_side
            ),
            "prompt": self.prompts[index // settings.num_choices],
            "has_new_line": False,
            "truncated": done.truncated,
            "stop_type": _STOP_TYPES[done.finish_reason],
            "stopping_word": done.stop_word,
            "tokens_cached": done.num_prompt_tokens + max(0, done.num_completion_tokens - 1),
            "timings": timings_object(done),
        }

    def select(self, document: dict[str, Any]) -> dict[str, Any]:
        """Keep the fields the request asked for, by their paths (``a/b`` is field b of a)."""
        wanted = self.request.response_fields
        if not wanted:
            return document
        return {path: value for path in wanted if (value := _look_up(document, path)) is not _NONE}


def _look_up(document: Any, path: str) -> Any:
    """Give what is at a path; the mark of nothing where there is nothing."""
    for name in path.split("/"):
        if not isinstance(document, dict) or name not in document:
            return _NONE
        document = document[name]
    return document


def _candidate(candidate: Candidate, is_post_sampling: bool) -> dict[str, Any]:
    described: dict[str, Any] = {
        "id": candidate.id,
        "token": token_text(candidate),
        "bytes": token_bytes(candidate),
    }
    logprob = finite(candidate.logprob)
    if is_post_sampling:
        return described | {"prob": math.exp(logprob)}
    return described | {"logprob": logprob}
