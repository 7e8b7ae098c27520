"""Public keys, as identity providers publish them or as an operator pastes them."""

import json
import re
from base64 import urlsafe_b64decode
from dataclasses import dataclass
from typing import Any

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePublicKey
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    PublicFormat,
    load_pem_public_key,
)
from cryptography.x509 import load_pem_x509_certificate
from joserfc.errors import JoseError
from joserfc.jwk import ECKey, Key, OKPKey, RSAKey
from joserfc.jws import JWSRegistry

from llamero.accounts.tokens.algorithms import ALGORITHMS

MAX_KEYS = 64
MIN_RSA_BITS = 2048
MAX_RSA_BITS = 8192
_KINDS: dict[str, type[RSAKey | ECKey | OKPKey]] = {"RSA": RSAKey, "EC": ECKey, "OKP": OKPKey}
_NATIVE_KINDS: dict[Any, type[RSAKey | ECKey | OKPKey]] = {
    RSAPublicKey: RSAKey,
    EllipticCurvePublicKey: ECKey,
    Ed25519PublicKey: OKPKey,
}
_PEM = re.compile(r"-----BEGIN ([A-Z ]+)-----[A-Za-z0-9+/=\s]+-----END \1-----")


@dataclass(frozen=True, slots=True)
class PublicKey:
    """A key that proves signatures. ``kid`` and ``algorithm`` are empty where it does not say."""

    kid: str
    algorithm: str
    key: Key

    def fits(self, algorithm: str) -> bool:
        """Whether something signed in this way could be signed by its owner."""
        if self.algorithm and _rename(self.algorithm) != _rename(algorithm):
            return False
        try:
            JWSRegistry.algorithms[_rename(algorithm)].check_key(self.key)
        except JoseError:
            return False
        return True

    def has_signed(self, algorithm: str, message: bytes, signature: bytes) -> bool:
        """Whether its owner has signed a message; of an algorithm that ``fits``."""
        return JWSRegistry.algorithms[_rename(algorithm)].verify(message, signature, self.key)


def read_keys(text: str) -> tuple[PublicKey, ...]:
    """Read pasted keys; raises ValueError, whose text is for who pasted them."""
    if "-----BEGIN" in text:
        return _read_pem(text)
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        raise ValueError("This is neither a JWKS document nor PEM.") from None
    keys = read_jwks(document)
    if any(set(one) & {"d", "p", "q", "k"} for one in document["keys"]):
        raise ValueError("This holds private keys: paste public ones.")
    return keys


def read_jwks(document: Any) -> tuple[PublicKey, ...]:
    """Read the keys that a provider publishes, but for those of kinds we do not take.

    Raises ValueError where none is left.
    """
    listed = document.get("keys") if isinstance(document, dict) else None
    if not isinstance(listed, list):
        raise ValueError("A JWKS document is an object with a list of keys.")
    if len(listed) > MAX_KEYS:
        raise ValueError(f"A JWKS document may have {MAX_KEYS} keys at most.")
    keys = tuple(key for one in listed if (key := _read_jwk(one)) is not None)
    if not keys:
        raise ValueError("There is no public key for signatures: RSA, EC or Ed25519.")
    return keys


def _read_jwk(listed: Any) -> PublicKey | None:
    if not isinstance(listed, dict) or listed.get("use", "sig") != "sig":
        return None
    kind = _KINDS.get(str(listed.get("kty")))
    kid, algorithm = listed.get("kid", ""), listed.get("alg", "")
    if kind is None or not isinstance(kid, str) or (algorithm and algorithm not in ALGORITHMS):
        return None
    # What a key may be used for, and certificates for it, are no concern of its numbers.
    numbers = {name: listed[name] for name in ("kty", "crv", "n", "e", "x", "y") if name in listed}
    try:
        if kind is RSAKey:
            _check_bits(8 * len(urlsafe_b64decode(str(numbers.get("n")) + "==")))
        key = kind.import_key(numbers)
        _check_curve(key)
    except (JoseError, ValueError, TypeError, OverflowError):
        return None
    return PublicKey(kid, algorithm, key)


def _read_pem(text: str) -> tuple[PublicKey, ...]:
    keys = tuple(_read_block(block[1], block[0].encode()) for block in _PEM.finditer(text))
    if not 1 <= len(keys) <= MAX_KEYS:
        raise ValueError(f"Paste 1 to {MAX_KEYS} public keys or certificates.")
    return keys


def _read_block(label: str, pem: bytes) -> PublicKey:
    if "PRIVATE" in label:
        raise ValueError("This holds a private key: paste the public one.")
    try:
        if label == "CERTIFICATE":
            found: Any = load_pem_x509_certificate(pem).public_key()
        else:
            found = load_pem_public_key(pem)
    except (ValueError, UnsupportedAlgorithm):
        raise ValueError(f"This {label.lower()} cannot be read.") from None
    for native, kind in _NATIVE_KINDS.items():
        if isinstance(found, native):
            if kind is RSAKey:
                _check_bits(found.key_size)
            key = kind.import_key(
                found.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
            )
            _check_curve(key)
            return PublicKey("", "", key)
    raise ValueError("A key must be RSA, EC or Ed25519.")


def _check_bits(num_bits: int) -> None:
    """Refuse RSA keys that can be guessed, or cost too much."""
    if not MIN_RSA_BITS <= num_bits <= MAX_RSA_BITS:
        raise ValueError(f"An RSA key must have {MIN_RSA_BITS} to {MAX_RSA_BITS} bits.")


def _check_curve(key: Key) -> None:
    """Refuse keys of a curve that signs nothing here."""
    if isinstance(key, ECKey) and key.curve_name not in ("P-256", "P-384", "P-521"):
        raise ValueError("An EC key must be of P-256, P-384 or P-521.")
    if isinstance(key, OKPKey) and key.curve_name != "Ed25519":
        raise ValueError("An OKP key must be of Ed25519.")


def _rename(algorithm: str) -> str:
    return "Ed25519" if algorithm == "EdDSA" else algorithm
