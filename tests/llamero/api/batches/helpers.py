"""Uploads, lines and runs of batches."""

import json
from typing import Any

from llamero.batches.running.batch_run import BatchRun, Places
from llamero.batches.running.gates import Gates
from tests.llamero.api.asgi_client import Answer, get, post

BOUNDARY = "b0undary"
FORM = {"content-type": f"multipart/form-data; boundary={BOUNDARY}"}


def make_form(fields: dict[str, str], *files: tuple[str, str, bytes]) -> bytes:
    """Write a form; files are field, name and contents."""
    parts = [f'name="{name}"\r\n\r\n{text}\r\n'.encode() for name, text in fields.items()]
    for field, name, contents in files:
        head = f'name="{field}"; filename="{name}"\r\nContent-Type: application/jsonl\r\n\r\n'
        parts.append(head.encode() + contents + b"\r\n")
    begin = f"--{BOUNDARY}\r\nContent-Disposition: form-data; ".encode()
    return b"".join(begin + part for part in parts) + f"--{BOUNDARY}--\r\n".encode()


async def send_form(form: bytes, **options: Any) -> Answer:
    """Send a form as it is."""
    headers = FORM | {"content-length": str(len(form))} | options.pop("headers", {})
    return await post("/v1/files", form, headers=headers, **options)


async def upload(
    contents: bytes, *, fields: dict[str, str] | None = None, **options: Any
) -> Answer:
    """Upload a file of requests."""
    file = ("file", "asked.jsonl", contents)
    return await send_form(make_form(fields or {"purpose": "batch"}, file), **options)


def make_line(number: int | str, url: str = "/v1/chat/completions", **body: Any) -> bytes:
    """Write a line that asks the fake model something."""
    asked = {"model": "smol", "messages": [{"role": "user", "content": f"Hi {number}"}]}
    line = {"custom_id": f"r{number}", "method": "POST", "url": url, "body": asked | body}
    return json.dumps(line).encode() + b"\n"


async def make_batch(*lines: int | bytes, **fields: Any) -> dict[str, Any]:
    """Make a batch of lines, and give its document."""
    text = b"".join(one if isinstance(one, bytes) else make_line(one) for one in lines)
    file = (await upload(text)).json()
    asked = {"endpoint": "/v1/chat/completions", "completion_window": "24h"}
    answer = await post("/v1/batches", {"input_file_id": file["id"]} | asked | fields)
    batch: dict[str, Any] = answer.json()
    assert answer.status == 200, batch
    return batch


def make_run(batch: dict[str, Any], most: int = 4) -> BatchRun:
    """Make what runs a batch."""
    return BatchRun(batch["id"], Gates(most), Places(4, 2), most)


async def look(batch: dict[str, Any]) -> dict[str, Any]:
    """Give a batch as it is now."""
    found: dict[str, Any] = (await get(f"/v1/batches/{batch['id']}")).json()
    return found


async def read_file(file_id: str | None) -> list[dict[str, Any]]:
    """Give the lines of a file, none where there is none."""
    if file_id is None:
        return []
    answer = await get(f"/v1/files/{file_id}/content")
    assert answer.status == 200
    assert int(answer.headers["content-length"]) == len(answer.body)
    return [json.loads(line) for line in answer.body.splitlines()]


async def read_results(batch: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Give the result of each request; no request may have two."""
    ended = await look(batch)
    lines = await read_file(ended["output_file_id"]) + await read_file(ended["error_file_id"])
    results = {line["custom_id"]: line for line in lines}
    assert len(results) == len(lines) == len({line["id"] for line in lines})
    return results
