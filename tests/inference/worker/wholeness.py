"""Whether a job told each token and each letter once: the fake engine's answers are foreseen."""

from inference.backend.fake import FIRST_BYTE, letter_by_checksum
from inference.protocol.events import Done, Event, Tokens
from inference.protocol.jobs import GenerationJob


def undisturbed(job: GenerationJob) -> tuple[int, ...]:
    """Give the tokens that the fake engine generates, whatever happens on the way."""
    tokens = list(job.prompt_tokens)
    for _ in range(job.max_tokens or 0):
        tokens.append(letter_by_checksum(tokens))
    return tuple(tokens[len(job.prompt_tokens) :])


def check_whole(job: GenerationJob, events: list[Event]) -> None:
    """Assert that a job told each token and each letter once."""
    end = events[-1]
    assert isinstance(end, Done), end
    told = [event for event in events if isinstance(event, Tokens)]
    token_ids = tuple(token for event in told for token in event.token_ids)
    assert token_ids == undisturbed(job)
    assert (
        "".join(event.text for event in told) == bytes(t - FIRST_BYTE for t in token_ids).decode()
    )
    assert end.num_completion_tokens == len(token_ids)
    assert end.num_prompt_tokens == len(job.prompt_tokens)
