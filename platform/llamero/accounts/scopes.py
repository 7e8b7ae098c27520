"""What a key may be used for: each route of the API asks for one of these."""

from django.db import models


class Scope(models.TextChoices):
    """The rights that a key may have; ``AsyncAPIView.scope`` names the one that a route needs."""

    INFERENCE = "inference", "Chats and completions, and what belongs to them"
    EMBEDDINGS = "embeddings", "Embeddings and reranking"
    MODELS = "models", "Lists of models, their state and metrics"
    RESPONSES = "responses", "The Responses API, and what it stores"
    FILES = "files", "Files for batches"
    BATCHES = "batches", "Batches"
    USAGE = "usage", "The key's own usage"
    ADAPTERS_WRITE = "adapters:write", "Change what adapters do for everybody"
    UPLOAD = "upload", "Upload models"


# What others would notice must be given by name.
NEVER_BY_DEFAULT = frozenset({Scope.ADAPTERS_WRITE, Scope.UPLOAD})
DEFAULT_SCOPES = frozenset(Scope) - NEVER_BY_DEFAULT


def scopes_of(names: list[str]) -> frozenset[Scope]:
    """Give what a key with this list may do; names of another version of the program count not."""
    if not names:
        return DEFAULT_SCOPES
    return frozenset(Scope(name) for name in names if name in Scope.values)
