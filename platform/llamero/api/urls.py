"""Paths of the HTTP API. llama-server's routes exist once more below ``/m/<model>/``."""

from django.urls import include, path

from llamero.api.native.completion import CompletionView
from llamero.api.native.embedding import EmbeddingView
from llamero.api.native.status import HealthView, PropsView, SlotsView
from llamero.api.native.text import ApplyTemplateView, DetokenizeView, TokenizeView
from llamero.api.openai.chat_completions import ChatCompletionsView
from llamero.api.openai.completions import CompletionsView
from llamero.api.openai.embeddings import EmbeddingsView
from llamero.api.openai.models import ModelListView, ModelView

_openai = [
    path("v1/chat/completions", ChatCompletionsView.as_view()),
    path("v1/completions", CompletionsView.as_view()),
    path("v1/embeddings", EmbeddingsView.as_view()),
]
_native = [
    path("completion", CompletionView.as_view()),
    path("completions", CompletionView.as_view()),
    path("embedding", EmbeddingView.as_view()),
    path("embeddings", EmbeddingView.as_view()),
    path("tokenize", TokenizeView.as_view()),
    path("detokenize", DetokenizeView.as_view()),
    path("apply-template", ApplyTemplateView.as_view()),
    path("props", PropsView.as_view()),
    path("slots", SlotsView.as_view()),
]
urlpatterns = [
    *_openai,
    *_native,
    path("v1/models", ModelListView.as_view()),
    path("v1/models/<path:name>", ModelView.as_view()),
    path("models", ModelListView.as_view()),
    path("health", HealthView.as_view()),
    path("v1/health", HealthView.as_view()),
    path("m/<path:model>/", include([*_openai, *_native])),
]
