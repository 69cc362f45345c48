"""Events in CloudEvents' structured JSON, read back by the library of the CloudEvents project."""

import json
from typing import Any

from cloudevents.http import from_json

from eventbus.outlets.cloud_events import body_of
from lake.protocol.events.history import Epoch, History
from lake.protocol.events.types import Event, EventType, Origin


def event(payload: dict[str, Any]) -> Event:
    return Event(7, EventType.CREATE_TABLE, 1_700_000_000_123, Origin("ann", "0-1"), "hive", "d", "t", payload)


def test_the_library_reads_it() -> None:
    read = from_json(body_of(event({"after": {"tableName": "t"}}), "/lake", 1 << 20, None))
    assert read.get_attributes() == {
        "specversion": "1.0",
        "id": "7",
        "source": "/lake",
        "type": "lake.metastore.CREATE_TABLE",
        "subject": "hive.d.t",
        "time": "2023-11-14T22:13:20.123Z",
        "datacontenttype": "application/json",
    }
    assert read.get_data() == {
        "number": 7,
        "type": "CREATE_TABLE",
        "user": "ann",
        "connection": "0-1",
        "catalog": "hive",
        "database": "d",
        "table": "t",
        "epoch": None,
        "payload": {"after": {"tableName": "t"}},
    }


def test_the_id_has_the_epoch_of_a_log_that_was_restored() -> None:
    first, restored = Epoch(0, "first", 0, False, "", None), Epoch(1, "restored", 5, True, "a backup", None)
    read = from_json(body_of(event({}), "/lake", 1 << 20, History("log", [first])))
    assert (read["id"], read.get_data()["epoch"]) == ("7", "first")
    read = from_json(body_of(event({}), "/lake", 1 << 20, History("log", [first, restored])))
    assert (read["id"], read.get_data()["epoch"]) == ("restored-7", "restored")


def test_letters_beyond_ascii_take_no_more_than_they_have_to() -> None:
    """They count against `max_bytes`: escaped, a Cyrillic text would be three times as long."""
    whole = {"comment": "таблица" * 1_000}
    limit = len(json.dumps(whole, ensure_ascii=False).encode()) + 500
    read = from_json(body_of(event(whole), "/lake", limit, None))
    assert read.get_data()["payload"] == whole
    read = from_json(body_of(event(whole), "/lake", limit - 500, None))
    assert (read.get_data()["payload"], read.get_data()["truncated"]) == (None, True)
