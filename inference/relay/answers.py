"""Answers that are given once: who makes the answer to an idempotency key, and what it was."""

from dataclasses import dataclass
from enum import Enum

from inference.relay.connect import text_of
from inference.relay.gateway import GatewayRelay

CLAIM_SECONDS = 10
"""A claim ends by itself unless it is renewed: its holder may be gone."""


class AnswerState(Enum):
    """What there is of an answer."""

    YOURS = "yours"
    OTHER = "other"
    CLAIMED = "claimed"
    TOLD = "told"
    KEPT = "kept"


@dataclass(frozen=True, slots=True)
class Claim:
    """One request's wish to make an answer. ``name`` and ``fingerprint`` are digests."""

    owner: str
    name: str
    fingerprint: str
    holder: str


@dataclass(frozen=True, slots=True)
class FoundAnswer:
    """What a claim met: ``value`` is the id of a run that tells it, or the answer itself."""

    state: AnswerState
    value: bytes = b""


@dataclass(frozen=True, slots=True)
class AnswerBounds:
    """How long answers are kept, and how much of one owner; the oldest make room."""

    seconds: int
    max_answers: int
    max_bytes: int


class AnswerRelay:
    """Claims and answers in the server, the same for all gateways."""

    def __init__(self, relay: GatewayRelay) -> None:
        self._relay = relay

    async def claim(self, claim: Claim, lost_run: str = "") -> FoundAnswer:
        """Claim an answer, or renew the claim; ``lost_run`` can be read no more."""
        row = (claim.owner, claim.name, claim.fingerprint, claim.holder)
        state, *rest = await self._relay.run("claim", (*row, CLAIM_SECONDS, lost_run))
        return FoundAnswer(AnswerState(text_of(state)), *rest)

    async def keep(self, claim: Claim, answer: bytes, bounds: AnswerBounds) -> bool:
        """Keep a whole answer; False where the claim was lost."""
        return await self._settle(claim, "answer", answer, bounds)

    async def point_to(self, claim: Claim, run: str, bounds: AnswerBounds) -> bool:
        """Say which run tells the answer; False where the claim was lost."""
        return await self._settle(claim, "run", run.encode(), bounds)

    async def give_up(self, claim: Claim) -> None:
        """Let the next request with this key make its answer anew."""
        await self._settle(claim, "", b"", AnswerBounds(0, 0, 0))

    async def _settle(self, claim: Claim, field: str, value: bytes, bounds: AnswerBounds) -> bool:
        row = (claim.owner, claim.name, claim.holder, field, value)
        limits = (bounds.seconds, bounds.max_answers, bounds.max_bytes)
        return bool(await self._relay.run("settle", (*row, *limits)))
