"""Keyed tables: log files of a file group commute, and the server says in which slice they are."""

import itertools
from concurrent.futures import ThreadPoolExecutor

import pytest

from lake.protocol.hive import InvalidOperationException
from lake.protocol.lake import CompletedInstant, DataFile, Instant, InstantConflict, InstantKey
from metastore.services.instant_rules.conflicts import PROPERTY, Strategy, overlap
from metastore.services.wiring import Metastore
from metastore.store.timeline.instants import ChangedGroup
from tests.metastore.services.timeline.lake import DAY, LakeTable, file
from tests.support import builders

KEY = {"primary-key": "dt,id", "bucket": "4", "table-type": "merge-on-read"}
BUCKET = "bucket-0000{}".format
"""The file group of a bucket."""


@pytest.fixture
def table(metastore: Metastore, db: str) -> LakeTable:
    return keyed(metastore, db)


def keyed(metastore: Metastore, db: str, name: str = "t", **parameters: str) -> LakeTable:
    return LakeTable(metastore, db, name, parameters={**KEY, **parameters}, sd=builders.parquet())


def log(instant: Instant, number: int = 1, slice: str | None = None, **fields: object) -> DataFile:
    """A log file in an instant's directory, in the slice that its writer has in mind."""
    path = f".instants/{instant.timestamp}.{instant.action}/{DAY(1)}/{BUCKET(number)}.parquet"
    slice = slice or instant.timestamp or ""
    return file(DAY(1), BUCKET(number), slice, kind="log", **{"path": path, **fields})


def add_log(table: LakeTable, instant: Instant | None = None, **fields: object) -> CompletedInstant:
    begun = instant or table.begin("deltacommit")
    return table.complete(begun, log(begun), **fields)


def slices(table: LakeTable, kind: str = "log") -> list[str]:
    """The slices of live files, in the order of their completions."""
    found = [each for each in table.snapshot().files or () if each.kind == kind]
    return [each.slice or "" for each in sorted(found, key=lambda each: each.addedAt or 0)]


def timestamp(done: CompletedInstant) -> str:
    assert done.instant is not None
    return done.instant.timestamp or ""


def compacted(table: LakeTable, compaction: Instant, number: int = 1) -> CompletedInstant:
    return table.complete(compaction, file(DAY(1), BUCKET(number), compaction.timestamp or ""), newAction="commit")


# --- the slice ------------------------------------------------------------------------------------------------


def test_log_files_join_the_latest_base_file(table: LakeTable) -> None:
    early = table.begin("deltacommit")
    base = timestamp(table.commit(BUCKET(1), BUCKET(2)))
    done = table.complete(early, log(early), log(early, 2, "whatever"), readPosition=1)
    assert slices(table) == [base, base]
    again = table.complete(early, log(early), log(early, 2, "whatever"), readPosition=1)
    assert (again.repeated, again.instant) == (True, done.instant and done.instant.replace(moment=again.instant.moment))  # type: ignore[union-attr]
    with pytest.raises(InvalidOperationException, match="with another content"):
        table.complete(early, log(early, slice=base), log(early, 2, base), readPosition=1)


def test_log_files_go_where_a_compaction_is_planned(table: LakeTable) -> None:
    base = timestamp(table.commit(BUCKET(1), BUCKET(2)))
    begun = table.begin("deltacommit")
    planned = table.begin("compaction", plan=[table.group(BUCKET(1))])
    table.complete(begun, log(begun), log(begun, 2))
    assert slices(table) == [planned.timestamp, base]
    add_log(table)
    compacted(table, planned)
    assert slices(table) == [planned.timestamp, base, planned.timestamp]


def test_who_read_before_a_compaction_completed_loses_nothing(table: LakeTable) -> None:
    table.commit(BUCKET(1))
    early, late = table.begin("deltacommit"), table.begin("deltacommit")
    compacted(table, table.begin("compaction", plan=[table.group(BUCKET(1))]))
    second = table.begin("compaction", plan=[table.group(BUCKET(1))])
    add_log(table, early)
    compacted(table, second)
    add_log(table, late, conditional=False)
    assert slices(table) == [second.timestamp] * 2
    assert slices(table, "base") == [second.timestamp]


