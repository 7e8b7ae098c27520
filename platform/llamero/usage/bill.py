"""What a job takes along so that its use can be written down: who it is for, and which model's.

It travels in the broker, so there is nothing secret in it. No database is asked for it.
"""

import msgspec

from llamero.accounts.callers import Caller
from llamero.request_ids import current_request_id, current_route
from models_registry.selectors import ServedModel

_encoder = msgspec.json.Encoder()
_decoder: "msgspec.json.Decoder[Bill]"


class Bill(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Who a job is for. ``text_days`` comes first: the scripts look for it (``lua/usage.lua``).

    Where it is not 0 prompt and answer are kept so long, and the prompt comes along.
    """

    text_days: int = 0
    prompt: str = ""
    key: int = 0
    user: int = 0
    team: int = 0
    model: int = 0
    model_name: str = ""
    version: int = 0
    route: str = ""
    request: str = ""


_decoder = msgspec.json.Decoder(Bill)


def make_bill(served: ServedModel, caller: Caller, prompt: str | None = None) -> bytes:
    """Make the bill of a job of the request that is being served.

    With a ``prompt`` both texts are kept, for as long as the deployment says.
    """
    bill = Bill(
        text_days=0 if prompt is None else served.text_retention_days,
        prompt=prompt or "",
        key=caller.key_id or 0,
        user=caller.user.pk if caller.user is not None else 0,
        team=caller.team_id or 0,
        model=served.model_pk,
        model_name=served.id,
        version=served.version,
        route=current_route(),
        request=current_request_id(),
    )
    return _encoder.encode(bill)


def read_bill(raw: bytes) -> Bill:
    """Read a bill; one of another version of the program says nothing."""
    try:
        return _decoder.decode(raw)
    except msgspec.DecodeError:
        return Bill()
