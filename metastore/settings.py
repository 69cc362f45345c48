"""Every setting of the server: its name, default and meaning, and where its value may come from.

A value comes from, first found first: a command-line flag, the environment (`METASTORE_<NAME>`), a TOML file,
the default below. Flags, the environment names and the table in the README are all derived from `Settings`.
"""

import difflib
import os
import re
import tomllib
from collections.abc import Container, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, Self
from urllib.parse import urlsplit

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ByteSize,
    ConfigDict,
    Field,
    ValidationError,
    model_validator,
)
from pydantic.fields import FieldInfo
from pydantic_settings import (
    BaseSettings,
    EnvSettingsSource,
    NoDecode,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
)

from lake.protocol.connection.addresses import is_loopback
from lake.protocol.errors import UsageError

ENVIRONMENT_PREFIX = "METASTORE_"

_MIB = 1024 * 1024


class SettingsError(UsageError):
    """A setting is unknown or has a value that can't be used."""


def default_data_dir() -> Path:
    """Root's data lives where services keep theirs; the embedded Postgres's own user may not enter /root."""
    return Path("/var/lib/metastore") if os.geteuid() == 0 else Path("~/.metastore")


def _default_workers() -> int:
    return min(4, len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1)


def _absolute_path(path: Path) -> Path:
    return path.expanduser().absolute()


def _directory_or_uri(value: str) -> str:
    """A URI stays as it is, a local path becomes absolute."""
    return value if re.match(r"[A-Za-z][A-Za-z0-9+.-]*:", value) else str(_absolute_path(Path(value)))


def _postgres_url(value: str) -> str:
    # Imported here: commands that need no database start faster without SQLAlchemy.
    from sqlalchemy.engine import make_url
    from sqlalchemy.exc import ArgumentError

    try:
        url = make_url(value)
    except (ArgumentError, ValueError):
        raise ValueError("expected postgresql://user:password@host:port/database") from None
    if url.drivername not in ("postgres", "postgresql", "postgresql+psycopg2"):
        raise ValueError(f"expected postgresql://…, not {url.drivername}://…: the metastore needs Postgres")
    return url.set(drivername="postgresql+psycopg2").render_as_string(hide_password=False)


def mask_password(url: str) -> str:
    """`url` as it may be shown: without its password."""
    from sqlalchemy.engine import make_url

    # libpq takes it as a parameter, too.
    return make_url(url).difference_update_query(["password"]).render_as_string(hide_password=True)


def _redis_url(value: str) -> str:
    if not re.match(r"(rediss?|unix)://", value):
        raise ValueError("expected redis://user:password@host:port/database, rediss://… or unix://…")
    return value


def _audit_url(value: str) -> str:
    if not re.match(r"(https?|rediss?|unix)://|kafka://[^\s/@]+/[A-Za-z0-9._-]{1,249}$", value):
        raise ValueError(
            "expected https://…, redis://user:password@host:port/database, rediss://…, unix://… or "
            "kafka://host:port,…/topic"
        )
    return value


def _kafka_options(value: object) -> object:
    """A table as it is, but its values as texts, or `name=value` with commas between."""
    if isinstance(value, str):
        pairs = re.split(r",\s*(?=[a-z0-9._]+=)", value.strip()) if value.strip() else []
        return {name.strip(): text.strip() for name, _, text in (pair.partition("=") for pair in pairs)}
    if isinstance(value, Mapping):
        return {name: str(each).lower() if isinstance(each, bool) else str(each) for name, each in value.items()}
    return value


def _http_url(value: str) -> str:
    if not re.match(r"https?://[^/\s]+", value):
        raise ValueError(f"{value!r} is no URL: expected https://host/path")
    return value


def _url_or_file(value: str) -> str:
    if not re.match(r"https?://[^/\s]+", value):
        return str(_absolute_path(Path(value)))
    if value.startswith("http://") and not is_loopback(urlsplit(value).hostname or ""):
        raise ValueError(
            f"keys from {value} could be replaced by others on their way: use https://, or a file."
            " http:// is for a loopback address alone"
        )
    return value


def _proxies(value: object) -> object:
    """A table of lists as it is, or `user=name name` with commas between."""
    if isinstance(value, str):
        pairs = [part.partition("=") for part in value.split(",") if part.strip()]
        value = {user.strip(): whom for user, _, whom in pairs}
    if isinstance(value, Mapping):
        return {user: tuple(whom.split()) if isinstance(whom, str) else whom for user, whom in value.items()}
    return value


def _proxied(entries: tuple[str, ...]) -> tuple[str, ...]:
    from metastore.services.access.proxy_users import check_entries

    check_entries(entries)
    return entries


def _with_user(value: str) -> str:
    if "{user}" not in value:
        raise ValueError("expected {user} in it, which stands for the user's name")
    return value


def _principal(value: str) -> str:
    from metastore.services.access.auth_to_local import Principal

    if len(Principal.parse(value).components) != 2:
        raise ValueError("a server's principal has a host: service/host@REALM, or service/_HOST@REALM")
    return value


def _joined(value: object) -> object:
    return "\n".join(map(str, value)) if isinstance(value, list | tuple) else value


