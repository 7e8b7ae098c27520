"""Bodies, methods and addresses that are wrong in themselves."""

import gzip

import pytest

from tests.llamero.api.asgi_client import get, post, start

URL = "/v1/chat/completions"
GOOD = b'{"model":"smol","messages":[{"role":"user","content":"Hi"}]}'
MESSAGES = b'{"model":"smol","messages":[{"role":"user","content":"Hi"}],'


async def test_a_byte_order_mark_is_no_harm() -> None:
    assert (await post(URL, b"\xef\xbb\xbf" + GOOD)).status == 200


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"[]",
        b"null",
        b'"x"',
        b"{",
        MESSAGES + b'"temperature":NaN}',
        MESSAGES + b'"top_p":Infinity}',
        MESSAGES + b'"top_p":-Infinity}',
        MESSAGES + b'"temperature":1e999}',
        MESSAGES + b'"logit_bias":{"5":NaN}}',
        MESSAGES + b'"seed":' + b"9" * 5000 + b"}",
        MESSAGES + b'"seed":1,"seed":2}',
        MESSAGES + b'"x":"\\ud800"}',
        b'{"model":"\\udfff","messages":[{"role":"user","content":"Hi"}]}',
        b'{"model":"smol","messages":[{"role":"user","content":"\xff\xfe\xc4\xe3"}]}',
        GOOD.decode().encode("utf-16"),
        MESSAGES + b'"x":' + b"[" * 10_000 + b"]" * 10_000 + b"}",
        b"[" * 200_000,
        b'{"a":' * 100_000,
        MESSAGES + b'"metadata":' + b'{"a":' * 70 + b"1" + b"}" * 70 + b"}",
        MESSAGES + b'"x":"' + b"\x00" + b'"}',
    ],
)
async def test_a_body_that_is_no_strict_json_object_is_400(raw: bytes) -> None:
    answer = await post(URL, raw)
    assert answer.status == 400
    assert answer.error["type"] == "invalid_request_error"
    assert answer.error["param"] is None
    assert len(answer.body) < 500


async def test_deep_nesting_has_a_code_of_its_own() -> None:
    answer = await post(URL, b'{"a":' * 100_000)
    assert answer.error["code"] == "json_too_deep"


async def test_brackets_inside_strings_are_not_nesting() -> None:
    raw = b'{"model":"smol","messages":[{"role":"user","content":"\\"' + b"[" * 200 + b'"}]}'
    assert (await post(URL, raw)).status == 200


async def test_a_null_character_does_not_cut_the_text() -> None:
    raw = b'{"model":"smol","messages":[{"role":"user","content":"a\\u0000b"}]}'
    assert (await post(URL, raw)).status == 200


@pytest.mark.parametrize(
    "kind",
    [
        "text/plain",
        "",
        "application/x-www-form-urlencoded",
        "application/json, text/plain",
        "application/json; charset=iso-8859-1",
        "application/json; charset=utf-16",
    ],
)
async def test_other_content_types_are_415(kind: str) -> None:
    answer = await post(URL, GOOD, headers={"content-type": kind})
    assert (answer.status, answer.error["type"]) == (415, "invalid_request_error")


@pytest.mark.parametrize("parameter", ["charset=utf-8", 'Charset="UTF-8"', "x=y"])
async def test_json_with_a_parameter_is_fine(parameter: str) -> None:
    kind = f"Application/JSON; {parameter}"
    assert (await post(URL, GOOD, headers={"content-type": kind})).status == 200


@pytest.mark.parametrize(("encoding", "status"), [("gzip", 415), ("br", 415), ("identity", 200)])
async def test_a_compressed_body_is_refused_by_name(encoding: str, status: int) -> None:
    raw = gzip.compress(GOOD) if status == 415 else GOOD
    answer = await post(URL, raw, headers={"content-encoding": encoding})
    assert answer.status == status
    assert status == 200 or "Content-Encoding" in answer.error["message"]


@pytest.mark.parametrize("length", ["", "x", "-1", "5", "9" * 30])
async def test_a_length_that_is_wrong_is_no_harm(length: str) -> None:
    assert (await post(URL, GOOD, headers={"content-length": length})).status == 200


async def test_multipart_is_415() -> None:
    headers = {"content-type": "multipart/form-data; boundary=x"}
    assert (await post(URL, b"--x--", headers=headers)).status == 415


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "PATCH", "BREW"])
async def test_a_wrong_method_is_405_even_without_a_key(method: str) -> None:
    answer = await start(method, URL, key=None).finish()
    assert answer.status == 405
    assert "POST" in answer.headers["allow"]
    assert answer.error["message"]


@pytest.mark.parametrize(
    "path",
    [
        "/v1/chat/completions/",
        "//v1/chat/completions",
        "/v1/nothing",
        "/v1/models/",
        "/completion/x",
        "/v1",
        "/m/smol/nothing",
        "/V1/chat/completions",
    ],
)
@pytest.mark.parametrize("is_debugging", [False, True])
async def test_an_unknown_api_path_is_json(settings: object, path: str, is_debugging: bool) -> None:
    settings.DEBUG = is_debugging  # type: ignore[attr-defined]
    answer = await post(path, GOOD)
    assert answer.status == 404
    assert answer.error["type"] == "not_found_error"
    assert answer.headers["x-request-id"]
    assert answer.headers["content-length"] == str(len(answer.body))


async def test_a_foreign_host_name_is_refused() -> None:
    answer = await get("/v1/models", headers={"host": "evil.example"})
    assert (answer.status, answer.error["type"]) == (400, "invalid_request_error")


async def test_a_body_that_is_too_large_is_413(settings: object) -> None:
    settings.DATA_UPLOAD_MAX_MEMORY_SIZE = 1000  # type: ignore[attr-defined]
    answer = await post(URL, b"{" + b" " * 2000 + b"}")
    assert answer.status == 413
    assert answer.error["code"] == "request_too_large"


async def test_what_nobody_foresaw_is_a_plain_500(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def explode(*_: object) -> None:
        raise RuntimeError("secret of the house")

    monkeypatch.setattr("llamero.api.openai.chat_completions.prepare_chat", explode)
    answer = await post(URL, GOOD)
    assert (answer.status, answer.error["type"]) == (500, "server_error")
    assert b"secret" not in answer.body
    assert "Unexpected error" in caplog.text


async def test_a_preflight_needs_no_key(settings: object) -> None:
    settings.CORS_ALLOWED_ORIGINS = ["https://app.example"]  # type: ignore[attr-defined]
    headers = {
        "origin": "https://app.example",
        "access-control-request-method": "POST",
        "access-control-request-headers": "authorization,content-type",
    }
    answer = await start("OPTIONS", URL, key=None, headers=headers).finish()
    assert answer.status in (200, 204)
    assert answer.headers["access-control-allow-origin"] == "https://app.example"
    assert "authorization" in answer.headers["access-control-allow-headers"]
    refused = await post(URL, GOOD, key=None, headers={"origin": "https://app.example"})
    assert refused.status == 401
    assert refused.headers["access-control-allow-origin"] == "https://app.example"
    other = await post(URL, GOOD, headers={"origin": "https://evil.example"})
    assert "access-control-allow-origin" not in other.headers


async def test_options_without_an_origin_names_the_methods() -> None:
    answer = await start("OPTIONS", URL, key=None).finish()
    assert (answer.status, answer.body) == (204, b"")
    assert "POST" in answer.headers["allow"]
