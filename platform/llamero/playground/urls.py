"""Paths of the playground."""

from django.urls import path

from llamero.playground.views import chats, pages, presets, vectors

app_name = "playground"
urlpatterns = [
    path("playground", pages.show_playground, name="chat"),
    path("playground/c/<slug:chat_id>", pages.show_playground, name="one-chat"),
    path("playground/embeddings", pages.show_embeddings, name="embeddings"),
    path("playground/rerank", pages.show_rerank, name="rerank"),
    path("playground/models", pages.list_playground_models, name="models"),
    path("playground/chats", chats.chats, name="chats"),
    path("playground/chats/<slug:chat_id>", chats.chat),
    path("playground/chats/<slug:chat_id>/turns", chats.turns),
    path("playground/messages/<int:message_id>/settle", chats.settle),
    path("playground/presets", presets.presets, name="presets"),
    path("playground/presets/<int:preset_id>", presets.preset),
    path("playground/compute/embeddings", vectors.embeddings, name="compute-embeddings"),
    path("playground/compute/rerank", vectors.rerank, name="compute-rerank"),
    path("shared/<slug:token>", pages.show_shared, name="shared"),
]