def _rules(value: str) -> str:
    from metastore.services.access.auth_to_local import AuthToLocal

    AuthToLocal(value, "")
    return value


def _listed(value: object) -> object:
    """A list as it is, or as people write it into a flag or a variable: with commas."""
    return [part.strip() for part in value.split(",") if part.strip()] if isinstance(value, str) else value


def _webhooks(value: object) -> object:
    """A list of tables as it is, or `name=url` with commas or spaces between."""
    if not isinstance(value, str):
        return value
    pairs = [pair.partition("=") for pair in re.split(r"[\s,]+(?=[A-Za-z0-9_.-]+=https?:)|\s+", value.strip()) if pair]
    return [{"name": name, "url": url} for name, _, url in pairs]


def _distinct(hooks: "tuple[WebhookSettings, ...]") -> "tuple[WebhookSettings, ...]":
    if len({hook.name for hook in hooks}) < len(hooks):
        raise ValueError("two webhooks have the same name")
    return hooks


def _allowed_roots(values: tuple[str, ...]) -> tuple[str, ...]:
    from metastore.services.access.locations import AllowedRoot

    for each in values:
        AllowedRoot.parse(each)
    return values


def _event_filter(values: tuple[str, ...], kind: Literal["tables", "types"]) -> tuple[str, ...]:
    from lake.protocol.events.filters import Filter

    Filter.parse(values if kind == "tables" else (), values if kind == "types" else ())
    return values


def _table_patterns(values: tuple[str, ...]) -> tuple[str, ...]:
    return _event_filter(values, "tables")


def _event_types(values: tuple[str, ...]) -> tuple[str, ...]:
    return _event_filter(values, "types")


Names = Annotated[tuple[str, ...], NoDecode, BeforeValidator(_listed)]
AbsolutePath = Annotated[Path, AfterValidator(_absolute_path)]
LoginMechanism = Literal["none", "plain", "kerberos", "token", "jwt", "header", "certificate"]
KerberosProtection = Literal["auth", "auth-int", "auth-conf"]
JwtAlgorithm = Literal[
    "RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "ES256K", "EdDSA"
]
DirectoryOrUri = Annotated[str, AfterValidator(_directory_or_uri)]
Seconds = Annotated[float, Field(ge=0, allow_inf_nan=False)]
PositiveInt = Annotated[int, Field(ge=1)]
Size = Annotated[ByteSize, Field(ge=1)]
Port = Annotated[int, Field(ge=0, le=65535)]


