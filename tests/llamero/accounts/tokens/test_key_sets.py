"""When the keys of an issuer are fetched: not for every stranger, but soon after they change."""

import json
from concurrent.futures import ThreadPoolExecutor
from threading import Event

import pytest

from llamero.accounts.tokens import key_sets
from llamero.accounts.tokens.key_material import read_jwks, read_keys
from llamero.accounts.tokens.key_sets import KeySet
from llamero.accounts.tokens.proving import check_signature
from llamero.accounts.tokens.reading import read_token
from llamero.accounts.tokens.refusals import UnprovenToken
from llamero.egress import FetchFailed
from llamero.errors import LlameroError
from tests.llamero.accounts.tokens.signing import (
    claims_of,
    jwks,
    private_key,
    public_jwk,
    sign,
    weak_jwk,
    weak_pem,
)
from tests.processes import PATIENCE_SECONDS, wait_until

ADDRESS = "https://id.example/keys"


class Provider:
    """Publishes keys, and counts who asks."""

    def __init__(self, *names: str) -> None:
        self.names = names
        self.asked: list[str] = []
        self.now = 1000.0
        self.raw: bytes | None = None
        self.is_down = False
        self.keys = KeySet(lambda: ADDRESS, self.fetch, lambda: self.now)

    def fetch(self, url: str) -> bytes:
        self.asked.append(url)
        if self.is_down:
            raise FetchFailed("away")
        return jwks(*self.names).encode() if self.raw is None else self.raw


def test_keys_are_fetched_once() -> None:
    provider = Provider("rsa", "p256")
    for _ in range(3):
        [key] = provider.keys.find("rsa", "RS256")
    assert key.kid == "rsa"
    assert [one.kid for one in provider.keys.find("", "ES256")] == ["p256"]
    assert provider.asked == [ADDRESS]


def test_an_unknown_key_id_has_them_fetched_anew_but_seldom() -> None:
    provider = Provider("rsa")
    provider.keys.find("rsa", "RS256")
    provider.now += 60
    provider.names = ("rsa", "other")
    assert provider.keys.find("other", "RS256")
    for number in range(50):
        with pytest.raises(UnprovenToken):
            provider.keys.find(f"made up {number}", "RS256")
    assert len(provider.asked) == 2
    provider.now += key_sets.REFRESH_SECONDS
    with pytest.raises(UnprovenToken):
        provider.keys.find("made up", "RS256")
    assert len(provider.asked) == 3


def test_another_key_in_the_place_of_one_is_found_but_not_looked_for_often() -> None:
    provider = Provider("rsa")
    old, new = (read_token(sign(claims_of(), key=key, kid="rsa")) for key in ("rsa", "other"))
    check_signature(old, provider.keys, ["RS256"])
    provider.raw = json.dumps({"keys": [public_jwk("other", kid="rsa")]}).encode()
    for _ in range(3):
        with pytest.raises(UnprovenToken):
            check_signature(new, provider.keys, ["RS256"])
    assert len(provider.asked) == 1
    provider.now += key_sets.REFRESH_SECONDS
    check_signature(new, provider.keys, ["RS256"])
    for _ in range(3):
        with pytest.raises(UnprovenToken):
            check_signature(old, provider.keys, ["RS256"])
    assert len(provider.asked) == 2


def test_a_withdrawn_key_dies() -> None:
    provider = Provider("rsa", "other")
    provider.keys.find("other", "RS256")
    provider.names = ("rsa",)
    provider.now += key_sets.FRESH_SECONDS + 1
    with pytest.raises(UnprovenToken):
        provider.keys.find("other", "RS256")


def test_keys_outlive_their_provider_for_a_day() -> None:
    provider = Provider("rsa")
    provider.keys.find("rsa", "RS256")
    provider.is_down = True
    provider.now += key_sets.FRESH_SECONDS + 1
    assert provider.keys.find("rsa", "RS256")
    assert provider.keys.find("rsa", "RS256")
    assert len(provider.asked) == 2
    provider.now += key_sets.STALE_SECONDS
    with pytest.raises(LlameroError) as refusal:
        provider.keys.find("rsa", "RS256")
    assert (refusal.value.status, refusal.value.code) == (503, "issuer_unavailable")


