"""Which tokens are good: signed by an issuer of ours, for us, now. All others are refused."""

import json
import time
from collections.abc import Callable
from typing import Any

import pytest
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from llamero.accounts.models import TokenIssuer
from llamero.accounts.scopes import DEFAULT_SCOPES, Scope
from llamero.accounts.tokens import proving
from llamero.accounts.tokens.issuers import recent_issuers
from llamero.accounts.tokens.proving import prove_token
from llamero.accounts.tokens.refusals import TokenRefused, UnprovenToken
from tests.llamero.accounts.tokens.conftest import make_issuer
from tests.llamero.accounts.tokens.signing import (
    claims_of,
    encode,
    private_key,
    public_jwk,
    sign,
    sign_with_secret,
)

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    ("key", "algorithm"),
    [
        ("rsa", "RS256"),
        ("rsa", "PS256"),
        ("p256", "ES256"),
        ("p384", "ES384"),
        ("p521", "ES512"),
        ("ed25519", "EdDSA"),
    ],
)
def test_a_token_is_proved_by_its_issuers_key(
    issuer: TokenIssuer, key: str, algorithm: str
) -> None:
    token = prove_token(sign(claims_of(), key=key, algorithm=algorithm))
    assert (token.issuer_id, token.subject, token.username) == (issuer.pk, "subject-1", "ada")
    assert token.scopes == {Scope.INFERENCE, Scope.MODELS, Scope.EMBEDDINGS}
    assert (token.models, token.teams) == (None, None)


def public_pem() -> bytes:
    native: Any = private_key("rsa").public_key  # type: ignore[union-attr]
    pem: bytes = native.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    return pem


def duplicate(claims: dict[str, Any], name: str, value: Any) -> bytes:
    text = json.dumps(claims)
    return f'{{"{name}": {json.dumps(value)}, {text[1:]}'.encode()


GOOD = claims_of(exp=4_000_000_000)
UNPROVEN: dict[str, Callable[[], str]] = {
    "unsigned": lambda: f"{encode({'alg': 'none', 'typ': 'JWT'})}.{encode(GOOD)}.",
    "unsigned, with a signature": lambda: f"{encode({'alg': 'none'})}.{encode(GOOD)}.AAAA",
    "none in other letters": lambda: sign(GOOD, header={"alg": "nOnE", "kid": "rsa"}),
    "a public key as a secret": lambda: sign_with_secret(GOOD, public_pem()),
    "a public number as a secret": lambda: sign_with_secret(GOOD, public_jwk("rsa")["n"].encode()),
    "an algorithm that the issuer lacks": lambda: sign(GOOD, algorithm="RS512"),
    "an algorithm of another kind of key": lambda: sign(
        GOOD, header={"alg": "ES256", "kid": "rsa"}
    ),
    "no algorithm": lambda: sign(GOOD, header={"kid": "rsa"}),
    "a number for an algorithm": lambda: sign(GOOD, header={"alg": 256, "kid": "rsa"}),
    "somebody else's key": lambda: sign(GOOD, key="other", kid="rsa"),
    "a wrong key id": lambda: sign(GOOD, kid="other"),
    "a key id that is a path": lambda: sign(GOOD, kid="../../../../dev/null"),
    "a key id that is a query": lambda: sign(GOOD, kid="x' UNION SELECT 'AAAA'--"),
    "a key id that is a list": lambda: sign(GOOD, kid=["rsa"]),
    "a huge key id": lambda: sign(GOOD, kid="k" * 1000),
    "its own key": lambda: sign(GOOD, key="other", jwk=public_jwk("other")),
    "the address of its own key": lambda: sign(
        GOOD, key="other", kid="evil", jku="https://evil.example/keys"
    ),
    "the address of its own certificate": lambda: sign(
        GOOD, key="other", kid="evil", x5u="https://evil.example/cert"
    ),
    "an extension that must be understood": lambda: sign(GOOD, crit=["exp"]),
    "a payload elsewhere": lambda: sign(GOOD, b64=False, crit=["b64"]),
    "a compressed payload": lambda: sign(GOOD, zip="DEF"),
    "another type": lambda: sign(GOOD, typ="logout+jwt"),
    "a token in a token": lambda: sign(sign(GOOD).encode(), cty="JWT"),
    "a token in a token that does not say so": lambda: sign(sign(GOOD).encode()),
    "five parts": lambda: sign(GOOD) + ".AAAA.AAAA",
    "two parts": lambda: sign(GOOD).rpartition(".")[0],
    "no signature": lambda: sign(GOOD).rpartition(".")[0] + ".",
    "half a signature": lambda: sign(GOOD)[:-171],
    "zeros for a signature": lambda: (
        sign(GOOD, key="p256", algorithm="ES256").rpartition(".")[0] + "." + encode(bytes(64))
    ),
    "a changed payload": lambda: _swap(sign(GOOD), 1, encode(GOOD | {"sub": "root"})),
    "a claim twice": lambda: sign(duplicate(GOOD, "sub", "root")),
    "a header twice": lambda: sign(GOOD, header=b'{"alg": "none", "alg": "RS256", "kid": "rsa"}'),
    "a list for claims": lambda: sign([GOOD]),
    "no JSON": lambda: sign(b"hello"),
    "a number that is none": lambda: sign(b'{"iss": "https://id.example", "exp": NaN}'),
    "a number beyond all": lambda: sign(b'{"iss": "https://id.example", "exp": 1e999}'),
    "deep claims": lambda: sign(b'{"a":' * 2500 + b"1" + b"}" * 2500),
    "claims that are no text": lambda: sign(b'{"iss": "\xff"}'),
    "padding": lambda: sign(GOOD) + "==",
    "a line after it": lambda: sign(GOOD) + "\n",
    "a huge one": lambda: sign(GOOD | {"pad": "x" * 8000}),
    "another issuer": lambda: sign(GOOD | {"iss": "https://evil.example"}),
    "the issuer in other letters": lambda: sign(GOOD | {"iss": "https://ID.example"}),
    "a list of issuers": lambda: sign(GOOD | {"iss": ["https://id.example"]}),
    "no issuer": lambda: sign({name: GOOD[name] for name in GOOD if name != "iss"}),
}


