"""Conversations by owner and name, kept in memory as the relay keeps them."""

from collections.abc import Sequence

from inference.relay.conversations import Conversation


class FakeConversations:
    """One server for all gateways of a test; ``is_busy`` has every last run go on."""

    def __init__(self) -> None:
        self.runs: dict[tuple[str, str], str] = {}
        self.is_busy = False

    async def go_on(self, conversation: str, owner: str, run: str) -> bool:
        if self.is_busy and (owner, conversation) in self.runs:
            return False
        self.runs[owner, conversation] = run
        return True

    async def find(self, conversations: Sequence[str], owner: str) -> list[Conversation]:
        ended_at = 0 if self.is_busy else 20
        known = [(one, self.runs.get((owner, one))) for one in conversations]
        return [Conversation(one, run, 10, ended_at) for one, run in known if run]

    async def forget(self, conversation: str, owner: str) -> None:
        self.runs.pop((owner, conversation), None)
