"""The file that says which metastores are behind a front, and under which names their databases appear."""

import re
import tomllib
from collections.abc import Sequence
from contextlib import suppress
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated, Any, Literal, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, BeforeValidator, ByteSize, ConfigDict, Field, ValidationError
from pydantic import model_validator as validator

from lake.protocol.connection.login import BadLogin, Login
from lake.protocol.errors import UsageError
from metastore.federation.names import DEFAULT_CATALOG, normal
from metastore.warehouse.errors import WarehouseError
from metastore.warehouse.locations import Location

Unreachable = Literal["fail", "leave out"]
TableKind = Literal["keyed", "iceberg", "hudi", "delta", "paimon"]
"""Tables that a new table's parameters tell from Hive's own; `keyed`: lake tables with a primary key."""

_NAME = re.compile(r"[a-z0-9_]+")
_PATTERN = re.compile(r"[a-z0-9_*]+")


class FederationError(UsageError):
    """The file can't be used. The message says where in it, and why."""


def _listed(value: object) -> object:
    return [value] if isinstance(value, str) else value


def _name(value: str) -> str:
    value = normal(value)
    if not _NAME.fullmatch(value):
        raise ValueError(f"{value!r} is no name: letters, digits and _ are allowed")
    return value


def _prefix(value: str) -> str:
    return _name(value) if value else value


def _pattern(value: str) -> str:
    value = normal(value)
    if not _PATTERN.fullmatch(value):
        raise ValueError(f"{value!r} is no pattern of names: letters, digits, _ and * are allowed")
    return value


def _uri(value: str) -> str:
    parts = urlsplit(value)
    if parts.scheme != "thrift" or not parts.hostname or parts.path not in ("", "/"):
        raise ValueError(f"{value!r} is not of the form thrift://host:port")
    return value


def _directory(value: str) -> str:
    try:
        Location.parse(value)
    except WarehouseError as error:
        raise ValueError(str(error)) from None
    return value


Named = Annotated[str, AfterValidator(_name)]
Patterns = tuple[Annotated[str, AfterValidator(_pattern)], ...]
Seconds = Annotated[float, Field(gt=0, le=86_400)]


