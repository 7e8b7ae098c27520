"""A body for each POST that can be sent as it stands, to the models of a first run.

Whoever adds a route with a body adds it here: a test looks, and sends them.
"""

from typing import Any

from rest_framework.views import APIView

from llamero.api.anthropic.views import CountTokensView, MessagesView
from llamero.api.batches.batches import BatchesView
from llamero.api.conversations import ConversationLookupView
from llamero.api.model_imports.imports import ImportsView, ImportView
from llamero.api.native.adapters import AdaptersView
from llamero.api.native.chat import ApplyTemplateView, ChatTokensView, NativeChatView
from llamero.api.native.completion import CompletionView
from llamero.api.native.embedding import EmbeddingView
from llamero.api.native.infill import InfillView
from llamero.api.native.status import PropsView, SlotView
from llamero.api.native.text import DetokenizeView, TokenizeView
from llamero.api.openai.chat_completions import ChatCompletionsView
from llamero.api.openai.completions import CompletionsView
from llamero.api.openai.embeddings import EmbeddingsView
from llamero.api.rerank import RerankView
from llamero.api.responses.create import InputTokensView, ResponsesView

CHAT_MODEL = "smollm2-135m-instruct"
EMBEDDING_MODEL = "all-minilm-l6-v2"
_CHAT = {"model": CHAT_MODEL, "messages": [{"role": "user", "content": "Say hello."}]}
_TEXTS = ["A llama is an animal.", "Redis is a database."]

EXAMPLES: dict[type[APIView], Any] = {
    ChatCompletionsView: _CHAT | {"max_tokens": 64},
    NativeChatView: _CHAT | {"max_tokens": 64},
    ChatTokensView: _CHAT,
    ApplyTemplateView: _CHAT,
    MessagesView: _CHAT | {"max_tokens": 64},
    CountTokensView: _CHAT,
    ResponsesView: {
        "model": CHAT_MODEL,
        "input": "Say hello.",
        "max_output_tokens": 64,
        "store": False,
    },
    InputTokensView: {"model": CHAT_MODEL, "input": "Say hello."},
    CompletionsView: {"model": CHAT_MODEL, "prompt": "Once upon a time", "max_tokens": 32},
    CompletionView: {"model": CHAT_MODEL, "prompt": "Once upon a time", "n_predict": 32},
    # Neither demo model fills gaps or ranks: with no name, the first of the kind is taken.
    InfillView: {
        "input_prefix": "def add(a, b):\n    ",
        "input_suffix": "\n\nprint(add(1, 2))\n",
        "n_predict": 32,
    },
    RerankView: {"query": "What is a llama?", "documents": _TEXTS},
    EmbeddingsView: {"model": EMBEDDING_MODEL, "input": _TEXTS},
    EmbeddingView: {"model": EMBEDDING_MODEL, "content": _TEXTS},
    TokenizeView: {"model": CHAT_MODEL, "content": "Hello, world", "with_pieces": True},
    DetokenizeView: {"model": CHAT_MODEL, "tokens": [19556, 28, 905]},
    ImportsView: {
        "model": "smollm2-360m-instruct",
        "deploy": True,
        "sources": [
            {"repository": "owner/smollm2-360m-instruct-GGUF", "file": "model-Q4_K_M.gguf"}
        ],
    },
    ImportView: {"model": "smollm2-360m-instruct", "deploy": True},
    BatchesView: {
        "input_file_id": "file-0123456789abcdef",
        "endpoint": "/v1/chat/completions",
        "completion_window": "24h",
    },
    ConversationLookupView: {"conversation_ids": ["my-conversation"]},
    # Refused, whatever they ask.
    PropsView: {},
    SlotView: {},
    AdaptersView: [{"id": 0, "scale": 0.5}],
}


def example_of(view: Any, path: str) -> Any:
    """Give a route's example body, or None; a path that names the model leaves it out there."""
    example = EXAMPLES.get(type(view))
    if path.startswith("/m/") and isinstance(example, dict):
        return {name: value for name, value in example.items() if name != "model"}
    return example


def model_of(view: Any) -> str:
    """Name the model that a route's path is tried with."""
    example = EXAMPLES.get(type(view))
    return str(example.get("model", CHAT_MODEL)) if isinstance(example, dict) else CHAT_MODEL
