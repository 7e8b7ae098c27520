"""Jobs, heartbeats and events for tests of the relay."""

import itertools
import time
from typing import Any

from inference.protocol.events import Done, FinishReason, Tokens
from inference.protocol.jobs import GenerationJob
from inference.protocol.replicas import ModelFacts, ReplicaState, ReplicaStatus
from inference.relay.connect import SyncRedis
from inference.relay.frames import decode_message
from inference.relay.keys import gateway_channel
from tests.processes import PATIENCE_SECONDS

_numbers = itertools.count(1)
DONE = Done(FinishReason.EOS, 3, 0, 2)


def make_job(owner: str = "alice", **changes: object) -> GenerationJob:
    """Make a job of deployment ``chat`` that may use 100 tokens."""
    fields: dict[str, object] = {
        "id": f"job{next(_numbers):06d}",
        "deployment": "chat",
        "owner": owner,
        "salt": owner,
        "gateway": "gw",
        "prompt_tokens": (1, 2, 3, 4),
        "max_tokens": 96,
        "deadline": time.time() + 600,
    }
    return GenerationJob(**{**fields, **changes})  # type: ignore[arg-type]


def make_status(replica: str = "chat-1", **changes: object) -> ReplicaStatus:
    """Make the heartbeat of a ready replica with two slots."""
    fields: dict[str, object] = {
        "replica": replica,
        "deployment": "chat",
        "node": "here",
        "state": ReplicaState.READY,
        "num_slots": 2,
        "facts": ModelFacts(context_length=512, num_vocab=1000),
    }
    return ReplicaStatus(**{**fields, **changes})  # type: ignore[arg-type]


def make_token(number: int) -> Tokens:
    """Make the event of one token."""
    return Tokens(f"t{number} ", (number,))


class Ear:
    """Hears what a gateway is told."""

    def __init__(self, redis: SyncRedis, gateway: str = "gw") -> None:
        # Untyped in redis-py.
        self._pubsub: Any = redis.pubsub()  # type: ignore[no-untyped-call]
        self._pubsub.subscribe(gateway_channel(gateway))
        assert self._pubsub.get_message(timeout=PATIENCE_SECONDS)["type"] == "subscribe"

    def hear(self) -> Any:
        """Give the next message."""
        message = self._pubsub.get_message(timeout=PATIENCE_SECONDS)
        self._pubsub.close()
        return decode_message(message["data"])
