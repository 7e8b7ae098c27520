"""Files come from URLs and from a hub: only from where they may, and through cuts."""

import hashlib
import io
import socket
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.test import Client
from django.urls import reverse
from pytest_django.fixtures import Settings

from models_registry.admin import fetch_pages
from models_registry.incoming.fetching import answers, fetching, threads
from models_registry.incoming.fetching.addresses import (
    FetchRefused,
    is_public,
    read_url,
    resolve,
)
from models_registry.incoming.fetching.hub import list_repository
from models_registry.incoming.sources import add_fetched_files, file_at, files_of_repository
from models_registry.models import ImportState, Model, ModelImport, ModelVersion, Upload
from tests.inference.gguf.builder import Draft
from tests.models_registry.fake_hub import TOKEN, Hub, running_hub

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.usefixtures("home", "quick_probe", "quick_inspection"),
]
GOOD = Draft().pack()
REPOSITORY = "ada/tiny-GGUF"


@pytest.fixture
def hub(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    """A hub with one repository, which the settings name."""
    monkeypatch.setattr(fetching, "FIRST_PAUSE_SECONDS", 0.0)
    settings.DISK_RESERVE_BYTES = 0
    with running_hub() as running:
        settings.HUB_ENDPOINT = running.url
        running.files[REPOSITORY] = {"tiny.gguf": GOOD, "README.md": b"# Tiny"}
        yield running


def fetch(*files: Any) -> Upload:
    """Fetch files of an import of their own; gives the first."""
    model_import = ModelImport.objects.create(owner="user:1")
    for upload in add_fetched_files(model_import, files):
        fetching.fetch_upload(upload)
    found = model_import.uploads.first()
    assert found is not None
    return found


def test_a_repository_is_listed_and_a_file_fetched(hub: Hub) -> None:
    repository = list_repository(REPOSITORY)
    [file] = repository.files
    assert (file.name, file.size_bytes) == ("tiny.gguf", len(GOOD))
    upload = fetch(*files_of_repository(REPOSITORY, "tiny.gguf", "main"))
    assert (upload.state, upload.path.read_bytes()) == ("checking", GOOD)
    assert upload.sha256 == hashlib.sha256(GOOD).hexdigest()


def test_the_token_goes_to_the_hub_alone(hub: Hub, settings: Settings) -> None:
    hub.private.add(REPOSITORY)
    with pytest.raises(FetchRefused, match="HF_TOKEN is unset"):
        list_repository(REPOSITORY)
    settings.HUB_TOKEN = TOKEN
    with running_hub() as store:
        settings.FETCH_PRIVATE_HOSTS = ["127.0.0.1"]
        store.files[REPOSITORY] = {"tiny.gguf": GOOD}
        path = f"/{REPOSITORY}/resolve/{list_repository(REPOSITORY).commit}/tiny.gguf"
        place = {"Location": f"{store.url}/cdn/{REPOSITORY}/tiny.gguf"}
        hub.odd[path] = (302, place, b"")
        upload = fetch(*files_of_repository(REPOSITORY, "tiny.gguf"))
        assert upload.state == "checking"
        assert hub.asked_of("/resolve/")[0]["authorization"] == f"Bearer {TOKEN}"
        assert "authorization" not in store.asked_of("/cdn/")[0]
    rows = str(list(Upload.objects.values()) + list(ModelImport.objects.values()))
    assert TOKEN not in rows


@pytest.mark.parametrize(
    ("name", "revision", "words"),
    [
        ("nobody/nothing", "", "none of this name"),
        (REPOSITORY, "v9", "no such revision"),
        ("a b/c", "", "no name of a repository"),
        ("../etc", "", "no name of a repository|none of this name"),
    ],
)
def test_bad_repositories_are_told_in_words(hub: Hub, name: str, revision: str, words: str) -> None:
    with pytest.raises(FetchRefused, match=words):
        list_repository(name, revision)


def test_a_gated_or_silent_hub(hub: Hub, settings: Settings) -> None:
    hub.gated.add(REPOSITORY)
    with pytest.raises(FetchRefused, match="lets only some people"):
        list_repository(REPOSITORY)
    settings.HUB_ENDPOINT = "http://127.0.0.1:9"
    with pytest.raises(FetchRefused, match="cannot be reached"):
        list_repository(REPOSITORY)


def test_a_fetch_goes_on_where_it_was_cut(hub: Hub) -> None:
    hub.cut_after = [300, 0, 200, 100]
    upload = fetch(*files_of_repository(REPOSITORY, "tiny.gguf"))
    assert upload.path.read_bytes() == GOOD
    ranges = [one.get("range") for one in hub.asked_of("/cdn/")]
    assert ranges == [None, "bytes=300-", "bytes=300-", "bytes=500-", "bytes=600-"]


def test_what_signs_an_address_is_kept_while_it_is_needed_and_never_shown(hub: Hub) -> None:
    url = f"{hub.url}/cdn/{REPOSITORY}/tiny.gguf"
    upload = Upload(source_url=f"{url}?X-Amz-Signature=confidential")
    assert upload.shown_source == url
    fetched = fetch(file_at(upload.source_url))
    assert (fetched.state, fetched.source_url) == ("checking", url)
    refused = fetch(file_at(f"{hub.url}/nothing.gguf?X-Amz-Signature=confidential"))
    assert refused.state == "refused"
    assert "confidential" not in f"{refused.source_url} {refused.reason}"


def test_a_fetch_begins_anew_where_it_must(hub: Hub) -> None:
    hub.cut_after = [300, 400]
    hub.takes_ranges = False
    assert fetch(*files_of_repository(REPOSITORY, "tiny.gguf")).path.read_bytes() == GOOD


def test_a_fetch_that_stops_is_found_again(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    hub.cut_after = [300] + [0] * 5
    upload = fetch(*files_of_repository(REPOSITORY, "tiny.gguf"))
    assert (upload.state, upload.code, upload.num_received) == ("receiving", "stalled", 300)
    assert "ended after 300 bytes" in upload.reason
    assert threads.find_waiting() == []
    monkeypatch.setattr(threads, "SILENT_AFTER", timedelta(seconds=-1))
    assert threads.find_waiting() == [upload.pk]
    assert fetching.fetch_upload(upload)
    assert upload.path.read_bytes() == GOOD


def test_what_is_no_model_stops_at_its_first_bytes(hub: Hub) -> None:
    hub.files[REPOSITORY]["page.gguf"] = b"<html>" + bytes(3_000_000)
    upload = fetch(*files_of_repository(REPOSITORY, "page.gguf"))
    assert (upload.state, upload.code) == ("refused", "magic")
    assert not upload.path.exists()


@pytest.mark.parametrize(
    ("status", "headers", "words"),
    [
        (404, {}, "there is no such file"),
        (403, {}, "does not let us"),
        (200, {"Content-Encoding": "gzip"}, "packed"),
        (200, {"Content-Length": "x"}, "how large"),
        (200, {"Content-Length": "9" * 5000}, "how large"),
        (302, {}, "nowhere"),
        (302, {"Location": "file:///etc/passwd"}, "https:// or http://"),
        (302, {"Location": "http://10.0.0.1/x"}, "not in the public Internet"),
        (302, {"Location": "http://169.254.169.254/latest/meta-data"}, "not in the public"),
        (302, {"Location": "/odd"}, "more than 5 redirects"),
    ],
)
def test_odd_answers(hub: Hub, status: int, headers: dict[str, str], words: str) -> None:
    hub.odd["/odd"] = (status, headers, b"")
    upload = fetch(file_at(f"{hub.url}/odd"))
    assert upload.state == "refused"
    assert words in upload.reason


def test_a_busy_server_is_asked_again(hub: Hub) -> None:
    hub.odd["/odd"] = (503, {}, b"")
    upload = fetch(file_at(f"{hub.url}/odd"))
    assert (upload.code, len(hub.asked)) == ("stalled", fetching.NUM_TRIES)


def test_a_file_without_room_is_not_fetched(hub: Hub, settings: Settings) -> None:
    settings.MAX_MODEL_FILE_BYTES = 100
    upload = fetch(file_at(f"{hub.url}/cdn/{REPOSITORY}/tiny.gguf"))
    assert (upload.state, upload.code) == ("refused", "file_too_large")


@pytest.mark.parametrize(
    "url",
    [
        "file:///etc/passwd",
        "ftp://example.org/x",
        "https://",
        "https://user:secret@example.org/x",
        "https://example.org:99999/x",
        "https://exa mple.org/x",
        "https://example.org/\r\nHost: evil",
        "https://[::1/x",
        "http://exämple.org/x",
        "x" * 3000,
    ],
)
def test_bad_urls(url: str) -> None:
    with pytest.raises(FetchRefused):
        read_url(url)


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1",
        "10.1.2.3",
        "172.16.0.1",
        "192.168.0.1",
        "169.254.169.254",
        "100.64.0.1",
        "0.0.0.0",
        "224.0.0.1",
        "255.255.255.255",
        "::1",
        "::",
        "fe80::1",
        "fe80::1%eth0",
        "fd00::1",
        "ff02::1",
        "::ffff:127.0.0.1",
        "2002:7f00:1::",
        "64:ff9b::7f00:1",
        "64:ff9b::a9fe:a9fe",
        "64:ff9b:1::7f00:1",
        "2001:0:0:0:0:0:80ff:fffe",
        "::7f00:1",
        "fec0::1",
        "5f00::1",
    ],
)
def test_addresses_that_are_not_public(address: str) -> None:
    assert not is_public(address)


