"""Merge-on-read tables between two compactions, as Iceberg's readers see them."""

import os
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.exceptions import BadRequestError

from lake.client.lake_types import Completion
from lake.protocol.errors import UserError
from lake.protocol.lake import ReopenPartitionsRequest
from lake.tables import iceberg_overlays
from lake.tables.iceberg_overlays import KEPT_SECONDS, Written, write_overlays
from lake.tables.lake import LakeClient, LakeTable
from tests.lake.client.test_column_ids import Columns, alter
from tests.lake.tables.keyed.histories import COLUMNS as HISTORY_COLUMNS
from tests.lake.tables.keyed.histories import TABLES, History, make_table
from tests.metastore.iceberg.shown import COLUMNS, Duck, batch, keyed, of_pyiceberg, own
from tests.support.long_runs import share_of
from tests.support.target import local_path

MERGED = {"table_type": "merge-on-read"}


def check_latest(table: LakeTable, ours: RestCatalog, duck: Duck) -> None:
    properties = ours.load_table(table.name).properties
    assert properties["timeline.position"] == properties["timeline.latest-position"] == str(table.position().position)
    assert of_pyiceberg(ours, table) == duck.rows(table) == own(table)
    assert duck.connection.execute(f"SELECT count(*) FROM lake.{table.name}").fetchall() == [(len(own(table)),)]


def test_the_latest_rows_between_compactions(lake: LakeClient, ours: RestCatalog, duck: Duck) -> None:
    table = keyed(lake, COLUMNS, **MERGED)
    table.upsert(batch(1, 2, 3, 4))
    table.upsert(batch(3, 5, part="b"))
    check_latest(table, ours, duck)
    table.upsert(batch(2, 6, value="y"))
    table.delete(batch(1, part="a").select(["id", "part"]))
    assert ours.load_table(table.name).properties["timeline.lag-positions"] == "2"
    assert write_overlays(table).buckets > 0
    check_latest(table, ours, duck)
    found = ours.load_table(table.name)
    files = [len(each.delete_files) for each in found.scan().plan_files()]
    assert any(files)
    # What a later commit brings is shown once it is merged, too; until then the moment before is.
    position = table.position().position
    table.upsert(batch(7, value="z"))
    assert of_pyiceberg(ours, table) == duck.rows(table) == own(table, position)
    write_overlays(table)
    check_latest(table, ours, duck)
    assert (
        of_pyiceberg(ours, table, position) == duck.rows(table, f"AT (VERSION => {position})") == own(table, position)
    )


def test_buckets_that_are_merged_are_left_alone(lake: LakeClient) -> None:
    table = keyed(lake, COLUMNS, bucket="4", **MERGED)
    table.upsert(batch(*range(40)))
    assert write_overlays(table) == Written(1, 0, 0, 0)
    table.upsert(batch(*range(20), value="y"))
    assert write_overlays(table) == Written(2, 4, 0, 0)
    assert write_overlays(table) == Written(2, 0, 4, 0)
    table.upsert(batch(3, value="z"))
    assert write_overlays(table) == Written(3, 1, 3, 0)


def test_all_rows_gone_and_again(lake: LakeClient, ours: RestCatalog, duck: Duck) -> None:
    table = keyed(lake, COLUMNS, bucket="1", **MERGED)
    table.upsert(batch(1, 2))
    table.delete(batch(1, 2).select(["id", "part"]))
    write_overlays(table)
    check_latest(table, ours, duck)
    assert of_pyiceberg(ours, table) == []
    table.upsert(batch(1, 2))  # the same content as before the delete
    write_overlays(table)
    check_latest(table, ours, duck)
    table.upsert(batch(1, 2))  # changes nothing
    write_overlays(table)
    check_latest(table, ours, duck)


