"""Where a handshake came from: whether its host is ours, and whether a page of ours made it."""

from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.http.request import split_domain_port, validate_host

Scope = dict[str, Any]
_DEFAULT_PORTS = {"http": 80, "https": 443}


def read_header(scope: Scope, name: bytes) -> str | None:
    """Give a header that was sent exactly once; twice is as good as not at all."""
    values = [value for key, value in scope["headers"] if key.lower() == name]
    return values[0].decode("latin-1") if len(values) == 1 else None


def has_allowed_host(scope: Scope) -> bool:
    """Whether the Host header names one of ALLOWED_HOSTS (else: DNS rebinding)."""
    domain, _ = split_domain_port(read_header(scope, b"host") or "")
    allowed = settings.ALLOWED_HOSTS
    if settings.DEBUG and not allowed:
        allowed = [".localhost", "127.0.0.1", "[::1]"]
    return bool(domain) and validate_host(domain, allowed)


def has_own_origin(scope: Scope) -> bool:
    """Whether a page of this very host, or of CSRF_TRUSTED_ORIGINS, opened the socket."""
    origin = read_header(scope, b"origin") or ""
    if origin in settings.CSRF_TRUSTED_ORIGINS:
        return True
    try:
        parts = urlsplit(origin)
        origin_port = parts.port or _DEFAULT_PORTS.get(parts.scheme)
        host = urlsplit(f"//{read_header(scope, b'host')}")
        host_port = host.port or _DEFAULT_PORTS.get(parts.scheme)
    except ValueError:
        return False
    is_web = parts.scheme in _DEFAULT_PORTS and bool(parts.hostname)
    return is_web and (parts.hostname, origin_port) == (host.hostname, host_port)
