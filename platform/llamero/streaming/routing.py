"""Paths of the WebSocket API."""

from channels.routing import URLRouter

websocket_application = URLRouter([])
