"""An identity provider's keys, and tokens signed with them, however odd."""

import hmac
import json
import time
from base64 import urlsafe_b64encode
from functools import cache
from typing import Any

from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey, generate_private_key
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from joserfc.jwk import ECKey, Key, OKPKey, RSAKey
from joserfc.jws import JWSRegistry

ISSUER = "https://id.example"
AUDIENCE = "llamero"
_KINDS: dict[str, Any] = {
    "rsa": (RSAKey, 2048),
    "other": (RSAKey, 2048),
    "p256": (ECKey, "P-256"),
    "p384": (ECKey, "P-384"),
    "p521": (ECKey, "P-521"),
    "ed25519": (OKPKey, "Ed25519"),
    "ed448": (OKPKey, "Ed448"),
}


@cache
def private_key(name: str) -> Key:
    """Give the private key of a name, the same for the whole run."""
    kind, size = _KINDS[name]
    key: Key = kind.generate_key(size)
    return key


@cache
def weak_key() -> RSAPublicKey:
    """Give a public key that could be guessed."""
    return generate_private_key(65537, 1024).public_key()


def weak_jwk() -> dict[str, Any]:
    """Give it as a provider might publish it."""
    numbers = weak_key().public_numbers()
    return {"kty": "RSA", "kid": "weak", "e": "AQAB", "n": encode(numbers.n.to_bytes(128))}


def weak_pem() -> str:
    """Give it as an operator might paste it."""
    spki = PublicFormat.SubjectPublicKeyInfo
    return weak_key().public_bytes(Encoding.PEM, spki).decode()


def public_jwk(name: str, **fields: Any) -> dict[str, Any]:
    """Give what a provider publishes of a key, whose id is its name."""
    return private_key(name).as_dict(private=False) | {"kid": name, "use": "sig"} | fields


def jwks(*names: str) -> str:
    """Give the document of some keys."""
    return json.dumps({"keys": [public_jwk(name) for name in names]})


def claims_of(subject: str = "subject-1", **fields: Any) -> dict[str, Any]:
    """Give good claims, but for what is given; None leaves a claim out."""
    now = int(time.time())
    claims = {
        "iss": ISSUER,
        "aud": AUDIENCE,
        "sub": subject,
        "exp": now + 300,
        "iat": now,
        "preferred_username": "ada",
        "scope": "openid inference models embeddings",
    }
    return {name: value for name, value in (claims | fields).items() if value is not None}


def encode(part: Any) -> str:
    """Encode a part of a token: bytes as they are, everything else as JSON."""
    raw = part if isinstance(part, bytes) else json.dumps(part).encode()
    return urlsafe_b64encode(raw).rstrip(b"=").decode()


def sign(
    claims: Any, *, key: str = "rsa", algorithm: str = "RS256", header: Any = None, **fields: Any
) -> str:
    """Sign claims, or bytes for a payload; ``fields`` join the header, ``header`` replaces it."""
    head = {"alg": algorithm, "kid": key, "typ": "JWT"} | fields if header is None else header
    message = f"{encode(head)}.{encode(claims)}"
    signer = JWSRegistry.algorithms["Ed25519" if algorithm == "EdDSA" else algorithm]
    return f"{message}.{encode(signer.sign(message.encode(), private_key(key)))}"


def sign_with_secret(claims: Any, secret: bytes, *, kid: str = "rsa") -> str:
    """Sign with what a server might take for a shared secret."""
    message = f"{encode({'alg': 'HS256', 'kid': kid, 'typ': 'JWT'})}.{encode(claims)}"
    return f"{message}.{encode(hmac.digest(secret, message.encode(), 'sha256'))}"