def test_a_compaction_that_was_planned_without_a_log_file_has_lost(table: LakeTable) -> None:
    base = timestamp(table.commit(BUCKET(1)))
    planned = table.begin("compaction", plan=[table.group(BUCKET(1))], readPosition=1)
    with table.metastore.database.write() as tx:  # as if it had been planned a moment later
        tx.exec_driver_sql("DELETE FROM instant_plans")
    add_log(table)
    assert slices(table) == [base]
    with pytest.raises(InstantConflict):
        compacted(table, planned)


def test_without_a_base_file_the_latest_log_file_counts(table: LakeTable) -> None:
    first, second = (timestamp(add_log(table)) for _ in range(2))
    assert first < second
    assert slices(table) == [first, first]
    planned = table.begin("compaction", plan=[table.group(BUCKET(1))])
    add_log(table)
    table.metastore.timeline.delete(table.reference, planned.timestamp, "compaction")
    add_log(table)
    assert slices(table) == [first, first, planned.timestamp, planned.timestamp]


def test_who_brings_a_base_file_along_says_the_slice(table: LakeTable) -> None:
    table.commit(BUCKET(1))
    begun = table.begin()
    table.complete(begun, file(DAY(1), BUCKET(1), begun.timestamp or ""), log(begun))
    assert slices(table) == slices(table, "base") == [begun.timestamp]
    replacing = table.begin("replacecommit")
    table.complete(replacing, log(replacing), replacedPartitions=[DAY(1)])
    assert slices(table) == [replacing.timestamp]
    assert slices(table, "base") == []


def test_a_log_file_that_grows_stays_in_its_slice(table: LakeTable) -> None:
    begun, one, two = (table.begin("deltacommit") for _ in range(3))
    table.complete(begun, log(begun, size=10))
    table.begin("compaction", plan=[table.group(BUCKET(1))])
    table.complete(one, log(begun, size=20), readPosition=1)
    assert slices(table) == [begun.timestamp]
    with pytest.raises(InstantConflict):
        table.complete(two, log(begun, size=30), readPosition=1)


def test_undoing_log_files_and_a_compaction(table: LakeTable) -> None:
    base = timestamp(table.commit(BUCKET(1)))
    first = add_log(table)
    planned = table.begin("compaction", plan=[table.group(BUCKET(1))])
    second = add_log(table)
    done = compacted(table, planned)
    for each in (done, second):
        assert each.instant is not None
        table.complete(table.begin("rollback"), rolledBack=[InstantKey(each.instant.timestamp, each.instant.action)])
    assert (slices(table, "base"), slices(table)) == ([base], [base])
    add_log(table)
    assert slices(table) == [base, base]
    assert timestamp(first) in table.paths()[1]


# --- conflicts ------------------------------------------------------------------------------------------------


def test_log_files_commute_unless_what_was_read_is_a_condition(table: LakeTable) -> None:
    table.commit(BUCKET(1))
    table.complete(table.begin("deltacommit"), file(DAY(1), BUCKET(2), "s", kind="log"))
    one, two, conditional, elsewhere = (table.begin("deltacommit") for _ in range(4))
    compacted(table, table.begin("compaction", plan=[table.group(BUCKET(2))]), 2)
    add_log(table, one)
    add_log(table, two)
    with pytest.raises(InstantConflict, match=f"file group {BUCKET(1)}"):
        add_log(table, conditional, conditional=True)
    # A compaction changes no row: it is no change of what was read.
    table.complete(elsewhere, log(elsewhere, 2), conditional=True)
    late = table.begin("deltacommit")
    add_log(table, late, conditional=True)


def test_log_files_do_not_commute_with_base_files(table: LakeTable) -> None:
    table.commit(BUCKET(1))
    logs, base, overwrite = table.begin("deltacommit"), table.begin(), table.begin("replacecommit")
    late = table.begin("deltacommit")
    add_log(table, logs)
    with pytest.raises(InstantConflict):
        table.complete(base, file(DAY(1), BUCKET(1), base.timestamp or ""))
    with pytest.raises(InstantConflict):
        table.complete(overwrite, replacedPartitions=[DAY(1)])
    table.commit(BUCKET(1))
    with pytest.raises(InstantConflict):
        add_log(table, late)


