"""Whose address counts where proxies stand between: that of the first who is none of ours."""

from collections.abc import Sequence
from dataclasses import dataclass

from twisted.web.http_headers import Headers

from llamero.accounts.networks import Network, is_within, read_address

FORWARDED_FOR = b"X-Forwarded-For"
_FORWARDED = (FORWARDED_FOR, b"X-Forwarded-Proto", b"X-Forwarded-Port")


@dataclass(frozen=True, slots=True)
class Proxies:
    """The networks that proxies of ours are in. Without any, whoever connects is one."""

    networks: tuple[Network, ...] = ()

    def settle(self, headers: Headers, peer: str) -> None:
        """Leave one address in X-Forwarded-For, or, of a peer that is no proxy, no such header.

        A proxy appends whom it has its request from: what a client wrote itself stands before.
        """
        if self.networks and not is_within(peer, self.networks):
            for name in _FORWARDED:
                headers.removeHeader(name)
            return
        values = headers.getRawHeaders(FORWARDED_FOR)
        if values is not None:
            hops = [hop.strip() for value in values for hop in value.split(b",")]
            headers.setRawHeaders(FORWARDED_FOR, [self._client_of(hops)])

    def _client_of(self, hops: Sequence[bytes]) -> bytes:
        texts = [_without_port(hop.decode("latin-1")) for hop in hops]
        strangers = [text for text in texts if not is_within(text, self.networks)]
        return (strangers or texts[:1])[-1].encode("latin-1")


def _without_port(text: str) -> str:
    """Give the address alone: some proxies write ``192.0.2.7:4711`` or ``[2001:db8::7]:4711``."""
    if text.startswith("["):
        return text[1:].partition("]")[0]
    host, _, port = text.rpartition(":")
    is_with_port = port.isdecimal() and ":" not in host and read_address(host) is not None
    return host if is_with_port else text
