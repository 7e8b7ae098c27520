"""Which addresses belong to the API: there, every answer is JSON."""

_FIRST_PARTS = frozenset(
    {
        "v1",
        "m",
        "models",
        "completion",
        "completions",
        "chat",
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
        "metrics",
        "nodes",
    }
)


def is_api_path(path: str) -> bool:
    """Whether a path is the API's, however many slashes and capitals it has."""
    return path.lstrip("/").partition("/")[0].lower() in _FIRST_PARTS


def is_native_path(path: str) -> bool:
    """Whether errors on this path have llama-server's numeric codes."""
    return path.lstrip("/").partition("/")[0].lower() != "v1"