def test_readiness_and_savepoints(lake: LakeClient, ours: RestCatalog, duck: Duck) -> None:
    table = keyed(lake, COLUMNS, **MERGED)
    table.upsert(batch(1, 2))
    table.upsert(batch(2, value="y"))
    table.upsert(batch(1, 2, part="b"))
    lake.call(lambda client: client.lake_reopen_partitions(ReopenPartitionsRequest(table.reference, names=["part=a"])))
    write_overlays(table)
    check_latest(table, ours, duck)
    branch = ours.load_table(table.name).snapshot_by_name("uncommitted")
    assert branch is not None
    assert of_pyiceberg(ours, table, branch.snapshot_id) == own(table, include_uncommitted=True)


def test_columns_that_changed_since(lake: LakeClient, ours: RestCatalog, duck: Duck) -> None:
    table = keyed(lake, {"id": "bigint", "a": "int", "b": "string"}, keys=(), **MERGED)
    schema = pa.schema([("id", pa.int64()), ("a", pa.int32()), ("b", pa.string())])
    table.upsert(pa.Table.from_pylist([{"id": each, "a": each, "b": "x"} for each in range(5)], schema=schema))
    table.upsert(pa.Table.from_pylist([{"id": 1, "a": 10, "b": "y"}], schema=schema))
    write_overlays(table)
    check_latest(table, ours, duck)
    alter(table, "id:bigint", "c:int", "b:string")
    check_latest(table, ours, duck)
    alter(table, "id:bigint", "b:string")
    alter(table, "id:bigint", "b:string", "a:int")
    check_latest(table, ours, duck)


def test_a_table_that_is_renamed_is_merged_again(lake: LakeClient, ours: RestCatalog, duck: Duck) -> None:
    """The places of deleted rows are said by the whole paths of their files."""
    table = keyed(lake, COLUMNS, **MERGED)
    table.upsert(batch(1, 2))
    table.upsert(batch(2, value="y"))
    write_overlays(table)
    check_latest(table, ours, duck)
    made = table.describe()
    lake.call(lambda client: client.alter_table(made.dbName, made.tableName, made.replace(tableName="u")))
    renamed = lake.table(f"{made.dbName}.u")
    assert of_pyiceberg(ours, renamed) == duck.rows(renamed) == own(renamed, 1)
    write_overlays(renamed)
    check_latest(renamed, ours, duck)


def test_half_written_files_are_not_taken(lake: LakeClient, ours: RestCatalog, duck: Duck) -> None:
    table = keyed(lake, COLUMNS, bucket="1", **MERGED)
    table.upsert(batch(1, 2))
    table.upsert(batch(2, value="y"))
    write_overlays(table)
    folder = Path(local_path(table.location())) / ".iceberg" / "merged"
    [deletes] = folder.glob("*-deletes.parquet")
    [rows] = folder.glob("*-rows.parquet")
    for each in (deletes, rows):
        each.rename(folder / f"_{each.name}")
        assert of_pyiceberg(ours, table) == duck.rows(table) == own(table, 1)
        (folder / f"_{each.name}").rename(each)
    check_latest(table, ours, duck)


