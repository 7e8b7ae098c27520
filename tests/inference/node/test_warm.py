"""Two replicas of a real model: a conversation is computed once, wherever it began."""

from pathlib import Path

import pytest

from inference.protocol.events import Done, Tokens
from inference.protocol.jobs import GenerationJob
from inference.protocol.replicas import RuntimeProfile
from inference.relay.keys import job_key
from tests.inference.node.conftest import Node
from tests.inference.worker.replicas import Client, make_job, make_spec

NAMES = ("chat-1", "chat-2")
PROFILE = RuntimeProfile(num_slots=2, context_length=512, num_threads=1, num_threads_batch=1)
NUM_TALKS = 4
NUM_TURNS = 3


@pytest.mark.slow
async def test_conversations_go_on_where_they_began(
    node: Node, client: Client, tiny_model_path: Path
) -> None:
    files = (str(tiny_model_path),)
    node.want(*(make_spec(name, files=files, profile=PROFILE) for name in NAMES))
    for name in NAMES:
        client.wait_for_status(name)
    said = [tuple(range(40 + talk, 90 + talk)) for talk in range(NUM_TALKS)]
    homes: list[str] = []
    num_strays = 0
    for turn in range(NUM_TURNS):
        # The first answers are so long that each replica takes as many as it has slots.
        num_tokens = 4 if turn else 320
        jobs = [make_job(num_tokens, prompt_tokens=one, ignore_eos=True) for one in said]
        await client.submit(*jobs)
        for talk, job in enumerate(jobs):
            done, answer, home = _hear(client, job)
            if turn == 0:
                homes.append(home)
            else:
                # A replica that does not come for a job in a moment loses it to the other.
                num_strays += home != homes[talk]
                is_warm = done.num_cached_tokens >= len(job.prompt_tokens) - 40
                assert is_warm or home != homes[talk]
                homes[talk] = home
            said[talk] = (*job.prompt_tokens, *answer, *range(150 + turn, 180 + turn))
        if turn == 0:
            assert sorted(homes) == sorted(NAMES * (NUM_TALKS // 2))
    assert num_strays <= 2


def _hear(client: Client, job: GenerationJob) -> tuple[Done, tuple[int, ...], str]:
    """Wait for a job's end; gives it with the answer's tokens and the replica that ran it."""
    *events, done = client.wait_for_end(job)
    assert isinstance(done, Done), done
    tokens = [token for event in events if isinstance(event, Tokens) for token in event.token_ids]
    replica = client.redis.hget(job_key(job.id), "replica")
    assert isinstance(replica, bytes)
    return done, tuple(tokens), replica.decode()
