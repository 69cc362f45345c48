"""The tables of the event log, in the metastore's database: a change and its event are one transaction."""

from sqlalchemy import (
    DDL,
    BigInteger,
    Boolean,
    Column,
    DateTime,
    ForeignKey,
    Identity,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    SmallInteger,
    Table,
    Text,
    UniqueConstraint,
    Uuid,
    event,
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

_NOW, _UUID = text("clock_timestamp()"), text("gen_random_uuid()")

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
    Column(
        "mark", Uuid(as_uuid=False), server_default=_UUID, comment="what no other event has, in any copy of the log"
    ),
    Column(
        "recorded_at",
        DateTime(timezone=True),
        server_default=_NOW,
        comment="by the database's clock; NULL: see time",
    ),
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
    Column(
        "seen_at",
        DateTime(timezone=True),
        nullable=False,
        server_default=_NOW,
        comment="when somebody last read for it, by the database's clock",
    ),
    Column(
        "epoch_id",
        BigInteger,
        comment="the epoch that its members know of; NULL: the first, or an older server made the group",
    ),
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
    Column("generation", BigInteger, nullable=False, comment="rises whenever the shard changes hands"),
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
    Column("identity", Uuid(as_uuid=False), nullable=False, server_default=_UUID),
    Column("place", Text, comment="in which Postgres the log was when a server last looked"),
    Column("marked_number", BigInteger, comment="of an event that is gone: see mark"),
    Column("mark", Uuid(as_uuid=False), comment="that event's"),
    comment="how far numbers have been given; its row is held by whoever gives them",
)

event_epochs = Table(
    "event_epochs",
    metadata,
    Column("id", BigInteger, Identity(always=True), primary_key=True),
    Column("name", Text, nullable=False),
    Column("after", BigInteger, nullable=False, comment="up to this number events are those of the epoch before"),
    Column("lossy", Boolean, nullable=False, comment="later events may have been sent to subscribers and are undone"),
    Column("reason", Text, nullable=False),
    Column("begun_at", DateTime(timezone=True), nullable=False, server_default=_NOW),
    UniqueConstraint("name"),
    comment="histories of the log: one begins when an older state of it was put back; the first has no row",
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
    Column(
        "dead_lettered_at",
        DateTime(timezone=True),
        nullable=False,
        server_default=_NOW,
        comment="by the database's clock",
    ),
    comment="events that an outlet could not deliver, kept although the log may be trimmed",
)

# Each statement of a volatile function has a snapshot of its own: the second one sees all that was committed before
# the first had its lock. So who waits for another sequencer doesn't number what that has numbered. Migration 0032.
_NUMBER_EVENTS = """
CREATE FUNCTION number_events() RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    before event_log;
    numbered bigint;
    notified bigint;
BEGIN
    IF NOT EXISTS (SELECT FROM events WHERE number IS NULL) THEN
        RETURN false;
    END IF;
    SELECT * INTO STRICT before FROM event_log FOR UPDATE;
    WITH fresh AS (
        SELECT id, row_number() OVER (ORDER BY id) AS place,
            sum(notifications) OVER (ORDER BY id) - notifications AS earlier
        FROM events WHERE number IS NULL
    ), done AS (
        UPDATE events SET number = before.last_number + fresh.place,
            first_notification = before.last_notification + fresh.earlier + 1
        FROM fresh WHERE events.id = fresh.id RETURNING events.notifications
    )
    SELECT count(*), coalesce(sum(notifications), 0) INTO numbered, notified FROM done;
    IF numbered = 0 THEN
        RETURN false;
    END IF;
    UPDATE event_log SET last_number = before.last_number + numbered,
        last_notification = before.last_notification + notified;
    PERFORM pg_notify('metastore_events', (before.last_number + numbered)::text);
    RETURN true;
END $$
"""
_CREATE = DDL(_NUMBER_EVENTS.replace("CREATE FUNCTION", "CREATE OR REPLACE FUNCTION"))  # type: ignore[no-untyped-call]
event.listen(metadata, "after_create", _CREATE)
