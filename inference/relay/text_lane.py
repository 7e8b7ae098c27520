"""Questions about text, answered by any ready replica without a slot."""

import time

import msgspec

from inference.protocol.text import TextAnswer, TextReply, TextRequest
from inference.relay.connect import SyncRedis
from inference.relay.keys import gateway_channel, text_key

_requests = msgspec.json.Decoder(TextRequest)
_encoder = msgspec.json.Encoder()


class TextLane:
    """A deployment's questions, oldest first. Each thread may use the same lane."""

    def __init__(self, redis: SyncRedis, deployment: str) -> None:
        self._redis = redis
        self._key = text_key(deployment)

    def take(self, timeout: float = 1.0) -> TextRequest | None:
        """Wait up to ``timeout`` seconds (below 5) for a question; overdue ones are dropped."""
        while True:
            found = self._redis.blpop([self._key], timeout)
            if found is None:
                return None
            try:
                request = _requests.decode(found[1])
            except msgspec.ValidationError:
                continue
            if request.deadline > time.time():
                return request

    def reply(self, request: TextRequest, answer: TextAnswer) -> None:
        """Send the answer to the gateway that asked."""
        reply = _encoder.encode(TextReply(id=request.id, answer=answer))
        self._redis.publish(gateway_channel(request.gateway), reply)
