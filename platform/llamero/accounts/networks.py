"""Networks that a key may be used from."""

from collections.abc import Iterable
from ipaddress import (
    IPv4Address,
    IPv4Network,
    IPv6Address,
    IPv6Network,
    ip_address,
    ip_network,
)

from django.core.exceptions import ImproperlyConfigured

Network = IPv4Network | IPv6Network
MAX_NETWORKS = 64


def read_networks(texts: Iterable[str]) -> tuple[Network, ...]:
    """Read ``10.0.0.0/8``, ``2001:db8::/32`` or single addresses; ValueError names a bad one."""
    return tuple(_read_network(text) for text in texts)


def read_trusted_proxies(texts: Iterable[str]) -> tuple[Network, ...]:
    """Read the networks of LLAMERO_TRUSTED_PROXIES; a bad one stops the start."""
    try:
        return read_networks(texts)
    except ValueError as error:
        raise ImproperlyConfigured(f"LLAMERO_TRUSTED_PROXIES: {error}") from None


def is_within(address: str, networks: Iterable[Network]) -> bool:
    """Whether an address is in one of the networks; what is no address is in none."""
    found = read_address(address)
    return found is not None and any(found in network for network in networks)


def read_address(text: str) -> IPv4Address | IPv6Address | None:
    """Read an address; an IPv4 one that a socket for both kinds has wrapped is unwrapped."""
    try:
        address = ip_address(text.partition("%")[0])
    except ValueError:
        return None
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        return address.ipv4_mapped
    return address


def _read_network(text: str) -> Network:
    try:
        return ip_network(text.strip())
    except ValueError:
        pass
    try:
        meant = ip_network(text.strip(), strict=False)
    except ValueError:
        message = f"{text!r:.60} is no address or network, such as 192.0.2.7 or 2001:db8::/32."
        raise ValueError(message) from None
    raise ValueError(f"{text.strip()} has bits beyond its length; {meant} may be meant.")
