"""Tables of catalogs, databases and functions, and of the metastores that these come from."""

from sqlalchemy import BigInteger, Column, ForeignKey, LargeBinary, Table, Text, UniqueConstraint

from metastore.store.schema.base import NAME, identifier, metadata

catalogs = Table(
    "catalogs",
    metadata,
    identifier(),
    Column("name", NAME, nullable=False, unique=True),
    Column("description", Text),
    Column("location", Text, nullable=False),
    Column("create_time", BigInteger, nullable=False),
)


databases = Table(
    "databases",
    metadata,
    identifier(),
    Column("catalog_id", ForeignKey("catalogs.id"), nullable=False),
    Column("name", NAME, nullable=False),
    Column("location", NAME, index=True),
    Column("managed_location", NAME, index=True, comment="of managed tables; NULL: as the others"),
    Column("owner", Text),
    Column("body", LargeBinary, nullable=False, comment="encoded Database without name, catalog, location, owner"),
    Column("version", BigInteger, nullable=False, server_default="1"),
    UniqueConstraint("catalog_id", "name"),
)


functions = Table(
    "functions",
    metadata,
    identifier(),
    Column("database_id", ForeignKey("databases.id"), nullable=False),
    Column("name", NAME, nullable=False),
    Column("body", LargeBinary, nullable=False, comment="encoded Function without names"),
    UniqueConstraint("database_id", "name"),
)


followed_sources = Table(
    "followed_sources",
    metadata,
    Column("source", NAME, primary_key=True, comment="another metastore, as its follower calls it"),
    Column("databases", NAME, primary_key=True, comment="which of its databases, as patterns"),
    Column("holder", BigInteger, nullable=False, comment="rises each time that somebody takes it"),
    Column("position", BigInteger, nullable=False, comment="up to here its notification log is dealt with"),
    Column("state", Text, nullable=False, comment="JSON of the follower"),
    comment="how far databases of other metastores have come over",
)
