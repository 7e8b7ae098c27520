"""Files come in pieces by tus 1.0; what is no good is refused as soon as that can be seen."""

import base64
import fcntl
import hashlib
import io
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client
from pytest_django.fixtures import Settings

from models_registry.incoming.receiving import Chunk, receive_chunk
from models_registry.incoming.refusal import UploadRefused
from models_registry.incoming.room import check_quota
from models_registry.incoming_ids import is_incoming_id, make_incoming_id
from models_registry.models import ModelFile, ModelImport, Upload, UploadQuota
from tests.inference.gguf.builder import Draft
from tests.llamero.api.conftest import LIMITED_KEY
from tests.llamero.api.described import check
from tests.llamero.api.model_imports.conftest import MODELS_KEY
from tests.llamero.api.model_imports.tus_client import COLLECTION, TusClient, error_of, metadata_of

GOOD = Draft().pack()
SHA256 = hashlib.sha256(GOOD).hexdigest()


def store_good(owner: str) -> ModelFile:
    """Have the good file be in the store, brought by somebody."""
    stored = ModelFile.objects.create(sha256=SHA256, size_bytes=len(GOOD), owner=owner)
    stored.path.parent.mkdir(parents=True)
    stored.path.write_bytes(GOOD)
    return stored


def incoming(home: Path) -> list[Path]:
    """List what lies in the folder of uploads."""
    return list((home / "models" / ".incoming").glob("*"))


def test_a_file_comes_in_pieces_and_is_checked(tus: TusClient, home: Path) -> None:
    created = tus.create(len(GOOD), filename="tiny.gguf", sha256=SHA256)
    url = created["Location"]
    assert created.status_code == 201
    assert (created["Tus-Resumable"], created["Upload-Offset"]) == ("1.0.0", "0")
    for begin in range(0, len(GOOD), 300):
        piece = GOOD[begin : begin + 300]
        digest = base64.b64encode(hashlib.sha1(piece).digest()).decode()
        answer = tus.patch(url, begin, piece, Upload_Checksum=f"sha1 {digest}")
        assert answer.status_code == 204
        assert answer["Upload-Offset"] == str(begin + len(piece))
        assert "GMT" in answer["Upload-Expires"]
    head = tus.send("HEAD", url)
    assert (head["Upload-Offset"], head["Upload-Length"]) == (str(len(GOOD)),) * 2
    shown = tus.look(url)
    assert (shown["status"], shown["sha256"], shown["part"]) == ("complete", SHA256, "weights")
    assert incoming(home)[0].read_bytes() == GOOD
    described = type("Answer", (), {})()
    raw = tus.send("GET", url)
    described.status, described.headers = 200, {"content-type": raw["Content-Type"]}
    described.body = raw.content
    check("GET", url, described)


def test_what_the_server_can_do(tus: TusClient) -> None:
    answer = Client().options(COLLECTION)
    assert (answer.status_code, answer["Tus-Version"]) == (204, "1.0.0")
    assert set(answer["Tus-Extension"].split(",")) == {
        "creation",
        "checksum",
        "termination",
        "expiration",
    }
    refused = tus.send("POST", COLLECTION, Tus_Resumable="0.2.2", Upload_Length="5")
    assert (refused.status_code, refused["Tus-Version"]) == (412, "1.0.0")


@pytest.mark.parametrize(
    ("contents", "code"),
    [
        (b"<!doctype html><title>Sign in</title>", "magic"),
        (b"version https://git-lfs.github.com/spec/v1\n", "magic"),
        (b"GGUF" + bytes(60), "version"),
        (b"PK\x03\x04" + bytes(60), "magic"),
    ],
)
def test_what_is_no_gguf_is_refused_in_the_first_piece(
    tus: TusClient, home: Path, contents: bytes, code: str
) -> None:
    url = tus.create(10**9, filename="model.gguf")["Location"]
    error = error_of(tus.patch(url, 0, contents), 422)
    assert error["code"] == code
    assert incoming(home) == []
    shown = tus.look(url)
    assert (shown["status"], shown["reason"]) == ("refused", error["message"])
    assert error_of(tus.patch(url, len(contents), b"x"), 410)["code"] == code
    assert tus.send("HEAD", url).status_code == 410


