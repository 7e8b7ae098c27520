"""What an identity provider says of itself (OpenID Connect Discovery)."""

import json
from dataclasses import dataclass
from typing import Any

from llamero.egress import FetchFailed, check_address, fetch_document

_PATH = "/.well-known/openid-configuration"


@dataclass(frozen=True, slots=True)
class ProviderDocument:
    """The addresses of a provider; those it does not have are empty."""

    issuer: str
    jwks_uri: str
    authorization_endpoint: str
    token_endpoint: str
    userinfo_endpoint: str
    end_session_endpoint: str
    token_auth_methods: tuple[str, ...]


def discover(issuer: str) -> ProviderDocument:
    """Ask a provider; blocks. Raises UnsafeAddress or FetchFailed."""
    raw = fetch_document(issuer.rstrip("/") + _PATH)
    try:
        document = json.loads(raw)
    except (ValueError, RecursionError):
        document = None
    if not isinstance(document, dict):
        raise FetchFailed(f"{issuer} has a discovery document that is none")
    if document.get("issuer") != issuer:
        raise FetchFailed(f"{issuer} has a discovery document of another issuer")
    methods = document.get("token_endpoint_auth_methods_supported")
    return ProviderDocument(
        issuer=issuer,
        jwks_uri=_read_address(document, "jwks_uri"),
        authorization_endpoint=_read_address(document, "authorization_endpoint"),
        token_endpoint=_read_address(document, "token_endpoint"),
        userinfo_endpoint=_read_address(document, "userinfo_endpoint"),
        end_session_endpoint=_read_address(document, "end_session_endpoint"),
        token_auth_methods=tuple(map(str, methods)) if isinstance(methods, list) else (),
    )


def _read_address(document: dict[str, Any], name: str) -> str:
    """Give an address of the document, looked at; raises UnsafeAddress."""
    address = document.get(name)
    if not isinstance(address, str) or not address:
        return ""
    check_address(address)
    return address
