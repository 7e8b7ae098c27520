"""Paths of the HTTP API. Most exist once more below ``/m/<model>/``."""

from typing import Any

from django.urls import path

from llamero.api.anthropic.views import CountTokensView, MessagesView
from llamero.api.batches.batches import BatchesView, BatchView, CancelBatchView
from llamero.api.batches.files import FileContentView, FilesView, FileView
from llamero.api.conversations import ConversationLookupView, ConversationStreamView
from llamero.api.health import LiveView, ReadyView
from llamero.api.model_imports.imports import ImportsView, ImportView
from llamero.api.model_imports.uploads import UploadsView, UploadView
from llamero.api.native.adapters import AdaptersView
from llamero.api.native.chat import ApplyTemplateView, ChatTokensView, NativeChatView
from llamero.api.native.completion import CompletionView
from llamero.api.native.embedding import EmbeddingView
from llamero.api.native.health import HealthView
from llamero.api.native.infill import InfillView
from llamero.api.native.metrics import MetricsView
from llamero.api.native.status import PropsView, SlotsView, SlotView
from llamero.api.native.text import DetokenizeView, TokenizeView
from llamero.api.openai.chat_completions import ChatCompletionsView
from llamero.api.openai.completions import CompletionsView
from llamero.api.openai.embeddings import EmbeddingsView
from llamero.api.openai.models import ModelListView, ModelView
from llamero.api.openapi.views import OpenApiView
from llamero.api.paths import Dialect
from llamero.api.rerank import RerankView
from llamero.api.responses.create import InputTokensView, ResponsesView
from llamero.api.responses.stored import CancelView, InputItemsView, ResponseView
from llamero.api.runs import RunEventsView, RunView
from llamero.api.socket_tickets import SocketTicketsView
from llamero.api.usage import UsageView

_openai: dict[str, Any] = {
    "v1/chat/completions": ChatCompletionsView.as_view(),
    "v1/chat/completions/input_tokens": ChatTokensView.as_view(dialect=Dialect.OPENAI),
    "v1/completions": CompletionsView.as_view(),
    "v1/embeddings": EmbeddingsView.as_view(),
    "v1/responses": ResponsesView.as_view(),
    "v1/responses/input_tokens": InputTokensView.as_view(),
    "v1/responses/<str:response_id>": ResponseView.as_view(),
    "v1/responses/<str:response_id>/cancel": CancelView.as_view(),
    "v1/responses/<str:response_id>/input_items": InputItemsView.as_view(),
    "v1/rerank": RerankView.as_view(dialect=Dialect.OPENAI),
    "v1/reranking": RerankView.as_view(dialect=Dialect.OPENAI),
}
_anthropic: dict[str, Any] = {
    "v1/messages": MessagesView.as_view(),
    "v1/messages/count_tokens": CountTokensView.as_view(),
}
_native_responses = {"dialect": Dialect.LLAMA_SERVER, "may_leave_model_out": True}
_native: dict[str, Any] = {
    "responses": ResponsesView.as_view(**_native_responses),
    "responses/input_tokens": InputTokensView.as_view(**_native_responses),
    "chat/completions": NativeChatView.as_view(),
    "chat/completions/input_tokens": ChatTokensView.as_view(),
    "completion": CompletionView.as_view(),
    "completions": CompletionView.as_view(),
    "infill": InfillView.as_view(),
    "embedding": EmbeddingView.as_view(),
    "embeddings": EmbeddingView.as_view(),
    "rerank": RerankView.as_view(),
    "reranking": RerankView.as_view(),
    "tokenize": TokenizeView.as_view(),
    "detokenize": DetokenizeView.as_view(),
    "apply-template": ApplyTemplateView.as_view(),
    "props": PropsView.as_view(),
    "slots": SlotsView.as_view(),
    "slots/<str:slot>": SlotView.as_view(),
    "metrics": MetricsView.as_view(),
    "lora-adapters": AdaptersView.as_view(),
}
_streams: dict[str, Any] = {
    "v1/runs/<str:run_id>": RunView.as_view(),
    "v1/runs/<str:run_id>/events": RunEventsView.as_view(),
    "v1/stream": ConversationStreamView.as_view(),
    "v1/streams/lookup": ConversationLookupView.as_view(),
}
_lists: dict[str, Any] = {
    "v1/models": ModelListView.as_view(),
    "models": ModelListView.as_view(),
    "v1/health": HealthView.as_view(),
    "health": HealthView.as_view(),
}
# The longer ends come first: a model's name may have slashes, "smol/v1/chat" should be none.
_routes = _openai | _anthropic | _native | _streams | _lists
urlpatterns = [
    path("m/<path:model>/v1/models/<path:name>", ModelView.as_view()),
    *(path(route, view) for route, view in _routes.items()),
    *(path(f"m/<path:model>/{route}", view) for route, view in _routes.items()),
    path("v1/files", FilesView.as_view()),
    path("v1/files/<str:file_id>", FileView.as_view()),
    path("v1/files/<str:file_id>/content", FileContentView.as_view()),
    path("v1/batches", BatchesView.as_view()),
    path("v1/batches/<str:batch_id>", BatchView.as_view()),
    path("v1/batches/<str:batch_id>/cancel", CancelBatchView.as_view()),
    path("v1/usage", UsageView.as_view()),
    path("v1/socket-tickets", SocketTicketsView.as_view()),
    path("v1/model-uploads", UploadsView.as_view()),
    path("v1/model-uploads/<str:upload_id>", UploadView.as_view()),
    path("v1/model-imports", ImportsView.as_view()),
    path("v1/model-imports/<str:import_id>", ImportView.as_view()),
    path("v1/models/<path:name>", ModelView.as_view()),
    path("openapi.json", OpenApiView.as_view()),
    path("v1/openapi.json", OpenApiView.as_view()),
    path("livez", LiveView.as_view()),
    path("readyz", ReadyView.as_view()),
]
