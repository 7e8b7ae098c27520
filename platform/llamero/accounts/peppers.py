"""The secrets under which keys are sealed, by number: add a new one, keep the old while in use."""

from hashlib import sha256


def read_peppers(text: str, secret_key: str) -> dict[int, str]:
    """Read ``1:secret,2:secret``; without any, derive number 1 from the secret key."""
    if not text:
        return {1: sha256(b"llamero api key pepper 1\0" + secret_key.encode()).hexdigest()}
    peppers: dict[int, str] = {}
    for part in text.split(","):
        number, _, secret = part.strip().partition(":")
        if not number.isdecimal() or len(secret) < 16:
            # The part itself is a secret: it is not in the message.
            raise ValueError("LLAMERO_API_KEY_PEPPERS must be number:secret pairs (16+ letters).")
        peppers[int(number)] = secret
    return peppers
