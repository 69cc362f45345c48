"""Tables with publish=at-readiness: who lists the directories of a ready partition finds all of its rows."""

from collections.abc import Mapping

import pyarrow as pa
import pytest

from lake.protocol.hive import InvalidObjectException, InvalidOperationException
from lake.tables.compaction import plan_compaction, run_compaction
from lake.tables.publishing import publish
from tests.lake.client.conftest import NewTable
from tests.lake.client.test_readiness import commit

KEYED = {"primary-key": "id,dt", "publish": "at-readiness"}
BY_EVENT_TIME = {
    "partition.commit.mode": "event-time",
    "sink.partition-commit.delay": "1 d",
    "partition.time-extractor.timestamp-pattern": "$dt",
}
COLUMNS = {"id": "bigint", "v": "int", "at": "timestamp", "dt": "string"}
DAYS = ("2026-01-01", "2026-01-02")


def rows(day: str, *values: int) -> pa.Table:
    """Rows of a day. Their event time is the day's last second."""
    time = pa.scalar(f"{day} 23:59:59").cast(pa.timestamp("us"))
    count = len(values)
    return pa.table(
        {
            "id": list(range(count)),
            "v": pa.array(values, pa.int32()),
            "at": pa.repeat(time, count),
            "dt": [day] * count,
        }
    )


@pytest.fixture(params=["copy-on-write", "merge-on-read"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_a_due_partition_turns_ready_once_its_rows_are_published(new_table: NewTable, kind: str) -> None:
    lake = new_table({**KEYED, **BY_EVENT_TIME, "table-type": kind}, COLUMNS)
    first, second = (f"dt={day}" for day in DAYS)
    lake.upsert(rows(DAYS[0], 1, 2), event_time="at")
    lake.upsert(rows(DAYS[0], 3), event_time="at")
    assert publish(lake, waiting=True).partitions == []  # it isn't due yet
    lake.upsert(rows(DAYS[1], 9), event_time="at")
    assert lake.partitions(ready=True) == []
    assert [name for name, each in lake.positions().items() if each.waits] == [first]
    done = publish(lake, waiting=True)
    if kind == "merge-on-read":
        assert (done.instant, done.unmerged) == (None, [first])
        planned = plan_compaction(lake, partitions=done.unmerged)
        assert planned.instant is not None
        run_compaction(lake, planned.instant.timestamp)
        done = publish(lake, waiting=True)
    assert done.partitions == [first]
    assert lake.partitions(ready=True) == [first]
    assert not lake.positions()[second].waits
    assert sorted(lake.scan().to_arrow().column("v").to_pylist()) == [2, 3]


def test_nobody_makes_it_ready_before(new_table: NewTable) -> None:
    lake = new_table({**KEYED, "partition.commit.mode": "manual"}, COLUMNS)
    lake.upsert(rows(DAYS[0], 1))
    name = f"dt={DAYS[0]}"
    with pytest.raises(InvalidOperationException, match="not published, and publish=at-readiness"):
        commit(lake, name)
    publish(lake)
    lake.upsert(rows(DAYS[0], 2))  # Hive has not got this one
    with pytest.raises(InvalidOperationException, match="not published"):
        commit(lake, name)
    publish(lake)
    commit(lake, name)
    assert lake.partitions(ready=True) == [name]


def test_an_alteration_is_no_way_around(new_table: NewTable) -> None:
    lake = new_table({**KEYED, "partition.commit.mode": "manual"}, COLUMNS)
    lake.upsert(rows(DAYS[0], 1))
    database, table = lake.reference.database, lake.reference.table

    def turn() -> None:
        value = lake.client.call(lambda opened: opened.get_partition_with_auth(database, table, [DAYS[0]], "", []))
        value.parameters["commit"] = "true"
        lake.client.call(lambda opened: opened.alter_partition(database, table, value))

    with pytest.raises(InvalidOperationException, match="not published"):
        turn()
    publish(lake)
    turn()
    assert len(lake.partitions(ready=True)) == 1


def test_an_empty_partition_turns_ready(new_table: NewTable) -> None:
    lake = new_table({**KEYED, "partition.commit.mode": "manual"}, COLUMNS)
    lake.upsert(rows(DAYS[0], 1))
    publish(lake)
    lake.delete(rows(DAYS[0], 1).select(["id", "dt"]))
    publish(lake)
    commit(lake, f"dt={DAYS[0]}")
    assert lake.scan().to_arrow().num_rows == 0


@pytest.mark.parametrize(
    ("properties", "message"),
    [
        ({"publish": "sometimes", "partition.commit.mode": "manual"}, "expected manual, at-readiness"),
        ({"publish": "at-readiness"}, "needs partition.commit.mode"),
        ({"publish": "at-readiness", "partition.commit.mode": "manual", "primary-key": "id"}, "unique over the whole"),
    ],
)
def test_what_makes_no_sense_is_refused(new_table: NewTable, properties: Mapping[str, str], message: str) -> None:
    with pytest.raises(InvalidObjectException, match=message):
        new_table({"primary-key": "id,dt", **properties}, COLUMNS)
