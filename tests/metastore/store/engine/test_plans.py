"""What Postgres does must not depend on how much there is of what isn't asked for."""

from pathlib import Path

import pytest
from sqlalchemy import Connection

from lake.protocol.hive import Partition
from lake.protocol.lake import BeginInstantRequest, CompleteInstantRequest, DataFile, TableReference
from metastore.services.wiring import Metastore
from metastore.settings import Settings
from metastore.store import Database
from metastore.store.partition import partitions
from metastore.store.snapshot import data_files
from metastore.store.snapshot.data_files import PartitionSubset
from tests.support import builders

DB, TABLE = "d", "t"


def test_partitions_elsewhere_are_found_without_a_look_at_the_others(upgraded_url: str, tmp_path: Path) -> None:
    opened = Metastore.open(Settings(database_url=upgraded_url, data_dir=tmp_path))
    opened.databases.create(builders.database(DB))
    opened.tables.create(builders.view(DB, TABLE, keys=("ds",)), {})
    opened.partitions.add(
        DB, TABLE, [Partition(dbName=DB, tableName=TABLE, values=[str(number)]) for number in range(3_000)], {}
    )
    opened.close()
    database = Database(upgraded_url)
    with database.write() as tx:
        # As if they lay in the table's directory, but for one.
        tx.exec_driver_sql("UPDATE partitions SET path = CASE WHEN name = 'ds=7' THEN 'elsewhere' ELSE name END")
        tx.exec_driver_sql("ANALYZE partitions")
        assert partitions.elsewhere(tx, 1) == [("elsewhere", None)]
        prepared = "SELECT name FROM pg_prepared_statements WHERE statement LIKE '%%IS DISTINCT FROM%%'"
        name = tx.exec_driver_sql(prepared).scalar_one()
        plan = "\n".join(tx.exec_driver_sql(f"EXPLAIN EXECUTE {name} ('{{1}}')").scalars())
    database.close()
    assert "partitions_elsewhere_idx" in plan


ALL, EVERY_TENTH = (
    PartitionSubset(None, []),
    PartitionSubset([f"dt={number:04d}" for number in range(9, 1_000, 10)], []),
)


@pytest.mark.parametrize("analysed", [False, True])
def test_a_page_of_a_snapshot_takes_what_it_holds(upgraded_url: str, analysed: bool) -> None:
    database = Database(upgraded_url)
    with database.write() as tx:
        for table, partition in ((1, "'dt=' || lpad((i / 10)::text, 4, '0')"), (2, "''")):
            for added, removed in ((1, 2), (2, "NULL")):
                tx.exec_driver_sql(
                    "INSERT INTO data_files (table_id, partition_name, file_group, slice, kind, version, path, size,"
                    f" added_at, removed_at) SELECT {table}, {partition}, 'g' || lpad(i::text, 4, '0'), {added}, 0, 0,"
                    f" i || '_{added}', 1, {added}, {removed} FROM generate_series(0, 9999) AS i"
                )
        if analysed:
            tx.exec_driver_sql("ANALYZE data_files")
        for position in (None, 1, 2):
            for table, wanted, after, following in (
                (1, ALL, ("dt=0500", "g5004"), [5005, 5006, 5007]),
                (1, ALL, ("dt=0500", "g5008"), [5009, 5010, 5011]),
                (1, EVERY_TENTH, ("dt=0509", "g5098"), [5099, 5190, 5191]),
                (1, EVERY_TENTH, ("dt=0500", "g5008"), [5090, 5091, 5092]),
                (1, ALL, ("dt=0999", "g9998"), [9999]),
                (2, ALL, ("", "g5004"), [5005, 5006, 5007]),
            ):
                before = _read(tx)
                found = data_files.snapshot(tx, table, wanted, position, after=after, limit=3)
                assert [each.file_group for each in found] == [f"g{number}" for number in following]
                # Postgres looks one group ahead, or 32 rows, for those that it has to put in order.
                assert _read(tx) - before <= 200, (table, wanted, position, after)
            before = _read(tx)
            data_files.snapshot_of_group(tx, 2, ("", "g5004"), 1)
            assert _read(tx) - before <= 2
    database.close()


def _read(tx: Connection) -> int:
    """How many files Postgres has looked at in this transaction."""
    query = "SELECT seq_tup_read + idx_tup_fetch FROM pg_stat_xact_user_tables WHERE relname = 'data_files'"
    return int(tx.exec_driver_sql(query).scalar_one())