class WebhookSettings(BaseModel):
    """One webhook: a table of the settings file's `event_webhooks`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9_.-]{1,64}$")]
    url: Annotated[str, AfterValidator(_http_url)]
    secret: Annotated[str | None, Field(min_length=1, repr=False)] = None
    tables: Annotated[tuple[str, ...], BeforeValidator(_listed), AfterValidator(_table_patterns)] = ()
    types: Annotated[tuple[str, ...], BeforeValidator(_listed), AfterValidator(_event_types)] = ()
    attempts: PositiveInt | None = None
    timeout_seconds: Annotated[float, Field(gt=0, le=300)] = 10


class Settings(BaseSettings):
    """The settings of one server. Immutable; `Settings(...)` takes its arguments alone and never looks at the
    environment: use `load` for that.

    Sizes are bytes (given as a number or as `100MiB`), times are seconds.
    """

    model_config = SettingsConfigDict(
        frozen=True,
        extra="forbid",
        validate_default=True,
        env_prefix=ENVIRONMENT_PREFIX,
        env_ignore_empty=True,
        hide_input_in_errors=True,
    )

    host: str = Field(default="127.0.0.1", description="Address to listen on; `0.0.0.0` for every interface.")
    port: Port = Field(default=9083, description="Port of the Thrift service; 0 picks a free one.")
    data_dir: Annotated[Path, AfterValidator(_absolute_path)] = Field(
        default_factory=default_data_dir,
        description="Directory of what this server keeps: the embedded Postgres, its log, by default the "
        "warehouse. One server at a time.",
        json_schema_extra={"default_text": "`~/.metastore`, as root `/var/lib/metastore`"},
    )
    database_url: Annotated[str, AfterValidator(_postgres_url)] | None = Field(
        default=None,
        repr=False,
        description="Postgres to use, `postgresql://user:password@host:port/database`.",
        json_schema_extra={"default_text": "a Postgres of its own in the data directory", "secret": True},
    )
    schema_upgrade: bool = Field(
        default=True,
        description="Whether the server brings an older schema of the database to its own version when it starts; else "
        "it refuses it, and a role that may change tables runs `metastore db upgrade`.",
    )
    warehouse_dir: DirectoryOrUri = Field(
        default_factory=lambda data: str(data["data_dir"] / "warehouse"),
        description="Where databases and managed tables get their directories: a path or a URI (`s3://…`).",
        json_schema_extra={"default_text": "`<data_dir>/warehouse`"},
    )
    warehouse_external_dir: DirectoryOrUri | None = Field(
        default=None,
        description="Where external tables without a location get theirs.",
        json_schema_extra={"default_text": "as `warehouse_dir`"},
    )
    delete_roots: Annotated[tuple[DirectoryOrUri, ...], NoDecode, BeforeValidator(_listed)] = Field(
        default=(),
        description="More directories below which dropping deletes files, with commas between. Without them it deletes "
        "below `warehouse_dir` and `warehouse_external_dir`, and elsewhere only what the server made.",
        json_schema_extra={"default_text": "none"},
    )
    workers: PositiveInt = Field(
        default_factory=_default_workers,
        description="Worker processes that share the port.",
        json_schema_extra={"default_text": "number of cores, at most 4"},
    )
    threads: PositiveInt = Field(default=8, description="Requests a worker works on at the same time.")
    database_pool_size: PositiveInt = Field(
        default_factory=lambda data: data["threads"],
        description="Database connections a worker opens at most.",
        json_schema_extra={"default_text": "as `threads`"},
    )
    max_connections: PositiveInt = Field(
        default=10_000, description="Client connections a worker keeps open at most; further ones are closed at once."
    )
    max_message_bytes: Size = Field(
        default=ByteSize(100 * _MIB), description="Longest request (Hive: `hive.metastore.server.max.message.size`)."
    )
    max_string_bytes: Size = Field(
        default=ByteSize(100 * _MIB), description="Longest string or binary within a request."
    )
    max_container_items: PositiveInt = Field(
        default=1_000_000, description="Most items of one list, set or map within a request."
    )
    max_request_memory: Size = Field(
        default=ByteSize(1024 * _MIB),
        description="Memory that requests may take in a worker while they are read and answered, by an estimate: one "
        "that needs more is refused, one for which there is no room waits.",
    )
    max_depth: PositiveInt = Field(default=64, description="Deepest nesting of structs and containers in a request.")
    receive_timeout_seconds: Seconds = Field(
        default=60, description="Time a client has to finish sending a request it began."
    )
    request_timeout_seconds: Seconds = Field(
        default=600,
        description="Time a statement of a request may take in the database; 0 is no limit. "
        "Hive's clients stop waiting after 600.",
    )
    write_timeout_seconds: Seconds = Field(
        default=60,
        description="Time a client may take none of the reply it is being sent; at most 5 while all threads "
        "are busy and others wait.",
    )
    idle_timeout_seconds: Seconds = Field(
        default=0, description="Time after which a connection without requests is closed; 0 is never."
    )
    drain_seconds: Seconds = Field(
        default=30, description="Time that running requests get to finish when the server stops."
    )
    readiness_seconds: Annotated[float, Field(gt=0, allow_inf_nan=False)] = Field(
        default=2.0,
        description="Time between looks for partitions that have become ready without a writer's report: by the clock, "
        "or because a source is idle.",
    )
    housekeeping_seconds: Annotated[float, Field(gt=0, allow_inf_nan=False)] = Field(
        default=60,
        description="Time between runs of housekeeping: unfinished moves, expired locks, unused descriptors.",
    )
    event_retention_days: Annotated[float, Field(gt=0, le=36_500)] = Field(
        default=7, description="Days for which events are kept; longer while a group of subscribers has not read them."
    )
    event_retention_count: PositiveInt = Field(
        default=1_000_000,
        description="Maximum number of events to keep, whether or not subscribers have read them.",
    )
    event_group_days: Annotated[float, Field(gt=0, le=36_500)] = Field(
        default=30,
        description="Days without a reader after which a group of subscribers, or an outlet, keeps no events any more; "
        "after twice as many it is deleted.",
    )
    event_dead_letter_days: Annotated[float, Field(gt=0, le=36_500)] = Field(
        default=30, description="Days for which dead letters are kept: events that a webhook or listener did not take."
    )
    instant_heartbeat_seconds: Annotated[float, Field(gt=0, allow_inf_nan=False)] = Field(
        default=120,
        description="Time after which an instant of a timeline is aborted whose writer sent heartbeats and stopped; "
        "one with a table service's plan is requested again.",
    )
    active_instants: PositiveInt = Field(
        default=1_000,
        description="Completed instants of a table that are listed by default; older ones on request.",
    )
    archived_instant_days: Annotated[float, Field(ge=0, allow_inf_nan=False)] = Field(
        default=90,
        description="Days after which an archived instant is deleted with its metadata, unless its "
        "snapshot can still be read.",
    )
    publish_grace_seconds: Annotated[float, Field(ge=0, le=86_400)] = Field(
        default=3_600,
        description="Time after which the files that Hive saw of a keyed table are deleted, once newer ones are "
        "published: queries that listed them before finish meanwhile.",
    )
    refuse_unpublished_reads: bool = Field(
        default=True,
        description="Whether engines get an error where they are about to read a keyed table that was never published; "
        "else they see an empty table.",
    )
    allow_incompatible_column_types: bool = Field(
        default=False,
        description="Whether a column's type may change to one that its stored values can't be read as "
        "(the opposite of Hive's `hive.metastore.disallow.incompatible.col.type.changes`).",
    )
    max_partitions_per_request: PositiveInt | None = Field(
        default=None,
        description="Partitions that the answer to one request may hold (Hive's "
        "`hive.metastore.limit.partition.request`); requests by name, or for names, are not limited by it.",
        json_schema_extra={"default_text": "any number"},
    )
    authentication: Annotated[tuple[LoginMechanism, ...], NoDecode, BeforeValidator(_listed), Field(min_length=1)] = (
        Field(
            default=("none",),
            description="How clients may prove who they are, with commas between: `plain` (password), `kerberos`, "
            "`certificate`, `jwt`, `header`, `token`; with `none` callers without a login may come in too.",
        )
    )
    tls_certificate: AbsolutePath | None = Field(
        default=None,
        description="PEM file with the server's certificate and those between it and the authority. With it, clients "
        "may use TLS on every Thrift port. A renewed file is taken without a restart.",
        json_schema_extra={"default_text": "no TLS"},
    )
    tls_key: AbsolutePath | None = Field(
        default=None,
        description="PEM file with the certificate's private key.",
        json_schema_extra={"default_text": "none"},
    )
    tls_key_password: str | None = Field(
        default=None,
        repr=False,
        min_length=1,
        description="Password of `tls_key`, if it has one. It has no command-line flag.",
        json_schema_extra={"default_text": "none", "hidden": True, "no_flag": True},
    )
    tls_required: bool = Field(
        default=False, description="Whether connections without TLS are refused on the Thrift ports."
    )
    tls_client_ca: AbsolutePath | None = Field(
        default=None,
        description="PEM file with the authorities whose client certificates are accepted.",
        json_schema_extra={"default_text": "none"},
    )
    certificate_user: Literal["cn", "subject", "dns", "email", "uri"] = Field(
        default="cn",
        description="What of a client's certificate is the user's name: the subject's common name, the whole subject, "
        "or the only alternative name of a kind.",
    )
    login_timeout_seconds: Annotated[float, Field(gt=0, le=3_600)] = Field(
        default=10, description="Time that a client has to log in, from its first byte; without `none`, from its start."
    )
    login_max_bytes: Annotated[ByteSize, Field(ge=1024)] = Field(
        default=ByteSize(64 * 1024), description="Bytes that a client may send before it has logged in."
    )
    password_file: AbsolutePath | None = Field(
        default=None,
        description="File of users with their hashed passwords and groups, for `plain`; `metastore users` writes it.",
        json_schema_extra={"default_text": "none"},
    )
    password_hook: Annotated[str, Field(pattern=r"^[\w.]+:[\w.]+$")] | None = Field(
        default=None,
        description="Function in Python that checks passwords for `plain`, `package.module:function`.",
        json_schema_extra={"default_text": "none"},
    )
    password_hook_seconds: Annotated[float, Field(gt=0, le=60)] = Field(
        default=5, description="Time that the function has to answer; no answer refuses the login."
    )
    ldap_url: Annotated[str, Field(pattern=r"^ldaps?://[^/\s?]+/?$")] | None = Field(
        default=None,
        description="LDAP directory with the users' passwords and groups, `ldaps://host` or `ldap://host`; needs the "
        "extra `ldap`.",
        json_schema_extra={"default_text": "none"},
    )
    ldap_start_tls: bool = Field(
        default=True, description="Whether a connection to `ldap://…` is encrypted before anything is sent."
    )
    ldap_ca: AbsolutePath | None = Field(
        default=None,
        description="PEM file with the authorities whom the directory's certificate must come from.",
        json_schema_extra={"default_text": "those of the operating system"},
    )
    ldap_user_dn: Annotated[str, AfterValidator(_with_user)] | None = Field(
        default=None,
        description="Where users are, for example `uid={user},ou=people,dc=example,dc=org`.",
        json_schema_extra={"default_text": "they are searched for"},
    )
    ldap_user_base: str | None = Field(
        default=None,
        min_length=1,
        description="Entry below which users are searched for, without `ldap_user_dn`.",
        json_schema_extra={"default_text": "none"},
    )
    ldap_user_filter: Annotated[str, AfterValidator(_with_user)] = Field(
        default="(uid={user})", description="Filter that finds a user's entry (Active Directory: `sAMAccountName`)."
    )
    ldap_user_attribute: str = Field(
        default="uid", min_length=1, description="Attribute of a user's entry with the name."
    )
    ldap_group_base: str | None = Field(
        default=None,
        min_length=1,
        description="Entry below which groups are searched for.",
        json_schema_extra={"default_text": "users have no groups"},
    )
    ldap_group_filter: str = Field(
        default="(member={dn})",
        description="Filter that finds a user's groups by `{dn}`, the user's entry, or `{user}`.",
    )
    ldap_group_attribute: str = Field(
        default="cn", min_length=1, description="Attribute of a group's entry with its name."
    )
    ldap_bind_dn: str | None = Field(
        default=None,
        min_length=1,
        description="Entry as which the server searches.",
        json_schema_extra={"default_text": "nobody"},
    )
    ldap_bind_password: str | None = Field(
        default=None,
        repr=False,
        min_length=1,
        description="Password of that entry. It has no command-line flag.",
        json_schema_extra={"default_text": "none", "hidden": True, "no_flag": True},
    )
    ldap_seconds: Annotated[float, Field(gt=0, le=60)] = Field(
        default=1.5, description="Time that the directory has for a login; no answer refuses it."
    )
    ldap_cache_seconds: Annotated[float, Field(ge=0, le=3_600)] = Field(
        default=60,
        description="Time for which a correct password and a user's groups are cached; 0 turns the cache off.",
    )
    credentials_without_tls: bool = Field(
        default=False,
        description="Whether passwords and bearer tokens are accepted over unencrypted connections.",
    )
    kerberos_principal: Annotated[str, AfterValidator(_principal)] | None = Field(
        default=None,
        description="The server's own principal, `service/host@REALM`; `_HOST` stands for this machine's full name. "
        "Kerberos needs the extra `kerberos`.",
        json_schema_extra={"default_text": "none"},
    )
    kerberos_keytab: AbsolutePath | None = Field(
        default=None,
        description="Keytab with the keys of that principal. A replaced file is used at the next login.",
        json_schema_extra={"default_text": "none"},
    )
    kerberos_protection: Annotated[
        tuple[KerberosProtection, ...], NoDecode, BeforeValidator(_listed), Field(min_length=1)
    ] = Field(
        default=("auth", "auth-int", "auth-conf"),
        description="What clients of Kerberos may choose for the messages after their login (Hadoop: "
        "`hadoop.rpc.protection`): `auth` leaves them as they are, `auth-int` protects them from changes, `auth-conf` "
        "encrypts them, too.",
    )
    auth_to_local: Annotated[str, BeforeValidator(_joined), AfterValidator(_rules)] = Field(
        default="DEFAULT",
        description="Rules by which principals become users (Hadoop's `hadoop.security.auth_to_local`), with white "
        "space between. A principal that no rule matches is refused.",
    )
    proxy_users: Annotated[
        dict[str, Annotated[tuple[str, ...], Field(min_length=1), AfterValidator(_proxied)]],
        NoDecode,
        BeforeValidator(_proxies),
    ] = Field(
        default_factory=dict,
        description="Users that may act as others, `user=name name,…` (Hadoop's `hadoop.proxyuser.*`); `*` is anybody, "
        "`group:NAME` all of a group, and `host:ADDRESS` or `host:NETWORK` says from where alone. In the settings file "
        "a table of lists.",
        json_schema_extra={"default_text": "nobody"},
    )
    jwt_keys: Annotated[str, AfterValidator(_url_or_file)] | None = Field(
        default=None,
        description="URL or file of the JSON Web Key Set with which bearer tokens are checked; needs the extra `jwt`. "
        "`http://` is for a loopback address alone.",
        json_schema_extra={"default_text": "none"},
    )
    jwt_issuer: str | None = Field(
        default=None,
        min_length=1,
        description="The `iss` that a bearer token must have.",
        json_schema_extra={"default_text": "none"},
    )
    jwt_audience: str | None = Field(
        default=None,
        min_length=1,
        description="The `aud` that a bearer token must have.",
        json_schema_extra={"default_text": "none"},
    )
    jwt_algorithms: Annotated[tuple[JwtAlgorithm, ...], NoDecode, BeforeValidator(_listed), Field(min_length=1)] = (
        Field(default=("RS256", "ES256"), description="Algorithms of signatures that are accepted.")
    )
    jwt_leeway_seconds: Annotated[float, Field(ge=0, le=3_600)] = Field(
        default=30, description="By how much the clocks of issuer and server may differ."
    )
    jwt_user_claim: str = Field(default="sub", min_length=1, description="The claim that is the user's name.")
    jwt_groups_claim: str = Field(
        default="groups", min_length=1, description="The claim that lists the user's groups, if there is one."
    )
    http_host: str = Field(default="127.0.0.1", description="Address of the HTTP port.")
    uncommitted_port: Port | None = Field(
        default=None,
        description="Port of a second Thrift listener, for clusters of ad-hoc queries: its connections see uncommitted "
        "partitions without asking; 0 picks a free one.",
        json_schema_extra={"default_text": "off"},
    )
    http_port: Port | None = Field(
        default=None,
        description="Port for `/metrics`, `/health`, `/ready`, `/hudi/commits` and `/iceberg`; 0 picks a free one.",
        json_schema_extra={"default_text": "off"},
    )
    iceberg_rest: bool = Field(
        default=True,
        description="Whether the HTTP port answers Iceberg's REST protocol at `/iceberg`.",
    )
    iceberg_credentials_role: str | None = Field(
        default=None,
        pattern=r"^arn:[a-z-]+:iam::[0-9]*:role/.+$",
        description="ARN of a role that may use the tables' buckets. With it, clients of `/iceberg` that want them get "
        "credentials for one table's directory, by STS.",
        json_schema_extra={"default_text": "none: no credentials are given"},
    )
    iceberg_credentials_endpoint: Annotated[str, AfterValidator(_http_url)] | None = Field(
        default=None,
        description="URL of STS, if it isn't Amazon's.",
        json_schema_extra={"default_text": "Amazon's, or `AWS_ENDPOINT_URL_STS`"},
    )
    iceberg_credentials_region: str | None = Field(
        default=None,
        description="Region of STS. Clients get it as that of the buckets.",
        json_schema_extra={"default_text": "`AWS_DEFAULT_REGION`"},
    )
    iceberg_credentials_seconds: Annotated[int, Field(ge=900, le=43_200)] = Field(
        default=3_600, description="How long such credentials are valid, from 900 to 43,200 seconds."
    )
    iceberg_expose: bool = Field(
        default=False,
        description="Whether tables are shown as Iceberg that don't say `iceberg.expose`, and whose databases don't.",
    )
    metrics_anonymous: bool = Field(
        default_factory=lambda data: is_loopback(data["http_host"]),
        description="Whether every caller that reaches the HTTP port sees `/metrics`. Otherwise requests for it must "
        "log in, unless `none` is in `authentication`.",
        json_schema_extra={"default_text": "whether `http_host` is a loopback address"},
    )
    hudi_callback_key: str | None = Field(
        default=None,
        repr=False,
        min_length=1,
        description="What Hudi's writers give as `hoodie.write.commit.callback.http.api.key` where they needn't log "
        "in; with it the HTTP port takes such commit callbacks at `/hudi/commits`.",
        json_schema_extra={"default_text": "off", "hidden": True},
    )
    redis_url: Annotated[str, AfterValidator(_redis_url)] | None = Field(
        default=None,
        repr=False,
        description="Redis into whose streams events are put, `redis://user:password@host:port/database`.",
        json_schema_extra={"default_text": "none", "secret": True},
    )
    cache_memory: Annotated[ByteSize, Field(ge=0)] = Field(
        default=ByteSize(128 * _MIB), description="Memory a worker keeps replies in; 0 is none, and no cache."
    )
    cache_redis_url: Annotated[str, AfterValidator(_redis_url)] | None = Field(
        default_factory=lambda data: data["redis_url"],
        repr=False,
        description="Redis in which servers share the replies that they keep. It may evict them.",
        json_schema_extra={"default_text": "as `redis_url`", "secret": True},
    )
    event_streams: Literal["all", "database"] = Field(
        default="all", description="One stream in Redis for all events, or one for each database."
    )
    event_stream_max_bytes: Size = Field(
        default=ByteSize(32 * _MIB),
        description="Longest entry of a stream in Redis, as far as Redis allows it (`proto-max-bulk-len`); a longer "
        "event goes without its payload.",
    )
    kafka_servers: Annotated[str, Field(pattern=r"^[^\s,]+(,[^\s,]+)*$")] | None = Field(
        default=None,
        description="Kafka into whose topic events are put, `host:port,…`; needs the extra `kafka`.",
        json_schema_extra={"default_text": "none"},
    )
    kafka_topic: Annotated[str, Field(pattern=r"^[A-Za-z0-9._-]{1,249}$")] = Field(
        default="metastore.events", description="The topic."
    )
    kafka_options: Annotated[dict[str, str], NoDecode, BeforeValidator(_kafka_options)] = Field(
        default_factory=dict,
        repr=False,
        description="Further options of librdkafka, `name=value,…`, for example `security.protocol=ssl`; in the "
        "settings file a table.",
        json_schema_extra={"default_text": "none", "hidden": True},
    )
    event_webhooks: Annotated[
        tuple[WebhookSettings, ...], NoDecode, BeforeValidator(_webhooks), AfterValidator(_distinct)
    ] = Field(
        default=(),
        description="Where events are posted to: `name=url,…`; in the settings file tables with `name`, `url`, "
        "`secret`, `tables`, `types`, `attempts`, `timeout_seconds`.",
        json_schema_extra={"default_text": "none", "secret": True},
    )
    event_webhook_secret: str | None = Field(
        default=None,
        repr=False,
        min_length=1,
        description="Signs the requests of webhooks that have no secret of their own.",
        json_schema_extra={"default_text": "unsigned", "hidden": True},
    )
    event_webhook_max_bytes: Size = Field(
        default=ByteSize(_MIB),
        description="Longest body of a webhook's request; a longer event goes without its payload.",
    )
    event_source: str = Field(
        default="/metastore", min_length=1, description="This metastore's name in CloudEvents (`source`)."
    )
    event_listeners: Names = Field(
        default=(),
        description="Listeners in Python, `package.module:object,…`, beside those of the entry points "
        "`lake_metastore.listeners`.",
        json_schema_extra={"default_text": "none"},
    )
    event_attempts: PositiveInt = Field(
        default=8, description="Attempts to deliver an event to a webhook or listener before it is dead-lettered."
    )
    pre_event_listeners: Names = Field(
        default=(),
        description="Listeners that may veto a change before it is committed, `package.module:object,…`.",
        json_schema_extra={"default_text": "none"},
    )
    pre_event_seconds: Annotated[float, Field(gt=0, allow_inf_nan=False)] = Field(
        default=5, description="Time such a listener has to answer; no answer is a veto."
    )
    authorization: Annotated[str, Field(pattern=r"^(none|sql-standard|storage|policy|python:[\w.]+:[\w.]+)$")] = Field(
        default="none",
        description="Decides what callers may do: `none`, every caller may do everything; `sql-standard`, Hive's "
        "grants and roles; `storage`, the permissions of local directories; `policy`, policies of yours in Cedar; "
        "`python:package.module:factory`, an authorizer of yours.",
    )
    policy_file: Annotated[Path, AfterValidator(_absolute_path)] | None = Field(
        default=None,
        description="File with the policies in Cedar, or a directory with several `*.cedar`, for `authorization = "
        '"policy"`; read again when it changes. Needs the extra `cedar`.',
        json_schema_extra={"default_text": "none"},
    )
    authorization_seconds: Annotated[float, Field(gt=0, allow_inf_nan=False)] = Field(
        default=5, description="Time an authorizer in Python has to decide; no answer is a refusal."
    )
    admins: Names = Field(
        default=(),
        description="Users who may do anything, whatever grants or an authorizer say, with commas between; "
        "`group:NAME` for all of a group.",
        json_schema_extra={"default_text": "none"},
    )
    trust_unproven_users: bool = Field(
        default=False,
        description="Whether rights go by the names that clients merely claim. Without it a caller who has not "
        "logged in has the rights of the role `public`.",
    )
    allowed_locations: Annotated[
        tuple[str, ...], NoDecode, BeforeValidator(_listed), AfterValidator(_allowed_roots)
    ] = Field(
        default=(),
        description="Directories below which callers may place tables without the privilege LOCATION, with commas "
        "between: a directory, `database:NAME=DIRECTORY` or `role:NAME=DIRECTORY`.",
        json_schema_extra={"default_text": "none"},
    )
    only_allowed_locations: bool = Field(
        default=False,
        description="Whether callers other than `admins` may name no places but the usual ones and those below "
        "`allowed_locations`: owners, members of the role `admin` and the privilege LOCATION are no exception.",
    )
    audit: Literal["off", "changes", "all"] | None = Field(
        default=None,
        description="Which calls get a line in the audit log: `off`, `changes` or `all`.",
        json_schema_extra={"default_text": "`changes` with an authorization, else `off`"},
    )
    audit_log: Annotated[Path, AfterValidator(_absolute_path)] | None = Field(
        default=None,
        description="File of the audit log, one JSON object in a line. It is opened again after it was moved away.",
        json_schema_extra={"default_text": "the server's log"},
    )
    audit_url: Annotated[str, AfterValidator(_audit_url)] | None = Field(
        default=None,
        repr=False,
        description="Where records of the audit log go, too: a webhook `https://…`, which gets lines of JSON, "
        "`redis://…`, in its stream `metastore:audit`, or `kafka://host:port,…/topic`. What can't be kept while it is "
        "away is lost there.",
        json_schema_extra={"default_text": "none", "secret": True},
    )
    log_level: Literal["debug", "info", "warning", "error"] = Field(
        default="info", description="Least severe messages that are logged."
    )
    log_format: Literal["text", "json"] = Field(
        default="text", description="Log lines for people or for machines (one JSON object each); on stderr."
    )

    @model_validator(mode="after")
    def _logins_are_complete(self) -> Self:
        """What logins need beside one another. Raises ValueError."""
        logins = set(self.authentication)
        wrong = {
            "authorization = policy and policy_file need each other": (self.authorization == "policy")
            != (self.policy_file is not None),
            "audit_url needs another audit than off": self.audit_url is not None and self.audit == "off",
            "tls_certificate and tls_key need each other": (self.tls_certificate is None) != (self.tls_key is None),
            "tls_required needs tls_certificate": self.tls_required and self.tls_certificate is None,
            "tls_client_ca needs tls_certificate": self.tls_client_ca is not None and self.tls_certificate is None,
            "authentication by certificate needs tls_client_ca": "certificate" in logins and self.tls_client_ca is None,
            "authentication by plain needs one of password_file, password_hook and ldap_url": "plain" in logins
            and not self._directories,
            "password_file, password_hook and ldap_url exclude one another": self._directories > 1,
            "ldap_url needs ldap_user_dn or ldap_user_base": self.ldap_url is not None
            and self.ldap_user_dn is None
            and self.ldap_user_base is None,
            "ldap_bind_dn and ldap_bind_password need each other": (self.ldap_bind_dn is None)
            != (self.ldap_bind_password is None),
            "authentication by kerberos needs kerberos_principal and kerberos_keytab": "kerberos" in logins
            and None in (self.kerberos_principal, self.kerberos_keytab),
            "authentication by jwt needs jwt_keys, jwt_issuer and jwt_audience": "jwt" in logins
            and None in (self.jwt_keys, self.jwt_issuer, self.jwt_audience),
            "authentication by token needs another way by which tokens are fetched": "token" in logins
            and logins <= {"token", "none", "header"},
            "authentication by plain or jwt needs tls_certificate (or credentials_without_tls)": bool(
                logins & {"plain", "jwt"}
            )
            and self.tls_certificate is None
            and not self.credentials_without_tls,
        }
        if complaints := [complaint for complaint, holds in wrong.items() if holds]:
            raise ValueError("; ".join(complaints))
        return self

    @property
    def _directories(self) -> int:
        """How many there are that know the users' passwords and groups."""
        return sum(each is not None for each in (self.password_file, self.password_hook, self.ldap_url))

    @property
    def exposure(self) -> str | None:
        """What an operator should know about who may come in; None if there is nothing to say."""
        if "none" not in self.authentication or is_loopback(self.host):
            return None
        return (
            f"anybody who reaches {self.host} may read, change and delete everything: authentication is "
            f"{', '.join(self.authentication)}. docs/security.md says how to let only those in who belong"
        )

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """`load` reads the other sources, so that it can say which of them a bad value came from."""
        return (init_settings,)


