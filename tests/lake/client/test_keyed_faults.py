"""Faults of keyed tables that were found by attacking them."""

import time
from collections.abc import Mapping
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from lake.client.lake_types import Completion, to_millis
from lake.protocol.errors import UserError
from lake.tables.buckets import by_bucket
from lake.tables.compaction import plan_compaction, run_compaction
from lake.tables.keyed.errors import UnfitRows
from lake.tables.keyed.schema import of_hive
from lake.tables.lake import LakeTable
from tests.lake.client.conftest import NewTable

KINDS = ("copy-on-write", "merge-on-read")


def rows(columns: Mapping[str, str], *values: tuple[Any, ...]) -> pa.Table:
    """Rows of some columns, given with Hive's types."""
    schema = pa.schema([(name, of_hive(kind)) for name, kind in columns.items()])
    return pa.Table.from_pylist([dict(zip(columns, each, strict=True)) for each in values], schema=schema)


def changes(lake: LakeTable, *range: int) -> list[tuple[Any, ...]]:
    """The changes of a range: key, kind, version."""
    found = lake.changes(*range).to_arrow().select(["id", "_change_type", "_commit_version"]).to_pylist()
    return sorted(tuple(each.values()) for each in found)


def test_files_that_only_a_later_version_can_read(new_table: NewTable) -> None:
    lake = new_table({"primary-key": "id"}, {"id": "bigint"}, False)
    lake.upsert(rows({"id": "bigint"}, (1,)))
    with pytest.raises(UserError, match="of the kind vector, which this client"):
        by_bucket(each._replace(kind="vector") for each in lake.snapshot())


@pytest.mark.parametrize("kind", ["int", "double", "decimal(10,2)", "decimal(20,5)", "decimal(38,2)"])
@pytest.mark.parametrize("table_type", KINDS)
def test_sums_of_all_types(new_table: NewTable, kind: str, table_type: str) -> None:
    columns = {"id": "bigint", "a": kind}
    properties = {"merge-engine": "aggregation", "fields.a.aggregate-function": "sum", "ignore-delete": "true"}
    lake = new_table({"primary-key": "id", "table-type": table_type, **properties}, columns, False)
    for value in (1, None, 2):
        lake.upsert(rows(columns, (1, value if value is None or "(" not in kind else Decimal(value))))
    assert lake.scan().to_arrow().column("a").to_pylist() == [3]
    if kind == "int":
        lake.upsert(rows(columns, (2, 2**31 - 1)))
        with pytest.raises(UnfitRows, match="the sums of the column a are out of the range of int32"):
            lake.upsert(rows(columns, (2, 1)))
            lake.scan().to_arrow()


def test_partition_columns_have_their_type(new_table: NewTable) -> None:
    """One spelling of a value, or it would be two partitions, which nobody can read."""
    lake = new_table({"primary-key": "id,p"}, {"id": "bigint", "p": "int"})
    for value, kind in [("07", pa.string()), (7.0, pa.float64()), (7, pa.int64())]:
        lake.upsert(pa.table({"id": pa.array([1], pa.int64()), "p": pa.array([value], kind)}))
    assert [*lake.partitions()] == ["p=7"]
    assert lake.scan().to_arrow().to_pylist() == [{"id": 1, "p": 7}]
    for values in (pa.array([7.5]), pa.array([float("nan")]), pa.array(["x"]), pa.array([None], pa.int32())):
        with pytest.raises(UnfitRows, match="the column p"):
            lake.upsert(pa.table({"id": pa.array([1], pa.int64()), "p": values}))
    by_day = new_table({"primary-key": "id,p"}, {"id": "bigint", "p": "date"})
    by_day.upsert(pa.table({"id": pa.array([1], pa.int64()), "p": pa.array([datetime(2026, 1, 1)])}))
    assert [*by_day.partitions()] == ["p=2026-01-01"]
    by_name = new_table({"primary-key": "id,p"}, {"id": "bigint", "p": "string"})
    for name in ("", "__HIVE_DEFAULT_PARTITION__"):
        with pytest.raises(UnfitRows, match="belongs to the key and is empty"):
            by_name.upsert(pa.table({"id": pa.array([1], pa.int64()), "p": [name]}))


