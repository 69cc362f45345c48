"""Lake tables and keyed tables as PyIceberg and DuckDB read them, beside what our own client reads."""

import datetime
import decimal
import random
from contextlib import suppress
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.exceptions import BadRequestError, ForbiddenError, TableAlreadyExistsError
from pyiceberg.expressions import AlwaysTrue, EqualTo, NotNull

from lake.client.lake_types import Completion, DataFile, Instant
from lake.protocol.connection.thrift_client import ThriftClient
from lake.protocol.formats.partition_names import DEFAULT_PARTITION, make_name
from lake.protocol.lake import CommitPartitionsRequest, ListInstantsRequest, ReopenPartitionsRequest
from lake.tables.compaction import plan_compaction, run_compaction
from lake.tables.keyed_writes import Applied
from lake.tables.lake import LakeClient, LakeTable
from metastore.iceberg.shown import lake_tables
from metastore.iceberg.shown.footer_cache import Footers
from metastore.iceberg.shown.writing import Memory
from metastore.warehouse import Warehouse
from tests.lake.client.test_column_ids import Columns, alter
from tests.lake.tables.keyed.histories import COLUMNS as HISTORY_COLUMNS
from tests.lake.tables.keyed.histories import TABLES, History, make_table
from tests.metastore.iceberg.conftest import Catalog
from tests.metastore.iceberg.shown import (
    COLUMNS,
    Duck,
    Rows,
    add_file,
    batch,
    in_order,
    keyed,
    lake_table,
    of_pyiceberg,
    own,
)
from tests.support import builders
from tests.support.long_runs import share_of
from tests.support.target import local_path


def test_upserts_and_deletes(lake: LakeClient, ours: RestCatalog, duck: Duck) -> None:
    table = keyed(lake, COLUMNS)
    assert of_pyiceberg(ours, table) == duck.rows(table) == []
    table.upsert(batch(1, 2, 3))
    table.upsert(batch(4, 5, part="b"))
    assert of_pyiceberg(ours, table) == duck.rows(table) == own(table)
    table.upsert(batch(2, 3, value="y"))
    table.delete(batch(1, part="a").select(["id", "part"]))
    assert of_pyiceberg(ours, table) == duck.rows(table) == own(table)
    table.delete(batch(2, 3).select(["id", "part"]))
    table.delete(batch(4, 5, part="b").select(["id", "part"]))
    assert own(table) == []
    assert of_pyiceberg(ours, table) == duck.rows(table) == []


class Paged:
    """A client of a server that lists so many instants at most."""

    def __init__(self, client: ThriftClient, most: int) -> None:
        self._client, self._most = client, most

    def lake_list_instants(self, request: ListInstantsRequest) -> Any:
        limit = self._most if request.limit is None else min(request.limit, self._most)
        return self._client.lake_list_instants(request.replace(limit=limit))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)


def test_positions_have_times_beyond_one_list_of_instants(
    lake: LakeClient, rest: Catalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lake_tables, "PAGE", 5)
    table = lake_table(lake)
    add_file(table, "part=a", [1])
    [undone] = table.instants()
    table.roll_back(undone)
    for number in range(12):
        add_file(table, "part=a", [number])
    with ThriftClient(rest.server.host, rest.server.port) as client:
        database, _, name = table.name.partition(".")
        found = client.get_table(database, name)
        warehouse = Warehouse(f"file:{tmp_path}")
        memory = Memory(Footers(warehouse))
        shown = lake_tables.LakeTable(Paged(client, 5), warehouse, memory, found, lambda *_: None)  # type: ignore[arg-type]
        times = [shown._time_of(position) for position in range(1, 15)]
    completed = sorted(table.instants(include_archived=True), key=lambda each: each.position or 0)
    assert [each.position for each in completed] == [*range(1, 15)]
    assert [f"{datetime.datetime.fromtimestamp(each / 1000, datetime.UTC):%Y%m%d%H%M%S%f}"[:17] for each in times] == [
        (each.completion_time or "")[:17] for each in completed
    ]


