"""Model files over HTTP: by hash, in pieces, for machines with a token."""

import hashlib
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from llamero.accounts.key_text import make_key_text
from llamero.control import file_pieces
from llamero.control.models import NodeToken
from llamero.control.node_tokens import (
    KIND,
    find_node_token,
    issue_node_token,
    recent_tokens,
    revoke_node_tokens,
)
from models_registry.models import ModelFile
from tests.llamero.api.asgi_client import Answer, get

pytestmark = pytest.mark.django_db(transaction=True)
CONTENT = bytes(range(256)) * 40


@pytest.fixture
def token() -> str:
    recent_tokens.clear()
    return issue_node_token(name="worker").secret_text


@pytest.fixture
def file(monkeypatch: pytest.MonkeyPatch) -> ModelFile:
    """A stored file of ten pieces and a bit."""
    monkeypatch.setattr(file_pieces, "MAX_PIECE_BYTES", 1000)
    file = ModelFile.objects.create(
        sha256=hashlib.sha256(CONTENT).hexdigest(), size_bytes=len(CONTENT)
    )
    file.path.parent.mkdir(parents=True, exist_ok=True)
    file.path.unlink(missing_ok=True)
    file.path.write_bytes(CONTENT)
    return file


async def fetch(sha256: str, token: str, span: str = "bytes=0-") -> Answer:
    headers = {"authorization": f"Bearer {token}"} | ({"range": span} if span else {})
    return await get(f"/nodes/files/{sha256}", key=None, headers=headers)


async def test_a_file_comes_in_bounded_pieces_from_any_place(file: ModelFile, token: str) -> None:
    found = b""
    while len(found) < len(CONTENT):
        answer = await fetch(file.sha256, token, f"bytes={len(found)}-")
        assert answer.status == 206
        assert len(answer.body) <= 1000
        last = len(found) + len(answer.body) - 1
        assert answer.headers["content-range"] == f"bytes {len(found)}-{last}/{len(CONTENT)}"
        found += answer.body
    assert found == CONTENT
    answer = await fetch(file.sha256, token, "bytes=10-19")
    assert answer.body == CONTENT[10:20]


async def test_past_the_end_is_416_with_the_size(file: ModelFile, token: str) -> None:
    answer = await fetch(file.sha256, token, f"bytes={len(CONTENT)}-")
    assert answer.status == 416
    assert answer.headers["content-range"] == f"bytes */{len(CONTENT)}"


@pytest.mark.parametrize(
    "span", ["", "bytes=-5", "bytes=5-2", "bytes=0-1,3-4", "items=0-", "bytes=x-", "bytes=1e3-"]
)
async def test_anything_but_one_plain_range_is_400(file: ModelFile, token: str, span: str) -> None:
    answer = await fetch(file.sha256, token, span)
    assert answer.status == 400
    assert answer.error["param"] == "Range"


@pytest.mark.parametrize(
    "name",
    [
        "0" * 64,
        "A" * 64,
        "a" * 63,
        "..%2f..%2fsecret-key",
        "../../secret-key",
        "%2e%2e/" + "a" * 64,
        "a" * 64 + "%00",
        "a" * 64 + "/..",
    ],
)
async def test_only_hashes_of_stored_files_are_addresses(
    file: ModelFile, token: str, name: str
) -> None:
    assert (await fetch(name, token)).status == 404


async def test_a_link_in_the_store_leads_nowhere(
    file: ModelFile, token: str, tmp_path: Path
) -> None:
    secret = tmp_path / "secret"
    secret.write_bytes(CONTENT)
    file.path.unlink()
    file.path.symlink_to(secret)
    assert (await fetch(file.sha256, token)).status == 404
    file.path.unlink()
    file.path.write_bytes(CONTENT[:10])
    assert (await fetch(file.sha256, token)).status == 404
    file.path.unlink()
    assert (await fetch(file.sha256, token)).status == 404


async def test_strangers_and_api_keys_get_nothing(file: ModelFile, token: str) -> None:
    for wrong in ("", token + "x", make_key_text(), make_key_text(KIND), "x" * 2000, "é"):
        answer = await fetch(file.sha256, wrong)
        assert answer.status == 401
        assert answer.error["code"] == "invalid_node_token"


def test_a_revoked_token_is_no_token(token: str) -> None:
    stored = NodeToken.objects.get()
    assert find_node_token(token) == stored
    assert token not in (stored.digest, stored.prefix)
    assert revoke_node_tokens(tokens=[stored]) == 1
    assert revoke_node_tokens(tokens=[stored]) == 0
    recent_tokens.clear()
    assert find_node_token(token) is None


def test_a_token_is_made_from_the_shell(capsys: pytest.CaptureFixture[str]) -> None:
    call_command("create_node_token", "worker-1")
    text = capsys.readouterr().out.strip()
    recent_tokens.clear()
    found = find_node_token(text)
    assert found is not None
    assert found.name == "worker-1"
    assert NodeToken.objects.get().last_used_at is not None
    with pytest.raises(CommandError):
        call_command("create_node_token", "x" * 101)