def test_a_file_that_is_too_short_for_its_header_is_refused_before_it_is_sent(
    tus: TusClient,
) -> None:
    size = len(GOOD) - 1
    url = tus.create(size, filename="cut.gguf")["Location"]
    error = error_of(tus.patch(url, 0, GOOD[: size - 40]), 422)
    assert error["code"] == "truncated"
    assert "cut off" in error["message"]


def test_wrong_offsets_and_excess_change_nothing(tus: TusClient) -> None:
    url = tus.create(len(GOOD))["Location"]
    tus.patch(url, 0, GOOD[:100])
    for offset in (0, 99, 101, 10**12):
        answer = tus.patch(url, offset, GOOD[100:])
        assert error_of(answer, 409)["code"] == "offset_mismatch"
        assert answer["Upload-Offset"] == "100"
    assert error_of(tus.patch(url, 100, GOOD[100:] + b"x"), 413)["code"] == "too_many_bytes"
    wrong = base64.b64encode(bytes(32)).decode()
    answer = tus.patch(url, 100, GOOD[100:], Upload_Checksum=f"sha256 {wrong}")
    assert error_of(answer, 460)["code"] == "checksum_mismatch"
    assert tus.send("HEAD", url)["Upload-Offset"] == "100"
    assert tus.patch(url, 100, GOOD[100:]).status_code == 204
    # Clients that do not know that it is whole learn it from the offset.
    assert tus.patch(url, 0, GOOD)["Upload-Offset"] == str(len(GOOD))


def test_a_piece_that_does_not_say_its_length_goes_no_further_than_the_file(
    tus: TusClient,
) -> None:
    tus.create(len(GOOD))
    upload = Upload.objects.get()
    with pytest.raises(UploadRefused) as refused:
        receive_chunk(upload, Chunk(0, 0, io.BytesIO(GOOD + b"x")))
    assert (refused.value.code, upload.num_received) == ("too_many_bytes", 0)
    whole = len(GOOD)
    assert receive_chunk(upload, Chunk(0, 0, io.BytesIO(GOOD))) == whole
    # Nor behind what is whole, and may have been hashed by now.
    with pytest.raises(UploadRefused):
        receive_chunk(upload, Chunk(whole, 0, io.BytesIO(b"x")))
    assert upload.path.read_bytes() == GOOD


def test_one_writer_at_a_time(tus: TusClient) -> None:
    url = tus.create(len(GOOD))["Location"]
    with Upload.objects.get().path.open("r+b") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        answer = tus.patch(url, 0, GOOD)
        assert error_of(answer, 423)["code"] == "upload_locked"
        assert answer["Retry-After"]
    assert tus.patch(url, 0, GOOD).status_code == 204


def test_a_file_with_another_hash_is_refused(tus: TusClient, home: Path) -> None:
    url = tus.upload(GOOD, sha256="0" * 64)
    shown = tus.look(url)
    assert (shown["status"], shown["code"]) == ("refused", "checksum_mismatch")
    assert SHA256 in shown["reason"]
    assert incoming(home) == []


def test_a_hash_may_come_with_the_last_piece(tus: TusClient) -> None:
    url = tus.create(len(GOOD))["Location"]
    tus.patch(url, 0, GOOD[:500])
    assert error_of(tus.patch(url, 500, GOOD[500:], Upload_Sha256="x"), 400)["param"] == "sha256"
    tus.patch(url, 500, GOOD[500:], Upload_Sha256="1" * 64)
    assert tus.look(url)["code"] == "checksum_mismatch"


def test_a_file_that_is_here_need_not_travel(tus: TusClient, home: Path) -> None:
    store_good(owner="key:1")
    assert tus.look(f"{COLLECTION}?size={len(GOOD)}")["may_be_here"] is True
    assert tus.look(f"{COLLECTION}?size=5")["may_be_here"] is False
    created = tus.create(len(GOOD), sha256=SHA256.upper())
    assert created["Upload-Offset"] == str(len(GOOD))
    shown = tus.look(created["Location"])
    assert (shown["status"], shown["was_here"]) == ("complete", True)
    # A client that sends it all the same is told where it stands, and is done.
    answer = tus.patch(created["Location"], 0, GOOD)
    assert (answer.status_code, answer["Upload-Offset"]) == (409, str(len(GOOD)))


