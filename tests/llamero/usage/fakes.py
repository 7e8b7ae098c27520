"""Records as the relay has them, put into the real stream."""

import itertools
import time
from typing import Any

import msgspec

from inference.relay.connect import SyncRedis
from inference.relay.keys import USAGE
from llamero.usage.bill import Bill

_numbers = itertools.count(1)


def add_record(redis: SyncRedis, **changes: Any) -> str:
    """Add what a job of ten prompt tokens and five of its answer leaves; gives the job's name."""
    # "prompt" is the number of its tokens.
    names = set(Bill.__struct_fields__) - {"prompt"}
    bill = {name: changes.pop(name) for name in names & changes.keys()}
    bill["prompt"] = changes.pop("text", "")
    now = changes.pop("ended", time.time())
    fields: dict[str, Any] = {
        "job": f"job{next(_numbers):06d}",
        "bill": msgspec.json.encode(Bill(**{"key": 7, "model": 3, "model_name": "tiny", **bill})),
        "deployment": "tiny",
        "replica": "tiny-1",
        "node": "here",
        "prompt": 10,
        "cached": 4,
        "completion": 5,
        "reasoning": 0,
        "finish": "eos",
        "error": "",
        "arrived": now - 2.0,
        "first_at": now - 1.5,
        "ended": now,
        "answer": "",
        **changes,
    }
    redis.xadd(USAGE, fields)
    return str(fields["job"])
