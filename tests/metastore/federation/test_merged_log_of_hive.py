"""Hive's own notification log in a front's: read by Hive's own classes, it is the same but for the names."""

from pathlib import Path
from typing import Any

import pytest

from lake.protocol.connection.thrift_client import ThriftClient
from lake.protocol.hive import Database, MetaException, NotificationEventRequest
from tests.hive_client.conftest import HiveClient
from tests.metastore.federation.test_merged_log import FOLLOW, more
from tests.metastore.services.subscriptions.hive_story import Reader, notifications_after, tell
from tests.support import builders, reference
from tests.support.front import FrontServer
from tests.support.postgres import Postgres


@pytest.mark.interop
def test_the_same_events_under_other_names(tmp_path: Path, postgres: Postgres, jvm: Any) -> None:
    with reference.notifying(tmp_path / "hive") as hive, postgres.fresh_database(upgraded=True) as url:
        text = f'uris = "thrift://{hive.host}:{hive.port}"\nprefix = "eu_"\nnumber = 1\ndeny = ["out"]\n{FOLLOW}'
        java = HiveClient(jvm, hive.host, hive.port)
        with FrontServer(tmp_path / "front", {"eu": text}, more=more(url)) as front:
            through = HiveClient(jvm, front.host, front.port)
            with ThriftClient(hive.host, hive.port) as there, ThriftClient(front.host, front.port) as here:
                _story(there, here, java, through)
                _moved(there, here)
            through.close()
        java.close()


def _story(there: ThriftClient, here: ThriftClient, java: HiveClient, through: HiveClient) -> None:
    begin, begin_here = (each.get_current_notificationEventId().eventId for each in (there, here))
    tell(there, java, "story")
    theirs, ours = notifications_after(there, begin), notifications_after(here, begin_here)
    assert [each.eventId for each in ours] == list(range(begin_here + 1, begin_here + 1 + len(theirs)))
    assert len(theirs) > 20
    reader = Reader(java)
    for own, other in zip(ours, theirs, strict=True):
        assert (own.eventType, own.tableName, own.eventTime) == (other.eventType, other.tableName, other.eventTime)
        assert own.dbName == f"eu_{other.dbName}"
        assert reader.whole(own) == {key: _renamed(key, value) for key, value in reader.whole(other).items()}
    # Hive's client stops at a gap in the numbers.
    found = through.call(through._client, "getNextNotification", begin_here, 0, None)
    assert len(found.events) == len(ours)


def _renamed(key: str, value: Any) -> Any:
    if isinstance(value, list):
        return [_renamed(key, each) for each in value]
    if key == "db":
        return f"eu_{value}"
    if isinstance(value, Database):
        return value.replace(name=f"eu_{value.name}")
    return value.replace(dbName=f"eu_{value.dbName}") if hasattr(value, "dbName") else value


def _moved(there: ThriftClient, here: ThriftClient) -> None:
    """Out of sight and back."""
    begin = here.get_current_notificationEventId().eventId
    for name in ("moved", "out"):
        there.create_database(builders.database(name))
    there.create_table(builders.table("moved", "t"))
    try:
        for one, other in (("moved", "out"), ("out", "moved")):
            there.alter_table(one, "t", there.get_table(one, "t").replace(dbName=other))
    except MetaException as error:
        pytest.skip(f"Hive doesn't move tables between databases: {error}")
    events = here.get_next_notification(NotificationEventRequest(begin)).events
    assert [(each.eventType, each.dbName, each.tableName) for each in events] == [
        ("CREATE_DATABASE", "eu_moved", None),
        ("CREATE_TABLE", "eu_moved", "t"),
        ("DROP_TABLE", "eu_moved", "t"),
        ("CREATE_TABLE", "eu_moved", "t"),
    ]
