"""Which addresses may be fetched from: the public ones, and those that the operator names.

A name is resolved once, and what was judged is what is connected to: an answer that changes between
the two (DNS rebinding) changes nothing.
"""

import ipaddress
import socket
from dataclasses import dataclass
from urllib.parse import urlsplit

from django.conf import settings

IpAddress = ipaddress.IPv4Address | ipaddress.IPv6Address
_PORTS = {"http": 80, "https": 443}
_NAT64 = ipaddress.ip_network("64:ff9b::/96")
# All that is given to hosts so far; Python calls much of the rest global, too.
_UNICAST = ipaddress.ip_network("2000::/3")
MAX_URL_LENGTH = 2048


class FetchRefused(Exception):
    """What was asked for cannot be fetched, now or later; the text is public."""


@dataclass(frozen=True, slots=True)
class Target:
    """A checked URL, taken apart. ``path`` has the query."""

    scheme: str
    host: str
    port: int
    path: str

    @property
    def origin(self) -> tuple[str, str, int]:
        """What credentials belong to."""
        return self.scheme, self.host, self.port


def read_url(url: str) -> Target:
    """Take a URL apart; raises FetchRefused for one that could mean anything else than a file."""
    if len(url) > MAX_URL_LENGTH or not url.isascii() or not url.isprintable() or " " in url:
        raise FetchRefused("The URL is too long, or has characters that must be escaped.")
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise FetchRefused("This is no URL.") from None
    if parts.scheme not in _PORTS or not parts.hostname:
        raise FetchRefused("The URL must begin with https:// or http:// and name a host.")
    if parts.username is not None or parts.password is not None:
        raise FetchRefused("The URL must not have a user name or password in it.")
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    host = parts.hostname.rstrip(".").lower()
    return Target(parts.scheme, host, port or _PORTS[parts.scheme], path)


def resolve(target: Target) -> list[str]:
    """Give the addresses of a host that may be fetched from; raises FetchRefused if none may."""
    try:
        found = socket.getaddrinfo(target.host, target.port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        raise FetchRefused(f"The host {target.host} is not known.") from None
    addresses = list(dict.fromkeys(str(info[4][0]) for info in found))
    if not is_named(target):
        addresses = [one for one in addresses if is_public(one)]
    if not addresses:
        raise FetchRefused(f"The host {target.host} is not in the public Internet.")
    return addresses


def is_named(target: Target) -> bool:
    """Tell whether the operator has named the host: in a list, or as the hub."""
    if target.host in settings.FETCH_PRIVATE_HOSTS:
        return True
    return is_hub(target)


def is_hub(target: Target) -> bool:
    """Tell whether a target is the hub's, and so may be shown the token."""
    return target.origin == read_url(settings.HUB_ENDPOINT).origin


def is_public(text: str) -> bool:
    """Tell whether an address is of the public Internet, also one that is wrapped in another."""
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return False  # as fe80::1%eth0
    if isinstance(address, ipaddress.IPv6Address):
        if address.ipv4_mapped is not None or address in _NAT64:
            address = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
        elif address not in _UNICAST:
            return False
    return all(one.is_global and not one.is_multicast for one in (address, *_inner(address)))


def _inner(address: IpAddress) -> list[IpAddress]:
    """Give the IPv4 addresses that an IPv6 address leads to by a tunnel."""
    if not isinstance(address, ipaddress.IPv6Address):
        return []
    inner: list[IpAddress | None] = [address.sixtofour, *(address.teredo or ())]
    return [one for one in inner if one is not None]
