"""How often a change asks the database does not depend on how many partitions it is about."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, event

from lake.protocol.hive import Partition
from lake.protocol.lake import BeginInstantRequest, CompleteInstantRequest, DataFile, TableReference
from metastore.postgres.joined_messages import JoiningCursor
from metastore.services.wiring import Metastore
from metastore.settings import Settings
from tests.support import builders

DB, TABLE = "d", "t"


class Counting(JoiningCursor):
    """Counts what is sent."""

    messages = 0

    def execute(self, *args: Any) -> None:
        Counting.messages += 1
        super().execute(*args)

    def copy_expert(self, *args: Any) -> None:
        Counting.messages += 1
        super().copy_expert(*args)


@pytest.fixture
def metastore(upgraded_url: str, tmp_path: Path) -> Iterator[Metastore]:
    def count(connection: Any, _record: object) -> None:
        connection.cursor_factory = Counting

    event.listen(Engine, "connect", count)
    try:
        opened = Metastore.open(Settings(database_url=upgraded_url, data_dir=tmp_path))
        opened.databases.create(builders.database(DB))
        yield opened
        opened.close()
    finally:
        event.remove(Engine, "connect", count)


def _messages(change: Callable[[], object]) -> int:
    before = Counting.messages
    change()
    return Counting.messages - before


def _partitions(first: int, count: int) -> list[Partition]:
    return [builders.partition(DB, TABLE, str(number)) for number in range(first, first + count)]


@pytest.mark.parametrize("delete_data", [False, True])
def test_messages_of_a_bulk_change_do_not_grow_with_it(metastore: Metastore, tmp_path: Path, delete_data: bool) -> None:
    warehouse = tmp_path / "warehouse"

    def changes(count: int) -> dict[str, int]:
        service, names = metastore.partitions, [f"ds={number}" for number in range(count)]
        metastore.tables.create(builders.table(DB, TABLE, keys=("ds",)), {})
        changed = [
            each.replace(sd=builders.storage(location=f"{warehouse}/{DB}.db/{TABLE}/{name}"), parameters={"a": "b"})
            for each, name in zip(_partitions(0, count), names, strict=True)
        ]
        sent = {
            "add": _messages(lambda: service.add(DB, TABLE, _partitions(0, count), {})),
            "alter": _messages(lambda: service.alter(DB, TABLE, changed, {})),
            "drop some": _messages(
                lambda: service.drop_named(DB, TABLE, names[1:], delete_data=delete_data, if_exists=False)
            ),
        }
        service.add(DB, TABLE, _partitions(1, count), {})
        sent["drop all"] = _messages(lambda: metastore.tables.drop(DB, TABLE, delete_data=delete_data))
        return sent

    changes(2)  # a connection prepares its statements once
    few = changes(2)
    assert changes(300) == few
    # A table is created, changed and dropped in a handful of round trips, whatever may belong to one.
    assert all(number <= 20 for number in few.values()), few
    # One finds the table, one the partitions. What changes goes with COMMIT, and who keeps a descriptor needs no other.
    assert few["alter"] == 2


def test_messages_of_an_instant_do_not_grow_with_its_files(metastore: Metastore) -> None:
    metastore.tables.create(builders.table(DB, TABLE, keys=("ds",)), {})
    table = TableReference(database=DB, table=TABLE)

    def commit(partitions: int) -> tuple[int, int]:
        begun: list[str] = []
        begin = BeginInstantRequest(table, "commit", state="inflight")
        sent = _messages(lambda: begun.append(metastore.timeline.begin(begin).timestamp or ""))
        added = [
            DataFile(f"ds={number}", "g", begun[0], f"ds={number}/{begun[0]}", size=1) for number in range(partitions)
        ]
        complete = CompleteInstantRequest(table, begun[0], "commit", added=added)
        return sent, _messages(lambda: metastore.instant_completion.complete([complete]))

    for _ in range(2):  # partitions are added, then changed; a connection prepares its statements once
        commit(50)
    # Beside the message of COMMIT, with which the new instant goes, or what completes it.
    assert commit(1) == commit(50) == (2, 6)
