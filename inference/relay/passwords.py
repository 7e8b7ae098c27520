"""How often wrong passwords came, from where and for whom, the same for all gateways."""

from inference.relay.connect import SyncRedis
from inference.relay.scripts import script

WINDOW_SECONDS = 600
KNOWN_SECONDS = 90 * 24 * 3600
MAX_KNOWN = 20


def take_try(redis: SyncRedis, address: str, account: str, most_wrong: int) -> float:
    """Count a try that is about to be judged; give for how many seconds none may be, 0 if it may.

    No account is meant by an empty one: then only the address counts.
    """
    wait_ms = script("try_password").run(redis, (address, account, WINDOW_SECONDS, most_wrong))
    return float(wait_ms) / 1000


def note_right(redis: SyncRedis, address: str, account: str) -> None:
    """Give the try back, and know the address: strangers cannot bar the account's owner there."""
    script("right_password").run(redis, (address, account, KNOWN_SECONDS, MAX_KNOWN))
