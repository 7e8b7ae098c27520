"""How receivers of webhooks know that a message is ours: as Standard Webhooks describes."""

import base64
import hashlib
import hmac
import secrets

PREFIX = "whsec_"


def make_webhook_secret() -> str:
    """Make what the messages of an alert are signed with."""
    return PREFIX + base64.b64encode(secrets.token_bytes(32)).decode()


def sign(secret: str, message_id: str, seconds: int, body: bytes) -> str:
    """Sign a message that is sent at a Unix time."""
    key = base64.b64decode(secret.removeprefix(PREFIX))
    text = f"{message_id}.{seconds}.".encode() + body
    return "v1," + base64.b64encode(hmac.new(key, text, hashlib.sha256).digest()).decode()
