"""Which addresses belong to the API, where every answer is JSON, and to which of its dialects."""

from enum import StrEnum

ANTHROPIC_VERSION_HEADER = "anthropic-version"
# Where files are sent to, and by which name of a scope's extensions their bodies are handed on:
# they lie on disk, and need not pass through memory.
UPLOAD_PATH = "/v1/files"
UPLOAD_EXTENSION = "llamero.upload"
# Likewise pieces of models' files, each below the name of its upload.
CHUNK_PATH = "/v1/model-uploads/"
_FIRST_PARTS = frozenset(
    {
        "v1",
        "m",
        "models",
        "completion",
        "completions",
        "chat",
        "responses",
        "embedding",
        "embeddings",
        "tokenize",
        "detokenize",
        "apply-template",
        "infill",
        "rerank",
        "reranking",
        "props",
        "slots",
        "lora-adapters",
        "health",
        "livez",
        "readyz",
        "metrics",
        "nodes",
        "openapi.json",
    }
)


class Dialect(StrEnum):
    """Whose words and statuses the errors of a route have."""

    OPENAI = "openai"
    LLAMA_SERVER = "llama-server"
    ANTHROPIC = "anthropic"


def is_api_path(path: str) -> bool:
    """Whether a path is the API's, however many slashes and capitals it has."""
    return path.lstrip("/").partition("/")[0].lower() in _FIRST_PARTS


def dialect_of(path: str) -> Dialect:
    """Tell whose clients use a path, below a model's name or not."""
    first, *rest = path.lower().lstrip("/").split("/")
    if first == "m" and "v1" in rest:
        first, *rest = rest[rest.index("v1") :]
    if first != "v1":
        return Dialect.LLAMA_SERVER
    return Dialect.ANTHROPIC if rest[:1] == ["messages"] else Dialect.OPENAI