def test_keys_of_other_types_are_refused(new_table: NewTable) -> None:
    lake = new_table({"primary-key": "id,p"}, {"id": "bigint", "p": "int"})
    for key in ({"id": 1.5, "p": 1}, {"id": "a", "p": 1}, {"id": 1, "p": "x"}, {"id": 2**70, "p": 1}):
        with pytest.raises(UnfitRows, match=r"the column (id|p)"):
            lake.lookup([key])


def test_fields_of_structs_are_not_lost(new_table: NewTable) -> None:
    lake = new_table({"primary-key": "id"}, {"id": "bigint", "s": "array<struct<A:int,b:int>>"}, False)
    for field in ("c", "a"):
        items = pa.array([[{"b": 1, field: 2}]])
        with pytest.raises(UnfitRows, match=f"has no field {field}"):
            lake.upsert(pa.table({"id": pa.array([1], pa.int64()), "s": items}))
    lake.upsert(pa.table({"id": pa.array([1], pa.int64()), "s": pa.array([[{"b": 1}]])}))
    assert lake.scan().to_arrow().column("s").to_pylist() == [[{"A": None, "b": 1}]]


def test_names_that_look_like_paths(new_table: NewTable) -> None:
    for name in (".x", "[y", "a.b", "a b"):
        columns = {name: "bigint", "v": "int"}
        lake = new_table({"primary-key": name, "sequence.field": "v"}, columns, False)
        lake.upsert(rows(columns, (2, 1), (1, 1)))
        lake.upsert(rows(columns, (2, 2), (2, 0)))
        assert lake.scan().to_arrow().column("v").to_pylist() == [1, 2]


@pytest.mark.parametrize("table_type", KINDS)
@pytest.mark.parametrize("sequence", [{}, {"sequence.field": "v"}], ids=["latest", "sequence"])
def test_a_delete_has_the_version_that_removed_the_row(
    new_table: NewTable, table_type: str, sequence: Mapping[str, str]
) -> None:
    columns = {"id": "bigint", "v": "int"}
    lake = new_table({"primary-key": "id", "table-type": table_type, **sequence}, columns, False)
    lake.upsert(rows(columns, (1, 1)))
    lake.delete(rows(columns, (1, 5)))
    lake.delete(rows(columns, (1, 6)))
    assert changes(lake, 1) == [(1, "delete", 2)]
    lake.upsert(rows(columns, (1, 7)))
    lake.delete(rows(columns, (1, 8)))
    assert changes(lake, 1) == [(1, "delete", 5)]
    if table_type == "merge-on-read":
        planned = plan_compaction(lake)
        assert planned.instant is not None
        run_compaction(lake, planned.instant.timestamp)
    assert changes(lake, 1) == [(1, "delete", 5)]
    assert changes(lake, 5) == []


def test_a_savepoint_changes_nothing(new_table: NewTable) -> None:
    columns = {"id": "bigint", "v": "int"}
    lake = new_table({"primary-key": "id"}, columns, False)
    lake.upsert(rows(columns, (1, 1)))
    instant = lake.upsert(rows(columns, (1, 2))).instant
    assert instant is not None
    saved = lake.begin("savepoint", timestamp=instant.timestamp, state="inflight").instant
    lake.complete(saved, Completion())
    assert {version for _, _, version in changes(lake, 1)} == {2}


def test_changes_of_some_partitions(new_table: NewTable) -> None:
    columns = {"id": "bigint", "p": "string"}
    lake = new_table({"primary-key": "id,p"}, columns)
    lake.upsert(rows(columns, (1, "x"), (2, "y")))
    assert lake.changes(0, partitions=["p=x"]).to_arrow().column("id").to_pylist() == [1]


