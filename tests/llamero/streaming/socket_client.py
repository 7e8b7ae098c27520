"""A WebSocket client in the test's own process that is as patient as a busy machine needs."""

from channels.testing import WebsocketCommunicator

from tests.processes import PATIENCE_SECONDS


class SocketClient(WebsocketCommunicator):  # type: ignore[misc]
    """Channels' client, which by itself gives up after a second."""

    async def connect(self, timeout: float = PATIENCE_SECONDS) -> tuple[bool, str | int | None]:
        """Open the socket; gives whether it was let in, and the subprotocol or why not."""
        opened: tuple[bool, str | int | None] = await super().connect(timeout)
        return opened

    async def receive_from(self, timeout: float = PATIENCE_SECONDS) -> str | bytes:
        """Give the next frame."""
        frame: str | bytes = await super().receive_from(timeout)
        return frame

    async def receive_json_from(self, timeout: float = PATIENCE_SECONDS) -> object:
        """Give the document of the next frame."""
        return await super().receive_json_from(timeout)

    async def receive_output(self, timeout: float = PATIENCE_SECONDS) -> dict[str, object]:
        """Give the next message of the application."""
        message: dict[str, object] = await super().receive_output(timeout)
        return message

    async def disconnect(self, code: int = 1000, timeout: float = PATIENCE_SECONDS) -> None:
        """Close the socket, and wait until the application has ended."""
        await super().disconnect(code, timeout)
