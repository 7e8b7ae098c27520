"""An OpenID Connect provider on this machine: discovery, keys, codes, PKCE, userinfo, the end."""

import json
import secrets
import threading
from base64 import b64decode, urlsafe_b64encode
from dataclasses import dataclass, field
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlencode, urlsplit

from tests.llamero.accounts.tokens.signing import claims_of, jwks, sign

CLIENT, SECRET = "llamero", "a secret: with a colon, 50%25 + more"


@dataclass
class FakeProvider:
    """Signs ``person`` in without asking; a test changes what it says.

    ``id_claims`` replace claims of the ID token, ``key`` signs it, ``is_sparse`` leaves what a
    person is to userinfo. ``tells`` replace fields of the discovery document.
    What ``is_away`` answers 503.
    """

    person: dict[str, Any] = field(
        default_factory=lambda: {
            "sub": "subject-1",
            "preferred_username": "ada",
            "groups": ["llm-staff"],
        }
    )
    id_claims: dict[str, Any] = field(default_factory=dict)
    key: str = "rsa"
    algorithm: str = "RS256"
    is_sparse: bool = False
    is_broken: bool = False
    is_away: bool = False
    tells: dict[str, Any] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    _codes: dict[str, dict[str, str]] = field(default_factory=dict)
    _access_tokens: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        """Listen."""
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), _handler_of(self))
        self.host = f"127.0.0.1:{self.server.server_port}"
        self.issuer = f"http://{self.host}"
        self._thread = threading.Thread(target=self.server.serve_forever, args=(0.01,))
        self._thread.start()

    def close(self) -> None:
        """Stop listening."""
        self.server.shutdown()
        self.server.server_close()
        self._thread.join()

    def authorize(self, url: str) -> str:
        """Give where the provider sends a browser that came to this address."""
        parts = urlsplit(url)
        query = {name: values[0] for name, values in parse_qs(parts.query).items()}
        assert url.startswith(f"{self.issuer}/authorize?")
        assert (query["response_type"], query["client_id"]) == ("code", CLIENT)
        assert query["code_challenge_method"] == "S256"
        assert "openid" in query["scope"].split()
        assert min(len(query[name]) for name in ("state", "nonce", "code_challenge")) >= 32
        code = secrets.token_urlsafe()
        self._codes[code] = query
        answer = {"code": code, "state": query["state"], "iss": self.issuer}
        return f"{query['redirect_uri']}?{urlencode(answer)}"

    def document(self) -> dict[str, Any]:
        paths = {"authorization": "authorize", "token": "token", "userinfo": "userinfo"}
        paths["end_session"] = "bye"
        found = {f"{name}_endpoint": f"{self.issuer}/{path}" for name, path in paths.items()}
        return {"issuer": self.issuer, "jwks_uri": f"{self.issuer}/keys"} | found | self.tells

    def exchange(self, form: dict[str, str], authorization: str) -> dict[str, Any] | None:
        """Give tokens for a code, once, to who began with it; None for anybody else."""
        asked = self._codes.pop(form.get("code", ""), None)
        proof = urlsafe_b64encode(sha256(form["code_verifier"].encode()).digest())
        scheme, _, given = authorization.partition(" ")
        pair = ":".join(unquote(one) for one in b64decode(given).decode().split(":", 1))
        is_client = scheme == "Basic" and pair == f"{CLIENT}:{SECRET}"
        if (
            asked is None
            or not is_client
            or form["grant_type"] != "authorization_code"
            or form["redirect_uri"] != asked["redirect_uri"]
            or proof.rstrip(b"=").decode() != asked["code_challenge"]
        ):
            return None
        access_token = secrets.token_urlsafe()
        self._access_tokens.add(access_token)
        told = {"sub": self.person["sub"]} if self.is_sparse else self.person
        claims = claims_of(iss=self.issuer, aud=CLIENT, preferred_username=None, scope=None)
        claims |= {**told, "nonce": asked["nonce"]} | self.id_claims
        token = sign(claims, key=self.key, algorithm=self.algorithm)
        return {"token_type": "Bearer", "access_token": access_token, "id_token": token}

    def userinfo(self, authorization: str) -> dict[str, Any] | None:
        scheme, _, token = authorization.partition(" ")
        return self.person if scheme == "Bearer" and token in self._access_tokens else None


def _handler_of(provider: FakeProvider) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            provider.asked.append(self.path)
            match self.path:
                case "/.well-known/openid-configuration":
                    self._answer(provider.document())
                case "/keys":
                    self._answer(json.loads(jwks("rsa", "p256", "ed25519")))
                case path if path.startswith("/authorize?"):
                    self.send_response(302)
                    self.send_header("Location", provider.authorize(provider.issuer + path))
                    self.send_header("Content-Length", "0")
                    self.end_headers()
                case "/userinfo":
                    self._answer(provider.userinfo(self.headers.get("Authorization", "")))
                case _:
                    self._answer(None)

        def do_POST(self) -> None:
            provider.asked.append(self.path)
            raw = self.rfile.read(int(self.headers["Content-Length"])).decode()
            form = {name: values[0] for name, values in parse_qs(raw).items()}
            authorization = self.headers.get("Authorization", "")
            self._answer(None if provider.is_broken else provider.exchange(form, authorization))

        def _answer(self, document: Any) -> None:
            body = json.dumps(document or {"error": "invalid_grant"}).encode()
            self.send_response(503 if provider.is_away else 200 if document else 400)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    return Handler
