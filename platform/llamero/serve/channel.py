"""One client's line: what is no HTTP request, or has too large a head, is told so in JSON."""

from twisted.web.http import HTTPChannel, _ChunkedTransferDecoder

from llamero.serve.refusals import refuse


class LimitedChannel(HTTPChannel):  # type: ignore[misc]
    """A line whose malformed requests are answered; Twisted closes it bare, or without a word."""

    _is_refused = False

    def dataReceived(self, data: bytes) -> None:
        """Take bytes in, unless the request they belong to was refused."""
        if not self._is_refused:
            super().dataReceived(data)

    def rawDataReceived(self, data: bytes) -> None:
        """Take a part of a body in, unless the chunk it begins is said to be too long."""
        super().rawDataReceived(data)
        decoder = self._transferDecoder
        if isinstance(decoder, _ChunkedTransferDecoder) and decoder.state == "BODY":
            self.requests[-1].expect(decoder.length)

    def lineReceived(self, line: bytes) -> None:
        """Read a line of a head; what is left of a refused one came in the same piece."""
        if not self._is_refused:
            super().lineReceived(line)

    def lineLengthExceeded(self, line: bytes) -> None:
        """Refuse a header, or an address, that is too long."""
        self._refuse(431, "A header of the request is too large.", "headers_too_large")

    def _send100Continue(self) -> None:
        """Ask for the body, unless the length it is said to have was refused."""
        if not self.requests[-1].is_refused:
            super()._send100Continue()

    def _respondToBadRequestAndDisconnect(self) -> None:
        """Refuse what is malformed, or has too many headers."""
        self._refuse(400, "The request is malformed.", "bad_request")

    def _refuse(self, status: int, message: str, code: str) -> None:
        if not self._is_refused:
            self._is_refused = True
            refuse(self, status, message, code)