@pytest.mark.parametrize(
    "address", ["93.184.216.34", "2606:2800:220:1::1", "::ffff:8.8.8.8", "64:ff9b::808:808"]
)
def test_addresses_that_are(address: str) -> None:
    assert is_public(address)


@pytest.mark.parametrize(
    "host", ["localhost", "127.0.0.1", "127.1", "2130706433", "0x7f.1", "[::1]", "localhost."]
)
def test_hosts_of_this_network_are_refused_however_they_are_written(host: str) -> None:
    with pytest.raises(FetchRefused, match=r"public Internet|not known"):
        resolve(read_url(f"http://{host}/x"))


def test_what_was_judged_is_what_is_connected_to(
    hub: Hub, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def answer(host: str, port: int, **_options: Any) -> list[Any]:
        asked.append(host)
        address = "93.184.216.34" if len(asked) == 1 else "127.0.0.1"
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port))]

    connected: list[tuple[str, int]] = []

    def connect(address: tuple[str, int], _timeout: float) -> socket.socket:
        connected.append(address)
        raise TimeoutError

    monkeypatch.setattr(socket, "getaddrinfo", answer)
    monkeypatch.setattr(answers.socket, "create_connection", connect)
    with (
        pytest.raises(answers.FetchInterrupted),
        answers.ask_for_file("http://rebind.example/x", offset=0, tag=""),
    ):
        pass
    assert connected == [("93.184.216.34", 80)]
    assert asked == ["rebind.example"]