def test_time_travel(lake: LakeClient, ours: RestCatalog, duck: Duck) -> None:
    table = keyed(lake, COLUMNS)
    for number in range(1, 4):
        table.upsert(batch(number, 5, value=f"{number}:"))
        ours.load_table(table.name)  # a position is shown from the first time on that somebody looks
    assert len(own(table)) == 4
    shown = ours.load_table(table.name)
    assert [each.snapshot_id for each in shown.snapshots() if each.snapshot_id < 1 << 62] == [1, 2, 3]
    for position in (1, 2, 3):
        expected = own(table, position)
        assert of_pyiceberg(ours, table, position) == expected
        assert duck.rows(table, f"AT (VERSION => {position})") == expected


def test_savepoints_are_tags(lake: LakeClient, ours: RestCatalog, duck: Duck) -> None:
    table = keyed(lake, COLUMNS)
    timestamp = instant_of(table.upsert(batch(1, 2))).timestamp
    table.savepoint()
    for value in "wy":
        table.upsert(batch(1, 3, value=value))
    table.savepoint(name="before z")
    table.upsert(batch(1, 3, value="z"))
    clean(table, keep_commits=1)
    shown = ours.load_table(table.name)
    assert table.position().oldest_readable > 1
    assert shown.refs()[f"savepoint-{timestamp}"].snapshot_id == 1
    assert shown.refs()["before z"].snapshot_id == table.snapshot("before z").position
    expected = own(table, 1)
    assert [row["b"] for row in expected] == ["x1", "x2"]
    assert of_pyiceberg(ours, table, 1) == duck.rows(table, "AT (VERSION => 1)") == expected


def instant_of(applied: Applied) -> Instant:
    assert applied.instant is not None
    return applied.instant


def clean(table: LakeTable, **keep: int) -> None:
    with table.writing("clean") as cleaning:
        cleaning.complete(Completion(cleaned_paths=[each.path for each in table.plan_clean(**keep)]))


def test_a_clean_expires_snapshots_and_spares_readers(lake: LakeClient, ours: RestCatalog, duck: Duck) -> None:
    table = keyed(lake, COLUMNS)
    table.upsert(batch(1, 2))
    before = ours.load_table(table.name)
    table.upsert(batch(1, 2, value="y"))
    clean(table, keep_commits=1)
    # The reader that was told of the first snapshot still finds its files.
    assert in_order(before.scan().to_arrow().to_pylist()) == rows_of(batch(1, 2))
    clean_all(lake, table)
    assert table.position().oldest_readable > 1
    assert [entry.snapshot_id for entry in ours.load_table(table.name).history()] == [table.position().position]
    assert of_pyiceberg(ours, table) == duck.rows(table) == own(table)


def rows_of(table: pa.Table) -> Rows:
    return in_order(table.to_pylist())


def test_uncommitted_partitions_have_a_branch(lake: LakeClient, ours: RestCatalog, duck: Duck) -> None:
    table = keyed(lake, COLUMNS)
    table.upsert(batch(1, 2))
    request = ReopenPartitionsRequest(table.reference, names=["part=a"])
    lake.call(lambda client: client.lake_reopen_partitions(request))
    table.upsert(batch(3, part="b"))
    assert [row["id"] for row in own(table)] == [3]
    assert of_pyiceberg(ours, table) == duck.rows(table) == own(table)
    branch = ours.load_table(table.name).snapshot_by_name("uncommitted")
    assert branch is not None
    every = own(table, include_uncommitted=True)
    assert [row["id"] for row in every] == [1, 2, 3]
    assert of_pyiceberg(ours, table, branch.snapshot_id) == every
    assert duck.rows(table, f"AT (VERSION => {branch.snapshot_id})") == every


# -- merge-on-read -------------------------------------------------------------------------------------------------


def compact(table: LakeTable) -> None:
    planned = plan_compaction(table, min_log_files=1)
    assert planned.instant is not None
    run_compaction(table, planned.instant.timestamp)


def test_merge_on_read_shows_what_is_compacted(lake: LakeClient, ours: RestCatalog, duck: Duck) -> None:
    table = keyed(lake, COLUMNS, table_type="merge-on-read")
    table.upsert(batch(1, 2))
    table.upsert(batch(2, 3, value="y"))
    assert of_pyiceberg(ours, table) == duck.rows(table) == own(table, 1)
    compact(table)
    last = table.position().position
    assert of_pyiceberg(ours, table) == duck.rows(table) == own(table)
    assert "timeline.lag-positions" not in ours.load_table(table.name).properties
    table.upsert(batch(1, 4, value="z"))
    table.delete(batch(3).select(["id", "part"]))
    shown = ours.load_table(table.name)
    assert shown.properties["timeline.position"] == str(last)
    assert shown.properties["timeline.lag-positions"] == "2"
    assert of_pyiceberg(ours, table) == duck.rows(table) == own(table, last)


