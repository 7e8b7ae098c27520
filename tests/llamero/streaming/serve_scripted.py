"""A gateway whose data plane says what the last message asks for. Port as the argument."""

import asyncio
import logging
import sys
from typing import Any

import django

django.setup()

from django.conf import settings  # noqa: E402
from django.contrib.auth.models import User  # noqa: E402

from inference.protocol.errors import EngineError, ErrorCode  # noqa: E402
from inference.protocol.text import RenderChat, Rendered  # noqa: E402
from llamero import dispatch  # noqa: E402
from llamero.accounts.services import issue_api_key  # noqa: E402
from llamero.asgi import application  # noqa: E402
from llamero.serve.server import ServeOptions, serve  # noqa: E402
from models_registry.models import Deployment, Model, ModelVersion  # noqa: E402
from tests.llamero.streaming.fakes import FakeDispatcher, FakeStream  # noqa: E402
from tests.models_registry.factories import make_facts  # noqa: E402

logger = logging.getLogger(__name__)

RICH = (
    "Llamas are **sure-footed**:\n\n1. padded *toes*\n2. low `gravity`\n\n",
    "```python\ndef climb(llama, path_that_is_wide_enough_for_a_scroll_bar): ...\n```\n\n",
    "| Slope | Speed | Mood | Wool | Weather |\n|---|---|---|---|---|\n",
    "| steep | careful | calm | dry | sunny |\n\n",
    "> slowly\n\n[carrots](https://example.org)\n",
)
HOSTILE = (
    "<script>window.broken = 1</script>\n\n<img src=x onerror='window.broken = 1'>\n\n",
    "[a](javascript:window.broken=1) ![b](https://evil.example/pixel.png)\n\n",
    '<a href="javascript:window.broken=1">c</a> <style>*{display:none}</style>\n\nthe end\n',
)
ANSWERS: dict[str, tuple[tuple[str, ...], float]] = {
    "rich": (RICH, 0.01),
    "hostile": (HOSTILE, 0.0),
    "flood": (("x" * 2**16,) * 2000, 0.001),
    "long": (("word ",) * 2000, 0.0005),
    "pause": ((".",) * 40, 0.05),
    "count": (tuple(f"{number} " for number in range(120)), 0.03),
    "endless": (("word ",) * 100_000, 0.01),
}


class LoggedStream(FakeStream):
    """A job whose end is logged."""

    async def close(self) -> None:
        """Stop for good."""
        await super().close()
        logger.info("job ended")


class ScriptedDispatcher(FakeDispatcher):
    """Chooses the answer by the first word of the last message."""

    stream_kind = LoggedStream

    async def ask(self, deployment: str, question: RenderChat, **options: Any) -> Rendered:
        """Prepare the answer, or refuse."""
        word = str(question.messages[-1]["content"]).split()[0]
        if word == "refuse":
            raise EngineError(ErrorCode.NO_READY_REPLICA, "The model is being loaded.")
        self.pieces, self.step_seconds = ANSWERS.get(word, (("You said ", f"{word}."), 0.01))
        return await super().ask(deployment, question)


def prepare() -> None:
    """Fill the database, unless an earlier run has."""
    if User.objects.exists():
        return
    admin = User.objects.create_superuser("admin", password="admin")
    User.objects.create_user("pat", password="pat")
    key = issue_api_key(user=admin, name="test").secret_text
    (settings.HOME / "key").write_text(key)
    for slug, state in (("smol", "ready"), ("sleepy", "loading")):
        model = Model.objects.create(slug=slug, title=slug.title(), kind="chat")
        ModelVersion.objects.create(
            model=model, number=1, state="ready", is_current=True, facts=make_facts()
        )
        Deployment.objects.create(slug=slug, model=model, state=state)


def main() -> None:
    """Serve until the end."""
    prepare()
    dispatchers: dict[asyncio.AbstractEventLoop, ScriptedDispatcher] = {}
    dispatch.get_dispatcher = lambda: dispatchers.setdefault(  # type: ignore[assignment,return-value]
        asyncio.get_running_loop(), ScriptedDispatcher()
    )
    serve(application, ServeOptions("127.0.0.1", int(sys.argv[1]), settings.MAX_BODY_BYTES))


if __name__ == "__main__":
    main()