@pytest.mark.parametrize("by_property", [True, False])
@pytest.mark.parametrize("strategy", Strategy)
def test_log_files_commute_by_every_strategy(
    metastore: Metastore, db: str, strategy: Strategy, by_property: bool
) -> None:
    table = keyed(metastore, db, **{PROPERTY: strategy} if by_property else {})
    own = None if by_property else strategy.value
    table.commit(BUCKET(1))
    one, two, three, base = (table.begin("deltacommit") for _ in range(4))
    planned = table.begin("compaction", plan=[table.group(BUCKET(1))])
    add_log(table, one, strategy=own)
    table.complete(planned, file(DAY(1), BUCKET(1), planned.timestamp or ""), newAction="commit", strategy=own)
    add_log(table, two, strategy=own)
    with pytest.raises(InstantConflict):
        add_log(table, three, strategy=own, conditional=True)
    with pytest.raises(InstantConflict):
        compacted(table, table.begin("compaction", readPosition=1))
    added = file(DAY(1), BUCKET(3), base.timestamp or "")
    if strategy in (Strategy.TABLE, Strategy.PARTITION):
        with pytest.raises(InstantConflict):
            table.complete(base, added, log(base), strategy=own)
    else:
        table.complete(base, added, log(base), strategy=own)


@pytest.mark.parametrize("system", ["none", "hudi", "spark"])
def test_tables_of_other_systems_are_as_they_were(metastore: Metastore, db: str, system: str) -> None:
    hudi = {"inputFormat": "org.apache.hudi.hadoop.HoodieParquetInputFormat"}
    storage = builders.parquet().replace(**hudi) if system == "hudi" else builders.parquet()
    provider = {"spark.sql.sources.provider": "hudi"} if system == "spark" else {}
    key = {} if system == "none" else KEY
    table = LakeTable(metastore, db, parameters={**key, **provider}, sd=storage)
    base = timestamp(table.commit(BUCKET(1)))
    one, two = table.begin("deltacommit"), table.begin("deltacommit")
    table.complete(one, log(one, slice=base))
    with pytest.raises(InstantConflict):
        table.complete(two, log(two, slice=base))
    late = table.begin("deltacommit")
    table.complete(late, log(late))
    assert slices(table) == [base, late.timestamp]


def test_many_add_log_files_at_once_while_it_is_compacted(pair: tuple[Metastore, Metastore], table: LakeTable) -> None:
    """Nobody loses, and no log file is superseded by a base file that was written without it."""
    table.commit(BUCKET(1))
    written: dict[str, int] = {}  # the position at which what a compaction read was complete, by its slice

    def write(number: int) -> None:
        mine = table.on(pair[number % 2])
        for _ in range(8):
            add_log(mine)

    def compact() -> None:
        for _ in range(12):
            begun = table.begin("compaction", plan=[table.group(BUCKET(1))])
            read = table.snapshot().position or 0
            try:
                table.complete(
                    begun, file(DAY(1), BUCKET(1), begun.timestamp or ""), newAction="commit", readPosition=read
                )
                written[begun.timestamp or ""] = read
            except InstantConflict:
                table.metastore.timeline.delete(table.reference, begun.timestamp, "compaction")

    with ThreadPoolExecutor(5) as threads:
        running = [threads.submit(write, number) for number in range(4)] + [threads.submit(compact)]
        for each in running:
            each.result()
    assert len([each for each in table.instants(states=["completed"]) if each.action == "deltacommit"]) == 32
    (base,) = slices(table, "base")
    live = {each.path for each in table.snapshot().files or () if each.kind == "log"}
    for each in table.snapshot(allVersions=True).files or ():
        if each.kind == "log" and each.path not in live:
            assert (each.addedAt or 0) <= written[base]


def test_overlap_of_logs_is_symmetric() -> None:
    groups = [
        ChangedGroup(partition, group, slice, logs_only, compacted, None)
        for partition, group, slice in itertools.product("pq", ("g", "h"), ("1", "2"))
        for logs_only, compacted in ((False, False), (True, False), (False, True))
    ]
    for strategy, one, two in itertools.product(Strategy, groups, groups):
        found = overlap(strategy, [one], [two], logs_commute=True)
        assert found == overlap(strategy, [two], [one], logs_commute=True)
        if one.logs_only and two.logs_only:
            assert found == []
        elif all(each.logs_only or each.compacted for each in (one, two)):
            assert found == overlap(Strategy.FILE_GROUP, [one], [two])
        else:
            assert found == overlap(strategy, [one], [two])