def test_what_a_compaction_merged_is_shown_though_logs_came_since(
    lake: LakeClient, ours: RestCatalog, duck: Duck
) -> None:
    """Writers never stop, so that no position is without log files."""
    table = keyed(lake, COLUMNS, table_type="merge-on-read")
    for value in "abc":
        table.upsert(batch(1, 2, 3, 4, value=value))
        planned_at = table.position().position
        planned = plan_compaction(table, min_log_files=1)
        table.upsert(batch(3, 4, 5, 6, value=f"late {value}"))
        if planned.instant is None:  # the first rows of a bucket are a base file
            continue
        run_compaction(table, planned.instant.timestamp)
        shown = ours.load_table(table.name)
        assert shown.properties["timeline.position"] == str(planned_at)
        assert of_pyiceberg(ours, table) == duck.rows(table) == own(table, planned_at)
    clean(table, keep_commits=1)
    assert of_pyiceberg(ours, table) == own(table, planned_at)


def test_a_position_is_one_of_all_buckets(lake: LakeClient, ours: RestCatalog, duck: Duck) -> None:
    """Two compactions of two plans: what they merged has one position in common."""
    table = keyed(lake, COLUMNS, bucket="1", table_type="merge-on-read")
    for part in "aba":
        table.upsert(batch(1, 2, part=part, value=f"{part}:"))
    planned = [plan_compaction(table, partitions=["part=a"])]
    for number, part in enumerate("bab", 4):  # `a` has a new slice, `b` hasn't
        table.upsert(batch(2, number, part=part, value=f"{number}:"))
    planned.append(plan_compaction(table, partitions=["part=b"]))
    for each in planned:
        assert each.instant is not None
        run_compaction(table, each.instant.timestamp)
    assert ours.load_table(table.name).properties["timeline.position"] == "3"
    assert of_pyiceberg(ours, table) == duck.rows(table) == own(table, 3)


# -- columns -------------------------------------------------------------------------------------------------------


def test_columns_that_change(lake: LakeClient, ours: RestCatalog, duck: Duck) -> None:
    table = keyed(lake, {"id": "bigint", "a": "int", "b": "string"}, keys=())

    def write(key: int, **values: Any) -> None:
        names = {each.name: each.type for each in table.schema().columns}
        row = {name: values.get(name, key) for name in names}
        schema = pa.schema([(name, ARROW[kind]) for name, kind in names.items()])
        table.upsert(pa.Table.from_pylist([row], schema=schema))

    def check() -> None:
        assert of_pyiceberg(ours, table) == duck.rows(table) == own(table)

    write(1, a=10, b="one")
    alter(table, "id:bigint", "x:int", "b:string")  # a is x now
    check()
    write(2, x=20, b="two")
    alter(table, "id:bigint", "b:string")
    check()
    alter(table, "id:bigint", "b:string", "x:string")  # another x
    check()
    write(3, b="three", x="30")
    check()
    alter(table, "id:bigint", "a:string", "x:string")  # b has the name that x had
    write(4, a="four", x="40")
    check()
    assert own(table)[0] == {"id": 1, "a": "one", "x": None}
    assert [each.name for each in ours.load_table(table.name).schema().fields] == ["id", "a", "x"]
    for file in ours.load_table(table.name).scan().plan_files():
        assert file.file.record_count


ARROW = {"bigint": pa.int64(), "int": pa.int32(), "string": pa.string()}