def load(
    flags: Mapping[str, object] | None = None,
    config_file: Path | None = None,
    *,
    table: Mapping[str, object] | None = None,
    only: Container[str] | None = None,
) -> tuple[Settings, dict[str, str]]:
    """The settings, and for each one that isn't at its default, where its value came from.

    `flags` are the values given on the command line, by setting name. `table` stands for the file's content, where that
    is a table of another file. `only` names the settings that the environment may have. Raises SettingsError for a file
    that can't be read, an unknown key, and a value that can't be used; the message names where the value was found.
    """
    flags = flags or {}
    file_values = table or (_read_file(config_file) if config_file else {})
    environment = {name: value for name, value in EnvSettingsSource(Settings)().items() if only is None or name in only}
    origins = (
        {name: f"{name} in {config_file}" if table is None else name for name in file_values}
        | {name: environment_name(name) for name in environment}
        | {name: flag_name(name) for name in flags}
    )
    values: dict[str, Any] = {**file_values, **environment, **flags}
    try:
        return Settings(**values), origins
    except ValidationError as error:
        raise SettingsError(_explain(error, values, origins)) from None


def environment_name(name: str) -> str:
    """The environment variable of a setting."""
    return ENVIRONMENT_PREFIX + name.upper()


def flag_name(name: str) -> str:
    """The command-line flag of a setting."""
    return "--" + name.replace("_", "-")


