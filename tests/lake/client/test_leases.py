"""Readers' leases by the typed client."""

import time

import pytest

from lake.protocol.hive import InvalidOperationException
from lake.protocol.lake import SnapshotGone
from lake.tables.lake import LakeTable
from tests.lake.client.conftest import NewTable
from tests.lake.tables.keyed.histories import COLUMNS, rows_of


def upsert(lake: LakeTable, value: int) -> None:
    lake.upsert(rows_of([{"id": 1, "part": "x", "v": value, "a": None, "b": None}]))


def read(lake: LakeTable, position: int) -> list[int]:
    found: list[int] = lake.scan(as_of=position).to_arrow()["v"].to_pylist()
    return found


def clean(lake: LakeTable) -> None:
    if files := lake.plan_clean(keep_commits=1):
        lake.clean(files)


def test_a_snapshot_is_kept_while_it_is_read(new_table: NewTable) -> None:
    lake = new_table({"primary-key": "id,part"}, COLUMNS)
    for value in range(2):
        upsert(lake, value)
    with lake.leased(seconds=1, holder="a report") as position:
        assert position == 2
        for value in range(2, 5):
            upsert(lake, value)
            time.sleep(0.7)  # longer than the lease: it is renewed
        clean(lake)
        assert read(lake, position) == [1]
        with pytest.raises(SnapshotGone):
            read(lake, 1)
    clean(lake)
    with pytest.raises(SnapshotGone):
        read(lake, position)
    with pytest.raises(SnapshotGone), lake.leased(position):
        pass
    with pytest.raises(InvalidOperationException, match="has no position 99"), lake.leased(99):
        pass
    with pytest.raises(ValueError, match="a second or more"), lake.leased(seconds=0):
        pass
