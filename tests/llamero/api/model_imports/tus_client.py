"""A client that speaks tus by hand, to say wrong things as well."""

import base64
from dataclasses import dataclass
from typing import Any

from django.test import Client

COLLECTION = "/v1/model-uploads"
CHUNK_TYPE = "application/offset+octet-stream"


@dataclass
class TusClient:
    """Requests of one key."""

    client: Client
    key: str

    def send(self, method: str, url: str, body: bytes = b"", **headers: str) -> Any:
        """Send a request; underscores in names of headers stand for dashes."""
        named = {"Authorization": f"Bearer {self.key}", "Tus-Resumable": "1.0.0"}
        named |= {name.replace("_", "-"): value for name, value in headers.items()}
        content_type = named.pop("Content-Type", CHUNK_TYPE)
        return self.client.generic(method, url, body, content_type=content_type, headers=named)

    def create(self, size: int, **metadata: str) -> Any:
        """Begin an upload."""
        return self.send(
            "POST", COLLECTION, Upload_Length=str(size), Upload_Metadata=metadata_of(metadata)
        )

    def patch(self, url: str, offset: int, body: bytes, **headers: str) -> Any:
        """Send a piece."""
        return self.send("PATCH", url, body, Upload_Offset=str(offset), **headers)

    def upload(self, contents: bytes, **metadata: str) -> str:
        """Upload a whole file in one piece; gives its address."""
        created = self.create(len(contents), **metadata)
        assert created.status_code == 201, created.content
        url = str(created["Location"])
        answer = self.patch(url, 0, contents)
        assert answer.status_code == 204, answer.content
        return url

    def look(self, url: str) -> Any:
        """Give what a GET describes."""
        answer = self.send("GET", url)
        assert answer.status_code == 200, answer.content
        return answer.json()


def metadata_of(values: dict[str, str]) -> str:
    """Write Upload-Metadata; `import_` stands for `import`."""
    pairs = (
        f"{name.rstrip('_')} {base64.b64encode(text.encode()).decode()}"
        for name, text in values.items()
    )
    return ",".join(pairs)


def error_of(answer: Any, status: int) -> dict[str, Any]:
    """Give the error of an answer that must have a status."""
    assert answer.status_code == status, answer.content
    error: dict[str, Any] = answer.json()["error"]
    assert {"message", "type", "param", "code"} <= set(error)
    return error