def test_a_hash_alone_gives_nobody_the_file_of_another(tus: TusClient, home: Path) -> None:
    stored = store_good(owner="user:1")
    assert tus.look(f"{COLLECTION}?size={len(GOOD)}")["may_be_here"] is False
    created = tus.create(len(GOOD), sha256=SHA256)
    assert created["Upload-Offset"] == "0"
    # Sending it proves that one has it, and then it is kept once.
    tus.patch(created["Location"], 0, GOOD)
    shown = tus.look(created["Location"])
    assert (shown["status"], shown["was_here"]) == ("complete", True)
    assert [upload.stored_file for upload in Upload.objects.all()] == [stored]


@pytest.mark.parametrize(
    ("permission", "is_taken"), [("add_model", False), ("view_modelfile", True)]
)
def test_who_sees_all_files_may_have_them_by_hash(
    home: Path, permission: str, is_taken: bool
) -> None:
    store_good(owner="")
    user = User.objects.create_user("bob", password="x", is_staff=True)
    user.user_permissions.set(Permission.objects.filter(codename__in=("add_model", permission)))
    client = Client()
    client.force_login(user)
    metadata = metadata_of({"sha256": SHA256})
    headers = {
        "Tus-Resumable": "1.0.0",
        "Upload-Length": str(len(GOOD)),
        "Upload-Metadata": metadata,
    }
    answer = client.post(COLLECTION, headers=headers)
    assert answer["Upload-Offset"] == str(len(GOOD) if is_taken else 0)
    asked = client.get(f"{COLLECTION}?size={len(GOOD)}").json()
    assert asked["may_be_here"] is is_taken


def test_a_user_may_have_another_quota_than_all_others(home: Path, settings: Settings) -> None:
    settings.UPLOAD_QUOTA_BYTES = 10
    user = User.objects.create_user("bob")
    check_quota(size_bytes=10, owner=f"user:{user.pk}")
    with pytest.raises(UploadRefused, match="too much"):
        check_quota(size_bytes=11, owner=f"user:{user.pk}")
    quota = UploadQuota.objects.create(user=user, max_bytes=20)
    check_quota(size_bytes=20, owner=f"user:{user.pk}")
    with pytest.raises(UploadRefused, match="too much"):
        check_quota(size_bytes=21, owner=f"user:{user.pk}")
    UploadQuota.objects.filter(pk=quota.pk).update(max_bytes=0)
    check_quota(size_bytes=2**60, owner=f"user:{user.pk}")
    with pytest.raises(UploadRefused, match="too much"):
        check_quota(size_bytes=11, owner="key:1")


@pytest.mark.parametrize(
    ("setting", "value", "status", "code"),
    [
        ("MAX_MODEL_FILE_BYTES", 100, 413, "file_too_large"),
        ("UPLOAD_QUOTA_BYTES", len(GOOD) + 100, 413, "quota_exceeded"),
        ("DISK_RESERVE_BYTES", 2**62, 507, "insufficient_storage"),
    ],
)
def test_without_room_nothing_begins(
    tus: TusClient, settings: Settings, setting: str, value: int, status: int, code: str
) -> None:
    ModelFile.objects.create(sha256="a" * 64, size_bytes=101, owner="key:1")
    setattr(settings, setting, value)
    error = error_of(tus.create(len(GOOD)), status)
    assert error["code"] == code
    assert "KB" in error["message"] or "bytes" in error["message"]
    assert not Upload.objects.exists()
    assert not ModelImport.objects.exists()


@pytest.mark.parametrize(
    ("headers", "param"),
    [
        ({}, "Upload-Length"),
        ({"Upload-Length": "-1"}, "Upload-Length"),
        ({"Upload-Length": "0"}, "Upload-Length"),
        ({"Upload-Length": "9" * 17}, "Upload-Length"),
        ({"Upload-Length": "٣"}, "Upload-Length"),
        ({"Upload-Length": "9", "Upload-Metadata": "filename !!"}, "Upload-Metadata"),
        ({"Upload-Length": "9", "Upload-Metadata": "filename AAA="}, "Upload-Metadata"),
        ({"Upload-Length": "9", "Upload-Metadata": "filename \u00e9"}, "Upload-Metadata"),
        ({"Upload-Length": "9", "Upload-Metadata": "x " * 5000}, "Upload-Metadata"),
        ({"Upload-Length": "9", "Upload-Metadata": "sha256 YWJj"}, "sha256"),
    ],
)
def test_bad_creations(tus: TusClient, headers: dict[str, str], param: str) -> None:
    assert error_of(tus.send("POST", COLLECTION, **headers), 400)["param"] == param
    assert not ModelImport.objects.exists()