def test_files_that_nothing_needs_are_removed(
    lake: LakeClient, ours: RestCatalog, duck: Duck, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = keyed(lake, COLUMNS, bucket="1", **MERGED)
    for value in "xyz":
        table.upsert(batch(1, 2, value=value))
        write_overlays(table)
        ours.load_table(table.name)
    folder = Path(local_path(table.location())) / ".iceberg" / "merged"
    (folder / "_1-left over").touch()
    assert len({*folder.iterdir()}) == 2 * 2 + 1
    assert [each.snapshot_id for each in ours.load_table(table.name).history()] == [1, 2, 3]
    for each in folder.iterdir():
        os.utime(each, (time.time() - KEPT_SECONDS - 10,) * 2)
    assert write_overlays(table).removed == 1  # other positions were the latest a short time ago
    monkeypatch.setattr(iceberg_overlays, "KEPT_SECONDS", 0)
    assert write_overlays(table).removed == 0  # a reader's lease has them
    for lease in lake.call(lambda client: client.lake_list_leases(table.reference)):
        lake.call(lambda client, lease=lease: client.lake_release_lease(table.reference, lease.id))
    assert write_overlays(table).removed == 2  # but those of the latest position
    assert [each.snapshot_id for each in ours.load_table(table.name).history()] == [1, 3]
    check_latest(table, ours, duck)
    assert of_pyiceberg(ours, table, 1) == own(table, 1)


def test_savepoints_keep_their_files(
    lake: LakeClient, ours: RestCatalog, duck: Duck, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(iceberg_overlays, "KEPT_SECONDS", 0)
    table = keyed(lake, COLUMNS, bucket="1", **MERGED)
    table.upsert(batch(1, 2))
    instant = table.upsert(batch(2, value="y")).instant
    assert instant is not None
    saved = table.begin("savepoint", timestamp=instant.timestamp, state="inflight").instant
    table.complete(saved, Completion())
    write_overlays(table)
    table.upsert(batch(2, value="z"))
    write_overlays(table)
    assert write_overlays(table).removed == 0
    check_latest(table, ours, duck)
    position = ours.load_table(table.name).refs()[f"savepoint-{instant.timestamp}"].snapshot_id
    assert of_pyiceberg(ours, table, position) == duck.rows(table, f"AT (VERSION => {position})") == own(table, 2)


@pytest.mark.parametrize("engine", ["partial-update", "aggregation", "first-row"])
def test_other_merge_engines_are_refused(lake: LakeClient, engine: str) -> None:
    table = keyed(lake, COLUMNS, merge_engine=engine, **MERGED)
    table.upsert(batch(1, 2))
    with pytest.raises(UserError, match=engine):
        write_overlays(table)


class Merged(History):
    """A history in which overlays are written now and then, and a reader of Iceberg's looks after each step."""

    def look(self, ours: RestCatalog) -> None:
        for _ in range(10):
            self.step()
            if self.random.random() < 0.6:
                write_overlays(self.lake)
            with suppress(BadRequestError):  # nothing is merged yet
                ours.load_table(self.lake.name)
        write_overlays(self.lake)


def run_history(lake: LakeClient, ours: RestCatalog, duck: Duck, engine: str, key: str, seed: int) -> None:
    properties: dict[str, str] = {"primary-key": key, "bucket": "2", "table-type": "merge-on-read"}
    properties |= {"iceberg.expose": "true", **TABLES[engine]}
    history = Merged(make_table(lake, properties, HISTORY_COLUMNS), seed)
    history.look(ours)
    check_latest(history.lake, ours, duck)
    check_all(history.lake, ours, duck)


def check_all(table: LakeTable, ours: RestCatalog, duck: Duck) -> None:
    numbers: list[Any] = [each.snapshot_id for each in ours.load_table(table.name).history()]
    for number in numbers:
        assert of_pyiceberg(ours, table, number) == own(table, number), f"at {number}"
    for number in numbers[-2:]:
        assert duck.rows(table, f"AT (VERSION => {number})") == own(table, number), f"at {number}"


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("engine", "key"), [("latest", "id,part"), ("sequence", "id")])
def test_random_histories(lake: LakeClient, ours: RestCatalog, duck: Duck, engine: str, key: str) -> None:
    run_history(lake, ours, duck, engine, key, 5)


@pytest.mark.long
@pytest.mark.parametrize(("engine", "key"), [("latest", "id,part"), ("sequence", "id,part"), ("sequence", "id")])
def test_many_random_histories(lake: LakeClient, ours: RestCatalog, duck: Duck, engine: str, key: str) -> None:
    for seed in range(share_of(20)):
        run_history(lake, ours, duck, engine, key, 300 + seed)


def test_random_histories_of_columns(lake: LakeClient, ours: RestCatalog, duck: Duck) -> None:
    table = keyed(lake, {"id": "bigint", "a": "int", "b": "string"}, keys=(), **MERGED)
    history = Columns(table, 3)
    for _ in range(8):
        history.step()
        write_overlays(table)
        with suppress(BadRequestError):
            ours.load_table(table.name)
    check_latest(table, ours, duck)
    check_all(table, ours, duck)
