"""Questions about text that wait for their answer."""

import asyncio
import time
import uuid

from inference.protocol.errors import EngineError, ErrorCode
from inference.protocol.text import (
    Detokenized,
    Refused,
    Rendered,
    TextAnswer,
    TextQuestion,
    TextReply,
    TextRequest,
    Tokenized,
)
from inference.relay.gateway import GatewayRelay, NoReadyReplica

CHECK_SECONDS = 1.0


class Questions:
    """Asks replicas of a deployment and matches the answers that come over the event link."""

    def __init__(self, relay: GatewayRelay, gateway: str) -> None:
        self._relay = relay
        self._gateway = gateway
        self._pending: dict[str, asyncio.Future[TextAnswer]] = {}

    async def ask(
        self, deployment: str, question: TextQuestion, timeout_seconds: float
    ) -> Tokenized | Detokenized | Rendered:
        """Ask and wait; raises EngineError on refusal, silence or a server out of reach.

        NoReadyReplica where the replicas have gone meanwhile: then ask again when one is back.
        """
        request = TextRequest(
            id=uuid.uuid4().hex,
            gateway=self._gateway,
            deadline=time.time() + timeout_seconds,
            question=question,
        )
        future = asyncio.get_running_loop().create_future()
        self._pending[request.id] = future
        try:
            await self._relay.ask(deployment, request)
            answer = await self._wait(deployment, future, time.time() + timeout_seconds / 4)
            if answer is None:  # whoever took it may have ended; a second answer does no harm
                await self._relay.ask(deployment, request)
                answer = await self._wait(deployment, future, request.deadline)
        finally:
            del self._pending[request.id]
        if answer is None:
            raise EngineError(
                ErrorCode.NO_READY_REPLICA,
                "The model did not answer in time.",
                is_retryable=True,
            )
        if isinstance(answer, Refused):
            raise EngineError(ErrorCode(answer.code), answer.message, param=answer.param)
        return answer

    def accept(self, reply: TextReply) -> None:
        """Hand an answer to whoever waits for it."""
        future = self._pending.get(reply.id)
        if future is not None and not future.done():
            future.set_result(reply.answer)

    async def _wait(
        self, deployment: str, future: asyncio.Future[TextAnswer], until: float
    ) -> TextAnswer | None:
        """Wait for the answer; a server or replicas that go meanwhile are noticed."""
        while (left := until - time.time()) > 0:
            done, _ = await asyncio.wait((future,), timeout=min(left, CHECK_SECONDS))
            if done:
                return future.result()
            if not (await self._relay.wake(deployment)).num_ready:
                raise NoReadyReplica
        return None
