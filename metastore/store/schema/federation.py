"""The merged notification log of a front of several metastores."""

from sqlalchemy import BigInteger, Column, DateTime, Index, LargeBinary, SmallInteger, Table, Text, text

from metastore.store.schema.base import NAME, metadata

_NOW = text("clock_timestamp()")

federation_log = Table(
    "federation_log",
    metadata,
    Column("id", SmallInteger, primary_key=True, autoincrement=False, comment="1: there is one row"),
    Column("last_number", BigInteger, nullable=False, server_default="0"),
    Column("trimmed_number", BigInteger, nullable=False, server_default="0", comment="events up to here are gone"),
    Column("names", Text, comment="digest of the names under which the backends' events are taken"),
    comment="how far numbers of the merged log have been given; its row is held by whoever gives them",
)

federation_followed = Table(
    "federation_followed",
    metadata,
    Column("backend", NAME, primary_key=True),
    Column("position", BigInteger, nullable=False, comment="the last number of its log that is dealt with"),
    Column("mark", LargeBinary, comment="digest of the event with that number; NULL: it was not read"),
    Column("last_there", BigInteger, nullable=False, comment="the last number of its log, when that was looked at"),
    Column("looked_at", DateTime(timezone=True), nullable=False, server_default=_NOW),
    Column(
        "current_at",
        DateTime(timezone=True),
        nullable=False,
        server_default=_NOW,
        comment="when the merged log had all of its events last",
    ),
    Column("trouble", Text, comment="why the merged log hasn't all of its events"),
    comment="how far the logs of backends are followed",
)

federation_events = Table(
    "federation_events",
    metadata,
    Column("number", BigInteger, primary_key=True, autoincrement=False),
    Column("backend", NAME, nullable=False),
    Column("number_there", BigInteger, nullable=False, comment="in the backend's log; of a loss its last"),
    Column("type", Text, nullable=False),
    Column("database_name", NAME, comment="its database, by the name there"),
    Column("other_database", NAME, comment="another one that it is about"),
    Column("table_name", NAME),
    Column("body", LargeBinary, comment="the encoded NotificationEvent with the names there, zlib; NULL: a loss"),
    Column("loss", Text, comment="which events of the backend are lost, and why"),
    Column("recorded_at", DateTime(timezone=True), nullable=False, server_default=_NOW),
    Index("federation_events_there_idx", "backend", "number_there"),
    Index("federation_events_database_idx", "backend", "database_name", "number"),
    comment="the merged log; names are translated when events are read",
)