@pytest.mark.parametrize("planned", ["without statistics", "with statistics", "with fewer files"])
def test_files_are_found_by_their_paths_without_a_look_at_the_others(upgraded_url: str, planned: str) -> None:
    database = Database(upgraded_url)
    insert = (
        "INSERT INTO data_files (table_id, partition_name, file_group, slice, kind, version, path, size, added_at)"
        " SELECT 1, 'dt=' || i %% 10, 'g' || i, '1', 0, 0, 'f' || i, 1, 1 FROM generate_series({}, {}) AS i"
    )
    with database.write() as tx:

        def found() -> list[str]:
            assert [each.file_group for each in data_files.with_paths(tx, 1, ["f7", "new", "f7"])] == ["g7"]
            both = data_files.live_in_groups_or_with_paths(tx, 1, [("dt=3", "g3")], ["f3", "f5", "new"])
            return [each.path for each in both]

        filled = 0
        if planned == "with fewer files":
            filled = 1_000
            tx.exec_driver_sql(insert.format(0, filled - 1))
            for _ in range(10):
                assert found() == ["f3", "f5"]
        tx.exec_driver_sql(insert.format(filled, 9_999))
        if planned == "with statistics":
            tx.exec_driver_sql("ANALYZE data_files")
        for _ in range(10):  # Postgres plans for the values at first, and then for any
            before = _read(tx)
            assert found() == ["f3", "f5"]
            assert _read(tx) - before <= 10
    database.close()


@pytest.mark.parametrize("analysed", [False, True])
def test_the_statements_of_instants_are_not_planned_anew(upgraded_url: str, tmp_path: Path, analysed: bool) -> None:
    opened = Metastore.open(Settings(database_url=upgraded_url, data_dir=tmp_path, database_pool_size=1))
    opened.databases.create(builders.database(DB))
    opened.tables.create(builders.table(DB, TABLE, keys=("ds",)), {})
    table = TableReference(database=DB, table=TABLE)

    def commit(groups: int) -> None:
        begun = opened.timeline.begin(BeginInstantRequest(table, "commit", state="inflight")).timestamp or ""
        added = [DataFile("ds=1", f"g{number}", begun, f"ds=1/g{number}_{begun}", size=1) for number in range(groups)]
        opened.instant_completion.complete([CompleteInstantRequest(table, begun, "commit", added=added)])

    commit(2_000)
    if analysed:
        with opened.database.write() as tx:
            tx.exec_driver_sql("ANALYZE")
    for _ in range(20):
        commit(1)
    with opened.database.read() as tx:
        statements = "SELECT statement FROM pg_prepared_statements WHERE custom_plans + generic_plans >= 20"
        assert len(tx.exec_driver_sql(statements).all()) >= 15
        assert tx.exec_driver_sql(f"{statements} AND custom_plans > 5").scalars().all() == []
    opened.close()


@pytest.mark.parametrize("analysed", [False, True])
def test_silent_writers_are_found_without_a_look_at_what_was_completed(
    upgraded_url: str, tmp_path: Path, analysed: bool
) -> None:
    opened = Metastore.open(Settings(database_url=upgraded_url, data_dir=tmp_path, database_pool_size=1))
    opened.databases.create(builders.database(DB))
    opened.tables.create(builders.table(DB, TABLE), {})
    with opened.database.write() as tx:
        tx.exec_driver_sql(
            "INSERT INTO instants (table_id, timestamp, action, begun_as, state, requested_at, changed_at,"
            " heartbeat_at, read_position, position)"
            " SELECT tables.id, i::text, 'commit', 'commit', 'completed', 0, 0, now(), 0, i"
            " FROM tables, generate_series(1, 5000) AS i"
        )
        if analysed:
            tx.exec_driver_sql("ANALYZE instants")
    opened.timeline.begin(BeginInstantRequest(TableReference(database=DB, table=TABLE), "commit", state="inflight"))
    with opened.database.read() as tx:
        prepared = "SELECT name, array_length(parameter_types, 1) FROM pg_prepared_statements"
        [(name, count)] = tx.exec_driver_sql(f"{prepared} WHERE statement LIKE '%%next_id%%'").all()
        values = ", ".join(["1"] * count)
        plan = "\n".join(tx.exec_driver_sql(f"EXPLAIN EXECUTE {name} ({values})").scalars())
    opened.close()
    assert "instants_heartbeat_idx" in plan
    assert "instants_moment_idx" not in plan
