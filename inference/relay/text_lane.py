"""Questions about text, answered by any ready replica without a slot."""

import time

import msgspec

from inference.protocol.text import TextAnswer, TextReply, TextRequest
from inference.relay.connect import SyncRedis, text_of
from inference.relay.keys import RETENTION_SECONDS, gateway_channel, text_end_key, text_key

# A replica of the same name may start again by then.
END_SECONDS = 5
_requests = msgspec.json.Decoder(TextRequest)
_encoder = msgspec.json.Encoder()


class TextLane:
    """A deployment's questions, oldest first, as a replica's threads take them."""

    def __init__(self, redis: SyncRedis, deployment: str, replica: str) -> None:
        self._redis = redis
        self._key = text_key(deployment)
        self._end_key = text_end_key(replica)

    def take(self, timeout: float = 1.0) -> TextRequest | None:
        """Wait up to ``timeout`` seconds (below 5) for a question; overdue ones are dropped."""
        while True:
            found = self._redis.blpop([self._end_key, self._key], timeout)
            if found is None or text_of(found[0]) == self._end_key:
                return None
            try:
                request = _requests.decode(found[1])
            except msgspec.ValidationError:
                continue
            if request.deadline > time.time():
                return request

    def call_back(self, num_threads: int) -> None:
        """Have so many threads that wait for a question, or are about to, return without one."""
        pipe = self._redis.pipeline(transaction=True)
        pipe.rpush(self._end_key, *([""] * num_threads))
        pipe.expire(self._end_key, END_SECONDS)
        pipe.execute()

    def give_back(self, request: TextRequest) -> None:
        """Let another replica answer a question, before all that came later."""
        pipe = self._redis.pipeline(transaction=True)
        pipe.lpush(self._key, _encoder.encode(request))
        pipe.expire(self._key, RETENTION_SECONDS)
        pipe.execute()

    def reply(self, request: TextRequest, answer: TextAnswer) -> None:
        """Send the answer to the gateway that asked."""
        reply = _encoder.encode(TextReply(id=request.id, answer=answer))
        self._redis.publish(gateway_channel(request.gateway), reply)
