"""Tables of roles, privileges, keys, and of the requests that callers have made."""

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    DateTime,
    ForeignKey,
    Identity,
    Index,
    Integer,
    LargeBinary,
    SmallInteger,
    Table,
    Text,
    UniqueConstraint,
    Uuid,
    text,
)

from metastore.store.schema.base import NAME, identifier, metadata

roles = Table(
    "roles",
    metadata,
    identifier(),
    Column("name", NAME, nullable=False, unique=True),
    Column("owner", Text),
    Column("create_time", BigInteger, nullable=False),
)


role_grants = Table(
    "role_grants",
    metadata,
    identifier(),
    Column("role_id", ForeignKey("roles.id", ondelete="CASCADE"), nullable=False),
    Column("principal_type", SmallInteger, nullable=False, comment="PrincipalType"),
    Column("principal_name", NAME, nullable=False),
    Column("grant_time", BigInteger, nullable=False),
    Column("grantor", Text),
    Column("grantor_type", SmallInteger),
    Column("grant_option", Boolean, nullable=False),
    UniqueConstraint("principal_name", "principal_type", "role_id"),
    Index(None, "role_id"),
    comment="who is a member of a role",
)


privileges = Table(
    "privileges",
    metadata,
    identifier(),
    Column("object_type", SmallInteger, nullable=False, comment="HiveObjectType; the next four say which object"),
    Column("database_id", ForeignKey("databases.id", ondelete="CASCADE")),
    Column("table_id", ForeignKey("tables.id", ondelete="CASCADE")),
    Column("partition_id", BigInteger, comment="may be of a partition that is gone; ids are never used again"),
    Column("column_name", NAME),
    Column("principal_type", SmallInteger, nullable=False, comment="PrincipalType"),
    Column("principal_name", NAME, nullable=False),
    Column("privilege", NAME, nullable=False),
    Column("grant_time", BigInteger, nullable=False),
    Column("grantor", Text),
    Column("grantor_type", SmallInteger),
    Column("grant_option", Boolean, nullable=False),
    Column("authorizer", Text),
    Index(None, "principal_name"),
    Index(None, "database_id"),
    Index(None, "table_id"),
)


master_keys = Table(
    "master_keys",
    metadata,
    Column("id", Integer, Identity(always=True), primary_key=True),
    Column("key", Text, nullable=False),
    comment="with which delegation tokens are signed",
)


token_keys = Table(
    "token_keys",
    metadata,
    Column("id", Integer, Identity(always=True), primary_key=True),
    Column("key", LargeBinary, nullable=False),
    Column("made", BigInteger, nullable=False, comment="milliseconds since 1970"),
    comment="with which this metastore signs the tokens that it issues; no client sees them",
)


issued_tokens = Table(
    "issued_tokens",
    metadata,
    Column("sequence", Integer, Identity(always=True), primary_key=True),
    Column("owner", Text, nullable=False),
    Column("renew_until", BigInteger, nullable=False, comment="milliseconds since 1970"),
    Column("max_date", BigInteger, nullable=False, comment="milliseconds since 1970"),
    Column("renewer", Text, comment="who may renew it; NULL: it isn't known"),
    Column("real_user", Text, comment="who fetched it for the owner"),
    Column("issued", BigInteger, comment="milliseconds since 1970"),
    Column("owner_password", Text, comment="version of the owner's password; NULL: the file had none"),
    Column("real_user_password", Text, comment="the same of who fetched it for the owner"),
    Index(None, "owner"),
    comment="delegation tokens that are neither cancelled nor too old",
)


request_keys = Table(
    "request_keys",
    metadata,
    Column("caller", NAME, primary_key=True, comment="the user; empty: nobody has logged in"),
    Column("key", Uuid, primary_key=True),
    Column("digest", LargeBinary, nullable=False, comment="SHA-256 of the request"),
    Column("refusal", SmallInteger, comment="the status with which it was refused; NULL: it was done"),
    Column("table_id", BigInteger, comment="of the one table that it changed"),
    Column("answer", Text, comment="for who sends the request again"),
    Column("at", DateTime(timezone=True), nullable=False, server_default=text("clock_timestamp()")),
    Index(None, "at"),
    comment="requests that were done or refused for good, by the keys that clients gave them",
)
