"""Which part answers which path of a WebSocket."""

from channels.routing import URLRouter
from django.urls import path, re_path

from llamero.console.consumer import OverviewConsumer
from llamero.streaming.consumer import ChatConsumer, UnknownPathConsumer

websocket_application = URLRouter(
    [
        path("ws/v1/chat", ChatConsumer.as_asgi()),
        path("ws/console/overview", OverviewConsumer.as_asgi()),
        re_path(r"", UnknownPathConsumer.as_asgi()),
    ]
)