def test_the_hubs_page(admin_client: Client, hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    fetched: list[str] = []
    monkeypatch.setattr(fetch_pages, "ask_for_fetch", fetched.append)
    shards = {f"q8/big-0000{number}-of-00002.gguf": GOOD for number in (1, 2)}
    hub.files[REPOSITORY] |= shards
    url = reverse("admin:models_registry_model_hub")
    page = admin_client.get(url, {"repository": REPOSITORY})
    assert "2 shards" in page.text
    assert "README" not in page.text
    chosen = {"repository": REPOSITORY, "revision": "main", "slug": "tiny", "names": "tiny.gguf"}
    answer = admin_client.post(url, chosen)
    model_import = ModelImport.objects.get()
    assert answer.url.endswith(f"/upload/?import={model_import.id}")
    assert (model_import.state, model_import.wish["model"]) == ("waiting", "tiny")
    assert fetched == [model_import.uploads.get().pk]
    taken = admin_client.post(url, chosen | {"slug": "../x"})
    assert "slug" in taken.context["form"].errors
    missing = admin_client.get(url, {"repository": "nobody/nothing"})
    assert "none of this name" in missing.text


def test_the_page_for_urls(admin_client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    fetched: list[str] = []
    monkeypatch.setattr(fetch_pages, "ask_for_fetch", fetched.append)
    url = reverse("admin:models_registry_model_fetch")
    lines = f"https://example.org/a.gguf {'a' * 64}\nhttps://example.org/b%20c.gguf?x=1\n"
    admin_client.post(url, {"urls": lines, "slug": "tiny", "deploy": "on"})
    names = list(Upload.objects.values_list("display_name", "sha256"))
    assert names == [("a.gguf", "a" * 64), ("b c.gguf", "")]
    assert len(fetched) == 2
    for bad in ("file:///x", "https://example.org/a.gguf nohash", "https://u:p@example.org/x"):
        page = admin_client.post(url, {"urls": bad, "slug": "other"})
        assert "urls" in page.context["form"].errors
    several = admin_client.post(url, {"urls": f"file:///x\n{lines}ftp://y z", "slug": "other"})
    assert len(several.context["form"].errors["urls"]) == 2
    signed = admin_client.post(url, {"urls": "https://a:b@example.org/x?sig=confidential no"})
    assert "confidential" not in str(signed.context["form"].errors)
    Model.objects.create(slug="taken", title="Taken")
    page = admin_client.post(url, {"urls": lines, "slug": "taken"})
    assert "taken exists" in str(page.context["form"].errors["slug"])
    assert ModelImport.objects.count() == 1


def test_the_command_imports_from_the_hub(hub: Hub) -> None:
    output = io.StringIO()
    call_command("import_model", f"hf://{REPOSITORY}/tiny.gguf", slug="tiny", stdout=output)
    assert "tiny v1 is ready" in output.getvalue()
    assert ModelVersion.objects.get().files.get().display_name == "tiny.gguf"
    assert ModelImport.objects.get().state == ImportState.DONE
    with pytest.raises(CommandError, match="has no file nothing"):
        call_command("import_model", f"hf://{REPOSITORY}/nothing.gguf", slug="other")


def test_the_command_imports_from_a_url(hub: Hub, home: Path) -> None:
    url = f"{hub.url}/cdn/{REPOSITORY}/tiny.gguf"
    call_command("import_model", url, slug="tiny", stdout=io.StringIO())
    [use] = ModelVersion.objects.get().files.all()
    assert use.file.path.read_bytes() == GOOD
    with pytest.raises(CommandError, match="not in the public Internet"):
        call_command("import_model", "http://10.0.0.1/x.gguf", slug="other")
