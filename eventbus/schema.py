"""The tables of the event log, in the metastore's database: a change and its event are one transaction."""

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    ForeignKey,
    Identity,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    SmallInteger,
    Table,
    Text,
    text,
)

metadata = MetaData(
    naming_convention={
        "pk": "%(table_name)s_pkey",
        "uq": "%(table_name)s_%(column_0_N_name)s_key",
        "ix": "%(table_name)s_%(column_0_N_name)s_idx",
        "fk": "%(table_name)s_%(column_0_N_name)s_fkey",
    }
)

events = Table(
    "events",
    metadata,
    Column("id", BigInteger, Identity(always=True), primary_key=True),
    Column("number", BigInteger, comment="its place in the order of commits; NULL until the sequencer has seen it"),
    Column("notifications", Integer, nullable=False, comment="so many it makes in Hive's notification log"),
    Column("first_notification", BigInteger, comment="the first of their numbers; NULL until it has them"),
    Column("type", Text, nullable=False),
    Column("catalog", Text),
    Column("database_name", Text),
    Column("table_name", Text),
    Column("time", BigInteger, nullable=False, comment="ms, by the clock of the server that made the change"),
    Column("user_name", Text),
    Column("connection", Text),
    Column("payload", LargeBinary, nullable=False, comment="JSON, zlib"),
    Index(None, "number", unique=True),
    Index("events_unnumbered_idx", "id", postgresql_where=text("number IS NULL")),
    Index("events_notifications_idx", "first_notification", postgresql_where=text("notifications > 0")),
)

event_groups = Table(
    "event_groups",
    metadata,
    Column("name", Text, primary_key=True),
    Column("position", BigInteger, nullable=False, comment="the last event that the group has dealt with"),
    Column("updated_at", BigInteger, nullable=False, comment="ms"),
    Column("attempted", BigInteger, comment="the event that an outlet was about to deliver"),
    Column("attempts", Integer, nullable=False, server_default="0", comment="so often it was about to"),
)

event_group_members = Table(
    "event_group_members",
    metadata,
    Column("group_name", Text, ForeignKey("event_groups.name", ondelete="CASCADE"), primary_key=True),
    Column("name", Text, primary_key=True),
    Column("alive_until", BigInteger, nullable=False, comment="ms, by the database's clock"),
    comment="those that read for a group; without a sign of life they are dead after alive_until",
)

event_group_shards = Table(
    "event_group_shards",
    metadata,
    Column("group_name", Text, ForeignKey("event_groups.name", ondelete="CASCADE"), primary_key=True),
    Column("shard", SmallInteger, primary_key=True, autoincrement=False),
    Column("position", BigInteger, nullable=False, comment="the last event of it that is dealt with"),
    Column("tenure", BigInteger, nullable=False, comment="rises whenever the shard changes hands"),
    Column("owner", Text, comment="a member; NULL: nobody"),
    Column("updated_at", BigInteger, nullable=False, comment="ms"),
    comment="the parts of a group's work; where there are some, the least of their positions is the group's",
)

event_log = Table(
    "event_log",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False, comment="1: there is one row"),
    Column("last_number", BigInteger, nullable=False, server_default="0"),
    Column("last_notification", BigInteger, nullable=False, server_default="0"),
    Column("trimmed_number", BigInteger, nullable=False, server_default="0", comment="events up to here are gone"),
    Column("trimmed_notification", BigInteger, nullable=False, server_default="0"),
    comment="how far numbers have been given; its row is held by whoever gives them",
)

event_dead_letters = Table(
    "event_dead_letters",
    metadata,
    Column("outlet", Text, primary_key=True, comment="the group's name"),
    Column("number", BigInteger, primary_key=True, autoincrement=False),
    Column("error", Text, nullable=False, comment="of the last attempt"),
    Column("attempts", Integer, nullable=False),
    Column("failed_at", BigInteger, nullable=False, comment="ms"),
    Column("resend", Boolean, nullable=False, server_default="false", comment="asked for"),
    Column("type", Text, comment="like the rest NULL where the event was gone before it could be delivered"),
    Column("catalog", Text),
    Column("database_name", Text),
    Column("table_name", Text),
    Column("time", BigInteger),
    Column("user_name", Text),
    Column("connection", Text),
    Column("payload", LargeBinary),
    comment="events that an outlet could not deliver, kept although the log may be trimmed",
)
