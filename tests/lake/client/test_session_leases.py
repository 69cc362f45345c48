"""The leases of readers who don't say when they are done."""

from collections.abc import Callable, Iterator

import pytest

from lake.protocol.lake import ReaderLease, SnapshotGone
from lake.tables.lake import LakeClient, LakeTable
from lake.tables.session_leases import SessionLeases
from tests.lake.client.conftest import NewTable
from tests.lake.client.test_leases import clean, read, upsert
from tests.lake.tables.keyed.histories import COLUMNS
from tests.support.waiting import wait_until

Opened = Callable[..., SessionLeases]


@pytest.fixture
def table(new_table: NewTable) -> LakeTable:
    """With three positions."""
    lake = new_table({"primary-key": "id,part"}, COLUMNS)
    for value in range(3):
        upsert(lake, value)
    return lake


@pytest.fixture
def opened(lake: LakeClient) -> Iterator[Opened]:
    made: list[SessionLeases] = []

    def make(**options: float) -> SessionLeases:
        made.append(SessionLeases(lake.connect, holder="a session", **{"kept_seconds": 60, **options}))  # type: ignore[arg-type]
        return made[-1]

    yield make
    for each in made:
        each.close()


def held(table: LakeTable) -> list[ReaderLease]:
    found: list[ReaderLease] = table.client.call(lambda client: client.lake_list_leases(table.reference))
    return found


def test_one_lease_keeps_all_that_is_read(table: LakeTable, opened: Opened) -> None:
    leases = opened()
    leases.keep(table, 2)
    [first] = held(table)
    assert (first.position, first.onwards, first.holder) == (2, True, "a session")
    for value in range(3, 6):
        upsert(table, value)
        leases.keep(table, table.position().position)
    assert held(table) == [first], "no call was made for later positions"
    clean(table)
    assert [read(table, position) for position in range(2, 7)] == [[1], [2], [3], [4], [5]]
    assert [each.instant.position for each in table.changes(2, 6)] == [3, 4, 5, 6]
    with pytest.raises(SnapshotGone):
        read(table, 1)
    with pytest.raises(SnapshotGone):
        leases.keep(table, 1)
    leases.release()
    assert held(table) == []
    clean(table)
    with pytest.raises(SnapshotGone):
        read(table, 2)


def test_an_earlier_read_moves_it_back(table: LakeTable, opened: Opened) -> None:
    leases = opened()
    leases.keep(table, 3)
    leases.keep(table, 1)
    assert [each.position for each in held(table)] == [1]


def test_a_renamed_table_is_kept_on(table: LakeTable, lake: LakeClient, opened: Opened) -> None:
    leases = opened()
    leases.keep(table, 3)
    database, name = table.named.database, table.named.table
    other = table.describe().replace(tableName="renamed")
    lake.call(lambda client: client.alter_table(database, name, other))
    renamed = lake.table(f"{database}.renamed")
    leases.keep(renamed, 1)
    assert [each.position for each in held(renamed)] == [1]


def test_a_snapshot_that_a_savepoint_kept(table: LakeTable, opened: Opened) -> None:
    """Not all later snapshots are there any more: the lease is on that one alone."""
    leases, other = opened(), opened()
    with table.leased(1):
        clean(table)
        leases.keep(table, 1, changes=True)
        assert not [each for each in held(table) if each.holder], "what came later is gone: that can't be kept"
        leases.keep(table, 1)
        other.keep(table, 3)
    assert [(each.position, each.onwards) for each in held(table) if each.holder] in (
        [(1, False), (3, True)],
        [(3, True), (1, False)],
    )
    clean(table)
    assert read(table, 1) == [0]


def test_it_ends_some_time_after_the_last_read(table: LakeTable, opened: Opened) -> None:
    opened(kept_seconds=2, lease_seconds=1).keep(table, 2)
    begun = held(table)[0].expiresAt or 0
    wait_until(lambda: (held(table) or [ReaderLease(expiresAt=begun)])[0].expiresAt > begun, 10, "it is renewed")
    wait_until(lambda: not held(table), 20, "nobody reads any more")


def test_it_ends_with_its_session(table: LakeTable, lake: LakeClient) -> None:
    over: list[bool] = []
    leases = SessionLeases(lake.connect, holder="me", kept_seconds=60, lease_seconds=1, is_over=lambda: bool(over))
    leases.keep(table, 2)
    over.append(True)
    wait_until(lambda: not held(table), 10, "the session has ended")


def test_an_arrow_scan_has_a_lease_while_it_reads(table: LakeTable, monkeypatch: pytest.MonkeyPatch) -> None:
    """A clean in the middle deletes nothing of it; one before it is an error, not a missing file."""
    scan, late = table.scan(as_of=1), table.scan(as_of=2)
    layout = type(scan._layout)
    reading = layout.read

    def cleaning_first(self: object, *arguments: object) -> object:
        monkeypatch.setattr(layout, "read", reading)
        clean(table)
        assert [each.position for each in held(table)] == [1]
        return reading(self, *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(layout, "read", cleaning_first)
    assert scan.to_arrow()["v"].to_pylist() == [0]
    assert held(table) == []
    with pytest.raises(SnapshotGone):
        late.to_arrow()