def _swap(token: str, at: int, part: str) -> str:
    parts = token.split(".")
    parts[at] = part
    return ".".join(parts)


@pytest.mark.parametrize("name", UNPROVEN)
def test_what_no_issuer_of_ours_has_signed_is_unproven(issuer: TokenIssuer, name: str) -> None:
    with pytest.raises(UnprovenToken):
        prove_token(UNPROVEN[name]())


def test_another_spelling_of_a_signature_is_none(issuer: TokenIssuer) -> None:
    token = sign(GOOD, key="p521", algorithm="ES512")
    prove_token(token)
    twins = [token[:-1] + letter for letter in "ABCDEFGHIJKLMNOPQRSTUVWXYZ"]
    for twin in twins:
        if twin != token:
            with pytest.raises(UnprovenToken):
                prove_token(twin)


NOW = int(time.time())
REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "expired": ({"exp": NOW - 60}, "expired"),
    "without an end": ({"exp": None}, "no end"),
    "with an end that is a text": ({"exp": str(NOW + 60)}, "a time that is none"),
    "with an end that is true": ({"exp": True}, "a time that is none"),
    "with an end beyond all time": ({"exp": 10**400}, "a time that is none"),
    "not yet valid": ({"nbf": NOW + 86_400}, "not valid yet"),
    "made in the future": ({"iat": NOW + 86_400}, "not valid yet"),
    "made at no time": ({"iat": "today"}, "a time that is none"),
    "for another audience": ({"aud": "other"}, "not meant for this server"),
    "for others": ({"aud": ["other", "llamero2"]}, "not meant for this server"),
    "for nobody": ({"aud": None}, "not meant for this server"),
    "for a number": ({"aud": [1, None, {}]}, "not meant for this server"),
    "of nobody": ({"sub": None}, "names nobody"),
    "of an empty subject": ({"sub": ""}, "names nobody"),
    "of a number": ({"sub": 7}, "names nobody"),
    "of a huge subject": ({"sub": "x" * 256}, "names nobody"),
    "of a subject with control characters": ({"sub": "a\nb"}, "names nobody"),
    "without a name": ({"preferred_username": None}, "names nobody"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_proven_token_may_still_be_no_good_and_is_told_why(
    issuer: TokenIssuer, name: str
) -> None:
    fields, why = REFUSED[name]
    with pytest.raises(TokenRefused, match=why) as refusal:
        prove_token(sign(claims_of(**fields)))
    assert refusal.value.challenge.startswith('Bearer error="invalid_token", error_description="')
    assert "\n" not in refusal.value.challenge


def test_an_address_that_is_not_verified_names_nobody(issuer: TokenIssuer) -> None:
    issuer.username_claim = "email"
    issuer.save()
    for is_verified in (True, "true", None):
        assert prove_token(sign(claims_of(email="ada@x.org", email_verified=is_verified)))
    for is_verified in (False, "false", 0, []):
        with pytest.raises(TokenRefused, match="not verified"):
            prove_token(sign(claims_of(email="ada@x.org", email_verified=is_verified)))


@pytest.mark.parametrize(
    ("times", "fields"),
    [
        ({"exp": -10}, {}),
        ({"nbf": 10, "iat": 10}, {}),
        ({"exp": 60.5}, {}),
        ({}, {"aud": ["other", "llamero"]}),
        ({}, {"jti": "seen twice", "amr": {"deep": [1, 2.5, None]}}),
    ],
)
def test_clocks_may_differ_a_little_and_what_we_do_not_know_is_no_harm(
    issuer: TokenIssuer, times: dict[str, float], fields: dict[str, Any]
) -> None:
    now = time.time()
    token = sign(claims_of(**fields, **{name: now + after for name, after in times.items()}))
    assert prove_token(token) == prove_token(token)


def test_required_claims_are_required(issuer: TokenIssuer) -> None:
    issuer.required_claims = {"azp": ["chat", "cli"], "roles": "llm", "tenant": 7, "mfa": True}
    issuer.save()
    good = {"azp": "cli", "roles": ["a", "llm"], "tenant": 7, "mfa": True}
    assert prove_token(sign(claims_of(**good)))
    bad = [{"azp": "x"}, {"azp": None}, {"roles": ["a"]}, {"tenant": True}, {"tenant": "7"}]
    bad += [{"mfa": False}, {"mfa": None}, {"roles": "llmx"}]
    for fields in bad:
        with pytest.raises(TokenRefused, match=next(iter(fields))):
            prove_token(sign(claims_of(**good | fields)))


@pytest.mark.parametrize(
    ("settings", "fields", "scopes"),
    [
        ({}, {"scope": "openid"}, set()),
        ({}, {"scope": None}, set()),
        ({}, {"scope": ["models", 7, "nonsense"]}, {Scope.MODELS}),
        ({"scope_claim": ""}, {"scope": "models"}, DEFAULT_SCOPES),
        ({"scope_claim": "permissions"}, {"permissions": ["upload"]}, {Scope.UPLOAD}),
        (
            {"scope_map": {"llm.chat": ["inference", "models"]}},
            {"scope": "llm.chat usage"},
            {Scope.INFERENCE, Scope.MODELS},
        ),
    ],
)
def test_scopes_are_what_the_issuer_says(
    ada: Any, settings: dict[str, Any], fields: dict[str, Any], scopes: set[Scope]
) -> None:
    make_issuer(**settings)
    assert prove_token(sign(claims_of(**fields))).scopes == scopes


@pytest.mark.parametrize(
    ("claim", "models"),
    [
        (["smol", "mini"], ("smol", "mini")),
        ("smol mini", ("smol", "mini")),
        ("*", None),
        (["smol", "*"], None),
        (None, ()),
        (7, ()),
    ],
)
def test_models_are_what_the_token_lists(
    ada: Any, claim: Any, models: tuple[str, ...] | None
) -> None:
    make_issuer(models_claim="llm_models")
    assert prove_token(sign(claims_of(llm_models=claim))).models == models


def test_a_token_is_proved_once_a_minute_and_dies_in_time(
    issuer: TokenIssuer, monkeypatch: pytest.MonkeyPatch
) -> None:
    proofs: list[str] = []
    prove = proving.check_signature
    monkeypatch.setattr(
        proving, "check_signature", lambda *given: (proofs.append("one"), prove(*given))
    )
    token = sign(claims_of(exp=int(time.time()) + 30))
    prove_token(token)
    prove_token(token)
    assert len(proofs) == 1
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + 61)
    with pytest.raises(TokenRefused, match="expired"):
        prove_token(token)


def test_a_change_of_the_issuer_is_felt_at_once(issuer: TokenIssuer) -> None:
    token = sign(claims_of())
    prove_token(token)
    issuer.audiences = ["another"]
    issuer.save()
    recent_issuers.clear()
    with pytest.raises(TokenRefused, match="not meant"):
        prove_token(token)
    issuer.enabled = False
    issuer.save()
    recent_issuers.clear()
    with pytest.raises(UnprovenToken):
        prove_token(token)


def test_pasted_pem_needs_no_key_id(ada: Any) -> None:
    make_issuer(keys=public_pem().decode())
    assert prove_token(sign(claims_of(), kid="whatever"))
    with pytest.raises(UnprovenToken):
        prove_token(sign(claims_of(), key="other"))
