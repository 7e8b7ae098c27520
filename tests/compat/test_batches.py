"""OpenAI's client has files answered, by a whole Llamero."""

import json
from typing import Any

import openai
import pytest

from tests.processes import wait_until

pytestmark = pytest.mark.model


def make_file(model: str, *prompts: str, **changes: Any) -> bytes:
    body = {"model": model, "max_tokens": 8, "temperature": 0} | changes
    lines = [
        {
            "custom_id": f"line-{number}",
            "method": "POST",
            "url": "/v1/chat/completions",
            "body": body | {"messages": [{"role": "user", "content": prompt}]},
        }
        for number, prompt in enumerate(prompts)
    ]
    return b"".join(json.dumps(line).encode() + b"\n" for line in lines)


def test_a_batch_says_what_its_requests_would(client: openai.OpenAI, chat_model: str) -> None:
    prompts = ("Hi", "Count to three.", "x" * 9000)
    file = client.files.create(
        file=("night.jsonl", make_file(chat_model, *prompts)), purpose="batch"
    )
    batch = client.batches.create(
        input_file_id=file.id, endpoint="/v1/chat/completions", completion_window="24h"
    )
    assert batch.status == "validating"
    assert client.batches.list(limit=1).data[0].id == batch.id

    def has_ended() -> bool:
        return client.batches.retrieve(batch.id).status == "completed"

    wait_until(has_ended, what="the batch")
    ended = client.batches.retrieve(batch.id)
    assert ended.request_counts is not None
    assert ended.request_counts.model_dump() == {"total": 3, "completed": 2, "failed": 1}
    assert ended.output_file_id and ended.error_file_id
    answers = map(json.loads, client.files.content(ended.output_file_id).text.splitlines())
    bodies = {one["custom_id"]: one["response"]["body"] for one in answers}
    [failed] = map(json.loads, client.files.content(ended.error_file_id).text.splitlines())
    assert failed["custom_id"] == "line-2"
    assert failed["response"]["body"]["error"]["code"] == "context_length_exceeded"
    for number, prompt in enumerate(prompts[:2]):
        alone = client.chat.completions.create(
            model=chat_model,
            messages=[{"role": "user", "content": prompt}],
            max_tokens=8,
            temperature=0,
        )
        answer = bodies[f"line-{number}"]["choices"][0]["message"]["content"]
        assert answer == alone.choices[0].message.content
    with pytest.raises(openai.ConflictError, match="completed"):
        client.batches.cancel(batch.id)


def test_a_large_file_comes_and_goes_whole(client: openai.OpenAI) -> None:
    contents = bytes(range(256)) * 24_000
    file = client.files.create(file=("large.jsonl", contents), purpose="batch")
    assert file.bytes == len(contents)
    assert client.files.content(file.id).read() == contents
    assert client.files.delete(file.id).deleted
    assert file.id not in {one.id for one in client.files.list(purpose="batch")}
