"""The gateway's ASGI application: HTTP to Django, WebSockets to Channels."""

import os

from channels.routing import ProtocolTypeRouter
from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "llamero.settings")
django_application = get_asgi_application()

from llamero.api.handler import ApiHandler, PathSwitch  # noqa: E402
from llamero.websocket_urls import websocket_application  # noqa: E402

http_application = PathSwitch(api=ApiHandler(), site=django_application)
application = ProtocolTypeRouter({"http": http_application, "websocket": websocket_application})
