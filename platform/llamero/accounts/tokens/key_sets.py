"""The keys of issuers: read once, read anew when they change, never as often as strangers wish."""

import json
import logging
import time
from collections.abc import Callable, Sequence

from llamero.accounts.tokens.key_material import PublicKey, read_jwks
from llamero.accounts.tokens.refusals import UnprovenToken, issuer_unavailable
from llamero.accounts.tokens.turns import Turns
from llamero.egress import FetchFailed, UnsafeAddress, fetch_document

logger = logging.getLogger(__name__)
# A key that its issuer withdraws dies here within this time.
FRESH_SECONDS = 600.0
# As long are keys used whose issuer is out of reach.
STALE_SECONDS = 24 * 3600.0
# Key ids that nobody has are looked up no more often.
REFRESH_SECONDS = 30.0
# After a failure, while there is no key at all.
RETRY_SECONDS = 3.0
WAIT_SECONDS = 5.0
# More requests do not wait for keys: their threads are needed by others.
MAX_WAITING = 3


class KeySet:
    """The public keys at a place; safe between threads, of which one fetches."""

    def __init__(
        self,
        find_address: Callable[[], str],
        fetch: Callable[[str], bytes] = fetch_document,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._find_address = find_address
        self._fetch = fetch
        self._clock = clock
        self._keys: tuple[PublicKey, ...] = ()
        self._read_at = self._tried_at = float("-inf")
        self._turns = Turns(MAX_WAITING)

    def find(self, kid: str, algorithm: str) -> Sequence[PublicKey]:
        """Give the keys that may have signed; blocks while they are fetched.

        Raises UnprovenToken where there is none, LlameroError where nobody can tell.
        """
        if self._age() > FRESH_SECONDS:
            self._refresh(waits=self._is_stale)
        found = self._choose(kid, algorithm)
        if not found and not self._is_stale:
            self._refresh(waits=True)
            found = self._choose(kid, algorithm)
        if found:
            return found
        if self._is_stale:
            raise issuer_unavailable()
        raise UnprovenToken("signed with a key that its issuer does not have")

    def renew(self) -> bool:
        """Read the keys anew, unless that was just tried; tell whether they were read."""
        before = self._read_at
        self._refresh(waits=True)
        return self._read_at > before

    def _choose(self, kid: str, algorithm: str) -> Sequence[PublicKey]:
        return () if self._is_stale else choose_keys(self._keys, kid, algorithm)

    @property
    def _is_stale(self) -> bool:
        return self._age() > STALE_SECONDS

    def _age(self) -> float:
        return self._clock() - self._read_at

    def _refresh(self, *, waits: bool) -> None:
        """Fetch unless that has just been tried; ``waits`` for another thread that does."""
        pause = RETRY_SECONDS if self._is_stale else REFRESH_SECONDS
        if self._clock() - self._tried_at < pause and not self._turns.is_taken:
            return
        with self._turns.taken(WAIT_SECONDS if waits else 0) as is_ours:
            if is_ours and self._clock() - self._tried_at >= pause:
                self._read()

    def _read(self) -> None:
        address = "an address that is to be found"
        try:
            address = self._find_address()
            self._keys = read_jwks(json.loads(self._fetch(address)))
            self._read_at = self._clock()
        except (FetchFailed, UnsafeAddress, ValueError, RecursionError) as error:
            logger.warning("The keys of an issuer cannot be read at %s: %s", address, error)
        finally:
            self._tried_at = self._clock()


def choose_keys(keys: Sequence[PublicKey], kid: str, algorithm: str) -> list[PublicKey]:
    """Give the keys of this id that can sign in this way; a key without an id may be any."""
    return [one for one in keys if (not kid or one.kid in ("", kid)) and one.fits(algorithm)]


class StaticKeys:
    """Keys that an operator pasted; PEM has no ids, so that those may be any."""

    def __init__(self, keys: Sequence[PublicKey]) -> None:
        self._keys = keys

    def find(self, kid: str, algorithm: str) -> Sequence[PublicKey]:
        """Give the keys that may have signed; raises UnprovenToken where there is none."""
        found = choose_keys(self._keys, kid, algorithm)
        if not found:
            raise UnprovenToken("signed with a key that its issuer does not have")
        return found

    def renew(self) -> bool:
        """Stay as they are."""
        return False