def test_types(lake: LakeClient, ours: RestCatalog, duck: Duck) -> None:
    at = datetime.datetime(2026, 1, 31, 23, 59, 59, 123456, tzinfo=datetime.UTC)
    values: dict[str, tuple[str, pa.DataType, Any]] = {
        "id": ("bigint", pa.int64(), 1),
        "t": ("tinyint", pa.int8(), -7),
        "s": ("smallint", pa.int16(), -300),
        "i": ("int", pa.int32(), 1 << 30),
        "f": ("float", pa.float32(), 0.5),
        "d": ("double", pa.float64(), 0.1),
        "y": ("boolean", pa.bool_(), True),
        "n": ("decimal(20,3)", pa.decimal128(20, 3), decimal.Decimal("12345678901234567.125")),
        "v": ("varchar(10)", pa.string(), "text"),
        "c": ("char(3)", pa.string(), "abc"),
        "w": ("binary", pa.binary(), b"\x00\xff"),
        "day": ("date", pa.date32(), datetime.date(1969, 12, 31)),
        "at": ("timestamp", pa.timestamp("us", tz="UTC"), at),
        "l": ("array<int>", pa.list_(pa.int32()), [1, None]),
        "o": ("struct<a:int,b:struct<c:string>>", None, {"a": 1, "b": {"c": "x"}}),
    }
    struct = pa.struct([("a", pa.int32()), ("b", pa.struct([("c", pa.string())]))])
    for nested in (False, True):
        some = {name: each for name, each in values.items() if nested or name not in "lo"}
        table = keyed(lake, {name: kind for name, (kind, _, _) in some.items()}, keys=())
        schema = pa.schema([(name, kind or struct) for name, (_, kind, _) in some.items()])
        row = {name: value for name, (_, _, value) in some.items()}
        nulls = {name: 2 if name == "id" else None for name in some}
        table.upsert(pa.Table.from_pylist([row, nulls], schema=schema))
        assert of_pyiceberg(ours, table) == own(table) == [row, nulls]
        found = duck.rows(table)
        found[0]["at"] = found[0]["at"].astimezone(datetime.UTC)
        assert found == own(table)


@pytest.mark.parametrize(
    ("kind", "texts"),
    [
        ("string", ["plain", "a b", "10:30/x", "ü?#%", "__HIVE_DEFAULT_PARTITION__", "'q\"", "a=b"]),
        ("int", ["-5", "0", "2147483647", "__HIVE_DEFAULT_PARTITION__"]),
        ("bigint", ["9223372036854775807"]),
        ("date", ["1969-12-31", "2026-02-28"]),
        ("boolean", ["true", "false"]),
    ],
)
def test_partition_values(lake: LakeClient, ours: RestCatalog, duck: Duck, kind: str, texts: list[str]) -> None:
    table = lake_table(lake, kind)
    for number, text in enumerate(texts):
        add_file(table, make_name(["part"], [text]), [number])
    expected = [{"id": number, "B": f"row {number}", "part": of_text(kind, text)} for number, text in enumerate(texts)]
    expected = in_order([{"id": row["id"], "b": row["B"], "part": row["part"]} for row in expected])
    assert of_pyiceberg(ours, table) == expected
    assert duck.rows(table) == expected
    for row in expected:  # manifests and files are pruned by these
        literal = "part IS NULL" if row["part"] is None else f"part = {quoted(row['part'])}"
        assert duck.rows(table, f"WHERE {literal}") == [row]
    scanned = ours.load_table(table.name).scan(
        row_filter=NotNull("part") if None in [r["part"] for r in expected] else AlwaysTrue()
    )
    assert len(list(scanned.plan_files())) == sum(row["part"] is not None for row in expected)


def quoted(value: Any) -> str:
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    return f"DATE '{value}'" if isinstance(value, datetime.date) else str(value)


def of_text(kind: str, text: str) -> Any:
    if text == DEFAULT_PARTITION:
        return None
    kinds = {"string": str, "date": datetime.date.fromisoformat, "boolean": lambda each: each == "true"}
    return kinds.get(kind, int)(text)


# -- names, rights, refusals ---------------------------------------------------------------------------------------


def test_lists_have_what_is_exposed(rest: Catalog, lake: LakeClient, ours: RestCatalog, duck: Duck) -> None:
    table = keyed(lake, COLUMNS)
    table.upsert(batch(1))
    database = table.name.partition(".")[0]
    columns = builders.parquet("id:bigint")
    hidden = {"primary-key": "id", "iceberg.expose": "false"}
    for name, parameters in (("plain", {}), ("key", {"primary-key": "id"}), ("hidden", hidden)):
        made = builders.table(database, name, sd=columns, parameters=dict(parameters))
        lake.call(lambda client, made=made: client.create_table(made))
    assert ours.list_tables(database) == [(database, "t")]
    named = lake.call(lambda client: client.get_database(database))
    named.parameters = {"iceberg.expose": "true"}
    lake.call(lambda client: client.alter_database(database, named))
    assert ours.list_tables(database) == [(database, "key"), (database, "plain"), (database, "t")]
    assert rest.refused("GET", f"hive/namespaces/{database}/tables/hidden")[:2] == (404, "NoSuchTableException")
    assert ours.load_table((database, "key")).scan().to_arrow().num_rows == 0