# --- a key that is unique over all partitions -----------------------------------------------------------------


class TestAnywhere:
    """The same key may come to two partitions: writers of one bucket number don't commute."""

    @pytest.fixture
    def table(self, metastore: Metastore, db: str) -> LakeTable:
        return keyed(metastore, db, **{"primary-key": "id"})

    @staticmethod
    def put(table: LakeTable, instant: Instant, day: int, number: int = 1, kind: str = "base") -> CompletedInstant:
        path = f".instants/{instant.timestamp}.{instant.action}/{DAY(day)}/{BUCKET(number)}.parquet"
        return table.complete(instant, file(DAY(day), BUCKET(number), instant.timestamp or "", kind=kind, path=path))

    @pytest.mark.parametrize("strategy", ["file-group", "partition", "column"])
    def test_writers_of_a_bucket_in_two_partitions_conflict(self, metastore: Metastore, db: str, strategy: str) -> None:
        table = keyed(metastore, db, **{"primary-key": "id", PROPERTY: strategy})
        one, other, third = (table.begin("deltacommit") for _ in range(3))
        self.put(table, one, 1)
        with pytest.raises(InstantConflict, match="file group bucket-00001 of the table"):
            self.put(table, other, 2)
        if strategy != "partition":
            self.put(table, third, 1, number=2)

    def test_who_has_looked_into_a_bucket_conflicts_with_its_writers(self, table: LakeTable) -> None:
        one, looked, elsewhere = (table.begin("deltacommit") for _ in range(3))
        self.put(table, one, 1)
        with pytest.raises(InstantConflict, match="file group bucket-00001 of the table"):
            table.complete(looked, readGroups=[BUCKET(0), BUCKET(1)])
        table.complete(looked, readGroups=[BUCKET(1)], readPosition=1)
        table.complete(elsewhere, readGroups=[BUCKET(2)])
        self.put(table, table.begin("deltacommit", readPosition=1), 2)  # who only looked has changed nothing

    def test_a_compaction_changes_nothing_for_who_has_looked(self, table: LakeTable) -> None:
        self.put(table, table.begin("commit"), 1)
        self.put(table, table.begin("deltacommit"), 1, kind="log")
        compaction = table.begin("compaction", plan=[table.group(BUCKET(1))])
        looked = table.begin("deltacommit")
        path = f".instants/{compaction.timestamp}.compaction/{DAY(1)}/{BUCKET(1)}.parquet"
        added = file(DAY(1), BUCKET(1), compaction.timestamp or "", path=path)
        table.complete(compaction, added, newAction="commit")
        table.complete(looked, readGroups=[BUCKET(1)])

    def test_buckets_are_read_where_keys_are_unique_over_all_partitions(self, metastore: Metastore, db: str) -> None:
        other = keyed(metastore, db)
        with pytest.raises(InvalidOperationException, match="unique over all partitions"):
            other.complete(other.begin("deltacommit"), readGroups=[BUCKET(1)])

    def test_log_files_of_a_bucket_conflict(self, table: LakeTable) -> None:
        table.commit(BUCKET(1))
        one, other = table.begin("deltacommit"), table.begin("deltacommit")
        self.put(table, one, 1, kind="log")
        with pytest.raises(InstantConflict):
            self.put(table, other, 1, kind="log")

    def test_a_compaction_refuses_no_writer(self, table: LakeTable) -> None:
        table.commit(BUCKET(1))
        table.commit(BUCKET(1), partition=DAY(2))
        writer = table.begin("deltacommit")
        compaction = table.begin("compaction", plan=[table.group(BUCKET(1))])
        compacted(table, compaction)
        self.put(table, writer, 1, kind="log")
        second = table.begin("compaction", plan=[table.group(BUCKET(1))])
        self.put(table, table.begin("deltacommit"), 2, kind="log")
        compacted(table, second)
