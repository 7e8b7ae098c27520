"""A gateway before three models of the fake engine: quick answers, none of them wise."""

import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory

import httpx2

from inference.protocol.replicas import ModelKind, RuntimeProfile
from inference.relay.connect import connect
from tests.gateways import GatewayHome
from tests.inference.relay.broker import Broker
from tests.inference.worker.replicas import Client, make_spec, start_worker
from tests.processes import child_environment

# The fake never ends by itself: a small context does that.
PROFILE = RuntimeProfile(num_slots=8, context_length=256)
KINDS = {"chat": ModelKind.CHAT, "embed": ModelKind.EMBEDDING, "rank": ModelKind.RERANK}
MORE_MODELS = """
import django
django.setup()
from models_registry.models import Deployment, Model, ModelVersion
for slug, kind in (("embed", "embedding"), ("rank", "rerank")):
    model = Model.objects.create(slug=slug, title=slug, kind=kind)
    ModelVersion.objects.create(model=model, number=1, state="ready", is_current=True)
    Deployment.objects.create(slug=slug, model=model, state="ready")
"""
CANARY = {"model": "chat", "prompt": "Once upon a time", "max_tokens": 8, "seed": 1}


class FuzzedLlamero:
    """All of it, from the broker to the gateway; a context manager that ends it."""

    def __init__(self) -> None:
        self._stack = ExitStack()

    def __enter__(self) -> "FuzzedLlamero":
        with ExitStack() as stack:
            self._start(stack)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    @property
    def base_url(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self._gateway.port}"

    @property
    def key(self) -> str:
        """An API key."""
        return self._home.key()

    @property
    def troubles(self) -> list[str]:
        """What the gateway's log complains about."""
        lines = (self._home.folder / "log").read_text().splitlines()
        return [line for line in lines if " ERROR " in line or "Traceback" in line]

    def ask_canary(self) -> str:
        """Ask what has one right answer; gives it."""
        headers = {"Authorization": f"Bearer {self.key}"}
        answer = httpx2.post(f"{self.base_url}/v1/completions", json=CANARY, headers=headers)
        return str(answer.raise_for_status().json()["choices"][0]["text"])

    def _start(self, stack: ExitStack) -> None:
        folder = Path(stack.enter_context(TemporaryDirectory(prefix="fuzz")))
        broker = Broker(folder)
        broker.start()
        stack.callback(broker.stop)
        for name, kind in KINDS.items():
            spec = make_spec(
                f"{name}-1", deployment=name, kind=kind, files=("fake:",), profile=PROFILE
            )
            replica = start_worker(broker.url, spec, LLAMERO_HOME=str(folder))
            stack.callback(replica.communicate)
            stack.callback(replica.kill)
        self._home = GatewayHome(folder, broker.url, max_queue=1000, max_queue_per_key=1000)
        environment = child_environment(LLAMERO_HOME=str(folder), LLAMERO_REDIS_URL=broker.url)
        subprocess.run([sys.executable, "-c", MORE_MODELS], env=environment, check=True)
        with connect(broker.url) as redis:
            for name in KINDS:
                Client(broker.url, redis).wait_for_status(f"{name}-1")
        [self._gateway] = self._home.start(1)
        stack.callback(self._home.stop)