def test_changes_are_refused(rest: Catalog, lake: LakeClient, ours: RestCatalog, duck: Duck) -> None:
    table = keyed(lake, COLUMNS)
    table.upsert(batch(1))
    namespace, _, name = table.name.partition(".")
    path = f"hive/namespaces/{namespace}/tables/{name}"
    update = {"requirements": [], "updates": [{"action": "set-properties", "updates": {"a": "b"}}]}
    identifier = {"namespace": [namespace], "name": name}
    for method, where, body in (
        ("POST", path, update),
        ("DELETE", path, None),
        ("DELETE", f"{path}?purgeRequested=true", None),
        ("POST", "hive/tables/rename", {"source": identifier, "destination": identifier | {"name": "u"}}),
        ("POST", "hive/transactions/commit", {"table-changes": [{"identifier": identifier, **update}]}),
    ):
        status, kind, text = rest.refused(method, where, body)
        assert (status, kind) == (403, "ForbiddenException")
        assert "LakeClient" in text
    with pytest.raises(ForbiddenError):
        ours.load_table(table.name).append(batch(2))
    with pytest.raises(duckdb.Error):
        duck.connection.execute(f"INSERT INTO lake.{table.name} VALUES (2, 'b', 'a')")
    with pytest.raises(TableAlreadyExistsError):
        ours.create_table(table.name, batch(1).schema)
    assert rest.send("HEAD", path).status_code == 204
    assert of_pyiceberg(ours, table) == own(table) == rows_of(batch(1))


def refused(rest: Catalog, table: LakeTable) -> tuple[int, str]:
    namespace, _, name = table.name.partition(".")
    status, _, text = rest.refused("GET", f"hive/namespaces/{namespace}/tables/{name}")
    return status, text


def test_what_cannot_be_shown_says_why(rest: Catalog, lake: LakeClient, ours: RestCatalog) -> None:
    by_time = lake_table(lake, "timestamp")
    add_file(by_time, "part=2026-01-01 00%3A00%3A00", [1])
    status, text = refused(rest, by_time)
    assert (status, "timestamp" in text) == (400, True)
    no_number = lake_table(lake, "int")
    add_file(no_number, "part=seven", [1])
    status, text = refused(rest, no_number)
    assert (status, "seven" in text) == (400, True)
    other_case = lake_table(lake)
    add_file(other_case, "part=a", [1], name="Id")
    status, text = refused(rest, other_case)
    assert (status, "the column Id" in text) == (400, True)
    odd = keyed(lake, {**COLUMNS, "u": "uniontype<int,string>"})
    assert refused(rest, odd)[0] == 400


@pytest.mark.parametrize("damage", ["gone", "torn", "no folder"])
def test_a_storage_that_fails(rest: Catalog, lake: LakeClient, ours: RestCatalog, damage: str) -> None:
    table = lake_table(lake)
    add_file(table, "part=a", [1, 2])
    place = Path(local_path(table.location()))
    [file] = place.rglob("*.parquet")
    content = file.read_bytes()
    if damage == "gone":
        file.unlink()
    elif damage == "torn":
        file.write_bytes(b"x" * len(content))
    else:
        (place / ".iceberg").touch()
    assert refused(rest, table)[0] == (400 if damage == "torn" else 503)
    file.write_bytes(content)
    if damage == "no folder":
        (place / ".iceberg").unlink()
    assert [row["id"] for row in of_pyiceberg(ours, table)] == [1, 2]


def test_column_families_are_refused(rest: Catalog, lake: LakeClient) -> None:
    table = keyed(lake, {**COLUMNS, "c": "int"}, column_families="f:c")
    table.upsert(batch(1).append_column("c", pa.array([1], pa.int32())))
    status, text = refused(rest, table)
    assert (status, "column-families" in text) == (400, True)