def is_secret(name: str) -> bool:
    """Whether a setting's value must not be shown as it is."""
    extra = _extra(Settings.model_fields[name])
    return bool(extra.get("secret") or extra.get("hidden"))


def has_flag(name: str) -> bool:
    """Whether a setting may be given on the command line, where every user of the machine can read it."""
    return not _extra(Settings.model_fields[name]).get("no_flag")


def displayed(name: str, value: object) -> str:
    """A setting's value as people read it: sizes with their unit, passwords masked, nothing for None."""
    if value is None or value == {}:
        return ""
    if _extra(Settings.model_fields[name]).get("hidden"):
        return "***"
    if isinstance(value, Sequence) and not isinstance(value, str):
        return ", ".join(
            f"{each.name}={_without_secrets(each.url)}" if isinstance(each, WebhookSettings) else str(each)
            for each in value
        )
    if isinstance(value, Mapping):
        return ", ".join(f"{key}={' '.join(each)}" for key, each in value.items())
    if is_secret(name):
        return mask_password(str(value))
    if isinstance(value, ByteSize):
        return f"{value // _MIB}MiB" if value % _MIB == 0 else str(int(value))
    return f"{value:g}" if isinstance(value, float) else str(value)


def _without_secrets(url: str) -> str:
    """A webhook's address as it may be shown: many carry a token in their path or query."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.hostname}{f':{parts.port}' if parts.port else ''}/…"


def default_text(name: str) -> str:
    """A setting's default in words, in Markdown."""
    field = Settings.model_fields[name]
    text = _extra(field).get("default_text")
    return str(text) if text else f"`{displayed(name, field.default)}`"


