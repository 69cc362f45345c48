"""Bearer tokens: JSON Web Tokens (RFC 7519), checked with a key set (RFC 7517) from a URL or a file."""

import json
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import structlog

from lake.protocol.errors import UserError
from metastore.server.credentials.identity import Denied, Identity, Unavailable, checked
from metastore.settings import Settings

MAX_TOKEN_BYTES = 16 << 10
MAX_KEYS_BYTES = 1 << 20
FETCH_SECONDS = 3.0
"""How long the server of keys may take."""
REFETCH_SECONDS = 10.0
"""Time between two fetches at least, whatever keys tokens name."""
KEPT_SECONDS = 600.0
"""Age at which keys are fetched again: one that was withdrawn is trusted no longer than this."""
LONGEST_TRUST_SECONDS = 3_600.0
"""How long keys are used while their server doesn't answer."""

log = structlog.get_logger(__name__)


class BadKeys(UserError):
    """The settings of bearer tokens can't be used."""


class Verified(NamedTuple):
    """Whom a token names, and until when it is valid, in seconds since 1970."""

    identity: Identity
    until: float


class JsonWebTokens:
    """Checks bearer tokens. Thread-safe."""

    def __init__(self, settings: Settings) -> None:
        """Raises BadKeys if the library is missing, or a file of keys can't be read."""
        try:
            import jwt
        except ImportError:
            raise BadKeys("authentication by jwt needs the extra: pip install 'lake-metastore[jwt]'") from None
        assert settings.jwt_keys is not None
        self._jwt: Any = jwt
        self._settings = settings
        self._keys = KeySet(settings.jwt_keys)

    def check(self, token: str) -> Verified:
        """Whom a token names. Raises Denied."""
        settings, jwt = self._settings, self._jwt
        if len(token) > MAX_TOKEN_BYTES:
            raise Denied("the bearer token is too long")
        try:
            header = jwt.get_unverified_header(token)
            algorithm = header.get("alg")
            if algorithm not in settings.jwt_algorithms:
                raise Denied("the bearer token's algorithm is not accepted", f"algorithm {str(algorithm)[:20]!r}")
            claims = jwt.decode(
                token,
                self._keys.find(header.get("kid"), algorithm),
                algorithms=[algorithm],
                audience=settings.jwt_audience,
                issuer=settings.jwt_issuer,
                leeway=settings.jwt_leeway_seconds,
                options={"require": ["exp", "iss", "aud", settings.jwt_user_claim]},
            )
        except jwt.ExpiredSignatureError:
            raise Denied("the bearer token has expired") from None
        except (jwt.PyJWTError, ValueError, TypeError, RecursionError) as error:
            raise Denied("the bearer token is not valid", f"{type(error).__name__}: {error}"[:300]) from None
        return Verified(self._identity(claims), float(claims["exp"]) + settings.jwt_leeway_seconds)

    def _identity(self, claims: Mapping[str, Any]) -> Identity:
        user, groups = claims[self._settings.jwt_user_claim], claims.get(self._settings.jwt_groups_claim, [])
        if isinstance(groups, str):
            groups = groups.split()
        if not isinstance(user, str) or not isinstance(groups, list) or not all(isinstance(g, str) for g in groups):
            raise Denied("the bearer token names no user", "the claims of user and groups are no texts")
        return checked(Identity(user, "jwt", tuple(groups)))