def test_a_table_that_is_made_again_is_another(lake: LakeClient, ours: RestCatalog, duck: Duck) -> None:
    table = keyed(lake, COLUMNS)
    table.upsert(batch(1, 2))
    before = ours.load_table(table.name)
    database, _, name = table.name.partition(".")
    made = table.describe()
    lake.call(lambda client: client.drop_table(database, name, True))
    kept = {key: value for key, value in made.parameters.items() if "." in key or "-" in key}
    lake.call(lambda client: client.create_table(made.replace(parameters=kept)))
    again = lake.table(table.name)
    assert of_pyiceberg(ours, again) == []
    again.upsert(batch(7))
    after = ours.load_table(table.name)
    assert after.metadata.table_uuid != before.metadata.table_uuid
    assert of_pyiceberg(ours, again) == duck.rows(again) == rows_of(batch(7))


def test_a_file_of_a_table_that_is_made_again_is_another(lake: LakeClient, ours: RestCatalog) -> None:
    """It may have the same path, and the same size."""
    table = lake_table(lake)
    database, _, name = table.name.partition(".")
    made = lake.call(lambda client: client.get_table(database, name))
    made = made.replace(parameters={"iceberg.expose": "true"}, id=None)
    for number in (1, 8):
        if number == 8:
            lake.call(lambda client: client.drop_table(database, name, True))
            lake.call(lambda client: client.create_table(made))
            table = lake.table(table.name)
        file = Path(local_path(table.location())) / "part=a" / "f.parquet"
        file.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.table({"id": pa.array([number], pa.int64()), "b": [f"row {number}"]}), file)
        with table.writing() as writing:
            slice = writing.instant.timestamp
            added = DataFile("part=a", "group", slice, "part=a/f.parquet", file.stat().st_size)
            writing.complete(Completion(added=[added]))
        found = ours.load_table(table.name).scan(row_filter=EqualTo("id", number)).to_arrow()
        assert found.column("id").to_pylist() == [number]


def test_a_dropped_column_of_files_without_ids(lake: LakeClient, ours: RestCatalog, duck: Duck) -> None:
    table = lake_table(lake)
    add_file(table, "part=a", [1, 2])
    assert [row["b"] for row in of_pyiceberg(ours, table)] == ["row 1", "row 2"]
    alter(table, "id:bigint")
    assert of_pyiceberg(ours, table) == duck.rows(table) == [{"id": each, "part": "a"} for each in (1, 2)]
    add_file(table, "part=b", [3])
    assert [row["id"] for row in of_pyiceberg(ours, table)] == [1, 2, 3]


def test_a_renamed_table_has_other_paths(lake: LakeClient, ours: RestCatalog, duck: Duck) -> None:
    table = keyed(lake, COLUMNS)
    table.upsert(batch(1, 2))
    before = ours.load_table(table.name)
    made = table.describe()
    lake.call(lambda client: client.alter_table(made.dbName, made.tableName, made.replace(tableName="u")))
    renamed = lake.table(f"{made.dbName}.u")
    after = ours.load_table(renamed.name)
    assert after.location() != before.location()
    assert after.metadata.table_uuid == before.metadata.table_uuid
    assert of_pyiceberg(ours, renamed) == duck.rows(renamed) == rows_of(batch(1, 2))


def test_nothing_is_written_twice(lake: LakeClient, ours: RestCatalog) -> None:
    table = keyed(lake, COLUMNS)
    table.upsert(batch(1, 2))
    first = ours.load_table(table.name)
    assert ours.load_table(table.name).metadata_location == first.metadata_location
    folder = Path(local_path(table.location())) / ".iceberg"
    before = names_in(folder)
    for part in "bcdefgh":
        table.upsert(batch(3, part=part))
    ours.load_table(table.name)
    after = names_in(folder)
    assert before < after
    for each in after - before:  # another process without memory makes the same
        (folder / each).unlink()
    ours.load_table(table.name)
    assert names_in(folder) == after


def names_in(folder: Path) -> set[str]:
    return {str(each.relative_to(folder)) for each in folder.rglob("*.*")}


def test_files_of_days_that_nobody_can_read_are_deleted(lake: LakeClient, ours: RestCatalog) -> None:
    table = keyed(lake, COLUMNS)
    table.upsert(batch(1, 2))
    ours.load_table(table.name)
    folder = Path(local_path(table.location())) / ".iceberg"
    [today] = folder.iterdir()
    for day in ("20250101", "20250102"):
        (folder / day).mkdir()
    [first] = today.glob("snap-1-*-r-*")
    first.rename(folder / "20250101" / first.name)  # as if it had been made then
    (folder / "20250102" / "0-m.avro").touch()
    table.upsert(batch(3, 4))
    for _ in range(2):
        assert {entry.snapshot_id for entry in ours.load_table(table.name).history()} == {1, 2}
        assert of_pyiceberg(ours, table, 1) == own(table, 1)
    assert sorted(each.name for each in folder.iterdir()) == ["20250101", today.name]
    clean_all(lake, table)
    ours.load_table(table.name)
    assert [each.name for each in folder.iterdir()] == [today.name]


