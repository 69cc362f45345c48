"""Credentials for one table's directory on S3, which the server gets from STS for a client.

They are those of a role that the operator names, narrowed by a session policy to what lies below the directory.
"""

import json
import re
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import structlog
from cachetools import TTLCache

from lake.protocol.errors import UserError
from metastore.iceberg.errors import unavailable

HEADER = "X-Iceberg-Access-Delegation"
WANTED = "vended-credentials"

_LOCATION = re.compile(r"(?P<scheme>s3[an]?)://(?P<bucket>[^/]+)/(?P<key>.+)")
_SPECIAL = re.compile(r"[*?$\x00-\x1f\x7f]")  # a policy reads them as patterns and variables
_NOT_OF_SESSIONS = re.compile(r"[^\w+=,.@-]", re.ASCII)
_SESSION_LENGTH = 64
_KEPT = 1_000
_CONNECT_SECONDS, _READ_SECONDS = 3.0, 10.0

_READ = ("s3:GetObject", "s3:GetObjectVersion")
_WRITE = ("s3:PutObject", "s3:DeleteObject", "s3:AbortMultipartUpload", "s3:ListMultipartUploadParts")

log = structlog.get_logger(__name__)

Json = dict[str, Any]


class Place(NamedTuple):
    """A directory on S3."""

    scheme: str
    bucket: str
    key: str

    @classmethod
    def of(cls, location: str) -> "Place | None":
        """None for other storages, for a whole bucket, and for what a policy can't say."""
        found = _LOCATION.fullmatch(location.rstrip("/"))
        if found is None or _SPECIAL.search(location):
            return None
        parts = found["key"].split("/")
        return None if any(each in ("", ".", "..") for each in parts) else cls(*found.group("scheme", "bucket", "key"))


@dataclass(frozen=True)
class Sts:
    """Whom to ask. `role`: its ARN. `endpoint`, `region`: None for those of the environment."""

    role: str
    endpoint: str | None = None
    region: str | None = None
    seconds: int = 3_600


def policy(place: Place, partition: str, *, write: bool) -> Json:
    """The session policy for a directory. `partition`: of Amazon's, as in ARNs."""
    bucket = f"arn:{partition}:s3:::{place.bucket}"
    objects: Json = {"Effect": "Allow", "Action": [*_READ, *(_WRITE if write else ())]}
    objects["Resource"] = [f"{bucket}/{place.key}/*"]
    names: Json = {"Effect": "Allow", "Action": ["s3:ListBucket"], "Resource": [bucket]}
    names["Condition"] = {"StringLike": {"s3:prefix": [f"{place.key}/*"]}}
    where: Json = {"Effect": "Allow", "Action": ["s3:GetBucketLocation"], "Resource": [bucket]}
    return {"Version": "2012-10-17", "Statement": [objects, names, where]}


@dataclass
class Vending:
    """Gets credentials, and gives the same ones again for half of their time. Thread-safe."""

    sts: Sts
    assume: Callable[..., Mapping[str, Any]]
    """STS's AssumeRole, by its parameters."""
    _kept: TTLCache[tuple[Place, bool, str], Json] = field(init=False)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self._kept = TTLCache(_KEPT, self.sts.seconds / 2)

    @classmethod
    def of(cls, sts: Sts) -> "Vending":
        """Raises UserError without botocore, or a region."""
        try:
            import botocore.config
            import botocore.exceptions
            import botocore.session
        except ImportError:
            raise UserError("iceberg_credentials_role needs an extra: pip install 'lake-metastore[s3]'") from None
        config = botocore.config.Config(
            connect_timeout=_CONNECT_SECONDS, read_timeout=_READ_SECONDS, retries={"total_max_attempts": 2}
        )
        session = botocore.session.get_session()
        try:
            client = session.create_client("sts", region_name=sts.region, endpoint_url=sts.endpoint, config=config)
        except (botocore.exceptions.BotoCoreError, ValueError) as error:
            raise UserError(f"STS can't be used (iceberg_credentials_…): {error}") from None
        return cls(sts, client.assume_role)

    def credentials(self, place: Place, user: str, *, write: bool) -> Json:
        """The properties that a client's file system takes. Raises RestError (503)."""
        key = place, write, user
        with self._lock:
            found = self._kept.get(key)
        if found is None:
            found = self._fetched(place, user, write=write)
            with self._lock:
                self._kept[key] = found
        return dict(found)

    def _fetched(self, place: Place, user: str, *, write: bool) -> Json:
        allowed = policy(place, self.sts.role.split(":")[1], write=write)
        try:
            answer = self.assume(
                RoleArn=self.sts.role,
                RoleSessionName=_NOT_OF_SESSIONS.sub("-", f"metastore-{user or 'anonymous'}")[:_SESSION_LENGTH],
                Policy=json.dumps(allowed, separators=(",", ":")),
                DurationSeconds=self.sts.seconds,
            )
            given = answer["Credentials"]
            found = {
                "s3.access-key-id": given["AccessKeyId"],
                "s3.secret-access-key": given["SecretAccessKey"],
                "s3.session-token": given["SessionToken"],
                "s3.session-token-expires-at-ms": str(int(given["Expiration"].timestamp() * 1000)),
            }
        except Exception as error:  # botocore's have no base in common
            log.warning("STS gives no credentials", role=self.sts.role, reason=str(error)[:500])
            raise unavailable("STS gives no credentials: the server's log says why") from None
        return found if self.sts.region is None else found | {"client.region": self.sts.region}


def listed(place: Place, properties: Json) -> list[Json]:
    """The credentials with the beginnings of the paths for which they are, as clients may write them."""
    schemes = dict.fromkeys((place.scheme, "s3"))
    return [{"prefix": f"{each}://{place.bucket}/{place.key}/", "config": properties} for each in schemes]


def wanted(header: str) -> bool:
    """Whether a client asks for credentials, by the value of the header."""
    return WANTED in [each.strip().lower() for each in header.split(",")]
