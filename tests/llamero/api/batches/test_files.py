"""Files come by forms, belong to one key, and go by their time."""

from datetime import timedelta
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone
from openai.types import FileDeleted, FileObject
from pytest_django.fixtures import Settings

from llamero.api.threads import run_in_thread
from llamero.batches import store
from llamero.batches.models import StoredFile
from llamero.batches.services import remove_expired
from tests.llamero.api.asgi_client import get, post, start
from tests.llamero.api.batches.helpers import make_form, send_form, upload
from tests.llamero.api.conftest import LIMITED_KEY
from tests.llamero.api.described import check

BATCH = {"purpose": "batch"}
FILE = ("file", "a.jsonl", b"{}\n")


def files_in(home: Path) -> list[Path]:
    return [path for path in (home / "files").rglob("*") if path.is_file()]


async def test_a_file_is_kept_and_given_back(home: Path) -> None:
    contents = bytes(range(256)) * 3000
    answer = await upload(contents)
    check("POST", "/v1/files", answer)
    file = FileObject.model_validate(answer.json())
    assert (file.bytes, file.filename, file.purpose) == (len(contents), "asked.jsonl", "batch")
    assert answer.json()["sha256"] == sha256(contents).hexdigest()
    assert file.expires_at == file.created_at + 30 * 24 * 3600
    url = f"/v1/files/{file.id}"
    shown, given = await get(url), await get(f"{url}/content")
    check("GET", url, shown)
    assert shown.json() == answer.json()
    assert given.body == contents
    assert given.headers["content-length"] == str(len(contents))
    assert [path.stat().st_mode & 0o077 for path in files_in(home)] == [0]
    for other in (url, f"{url}/content"):
        assert (await get(other, key=LIMITED_KEY)).error["code"] == "file_not_found"
    assert (await start("DELETE", url, key=LIMITED_KEY).finish()).status == 404
    deleted = await start("DELETE", url).finish()
    check("DELETE", url, deleted)
    assert FileDeleted.model_validate(deleted.json()).deleted
    assert (await get(url)).status == 404
    assert files_in(home) == []


@pytest.mark.parametrize(
    ("form", "status", "param"),
    [
        (make_form({}, FILE), 400, "purpose"),
        (make_form({"purpose": "fine-tune"}, FILE), 400, "purpose"),
        (make_form(BATCH), 400, "file"),
        (make_form(BATCH, ("other", "a", b"")), 400, "file"),
        (make_form(BATCH, FILE, FILE), 400, "file"),
        (make_form(BATCH, ("file", "a", b"x" * 5000)), 413, "file"),
        (make_form(BATCH | {"expires_after[anchor]": "x"}, FILE), 400, "expires_after.anchor"),
        (
            make_form(
                BATCH | {"expires_after[anchor]": "created_at", "expires_after[seconds]": "60"},
                FILE,
            ),
            400,
            "expires_after.seconds",
        ),
        (b"", 400, "purpose"),
        (b"--b0undary\r\nnonsense", 400, None),
    ],
)
async def test_a_bad_form_is_refused_and_leaves_nothing(
    settings: Settings, home: Path, form: bytes, status: int, param: str | None
) -> None:
    settings.MAX_FILE_BYTES = 4096
    answer = await send_form(form)
    assert (answer.status, answer.error["param"]) == (status, param)
    check("POST", "/v1/files", answer)
    assert files_in(home) == []


@pytest.mark.parametrize("num_missing", [4, 16, 17, 30])
async def test_a_form_that_was_cut_is_no_shorter_file(home: Path, num_missing: int) -> None:
    contents = b"x" * 100_000 + b"\n{}\n" * 10
    form = make_form(BATCH, ("file", "a.jsonl", contents))
    answer = await send_form(form[:-num_missing])
    assert (answer.status, answer.error["code"]) == (400, "invalid_form")
    assert files_in(home) == []
    assert (await send_form(form + b"what follows the last boundary")).status == 200


@pytest.mark.parametrize(
    "kind", ["application/json", "multipart/form-data", "multipart/form-data; boundary=é", "x"]
)
async def test_what_is_no_form_is_refused(kind: str) -> None:
    answer = await send_form(make_form(BATCH, FILE), headers={"content-type": kind})
    assert answer.status in (400, 415)
    assert answer.error["type"] == "invalid_request_error"


async def test_one_key_may_store_so_much(settings: Settings, home: Path) -> None:
    settings.KEY_FILE_BYTES = 100
    assert (await upload(b"x" * 60)).status == 200
    refused = await upload(b"x" * 60)
    assert (refused.status, refused.error["code"]) == (413, "storage_limit_exceeded")
    assert len(files_in(home)) == 1
    assert (await upload(b"x" * 60, key=LIMITED_KEY)).status == 200


async def test_files_are_listed_in_pages() -> None:
    ids = [(await upload(b"x" * size)).json()["id"] for size in range(1, 6)][::-1]
    await upload(b"other", key=LIMITED_KEY)
    seen: list[str] = []
    page: dict[str, Any] = {"has_more": True}
    while page["has_more"]:
        after = f"&after={seen[-1]}" if seen else ""
        answer = await get(f"/v1/files?limit=2{after}")
        check("GET", "/v1/files", answer)
        page = answer.json()
        seen += [one["id"] for one in page["data"]]
        assert (page["first_id"], page["last_id"]) == (seen[-len(page["data"])], seen[-1])
    assert seen == ids
    assert [f["id"] for f in (await get("/v1/files?order=asc")).json()["data"]] == ids[::-1]
    assert (await get("/v1/files?purpose=batch_output")).json()["data"] == []
    for query in ("limit=0", "limit=x", "order=up", "purpose=x", "after=file-1", "after=%00"):
        assert (await get(f"/v1/files?{query}")).status == 400, query


async def test_an_expired_file_is_gone_at_once_and_swept_up(home: Path) -> None:
    file = (await upload(b"{}")).json()
    kept = (await upload(b"{}")).json()
    past = timezone.now() - timedelta(seconds=1)
    await StoredFile.objects.filter(id=file["id"]).aupdate(expires_at=past)
    assert (await get(f"/v1/files/{file['id']}")).status == 404
    assert [one["id"] for one in (await get("/v1/files")).json()["data"]] == [kept["id"]]
    await run_in_thread(partial(remove_expired, now=timezone.now()))
    assert files_in(home) == [store.path_of(kept["id"])]


async def test_bytes_without_a_row_are_swept_up(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = (await upload(b"{}")).json()
    lost = (await upload(b"{}")).json()
    await StoredFile.objects.filter(id=lost["id"]).adelete()
    (store.incoming_folder() / "half").write_bytes(b"x")
    await run_in_thread(partial(remove_expired, now=timezone.now()))
    assert len(files_in(home)) == 3
    monkeypatch.setattr(store, "ORPHAN_SECONDS", -1.0)
    await run_in_thread(partial(remove_expired, now=timezone.now()))
    assert files_in(home) == [store.path_of(kept["id"])]


async def test_an_upload_that_is_sent_twice_is_kept_once(home: Path) -> None:
    headers = {"Idempotency-Key": "one"}
    first = await upload(b"{}", headers=headers)
    again = await upload(b"{}", headers=headers)
    assert again.json() == first.json()
    assert again.headers["idempotent-replayed"] == "true"
    other = await upload(b"{ }", headers=headers)
    assert other.error["code"] == "idempotency_key_reused"
    assert len(files_in(home)) == 1


async def test_a_key_needs_to_be_for_files() -> None:
    assert (await post("/v1/files", b"{}", key=None)).status == 401
