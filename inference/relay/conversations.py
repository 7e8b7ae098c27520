"""Conversations: names that clients choose, each for the last of its owner's runs."""

import time
from collections.abc import Sequence
from dataclasses import dataclass

from inference.relay.connect import text_of
from inference.relay.gateway import GatewayRelay


@dataclass(frozen=True, slots=True)
class Conversation:
    """What is kept of one: its run, and when it began and ended (Unix time, 0: it goes on)."""

    id: str
    run: str
    started_at: int
    ended_at: int


class ConversationRelay:
    """Conversations in the server, the same for all gateways."""

    def __init__(self, relay: GatewayRelay) -> None:
        self._relay = relay

    async def go_on(self, conversation: str, owner: str, run: str) -> bool:
        """Have a conversation be a kept run, whose jobs are submitted; False while its last runs.

        It is kept as long as the run.
        """
        row = (owner, conversation, run, int(time.time()))
        return text_of(await self._relay.run("converse", row)) == "ok"

    async def find(self, conversations: Sequence[str], owner: str) -> list[Conversation]:
        """Give those that the owner has."""
        rows = await self._relay.run("lookup", (owner, *conversations))
        return [
            Conversation(text_of(name), text_of(run), int(started), int(ended))
            for name, run, started, ended in rows
        ]

    async def forget(self, conversation: str, owner: str) -> None:
        """Let a conversation be unknown; its run goes on until it is cancelled."""
        await self._relay.forget_conversation(conversation, owner)
