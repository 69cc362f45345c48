"""Rollbacks of keyed tables: rows have the versions that they had, also once they are compacted again."""

from collections.abc import Mapping

import pyarrow as pa
import pytest

from lake.tables.compaction import plan_compaction, run_compaction
from lake.tables.lake import LakeTable
from tests.lake.client.conftest import NewTable

COLUMNS = {"id": "bigint", "v": "int"}
ENGINES: Mapping[str, Mapping[str, str]] = {
    "latest": {},
    "partial update": {"merge-engine": "partial-update"},
    "last value": {"merge-engine": "aggregation", "fields.v.aggregate-function": "last_value"},
}


def upsert(lake: LakeTable, value: int) -> None:
    lake.upsert(pa.table({"id": [1], "v": pa.array([value], pa.int32())}))


def values(lake: LakeTable) -> list[int]:
    return lake.scan().to_arrow().column("v").to_pylist()  # type: ignore[no-any-return]


def compacted(lake: LakeTable) -> None:
    planned = plan_compaction(lake)
    assert planned.instant is not None
    run_compaction(lake, planned.instant.timestamp)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_compaction_that_is_rolled_back(new_table: NewTable, engine: str) -> None:
    """Files that a rollback brings back aren't newer than those that were written since they were compacted."""
    properties = {"primary-key": "id", "table-type": "merge-on-read", **ENGINES[engine]}
    lake = new_table(properties, COLUMNS, partitioned=False)
    for value in (1, 2, 3):
        upsert(lake, value)
    # Rolled back twice, so that files are brought back that a rollback had brought back.
    for value in (4, 5):
        planned = plan_compaction(lake)
        assert planned.instant is not None
        upsert(lake, value)
        done = run_compaction(lake, planned.instant.timestamp)
        assert values(lake) == [value]
        assert done is not None
        lake.roll_back(done.instant)
        assert values(lake) == [value]
        assert lake.changes(0).to_arrow().column("v").to_pylist() == [value]
    compacted(lake)
    assert values(lake) == [5]
    upsert(lake, 6)
    assert values(lake) == [6]
