"""What a first request looks like: where it goes, which models may be named, and in what words."""

from dataclasses import dataclass

from django.conf import settings
from django.http import HttpRequest

from inference.protocol.replicas import ModelKind
from models_registry.routing import SERVES_SOON
from models_registry.selectors import ServedModel, list_served_models

MAX_MODELS = 50
_CHAT = """curl {base_url}/chat/completions \\
  -H "Authorization: Bearer $LLAMERO_API_KEY" \\
  -H "Content-Type: application/json" \\
  -d '{{"model": "{model}", "messages": [{{"role": "user", "content": "Hello"}}]}}'"""
_CHAT_CLIENT = """# pip install openai
import os
from openai import OpenAI

client = OpenAI(base_url="{base_url}", api_key=os.environ["LLAMERO_API_KEY"])
answer = client.chat.completions.create(
    model="{model}",
    messages=[{{"role": "user", "content": "Hello"}}],
)
print(answer.choices[0].message.content)"""
_EMBED = """curl {base_url}/embeddings \\
  -H "Authorization: Bearer $LLAMERO_API_KEY" \\
  -H "Content-Type: application/json" \\
  -d '{{"model": "{model}", "input": "Hello"}}'"""
_EMBED_CLIENT = """# pip install openai
import os
from openai import OpenAI

client = OpenAI(base_url="{base_url}", api_key=os.environ["LLAMERO_API_KEY"])
answer = client.embeddings.create(model="{model}", input="Hello", encoding_format="float")
print(answer.data[0].embedding)"""


@dataclass(frozen=True, slots=True)
class FirstCall:
    """The base URL, the models that keys of one's own may use, and an example with one of them.

    ``examples`` are pairs of a language and a text; none without a model to name.
    """

    base_url: str
    models: list[ServedModel]
    examples: list[tuple[str, str]]


def describe_first_call(request: HttpRequest) -> FirstCall:
    """Describe it for whoever has, or makes, a key of their own."""
    base_url = request.build_absolute_uri("/v1")
    allowed = settings.OWN_KEYS.models
    models = [one for one in list_served_models() if not allowed or one.id in allowed]
    return FirstCall(base_url, models[:MAX_MODELS], _write_examples(base_url, models))


def _write_examples(base_url: str, models: list[ServedModel]) -> list[tuple[str, str]]:
    models = sorted(models, key=lambda one: one.state not in SERVES_SOON)
    for kind, curl, client in (
        (ModelKind.CHAT, _CHAT, _CHAT_CLIENT),
        (ModelKind.EMBEDDING, _EMBED, _EMBED_CLIENT),
    ):
        for one in models:
            if one.kind is kind:
                words = {"base_url": base_url, "model": one.id}
                return [("curl", curl.format(**words)), ("Python", client.format(**words))]
    return []
