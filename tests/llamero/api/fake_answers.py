"""Answers by idempotency key, kept in memory as the relay keeps them."""

from dataclasses import dataclass

from inference.relay.answers import AnswerBounds, AnswerState, Claim, FoundAnswer


@dataclass
class Row:
    """What is known of one key. ``value`` is a run or an answer, as ``state`` says."""

    claim: Claim
    state: AnswerState = AnswerState.CLAIMED
    value: bytes = b""


class FakeAnswers:
    """One server for all gateways of a test."""

    def __init__(self) -> None:
        self.rows: dict[tuple[str, str], Row] = {}
        self.num_claims = 0

    async def claim(self, claim: Claim, lost_run: str = "") -> FoundAnswer:
        self.num_claims += 1
        row = self.rows.get((claim.owner, claim.name))
        if row is not None:
            if row.claim.fingerprint != claim.fingerprint:
                return FoundAnswer(AnswerState.OTHER)
            is_lost = row.state is AnswerState.TOLD and row.value == lost_run.encode()
            is_mine = row.state is AnswerState.CLAIMED and row.claim.holder == claim.holder
            if not is_lost and not is_mine:
                return FoundAnswer(row.state, row.value)
        self.rows[claim.owner, claim.name] = Row(claim)
        return FoundAnswer(AnswerState.YOURS)

    async def keep(self, claim: Claim, answer: bytes, bounds: AnswerBounds) -> bool:
        return self._settle(claim, AnswerState.KEPT, answer)

    async def point_to(self, claim: Claim, run: str, bounds: AnswerBounds) -> bool:
        return self._settle(claim, AnswerState.TOLD, run.encode())

    async def give_up(self, claim: Claim) -> None:
        if self._is_held(claim):
            del self.rows[claim.owner, claim.name]

    def _is_held(self, claim: Claim) -> bool:
        row = self.rows.get((claim.owner, claim.name))
        return row is not None and row.claim.holder == claim.holder

    def _settle(self, claim: Claim, state: AnswerState, value: bytes) -> bool:
        if not self._is_held(claim):
            return False
        self.rows[claim.owner, claim.name] = Row(claim, state, value)
        return True