class Backend(BaseModel):
    """One metastore behind the front.

    `uris`: servers of one metastore, tried in turn. `read_uris`: servers of a copy of it, which reads of a database go
    to, but not those of a connection that has changed something there in the last `read_after_write_seconds`.
    `prefix`: what stands before its databases' names; `catalog`: in which catalog they appear, `backend_catalog`: in
    which they are. `rename`: a name of the front, and the database that it means; that one loses its other name.
    `allow`, `deny`: patterns of the backend's own names, with `*`. `read_only`: nothing is changed, or nothing in
    databases that match. `number`: marks the ids of its transactions and locks, and must never change; the primary
    backend's ids have no mark. `primary`: requests that name nothing go there.

    `beside`: another backend, whose databases are this one's, too, by the names there. A table is here if this backend
    has it, else there. New tables of `kinds` are made here, and those that say so themselves.

    `follow`: its notification log is part of the front's. `follow_user`: as whom the front reads it where it doesn't
    log in; by default the user that it runs as.

    `connections`: the most of one worker. `connect_seconds`, `reply_seconds`: how long is waited for a connection, and
    for the next bytes of an answer. `wait_seconds`: how long a request waits for a free connection. After `failures` in
    a row the backend is left alone for `pause_seconds`.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    uris: Annotated[tuple[Annotated[str, AfterValidator(_uri)], ...], BeforeValidator(_listed), Field(min_length=1)]
    read_uris: Annotated[tuple[Annotated[str, AfterValidator(_uri)], ...], BeforeValidator(_listed)] = ()
    read_after_write_seconds: Annotated[float, Field(ge=0, le=86_400)] = 10.0
    prefix: Annotated[str, AfterValidator(_prefix)] = ""
    catalog: Named = DEFAULT_CATALOG
    backend_catalog: Named = DEFAULT_CATALOG
    rename: dict[Named, Named] = {}
    allow: Annotated[Patterns, BeforeValidator(_listed)] = ("*",)
    deny: Annotated[Patterns, BeforeValidator(_listed)] = ()
    read_only: bool | Annotated[Patterns, BeforeValidator(_listed)] = False
    number: Annotated[int, Field(ge=1, lt=1 << 14)] | None = None
    primary: bool = False
    beside: Named | None = None
    kinds: Annotated[tuple[TableKind, ...], BeforeValidator(_listed)] = ("keyed",)
    follow: bool = False
    follow_user: Annotated[str, Field(min_length=1)] | None = None
    connections: Annotated[int, Field(ge=1, le=10_000)] = 16
    connect_seconds: Seconds = 3.0
    reply_seconds: Seconds = 600.0
    wait_seconds: Seconds = 10.0
    failures: Annotated[int, Field(ge=1)] = 3
    pause_seconds: Seconds = 5.0
    tls_ca: str | None = None
    kerberos_principal: str | None = None
    user: str | None = None
    password_file: Path | None = None

    @validator(mode="after")
    def _goes_together(self) -> Self:
        if self.primary and self.number is not None:
            raise ValueError("the primary backend has no number: its transactions and locks keep their ids")
        if self.user is not None and self.password_file is None:
            raise ValueError("a user needs a password_file")
        if self.beside is not None:
            for key in ("prefix", "catalog", "rename", "allow", "deny", "primary", "follow"):
                if key in self.model_fields_set:
                    raise ValueError(f"beside = {self.beside!r} leaves no {key}: its names are those of {self.beside}")
        elif "kinds" in self.model_fields_set:
            raise ValueError("kinds says which tables go to a backend that is beside another one: say beside, too")
        taken: dict[str, str] = {}
        for front, name in self.rename.items():
            if name in taken:
                raise ValueError(f"rename gives database {name} two names, {taken[name]} and {front}")
            taken[name] = front
            if not self.admits(name):
                raise ValueError(f"rename names database {name}, which allow and deny leave out")
        return self

    def admits(self, database: str) -> bool:
        """Whether a database, by its name there, is shown at all."""
        return _matches(database, self.allow) and not _matches(database, self.deny)

    def writable(self, database: str) -> bool:
        """Whether a database, by its name there, may be changed."""
        if isinstance(self.read_only, bool):
            return not self.read_only
        return not _matches(database, self.read_only)

    @property
    def proves(self) -> bool:
        """Whether the front logs in there, and then acts as its callers."""
        return self.user is not None or self.kerberos_principal is not None

    def login(self, caller: str | None, *, front: bool = False) -> Login:
        """How the front logs in for a caller, or for itself. Raises BadLogin, also for a caller without a name."""
        if self.proves and caller is None and not front:
            raise BadLogin("the front acts as its callers there, and this one has not said who it is")
        password = None
        if self.password_file is not None:
            try:
                password = self.password_file.read_text().strip()
            except OSError as error:
                raise BadLogin(f"can't read the password_file {self.password_file}: {error.strerror}") from None
        return Login(
            authorities=self.tls_ca,
            user=self.user,
            password=password,
            kerberos_principal=self.kerberos_principal,
            acting_as=caller if self.proves and not front else None,
        )


class Federation(BaseModel):
    """What applies to all backends. `unreachable`: whether lists of several metastores fail without one of them, or
    leave it out. `list_seconds`: how long such a list waits for each. `max_reply_bytes`: the longest answer that isn't
    passed on in pieces.

    `log_readers`: who may read the merged notification log: users, `group:` with a group's name, or `*`.
    `log_lag_seconds`: by how much the log may be behind a followed backend before reading it fails, unless
    `unreachable` says otherwise.

    `iceberg_locations`: the directories below which Iceberg's metadata files are read and written. Without any there is
    no REST catalog.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    unreachable: Unreachable = "fail"
    list_seconds: Seconds = 10.0
    max_reply_bytes: ByteSize = ByteSize(256 << 20)
    log_readers: Annotated[tuple[str, ...], BeforeValidator(_listed)] = ()
    log_lag_seconds: Seconds = 60.0
    iceberg_locations: Annotated[tuple[Annotated[str, AfterValidator(_directory)], ...], BeforeValidator(_listed)] = ()

    def may_read_log(self, user: str | None, groups: Sequence[str]) -> bool:
        """Whether somebody may read the merged notification log."""
        return (
            "*" in self.log_readers
            or user in self.log_readers
            or any(f"group:{each}" in self.log_readers for each in groups)
        )


class Configuration(BaseModel):
    """All of the file. `server`: settings of the server itself, as `metastore serve` has them."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    server: dict[str, Any] = {}
    federation: Federation = Federation()
    backends: Annotated[dict[Named, Backend], Field(min_length=1)]


def load(path: Path) -> Configuration:
    """Reads the file, without looking at how its names go together. Raises FederationError."""
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise FederationError(f"can't read the file {path}: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise FederationError(f"{path} is not TOML: {error}") from None
    try:
        return Configuration(**values)
    except ValidationError as error:
        raise FederationError(f"{path}: {'; '.join(map(_complaint, error.errors()))}") from None


class IcebergLocations:
    """The directories of `iceberg_locations` as the file says now. One that can't be used changes nothing."""

    def __init__(self, file: Path, now: tuple[str, ...]) -> None:
        self._file = file
        self._now = now
        self._seen: tuple[int, int, int] | None = None

    def __call__(self) -> tuple[str, ...]:
        with suppress(OSError, FederationError):
            stat = self._file.stat()
            seen = stat.st_mtime_ns, stat.st_size, stat.st_ino
            if seen != self._seen:
                self._seen = seen
                self._now = load(self._file).federation.iceberg_locations
        return self._now


def _complaint(detail: Any) -> str:
    place = ".".join(str(each) for each in detail["loc"] if each != "[key]")
    message = detail["msg"].removeprefix("Value error, ")
    if detail["type"] == "extra_forbidden":
        message = "there is no such key; docs/federation.md lists them"
    return f"{place or 'the file'}: {message}"


def _matches(name: str, patterns: Sequence[str]) -> bool:
    return any(fnmatchcase(name, each) for each in patterns)
