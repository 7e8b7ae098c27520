"""What every answer of one request says alike: id, time, model, fingerprint."""

import secrets
import time
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

from models_registry.selectors import ServedModel


@dataclass(frozen=True, slots=True)
class Envelope:
    """The fields around the choices."""

    id: str
    created: int
    model: str
    system_fingerprint: str

    def document(self, object_name: str) -> dict[str, Any]:
        """Start a document of a kind."""
        return {
            "id": self.id,
            "object": object_name,
            "created": self.created,
            "model": self.model,
            "system_fingerprint": self.system_fingerprint,
        }


def make_envelope(id_prefix: str, served: ServedModel) -> Envelope:
    """Make the envelope of a new answer. The fingerprint changes with what is loaded and how."""
    loaded = f"{served.deployment}|{served.profile}|{sorted(served.facts.items())}"
    fingerprint = blake2b(loaded.encode(errors="replace"), digest_size=6).hexdigest()
    return Envelope(
        id=f"{id_prefix}-{secrets.token_hex(14)}",
        created=int(time.time()),
        model=served.id,
        system_fingerprint=f"fp_{fingerprint}",
    )