def markdown_table() -> str:
    """All settings as a Markdown table, for the documentation."""
    rows = ["| setting | default | meaning |", "|---|---|---|"]
    for name, field in Settings.model_fields.items():
        rows.append(f"| `{name}` | {default_text(name)} | {field.description} |")
    return "\n".join(rows)


def _extra(field: FieldInfo) -> dict[str, Any]:
    return field.json_schema_extra if isinstance(field.json_schema_extra, dict) else {}


def _read_file(path: Path) -> dict[str, object]:
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise SettingsError(f"can't read the settings file {path}: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingsError(f"the settings file {path} is not TOML: {error}") from None
    for name in values:
        if name not in Settings.model_fields:
            raise SettingsError(f"{path}: unknown setting {name!r}{_suggestion(name)}")
    return values


def _suggestion(name: str) -> str:
    # With a low cutoff, so that there nearly always is one: the list of settings is long to read.
    nearest = difflib.get_close_matches(name.lower().replace("-", "_"), Settings.model_fields, n=1, cutoff=0.4)
    return f"; did you mean {nearest[0]!r}?" if nearest else "; `metastore settings` lists them"


def _explain(error: ValidationError, values: Mapping[str, object], origins: Mapping[str, str]) -> str:
    complaints = []
    for detail in error.errors():
        if not detail["loc"]:  # about several settings together
            complaints.append(detail["msg"].removeprefix("Value error, "))
            continue
        if detail["type"] == "default_factory_not_called":  # a consequence of another complaint
            continue
        name = str(detail["loc"][0])
        message = detail["msg"].removeprefix("Value error, ")
        value = "" if is_secret(name) else f" {values.get(name)!r}"
        complaints.append(f"{origins.get(name, name)}: bad value{value}: {message[0].lower()}{message[1:]}")
    return "; ".join(complaints)
