"""The text of a key: how one is made, taken apart, and proved without being stored."""

import hmac
import re
import secrets
import string
from hashlib import sha256

from django.conf import settings

_ALPHABET = string.ascii_letters + string.digits
_PUBLIC_LENGTH = 8
# 40 of 62 letters: 238 bits.
_SECRET_LENGTH = 40
_SHAPE = re.compile(r"([a-z]{3})_([0-9A-Za-z]{8})_[0-9A-Za-z]{32,64}\Z")
API_KEY = "llm"


def make_key_text(kind: str = API_KEY) -> str:
    """Make a new key: ``llm_<public>_<secret>``, with another ``kind`` of three letters first."""
    public = "".join(secrets.choice(_ALPHABET) for _ in range(_PUBLIC_LENGTH))
    secret = "".join(secrets.choice(_ALPHABET) for _ in range(_SECRET_LENGTH))
    return f"{kind}_{public}_{secret}"


def read_prefix(key_text: str, kind: str = API_KEY) -> str:
    """Give the public part of a key, or an empty string (no key has that) if it is no such key."""
    match = _SHAPE.match(key_text)
    return match[2] if match and match[1] == kind else ""


def newest_pepper() -> int:
    """Number of the pepper that new keys are sealed with."""
    return max(settings.API_KEY_PEPPERS)


def seal(key_text: str, pepper: int) -> str:
    """Give the digest of a key under a numbered pepper; under a retired one nothing fits."""
    secret: str | None = settings.API_KEY_PEPPERS.get(pepper)
    key = secret.encode() if secret else secrets.token_bytes(32)
    return hmac.new(key, key_text.encode("utf-8", "surrogatepass"), sha256).hexdigest()


def seal_under_all(key_text: str) -> list[str]:
    """Give the digests that a key may be stored as, under each pepper there is."""
    return [seal(key_text, pepper) for pepper in settings.API_KEY_PEPPERS]


def is_sealed_as(key_text: str, pepper: int, digest: str) -> bool:
    """Whether a key has this digest, in a time that tells nothing of either."""
    return hmac.compare_digest(seal(key_text, pepper), digest)
