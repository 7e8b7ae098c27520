"""The identity provider that people are sent to, and come back from with a code."""

import hmac
import json
import logging
import secrets
import time
from urllib.parse import quote

from authlib.common.errors import AuthlibBaseError
from authlib.oauth2.auth import ClientAuth, encode_client_secret_basic
from authlib.oauth2.client import OAuth2Client

from llamero.accounts.sign_in.attempt import Attempt, ProviderAway, SignInFailed
from llamero.accounts.sign_in.config import SignInSettings
from llamero.accounts.sign_in.exchange import PinnedSession
from llamero.accounts.tokens.algorithms import ALGORITHMS
from llamero.accounts.tokens.claims import check_audience, check_times, read_subject
from llamero.accounts.tokens.discovery import ProviderDocument, discover
from llamero.accounts.tokens.key_sets import MAX_WAITING, RETRY_SECONDS, WAIT_SECONDS, KeySet
from llamero.accounts.tokens.proving import check_signature
from llamero.accounts.tokens.reading import Claims, read_token
from llamero.accounts.tokens.refusals import TokenRefused, UnprovenToken
from llamero.accounts.tokens.turns import Turns
from llamero.egress import FetchFailed, ServerAway, UnsafeAddress, fetch_document
from llamero.errors import LlameroError

logger = logging.getLogger(__name__)
LEEWAY_SECONDS = 60
DOCUMENT_SECONDS = 600.0
# People with many groups have long tokens.
MAX_ID_TOKEN_LENGTH = 64 * 1024


class Provider:
    """Speaks OpenID Connect's code flow with PKCE. Blocks; safe between threads."""

    def __init__(self, config: SignInSettings) -> None:
        self._config = config
        self._document: ProviderDocument | None = None
        self._read_at = self._failed_at = float("-inf")
        self._turns = Turns(MAX_WAITING)
        self._keys = KeySet(lambda: self.document().jwks_uri)

    def document(self) -> ProviderDocument:
        """Give what the provider says of itself, ten minutes old at most; raises ProviderAway."""
        document = self._recent_document()
        if document is not None:
            return document
        with self._turns.taken(WAIT_SECONDS) as is_ours:
            if not is_ours:
                raise self._away()
            return self._recent_document() or self._ask()

    def _recent_document(self) -> ProviderDocument | None:
        return self._document if time.monotonic() - self._read_at <= DOCUMENT_SECONDS else None

    def _ask(self) -> ProviderDocument:
        if time.monotonic() - self._failed_at < RETRY_SECONDS:
            raise self._away()
        try:
            document = self._document = discover(self._config.issuer)
        except (FetchFailed, UnsafeAddress) as error:
            logger.warning("The identity provider cannot be asked: %s", error)
            self._failed_at = time.monotonic()
            raise self._away() from error
        self._read_at = time.monotonic()
        return document

    def _away(self) -> ProviderAway:
        return ProviderAway(f"{self._config.name} cannot be reached right now.")

    def begin(self, callback: str) -> tuple[str, Attempt]:
        """Give where to send somebody who is to come back to ``callback``."""
        attempt = Attempt(*(secrets.token_urlsafe(32) for _ in range(3)))
        url, _ = self._client(callback).create_authorization_url(
            self.document().authorization_endpoint,
            state=attempt.state,
            nonce=attempt.nonce,
            code_verifier=attempt.verifier,
        )
        return str(url), attempt

    def finish(self, attempt: Attempt, code: str, callback: str) -> Claims:
        """Give who came back with a code, as far as the provider vouches; raises SignInFailed."""
        try:
            token = self._client(callback).fetch_token(
                self.document().token_endpoint,
                grant_type="authorization_code",
                code=code,
                code_verifier=attempt.verifier,
            )
            return self._prove(token, attempt.nonce)
        except (AuthlibBaseError, RecursionError) as error:
            # Its text may have what the provider said, and with it a secret.
            reason = type(error).__name__
        except (ServerAway, LlameroError) as error:
            logger.warning("Nobody was signed in, the identity provider is away: %s", error)
            raise self._away() from error
        except (
            FetchFailed,
            UnsafeAddress,
            UnprovenToken,
            TokenRefused,
            ValueError,
            TypeError,
        ) as error:
            reason = str(error)
        logger.warning("Nobody was signed in, what the provider gave is no good: %s", reason)
        raise SignInFailed(f"{self._config.name} did not vouch for you. Please try again.")

    def _client(self, callback: str) -> OAuth2Client:
        config, methods = self._config, self.document().token_auth_methods
        method = "client_secret_basic" if config.client_secret else "none"
        if config.client_secret and methods and method not in methods:
            method = "client_secret_post"
        client = OAuth2Client(
            PinnedSession(),
            config.client_id,
            config.client_secret or None,
            token_endpoint_auth_method=method,
            scope=" ".join(config.scopes),
            redirect_uri=callback,
            code_challenge_method="S256",
        )
        client.register_client_auth_method(("client_secret_basic", _show_secret))
        return client

    def _prove(self, token: Claims, nonce: str) -> Claims:
        """Prove the ID token; give its claims, with those that only userinfo has."""
        read = read_token(str(token.get("id_token")), MAX_ID_TOKEN_LENGTH)
        check_signature(read, self._keys, list(ALGORITHMS))
        claims, config = read.claims, self._config
        if claims.get("iss") != config.issuer:
            raise UnprovenToken("an ID token of another issuer")
        check_audience(claims, [config.client_id])
        check_times(claims, time.time(), LEEWAY_SECONDS)
        if claims.get("azp", config.client_id) != config.client_id:
            raise UnprovenToken("an ID token for another client")
        if not hmac.compare_digest(str(claims.get("nonce")).encode(), nonce.encode()):
            raise UnprovenToken("an ID token of another sign-in")
        subject = read_subject(claims)
        is_whole = config.groups_claim in claims and config.username_claim in claims
        endpoint = self.document().userinfo_endpoint
        if is_whole or not endpoint:
            return claims
        said = json.loads(fetch_document(endpoint, bearer=str(token.get("access_token"))))
        if not isinstance(said, dict) or said.get("sub") != subject:
            raise UnprovenToken("userinfo of somebody else")
        return said | claims


def _show_secret(
    client: ClientAuth, method: str, uri: str, headers: dict[str, str], body: str
) -> tuple[str, dict[str, str], str]:
    """Show who we are in a header, where signs must be written as in forms (RFC 6749, 2.3.1)."""
    written = ClientAuth(quote(client.client_id, safe=""), quote(client.client_secret, safe=""))
    shown: tuple[str, dict[str, str], str] = encode_client_secret_basic(
        written, method, uri, headers, body
    )
    return shown
