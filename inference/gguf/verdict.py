"""Why a file is refused, and where in it."""


class GgufRejected(Exception):
    """The file may not be loaded. ``code`` is stable, ``reason`` is for people."""

    def __init__(self, code: str, reason: str, byte_offset: int | None = None) -> None:
        super().__init__(reason)
        self.code = code
        self.reason = reason
        self.byte_offset = byte_offset
