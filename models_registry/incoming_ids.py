"""Names of what is on its way: nobody can make one up, and a look at one tells whether it is ours.

So the web server can turn away the body of a request that names none of ours, before it has taken
any of it in and without asking the database.
"""

import re
import secrets

from django.utils.crypto import constant_time_compare, salted_hmac

_SHAPE = re.compile(r"[0-9a-f]{48}\Z")
_RANDOM_LENGTH = 32
_SALT = "models_registry.incoming_ids"


def make_incoming_id() -> str:
    """Make a new name."""
    random = secrets.token_hex(_RANDOM_LENGTH // 2)
    return random + _sign(random)


def is_incoming_id(text: str) -> bool:
    """Tell whether a name was made here."""
    return bool(_SHAPE.match(text)) and constant_time_compare(
        _sign(text[:_RANDOM_LENGTH]), text[_RANDOM_LENGTH:]
    )


def _sign(random: str) -> str:
    return salted_hmac(_SALT, random, algorithm="sha256").hexdigest()[:16]