@pytest.mark.parametrize("table_type", KINDS)
def test_the_watermark_is_that_of_the_batch(new_table: NewTable, table_type: str) -> None:
    """Older rows of the same file don't hold it back."""
    columns = {"id": "bigint", "at": "timestamp"}
    lake = new_table({"primary-key": "id", "table-type": table_type}, columns, False)
    for day in (1, 5):
        lake.upsert(rows(columns, (day, datetime(2026, 1, day, tzinfo=UTC))), event_time="at")
    found = lake.client.call(lambda client: client.lake_get_watermark(lake.reference))
    assert found.watermark == to_millis(datetime(2026, 1, 5, tzinfo=UTC))
    if table_type == "merge-on-read":
        planned = plan_compaction(lake)
        assert planned.instant is not None
        run_compaction(lake, planned.instant.timestamp)
    [base] = lake.snapshot()
    assert (base.min_event_time, base.max_event_time) == tuple(datetime(2026, 1, day, tzinfo=UTC) for day in (1, 5))
    with pytest.raises(UnfitRows, match="event times are timestamps or dates"):
        lake.upsert(rows(columns, (1, None)), event_time="id")


def test_the_table_names_the_column_of_event_times(new_table: NewTable) -> None:
    columns = {"id": "bigint", "at": "timestamp"}
    lake = new_table({"primary-key": "id", "write.event-time": "At", "write.source": "shop"}, columns, False)
    lake.upsert(rows(columns, (1, datetime(2026, 1, 5, tzinfo=UTC))))
    lake.delete(rows({"id": "bigint"}, (1,)))
    found = lake.client.call(lambda client: client.lake_get_watermark(lake.reference))
    assert [(each.source, each.watermark) for each in found.sources] == [("shop", found.watermark)]
    assert found.watermark == to_millis(datetime(2026, 1, 5, tzinfo=UTC))


def test_a_row_that_comes_back_during_a_compaction_stays(new_table: NewTable) -> None:
    """Its log file completed before the compaction, whose tombstone of the same version is older nevertheless."""
    columns = {"id": "bigint", "v": "int"}
    properties = {"primary-key": "id", "table-type": "merge-on-read", "sequence.field": "v"}
    lake = new_table(properties, columns, partitioned=False)
    lake.upsert(rows(columns, (1, 4)))
    lake.delete(pa.table({"id": [1]}))
    planned = plan_compaction(lake)
    assert planned.instant is not None
    lake.upsert(rows(columns, (1, 4)))
    run_compaction(lake, planned.instant.timestamp)
    assert lake.scan().to_arrow().to_pylist() == [{"id": 1, "v": 4}]


@pytest.mark.parametrize("table_type", KINDS)
@pytest.mark.parametrize(("kept", "comes_back"), [("1 ms", True), ("1 d", False)])
def test_deletes_are_forgotten_in_time(new_table: NewTable, table_type: str, kept: str, comes_back: bool) -> None:
    columns = {"id": "bigint", "v": "int"}
    properties = {"primary-key": "id", "table-type": table_type, "sequence.field": "v", "tombstone.time-retained": kept}
    lake = new_table(properties, columns, partitioned=False)
    lake.upsert(rows(columns, (1, 5), (2, 5)))
    lake.delete(pa.table({"id": [1]}))
    time.sleep(0.01)  # timestamps are of milliseconds
    lake.upsert(rows(columns, (2, 6)))
    planned = plan_compaction(lake) if table_type == "merge-on-read" else None
    if planned is not None:
        assert planned.instant is not None
        run_compaction(lake, planned.instant.timestamp)
    position = lake.position().position
    lake.upsert(rows(columns, (1, 4)))
    assert lake.scan().to_arrow().column("id").to_pylist() == ([1, 2] if comes_back else [2])
    assert changes(lake, 1) == [(1, "delete", 2), (2, "update_postimage", 3), (2, "update_preimage", 3)] or comes_back
    assert len(changes(lake, position)) == comes_back
