"""Whom X-Forwarded-For may name."""

import pytest
from django.core.exceptions import ImproperlyConfigured
from twisted.web.http_headers import Headers

from llamero.accounts.networks import read_trusted_proxies
from llamero.serve.forwarding import Proxies

ANYBODY = Proxies()
OURS = Proxies(read_trusted_proxies(["10.0.0.0/24", "2001:db8::/64"]))


@pytest.mark.parametrize(
    ("proxies", "given", "kept"),
    [
        (ANYBODY, [b"192.0.2.7"], b"192.0.2.7"),
        (ANYBODY, [b"10.0.0.1, 192.0.2.7"], b"192.0.2.7"),
        (ANYBODY, [b"10.0.0.1", b"127.0.0.1,192.0.2.7 "], b"192.0.2.7"),
        (ANYBODY, [b"192.0.2.7:4711"], b"192.0.2.7"),
        (ANYBODY, [b"[2001:db8::7]:4711"], b"2001:db8::7"),
        (ANYBODY, [b"2001:db8::7"], b"2001:db8::7"),
        (ANYBODY, [b"unknown\xff"], b"unknown\xff"),
        (OURS, [b"127.0.0.1, 192.0.2.7, 10.0.0.2"], b"192.0.2.7"),
        (OURS, [b"127.0.0.1, 192.0.2.7:80", b"10.0.0.2, [2001:db8::1]:80"], b"192.0.2.7"),
        (OURS, [b"192.0.2.7, unknown, 10.0.0.2"], b"unknown"),
        (OURS, [b"10.0.0.3, 10.0.0.2"], b"10.0.0.3"),
        (OURS, [b""], b""),
    ],
)
def test_the_last_who_is_no_proxy_counts(proxies: Proxies, given: list[bytes], kept: bytes) -> None:
    headers = Headers({b"X-Forwarded-For": given})
    proxies.settle(headers, "10.0.0.9")
    assert headers.getRawHeaders(b"x-forwarded-for") == [kept]


def test_nothing_is_made_up() -> None:
    headers = Headers({b"Accept": [b"*/*"]})
    for proxies in (ANYBODY, OURS):
        proxies.settle(headers, "10.0.0.9")
    assert list(headers.getAllRawHeaders()) == [(b"Accept", [b"*/*"])]


@pytest.mark.parametrize("peer", ["192.0.2.1", "::ffff:192.0.2.1", "", "/run/socket"])
def test_who_is_no_proxy_is_not_believed(peer: str) -> None:
    headers = Headers({b"X-Forwarded-For": [b"10.0.0.1"], b"X-Forwarded-Proto": [b"https"]})
    OURS.settle(headers, peer)
    assert not list(headers.getAllRawHeaders())


def test_bad_networks_stop_the_start() -> None:
    with pytest.raises(ImproperlyConfigured, match="LLAMERO_TRUSTED_PROXIES: 'here'"):
        read_trusted_proxies(["here"])