def test_bad_pieces(tus: TusClient) -> None:
    url = tus.create(len(GOOD))["Location"]
    bad_type = tus.send("PATCH", url, GOOD, Upload_Offset="0", Content_Type="text/plain")
    assert bad_type.status_code == 415
    assert error_of(tus.send("PATCH", url, GOOD), 400)["param"] == "Upload-Offset"
    for checksum in ("md5 AAAA", "sha1 AAAA", "sha256", "sha256 !", "sha256 \u00e9"):
        answer = tus.patch(url, 0, GOOD, Upload_Checksum=checksum)
        assert error_of(answer, 400)["param"] == "Upload-Checksum"
    assert tus.send("HEAD", url)["Upload-Offset"] == "0"


def test_others_and_strangers_see_nothing(tus: TusClient) -> None:
    url = tus.create(len(GOOD))["Location"]
    other = TusClient(Client(), LIMITED_KEY)
    for method in ("GET", "HEAD", "PATCH", "DELETE"):
        assert other.send(method, url, Upload_Offset="0").status_code == 404
        assert TusClient(Client(), "llm_wrong").send(method, url).status_code == 401
        assert TusClient(Client(), "llm_readers").send(method, url).status_code == 403
    for made_up in ("x", "../../etc", "0" * 48, url.rpartition("/")[2][:-1] + "x"):
        assert tus.send("GET", f"{COLLECTION}/{made_up}").status_code == 404
    limited = TusClient(Client(), MODELS_KEY).create(len(GOOD), model="other")
    assert error_of(limited, 403)["code"] == "model_not_allowed"


def test_an_upload_can_be_given_up(tus: TusClient, home: Path) -> None:
    url = tus.create(len(GOOD))["Location"]
    tus.patch(url, 0, GOOD[:100])
    assert tus.send("DELETE", url).status_code == 204
    assert tus.send("HEAD", url).status_code == 404
    assert incoming(home) == []


def test_no_file_is_taken_from_an_import_that_runs(tus: TusClient, home: Path) -> None:
    url = tus.upload(GOOD)
    ModelImport.objects.update(state="importing")
    assert error_of(tus.send("DELETE", url), 409)["code"] == "wrong_state"
    assert incoming(home)[0].read_bytes() == GOOD


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("../../etc/x.gguf", "x.gguf"),
        ("..\\x.gguf", "x.gguf"),
        ("/abs.gguf", "abs.gguf"),
        ("a\u202eb\x07.gguf", "a\ufffdb\ufffd.gguf"),
        ("x" * 300, "x" * 255),
        ("", ""),
    ],
)
def test_names_are_for_people_alone(tus: TusClient, home: Path, name: str, shown: str) -> None:
    url = tus.create(len(GOOD), filename=name)["Location"]
    assert tus.look(url)["filename"] == shown
    assert [path.name for path in incoming(home)] == [url.rpartition("/")[2]]


def test_a_browser_needs_the_permission_and_a_page_of_ours(home: Path) -> None:
    user = User.objects.create_user("bob", password="x", is_staff=True)
    client = Client(enforce_csrf_checks=True)
    client.force_login(user)
    headers: dict[str, Any] = {"Tus-Resumable": "1.0.0", "Upload-Length": "9"}
    token = "t" * 32
    client.cookies["llamero_csrf"] = token

    def create(**more: str) -> int:
        answer = client.post(COLLECTION, headers=headers | more)
        return int(answer.status_code)

    assert create(**{"X-CSRFToken": token}) == 403
    User.objects.filter(pk=user.pk).update(is_superuser=True)
    assert create() == 403
    assert create(**{"X-CSRFToken": token, "Origin": "http://evil.example"}) == 403
    assert create(**{"X-CSRFToken": token}) == 201
    assert ModelImport.objects.get().owner == f"user:{user.pk}"


def test_names_of_uploads_are_signed() -> None:
    name = make_incoming_id()
    assert is_incoming_id(name)
    for wrong in ("", name[:-1], name.upper(), "0" * 48, name[1:] + name[0], name + "\n"):
        assert not is_incoming_id(wrong)