@pytest.mark.parametrize(
    "raw", [b"", b"[]", b"{}", b'{"keys": {}}', b'{"keys": []}', b"[" * 9000, b"\xff", b"<html>"]
)
def test_a_document_that_is_none_is_no_answer(raw: bytes) -> None:
    provider = Provider()
    provider.raw = raw
    for _ in range(3):
        with pytest.raises(LlameroError):
            provider.keys.find("rsa", "RS256")
    assert len(provider.asked) == 1
    provider.raw, provider.names = None, ("rsa",)
    provider.now += key_sets.RETRY_SECONDS
    assert provider.keys.find("rsa", "RS256")


def test_few_wait_for_a_provider_that_is_slow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(key_sets, "WAIT_SECONDS", PATIENCE_SECONDS)
    provider, is_asked, may_answer = Provider("rsa"), Event(), Event()

    def fetch(url: str) -> bytes:
        is_asked.set()
        may_answer.wait(PATIENCE_SECONDS)
        return provider.fetch(url)

    keys = KeySet(lambda: ADDRESS, fetch, lambda: provider.now)
    with ThreadPoolExecutor(8) as threads:
        waiting = [threads.submit(keys.find, "rsa", "RS256")]
        assert is_asked.wait(PATIENCE_SECONDS)
        waiting += [threads.submit(keys.find, "rsa", "RS256") for _ in range(7)]
        num_refused = 8 - key_sets.MAX_WAITING
        wait_until(lambda: sum(one.done() for one in waiting) == num_refused, what="refusals")
        may_answer.set()
        assert sum(isinstance(one.exception(), LlameroError) for one in waiting) == num_refused
        assert sum(one.exception() is None for one in waiting) == key_sets.MAX_WAITING
    assert len(provider.asked) == 1


def test_only_what_signs_is_a_key() -> None:
    listed = [
        public_jwk("rsa", use="enc"),
        weak_jwk(),
        public_jwk("ed448"),
        public_jwk("rsa", alg="HS256"),
        public_jwk("rsa", kid=7),
        public_jwk("rsa", n="!"),
        {"kty": "oct", "k": "AAAA", "kid": "secret"},
        {"kty": "EC", "crv": "P-256", "x": "AAAA", "y": "AAAA"},
        {"kty": ["RSA"]},
        "rsa",
        None,
        public_jwk("p256", x5u="https://evil.example", key_ops=["verify"]),
    ]
    assert [key.kid for key in read_jwks({"keys": listed})] == ["p256"]


def test_a_key_is_for_one_algorithm_if_it_says_so() -> None:
    [key] = read_jwks({"keys": [public_jwk("rsa", alg="RS512")]})
    assert key.fits("RS512")
    assert not key.fits("RS256")
    assert not key.fits("ES256")
    [curve] = read_jwks({"keys": [public_jwk("p384")]})
    assert curve.fits("ES384")
    assert not curve.fits("ES256")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("hello", "neither a JWKS document nor PEM"),
        ("{}", "an object with a list of keys"),
        (json.dumps({"keys": [{"kty": "oct", "k": "AAAA"}]}), "no public key"),
        (private_key("rsa").as_pem(private=True).decode(), "private key"),
        (json.dumps({"keys": [private_key("p256").as_dict(private=True)]}), "private keys"),
        ("-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----", "cannot be read"),
        ("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----", "cannot be read"),
        ("-----BEGIN PUBLIC KEY-----\nAAAA", "Paste 1 to 64"),
        (weak_pem(), "2048 to 8192 bits"),
        (private_key("ed448").as_pem(private=False).decode(), "RSA, EC or Ed25519"),
    ],
)
def test_what_an_operator_pastes_is_looked_at(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        read_keys(text)


@pytest.mark.parametrize("name", ["rsa", "p256", "ed25519"])
def test_pem_of_each_kind_is_read(name: str) -> None:
    pem = private_key(name).as_pem(private=False).decode()
    assert len(read_keys(f"{pem}\n{pem}")) == 2