def clean_all(lake: LakeClient, table: LakeTable) -> None:
    """Cleans what is superseded, and ends the leases of readers."""
    table.upsert(batch(1, 2, 3, 4, value="z"))
    for lease in lake.call(lambda client: client.lake_list_leases(table.reference)):
        lake.call(lambda client, lease=lease: client.lake_release_lease(table.reference, lease.id))
    clean(table, keep_commits=1)


# -- random histories ----------------------------------------------------------------------------------------------


def check_snapshots(table: LakeTable, ours: RestCatalog, duck: Duck, choose: random.Random) -> None:
    """All snapshots that are shown have the rows that our own client reads at their positions."""
    shown = ours.load_table(table.name)
    numbers = [each.snapshot_id for each in shown.history()]
    for number in numbers:
        assert of_pyiceberg(ours, table, number) == own(table, number), f"at {number}"
    for number in choose.sample(numbers, min(2, len(numbers))):
        assert duck.rows(table, f"AT (VERSION => {number})") == own(table, number), f"at {number}"
    if numbers:
        assert duck.rows(table) == own(table, numbers[-1])
    if (branch := shown.snapshot_by_name("uncommitted")) is not None:
        every = own(table, numbers[-1], include_uncommitted=True)
        assert of_pyiceberg(ours, table, branch.snapshot_id) == every


class Looked(History):
    """A history at which a reader of Iceberg's looks after each step, and in which readiness changes."""

    def look(self, ours: RestCatalog) -> None:
        for _ in range(10):
            self.step()
            if self.random.random() < 0.3 and (names := self.lake.partitions()):
                name = self.random.choice(names)
                if self.random.random() < 0.5:
                    reopen = ReopenPartitionsRequest(self.lake.reference, names=[name])
                    self.lake.client.call(lambda client, asked=reopen: client.lake_reopen_partitions(asked))
                else:
                    commit = CommitPartitionsRequest(self.lake.reference, names=[name])
                    self.lake.client.call(lambda client, asked=commit: client.lake_commit_partitions(asked))
            with suppress(BadRequestError):  # nothing is compacted yet
                ours.load_table(self.lake.name)


def run_history(lake: LakeClient, ours: RestCatalog, duck: Duck, kind: str, engine: str, key: str, seed: int) -> None:
    properties = {"primary-key": key, "bucket": "2", "table-type": kind, "iceberg.expose": "true", **TABLES[engine]}
    history = Looked(make_table(lake, properties, HISTORY_COLUMNS), seed)
    history.look(ours)
    try:
        check_snapshots(history.lake, ours, duck, history.random)
    except BadRequestError as error:
        assert "compact" in str(error)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("kind", ["copy-on-write", "merge-on-read"])
def test_random_histories(lake: LakeClient, ours: RestCatalog, duck: Duck, kind: str) -> None:
    for seed, (engine, key) in enumerate((("latest", "id,part"), ("sequence", "id"))):
        run_history(lake, ours, duck, kind, engine, key, seed)


@pytest.mark.long
@pytest.mark.parametrize("kind", ["copy-on-write", "merge-on-read"])
@pytest.mark.parametrize("engine", TABLES)
def test_many_random_histories(lake: LakeClient, ours: RestCatalog, duck: Duck, engine: str, kind: str) -> None:
    for seed in range(share_of(20)):
        run_history(lake, ours, duck, kind, engine, "id,part", 100 + seed)


@pytest.mark.parametrize("kind", ["copy-on-write", "merge-on-read"])
def test_random_histories_of_columns(lake: LakeClient, ours: RestCatalog, duck: Duck, kind: str) -> None:
    columns = {"id": "bigint", "a": "int", "b": "string"}
    for seed in range(2):
        table = keyed(lake, columns, keys=(), table_type=kind)
        history = Columns(table, seed)
        for _ in range(8):
            history.step()
            with suppress(BadRequestError):
                ours.load_table(table.name)
        check_snapshots(table, ours, duck, history.random)
