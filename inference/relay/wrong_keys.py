"""How many wrong keys came from where, the same for all gateways."""

from inference.relay.gateway import GatewayRelay

WINDOW_SECONDS = 60


class WrongKeyRelay:
    """Counts in the server. Each count is gone a minute after it began."""

    def __init__(self, relay: GatewayRelay) -> None:
        self._relay = relay

    async def count(self, place: str) -> tuple[int, float]:
        """Count one more; give how many there were of late, and in how many seconds none were."""
        number, milliseconds = await self._relay.run("wrong_key", (place, WINDOW_SECONDS))
        return int(number), max(0, int(milliseconds)) / 1000