class KeySet:
    """Keys from a URL or a file. They are fetched when a token needs them, within a rate. Thread-safe."""

    def __init__(self, place: str) -> None:
        """Raises BadKeys for a file that holds no keys. A URL is asked when the first token comes."""
        self._place = place
        self._lock = threading.Lock()
        self._keys: list[Any] = []
        self._fetched = self._tried = -float("inf")  # by time.monotonic
        if not self._is_url:
            self._file_state = self._state()
            try:
                self._keys = _parsed(Path(place).read_bytes())
            except (OSError, ValueError) as error:
                raise BadKeys(f"can't read jwt_keys {place}: {error}") from None

    def find(self, kid: object, algorithm: str) -> Any:
        """The key that a token's header names. Raises Denied."""
        self._refresh(missing=False)
        key = self._named(kid, algorithm)
        if key is None:
            self._refresh(missing=True)
            key = self._named(kid, algorithm)
        if key is None:
            raise Denied("the bearer token is signed with an unknown key", f"key {str(kid)[:60]!r}")
        return key

    @property
    def _is_url(self) -> bool:
        return self._place.startswith(("http://", "https://"))

    def _named(self, kid: object, algorithm: str) -> Any:
        """A token without the name of a key means the only one."""
        fitting = [key for key in self._keys if _fits(key, algorithm)]
        if kid is None:
            return fitting[0].key if len(fitting) == 1 else None
        return next((key.key for key in fitting if key.key_id == kid), None)

    def _refresh(self, *, missing: bool) -> None:
        """Reads the keys again if they are old, or one is `missing`. Raises Unavailable if they are too old."""
        if not self._is_url:
            self._reread()
            return
        if not missing and time.monotonic() - self._fetched <= KEPT_SECONDS:
            return  # a fetch for somebody's unknown key may be under way: tokens with known ones don't wait for it
        with self._lock:  # others wait for the one that fetches
            now = time.monotonic()
            if (missing or now - self._fetched > KEPT_SECONDS) and now - self._tried > REFETCH_SECONDS:
                self._tried = now
                try:
                    self._keys = _parsed(_fetch(self._place))
                    self._fetched = now
                except (OSError, ValueError) as error:
                    log.warning("the keys of bearer tokens can't be fetched", url=self._place, error=str(error))
            if now - self._fetched > LONGEST_TRUST_SECONDS:
                raise Unavailable("bearer tokens can't be checked", "there are no keys to check them with")

    def _reread(self) -> None:
        with self._lock:
            state = self._state()
            if state == self._file_state:
                return
            self._file_state = state
            try:
                self._keys = _parsed(Path(self._place).read_bytes())
                log.info("renewed keys of bearer tokens are in use", file=self._place)
            except (OSError, ValueError) as error:
                log.error("the renewed file of keys can't be used", file=self._place, error=str(error))

    def _state(self) -> tuple[int, int, int] | None:
        try:
            stat = Path(self._place).stat()
        except OSError:
            return None
        return stat.st_ino, stat.st_size, stat.st_mtime_ns


def _parsed(data: bytes) -> list[Any]:
    """The public keys of a key set. Raises ValueError."""
    import jwt

    try:
        found = json.loads(data)
        keys = [key for key in jwt.PyJWKSet.from_dict(found).keys if key.public_key_use in (None, "sig")]
    except (jwt.PyJWTError, AttributeError, RecursionError) as error:
        raise ValueError(f"no JSON Web Key Set: {error}") from None
    public = [key for key in keys if key.key_type in ("RSA", "EC", "OKP")]
    if not public:
        raise ValueError("the key set has no public keys for signatures")
    return public


def _fits(key: Any, algorithm: str) -> bool:
    """Whether a key may be used with an algorithm: a token must not choose what its key was not made for."""
    kinds = {"RS": "RSA", "PS": "RSA", "ES": "EC", "Ed": "OKP"}
    if key.key_type != kinds.get(algorithm[:2]):
        return False
    declared = key._jwk_data.get("alg")
    return declared is None or declared == algorithm


def _fetch(url: str) -> bytes:
    """Raises OSError, ValueError."""
    import urllib3

    try:
        timeout = urllib3.Timeout(total=FETCH_SECONDS)
        with urllib3.PoolManager(timeout=timeout, retries=False) as pool:
            answer = pool.request("GET", url, redirect=False, preload_content=False)
            data = bytes(answer.read(MAX_KEYS_BYTES + 1))
            answer.release_conn()
    except urllib3.exceptions.HTTPError as error:
        raise OSError(str(error)) from None
    if answer.status != 200:
        raise ValueError(f"status {answer.status}")
    if len(data) > MAX_KEYS_BYTES:
        raise ValueError(f"more than {MAX_KEYS_BYTES} bytes")
    return data
