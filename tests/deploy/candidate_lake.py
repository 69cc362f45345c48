"""An installation with everything that a metastore keeps: made with one version, and used on with another.

`fill` makes it. `found` reads all of it. `go_on` writes to all of it and reads again. Both return what JSON can hold,
so that the answers of two versions can be compared.
"""

import functools
import json
import shutil
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
from click.testing import CliRunner

from lake.capture.debezium.capture import DebeziumCapture, DebeziumOptions
from lake.capture.raw_table import rows_of
from lake.cli import main
from lake.client.lake_types import Completion
from lake.protocol.hive import (
    AllocateTableWriteIdsRequest,
    BooleanColumnStatsData,
    ColumnStatistics,
    ColumnStatisticsData,
    ColumnStatisticsDesc,
    ColumnStatisticsObj,
    CommitTxnRequest,
    FieldSchema,
    Function,
    FunctionType,
    HiveObjectPrivilege,
    HiveObjectRef,
    HiveObjectType,
    LongColumnStatsData,
    OpenTxnRequest,
    PartitionsStatsRequest,
    PrincipalType,
    PrivilegeBag,
    PrivilegeGrantInfo,
    ResourceType,
    ResourceUri,
    Role,
    SQLPrimaryKey,
    TableStatsRequest,
)
from lake.protocol.lake import CommitPartitionsRequest, JobRequest, ListJobsRequest, TableReference
from lake.protocol.struct import Struct
from lake.subscriptions import Event, subscribe
from lake.tables.compaction import plan_compaction, run_compaction
from lake.tables.keyed.changes import CHANGE_TYPE
from lake.tables.keyed_tables import COMMIT_TIMESTAMP
from lake.tables.lake import LakeClient, LakeTable
from tests.lake.capture.debezium.messages import line, order
from tests.spark.session import ROOT, SparkSession
from tests.support import builders

COLUMNS = {"id": "bigint", "v": "int", "a": "int", "b": "string"}
SCHEMA = pa.schema(
    [("id", pa.int64()), ("v", pa.int32()), ("a", pa.int32()), ("b", pa.string()), ("part", pa.string())]
)
MERGED = {"table-type": "merge-on-read", "bucket": "2"}
KEYED: Mapping[str, Mapping[str, str]] = {
    "copied": {"bucket": "2"},
    "merged": {**MERGED, "sequence.field": "v"},
    "partial": {**MERGED, "merge-engine": "partial-update", "partial-update.remove-record-on-delete": "true"},
    "grouped": {"merge-engine": "partial-update", "ignore-delete": "true", "fields.v.sequence-group": "a"},
    "summed": {
        **MERGED,
        "merge-engine": "aggregation",
        "ignore-delete": "true",
        "fields.v.aggregate-function": "max",
        "fields.a.aggregate-function": "sum",
    },
    "first": {**MERGED, "merge-engine": "first-row", "ignore-delete": "true"},
    "families": {"column-families": "left:a; right:b", "changelog-producer": "lookup"},
    "looked_up": {**MERGED, "changelog-producer": "lookup"},
    "given": {**MERGED, "changelog-producer": "input"},
    "moving": {**MERGED, "primary-key": "id"},
}
"""The keyed tables of the database `keyed` by their further properties."""

CLICKS = {"sink.partition-commit.delay": "1 d", "table-type": "merge-on-read"}
CLICKS_TABLE = TableReference(database="shop", table="clicks")
ARRIVALS = TableReference(database="shop", table="arrivals")

Batch = tuple[str, Sequence[tuple[Any, ...]]]
"""An operation, and rows of `SCHEMA`."""

FIRST: Sequence[Batch] = [
    ("upsert", [(1, 1, 10, "p", "x"), (2, 1, 20, "q", "x"), (3, 1, 30, None, "y"), (4, 1, 40, "s", "y")]),
    ("upsert", [(1, 2, 11, "P", "x"), (3, 2, None, "r", "y"), (5, 2, None, "t", "y"), (6, 2, 60, "u", "x")]),
    ("delete", [(2, 3, 0, None, "x"), (5, 3, 0, None, "y")]),
    ("upsert", [(2, 2, 21, "late", "x"), (7, 4, 70, "ü", "z")]),
]
NEXT: Sequence[Batch] = [
    ("upsert", [(5, 2, 51, "late", "y"), (1, 1, 12, "late", "x"), (3, 5, 31, None, "y"), (8, 5, 80, "w", "w")]),
    ("delete", [(4, 6, 0, None, "y"), (7, 3, 0, None, "z")]),
    ("merge", [(6, 7, 61, "U", "x"), (9, 7, 90, "m", "x")]),
]

COMMANDS = (
    *("status", "tables list shop", "tables show shop.lines", "partitions list shop.arrivals", "events groups"),
    *("timeline show keyed.merged", "snapshot show keyed.merged", "watermark show shop.clicks", "roles list"),
    *("roles members analysts", "grants list --of role:analysts", "table-services plans"),
    "capture status --into raw.landed",
)
"""Commands that print JSON."""

LAYERS = """
from pathlib import Path
from lake.layers.compiler.graph import graph_of
from lake.layers.definitions.projects import read_project
from lake.layers.runner.runner import Runner
from lake.layers.runner.spark_engine import SparkEngine
from lake.spark.session_client import lake_table
graph = graph_of(read_project(Path({project!r})))
runner = Runner(graph, lambda name: lake_table(spark, name, None), lambda: SparkEngine(spark, {{}}))
runner.choose = False  # the release candidate computes increments
refreshed = runner.refresh()
result = sorted([each.layer, each.how, dict(each.changed)] for each in refreshed.layers)
"""
LAYER_TABLES = ("dwd.orders", "dwd.customers", "dws.revenue", "ads.best_cities")


class Installation:
    """An installation whose files lie in `directory`, by its running server and a session of Spark's.

    Without the session all but these can be used: `fill`, `go_on`, and the parts `sales` and `visits`.
    """

    def __init__(self, uri: str, directory: Path, spark: SparkSession | None) -> None:
        self.client = LakeClient(uri)
        self._uri = uri
        self._spark = spark
        self._landing = directory / "landing"
        self._project = directory / "layers"

    def close(self) -> None:
        self.client.close()

    def _call(self, name: str, *arguments: Any) -> Any:
        return self.client.call(lambda thrift: thrift.call(name, *arguments))

    # Everything is made.

    def fill(self) -> None:
        self._fill_hive()
        self._fill_clicks()
        self._fill_visits()
        for name, properties in KEYED.items():
            self._fill_keyed(name, properties)
        self._fill_layers()
        self._landing.mkdir()
        self._land("1.json", order("r", 1, "a"), order("r", 2, "b"), order("u", 1, "c"))
        self._capture()
        with subscribe(self._uri, group="jobs", start="earliest") as events:
            events.acknowledge(events.poll(10)[4])

    def _fill_hive(self) -> None:
        """Tables as Hive's clients make them, statistics, constraints, functions, roles, grants, readiness."""
        sql = self._spark.sql
        sql("CREATE DATABASE shop COMMENT 'Läden'")
        sql("CREATE TABLE shop.sales (id BIGINT, price DECIMAL(10,2)) USING parquet PARTITIONED BY (dt STRING, hr INT)")
        sql("INSERT INTO shop.sales VALUES (1, 1.10, '2026-01-31', 7), (2, 2.20, '2026-01-31', 8), (3, NULL, 'ä/b', 9)")
        sql("ANALYZE TABLE shop.sales COMPUTE STATISTICS FOR ALL COLUMNS")
        sql("CREATE VIEW shop.dear AS SELECT id FROM shop.sales WHERE price > 2")
        lines = builders.table("shop", "lines", keys=("dt",), sd=builders.storage("id:bigint", "open:boolean"))
        self._call("create_table_with_constraints", lines, [SQLPrimaryKey("shop", "lines", "id", 1, "lines_pk")])
        self._call("add_partitions", [builders.partition("shop", "lines", dt) for dt in ("1", "2", "3")])
        renamed = self._call("get_partition", "shop", "lines", ["3"])
        self._call("rename_partition", "shop", "lines", ["3"], renamed.replace(values=["4"]))
        self._call("drop_partition", "shop", "lines", ["2"], True)
        data = ColumnStatisticsData(longStats=LongColumnStatsData(lowValue=1, highValue=9, numNulls=0, numDVs=5))
        flags = ColumnStatisticsData(booleanStats=BooleanColumnStatsData(numTrues=2, numFalses=3, numNulls=1))
        of_partition = ColumnStatisticsDesc(isTblLevel=False, dbName="shop", tableName="lines", partName="dt=1")
        kept = [ColumnStatisticsObj("id", "bigint", data), ColumnStatisticsObj("open", "boolean", flags)]
        self._call("update_partition_column_statistics", ColumnStatistics(of_partition, kept))
        self._call(
            "create_function",
            Function("twice", "shop", "Twice", "ann", PrincipalType.USER, 7, FunctionType.JAVA,
                     [ResourceUri(ResourceType.JAR, "file:/twice.jar")]),
        )  # fmt: skip
        self._call("create_role", Role("analysts", 0, "ann"))
        self._call("grant_role", "analysts", "bob", PrincipalType.USER, "ann", PrincipalType.USER, True)
        self._call("grant_privileges", PrivilegeBag([self._grant("SELECT", "analysts", PrincipalType.ROLE)]))
        arrivals = builders.table("shop", "arrivals", keys=("dt",), parameters={"partition.commit.mode": "manual"})
        self._call("create_table", arrivals)
        self._call("add_partitions", [builders.partition("shop", "arrivals", dt) for dt in ("1", "2", "3")])
        self._call("lake_commit_partitions", CommitPartitionsRequest(ARRIVALS, ["dt=1"]))
        self._allocate()

    def _allocate(self) -> int:
        """Gives a committed transaction a write id."""
        [opened] = self._call("open_txns", OpenTxnRequest(1, "ann", "here")).txn_ids
        allocated = self._call("allocate_table_write_ids", AllocateTableWriteIdsRequest("shop", "lines", [opened]))
        self._call("commit_txn", CommitTxnRequest(opened))
        return int(allocated.txnToWriteIds[0].writeId)

    def _fill_clicks(self) -> None:
        """A table whose partitions turn ready by a watermark, and a job that waits for who compacts it."""
        properties = {"primary-key": "id,dt", "partition.commit.mode": "event-time", **CLICKS}
        sd = builders.parquet("id:bigint", "at:timestamp")
        self._call("create_table", builders.table("shop", "clicks", keys=("dt",), sd=sd, parameters=properties))
        self._click(1, 3)
        self._call("lake_submit_job", CLICKS_TABLE, JobRequest("compaction", reason="many log files"))

    def _click(self, *days: int) -> list[str]:
        """Upserts a click of each of some days. Returns the names of the ready partitions then."""
        times = [datetime(2026, 1, day, 9) for day in days]
        dates = [str(each.date()) for each in times]
        rows = pa.table({"id": pa.array(days, pa.int64()), "at": pa.array(times, pa.timestamp("us")), "dt": dates})
        clicks = self.client.table("shop.clicks")
        clicks.upsert(rows, event_time="at")
        return clicks.partitions(ready=True)

    @staticmethod
    def _grant(privilege: str, to: str, kind: int) -> HiveObjectPrivilege:
        sales = HiveObjectRef(HiveObjectType.TABLE, "shop", "sales")
        return HiveObjectPrivilege(sales, to, kind, PrivilegeGrantInfo(privilege, 0, "ann", PrincipalType.USER, True))

    def _fill_visits(self) -> None:
        """A lake table without a key, with replaced partitions, a savepoint and a planned clustering."""
        self._spark.sql("CREATE DATABASE lake")
        self._spark.sql(
            "CREATE TABLE lake.visits (id BIGINT, page STRING, dt STRING) USING parquet PARTITIONED BY (dt)"
        )
        self._visit("VALUES (1, 'a', '1'), (2, 'b', '1'), (3, 'c', '2')", "append")
        visits = self.client.table("lake.visits")
        last = visits.position().last_completed
        assert last is not None
        saved = visits.begin("savepoint", timestamp=last).instant
        visits.complete(saved, Completion())
        self._visit("VALUES (4, 'd', '2'), (5, NULL, '2')", "replace_partitions")
        for number in (6, 7):
            self._visit(f"VALUES ({number}, 'e', '1')", "append")
        self._python(
            "from lake.spark import plan_clustering\n"
            "plan_clustering(spark, 'lake.visits', order_by=['id'])\nresult = None"
        )

    def _visit(self, rows: str, operation: str) -> None:
        self._python(
            "from lake.spark import write\n"
            f'rows = spark.sql("SELECT * FROM {rows} AS t(id, page, dt)")\n'
            f"write(rows, 'lake.visits', operation='{operation}')\nresult = None"
        )

    def _python(self, code: str) -> Any:
        return self._spark.python(code)

    def _fill_keyed(self, name: str, properties: Mapping[str, str]) -> None:
        if name == next(iter(KEYED)):
            self._call("create_database", builders.database("keyed"))
        specs = [f"{column}:{kind}" for column, kind in COLUMNS.items()]
        properties = {"primary-key": "id,part", **properties}
        made = builders.table("keyed", name, keys=("part",), sd=builders.parquet(*specs), parameters=properties)
        self._call("create_table", made)
        table = self.client.table(f"keyed.{name}")
        for number, batch in enumerate(FIRST):
            write(table, batch)
            if number == 1 and properties.get("table-type") == "merge-on-read":
                compact(table)
        if name == "families":
            table.update_columns(arrow([(1, 0, 15, "new", "x")]).drop_columns(["v"]))
        plan_compaction(table)

    def _fill_layers(self) -> None:
        """The project of examples/layers over tables in `ods`."""
        shutil.copytree(ROOT / "examples/layers", self._project)
        sql = self._spark.sql
        for database in ("ods", "dwd", "dws", "ads"):
            sql(f"CREATE DATABASE {database}")
        sql(
            "CREATE TABLE ods.orders (id BIGINT, customer BIGINT, at TIMESTAMP, amount DOUBLE) USING parquet"
            " TBLPROPERTIES ('primary-key' = 'id')"
        )
        sql(
            "CREATE TABLE ods.customers_log (lsn BIGINT, op STRING, id BIGINT, name STRING, city STRING) USING parquet"
            " TBLPROPERTIES ('primary-key' = 'lsn')"
        )
        self._log("(1L, 'insert', 1L, 'Ada', 'Oslo'), (2L, 'insert', 2L, 'Bo', 'Rome')")
        self._order("(10L, 1L, TIMESTAMP '2026-01-31 10:05:00', 20D), (11L, 2L, TIMESTAMP '2026-01-31 10:40:00', 5.5D)")
        self._refresh()
        self._log("(3L, 'update', 1L, 'Ada', 'Bonn')")
        self._refresh()

    def _log(self, rows: str) -> None:
        self._upsert("ods.customers_log", f"VALUES {rows} AS t(lsn, op, id, name, city)")

    def _order(self, rows: str) -> None:
        self._upsert("ods.orders", f"VALUES {rows} AS t(id, customer, at, amount)")

    def _upsert(self, table: str, rows: str) -> None:
        self._python(
            "from lake.spark import write\n"
            f'write(spark.sql("SELECT * FROM {rows}"), {table!r}, operation="upsert")\nresult = None'
        )

    def _refresh(self) -> Any:
        return self._python(LAYERS.format(project=str(self._project)))

    def _land(self, name: str, *messages: Any) -> None:
        with (self._landing / name).open("a") as file:
            file.writelines(map(line, messages))

    def _capture(self) -> dict[str, int]:
        return (
            DebeziumCapture(self.client, DebeziumOptions(source=str(self._landing), into="raw.landed"))
            .run(once=True)
            .rows
        )

    def _watermark(self) -> dict[str, Any]:
        """Of the clicks. Whether a source is idle changes with the time."""
        found: dict[str, Any] = plain(self._call("lake_get_watermark", CLICKS_TABLE))
        for source in found.get("sources", []):
            source.pop("idle", None)
        return found

    # Everything is read.

    def found(self, parts: Collection[str] | None = None) -> dict[str, Any]:
        """All that the installation holds, or some parts of it."""
        reading: dict[str, Callable[[], Any]] = {
            "hive": self._hive,
            "sales": self._sales,
            "events": self._events,
            "groups": lambda: [[each.name, each.position] for each in self._call("lake_event_groups")],
            "clicks": lambda: [keyed(self.client.table("shop.clicks")), self._watermark()],
            "jobs": lambda: plain(self._call("lake_list_jobs", ListJobsRequest(CLICKS_TABLE)).jobs),
            "visits": self._visits,
            "keyed": lambda: {name: keyed(self.client.table(f"keyed.{name}")) for name in KEYED},
            "layers": lambda: {name: keyed(self.client.table(name)) for name in LAYER_TABLES},
            "captured": self._captured,
            "commands": lambda: {command: self._printed(command) for command in COMMANDS},
        }
        return {name: read() for name, read in reading.items() if parts is None or name in parts}

    def _hive(self) -> dict[str, Any]:
        """All that Hive's calls return of databases, tables, partitions, statistics, functions, roles and grants."""
        found: dict[str, Any] = {}
        for database in sorted(self._call("get_all_databases")):
            found[database] = plain(self._call("get_database", database))
            for name in sorted(self._call("get_all_tables", database)):
                table = self._call("get_table", database, name)
                found[f"{database}.{name}"] = plain(table)
                if table.partitionKeys:
                    # Those of a keyed table that was never published are refused to callers that read all rows.
                    values = [""] * len(table.partitionKeys)
                    partitions = self._call("get_partitions_ps", database, name, values, -1)
                    found[f"{database}.{name} partitions"] = plain(partitions)
        request = PartitionsStatsRequest("shop", "lines", ["id", "open"], ["dt=1", "dt=4"])
        found["statistics of partitions"] = plain(self._call("get_partitions_statistics_req", request))
        of_table = TableStatsRequest("shop", "sales", ["id", "price"])
        found["statistics"] = plain(self._call("get_table_statistics_req", of_table))
        found["function"] = plain(self._call("get_function", "shop", "twice"))
        found["roles"] = [
            sorted(self._call("get_role_names")),
            plain(self._call("list_roles", "bob", PrincipalType.USER)),
        ]
        found["grants"] = plain(
            self._call("list_privileges", "analysts", PrincipalType.ROLE, self._grant("", "", 0).hiveObject)
        )
        return found

    def _sales(self) -> list[Any]:
        return sorted(self._spark.sql("SELECT * FROM shop.sales"), key=repr)

    def _events(self) -> list[Any]:
        """All events: number, type and table."""
        with subscribe(self._uri, start="earliest") as events:
            found = list(iter(functools.partial(events.poll, 0), []))
        return [f"{each.number} {_about(each)}" for some in found for each in some]

    def _visits(self) -> dict[str, Any]:
        visits = self.client.table("lake.visits")
        last = visits.position().position
        return {"instants": instants(visits), "rows": {str(at): self._visited(at) for at in range(1, last + 1)}}

    def _visited(self, position: int | None = None) -> list[Any]:
        code = f"result = sorted(repr(tuple(row)) for row in read(spark, 'lake.visits', as_of={position}).collect())"
        found: list[Any] = self._python(f"from lake.spark import read\n{code}")
        return found

    def _captured(self) -> list[Any]:
        rows = rows_of(self.client.table("raw.landed"), "public.orders")
        return sorted(text for each in rows for text in rows_in_order(each))

    def _printed(self, command: str) -> Any:
        """The fields of the JSON that a command prints."""
        printed = CliRunner().invoke(main, [*command.split(), "--uri", self._uri, "--json"])
        assert printed.exit_code == 0, printed.output
        return fields(json.loads(printed.stdout))

    # Everything is written to.

    def go_on(self) -> dict[str, Any]:
        """Writes to all that the installation holds, and returns what comes of it."""
        done = {
            "hive": self._write_hive(),
            "visits": self._write_visits(),
            "keyed": {name: self.write_keyed(self.client.table(f"keyed.{name}")) for name in KEYED},
            "layers": self._write_layers(),
        }
        self._land("1.json", order("d", 2))
        self._land("2.json", order("c", 3, "ü"))
        done["captured"] = [self._capture(), self._captured()]
        events = self._group_goes_on()
        done["events of the group"] = list(map(_about, events))
        return done | {"payloads": {each.type.value: fields(each.payload, 1) for each in events}}

    def _write_hive(self) -> Any:
        self._spark.sql("INSERT INTO shop.sales VALUES (4, 4.40, '2026-01-31', 7), (5, 5.50, '2026-02-01', 0)")
        self._spark.sql("ALTER TABLE shop.sales DROP PARTITION (dt = '2026-01-31', hr = 8)")
        lines = self._call("get_table", "shop", "lines")
        lines.sd.cols.append(FieldSchema("added", "string"))
        self._call("alter_table", "shop", "lines", lines)
        self._call("add_partition", builders.partition("shop", "lines", "5"))
        first = self._call("get_partition", "shop", "lines", ["1"])
        self._call("alter_partition", "shop", "lines", first.replace(parameters={**first.parameters, "checked": "yes"}))
        self._call("rename_partition", "shop", "lines", ["4"], first.replace(values=["6"]))
        self._call("grant_privileges", PrivilegeBag([self._grant("INSERT", "bob", PrincipalType.USER)]))
        before = self._call("get_partition_names", "shop", "arrivals", -1)
        self._call("lake_commit_partitions", CommitPartitionsRequest(ARRIVALS, ["dt=3"]))
        lines = self._call("get_table", "shop", "lines")
        return {
            "columns": [each.name for each in lines.sd.cols],
            "partitions": self._call("get_partition_names", "shop", "lines", -1),
            "checked": self._call("get_partition", "shop", "lines", ["1"]).parameters["checked"],
            "arrivals": [before, self._call("get_partition_names", "shop", "arrivals", -1)],
            "sales": self._sales(),
            "dear": sorted(self._spark.column("SELECT id FROM shop.dear")),
            "write id": self._allocate(),
            "clicks": self._click(5, 6),
            "grants": len(self._call("list_privileges", "bob", PrincipalType.USER, self._grant("", "", 0).hiveObject)),
        }

    def _write_visits(self) -> Any:
        """Runs the planned clustering, cleans what the savepoint doesn't protect, and rolls an append back."""
        visits = self.client.table("lake.visits")
        [planned] = visits.instants(actions=["clustering"], states=["requested"])
        self._python(
            f"from lake.spark import run_plan\nrun_plan(spark, 'lake.visits', '{planned.timestamp}')\nresult = None"
        )
        clustered = self._visited()
        self._visit("VALUES (8, 'f', '3')", "append")
        [saved] = visits.instants(actions=["savepoint"])
        visits.clean(visits.plan_clean(keep_commits=1))
        rows = [clustered, self._visited(), self._visited(visits.position_of(saved.timestamp))]
        [last] = list(visits.instants(states=["completed"], latest_first=True))[1:2]  # the clean is the latest
        visits.roll_back(last)
        visits.abort(saved)
        return [*rows, self._visited(), len(list(visits.instants(actions=["savepoint"])))]

    @staticmethod
    def write_keyed(table: LakeTable) -> Any:
        """Writes to a keyed table and compacts it, and returns what comes of it."""
        before = table.position().position
        was = rows_at(table, before)
        for batch in NEXT:
            write(table, batch)
        if table.name.endswith(".families"):
            table.update_columns(arrow([(3, 0, 33, None, "y")]).drop_columns(["v", "b"]))
        written = rows_at(table, None)
        for planned in list(table.instants(actions=["compaction"], states=["requested"])):
            run_compaction(table, planned.timestamp)
        compact(table)
        last = table.changes(before).to_arrow()
        return {
            "written": written,
            "compacted": rows_at(table, None) == written,
            "as before": rows_at(table, before) == was,
            "changes": rows_in_order(last),
            "changes of each commit": rows_in_order(table.changes(before).to_arrow(of_each_commit=True)),
            "found": rows_in_order(table.lookup([{"id": 1, "part": "x"}, {"id": 4, "part": "y"}])),
        }

    def _write_layers(self) -> Any:
        self._log("(4L, 'delete', 2L, NULL, NULL)")
        self._order("(11L, 1L, TIMESTAMP '2026-01-31 10:40:00', 6D), (12L, 2L, TIMESTAMP '2026-01-31 11:00:00', 7D)")
        return [self._refresh(), {name: rows_at(self.client.table(name), None) for name in LAYER_TABLES}]

    def _group_goes_on(self) -> list[Event]:
        """The events that the group gets; those of one table are in their order."""
        with subscribe(self._uri, group="jobs") as events:
            found = [each for some in iter(lambda: events.poll(2), []) for each in some]
            events.acknowledge()
        found.sort(key=lambda each: (each.database or "", each.table or "", each.number))
        return [each for each in found if each.type != "BEGIN_EPOCH"]  # that the log was moved


def _about(event: Event) -> str:
    return f"{event.type} {event.database}.{event.table}"


def arrow(rows: Sequence[tuple[Any, ...]]) -> pa.Table:
    names = SCHEMA.names
    return pa.Table.from_pylist([dict(zip(names, row, strict=True)) for row in rows], schema=SCHEMA)


def write(table: LakeTable, batch: Batch) -> None:
    """Upserts or deletes rows; as a database's log has it where the table takes nothing else."""
    operation, rows = batch
    keyed_table = table.schema().keyed_table()
    assert keyed_table is not None
    if operation == "merge" or keyed_table.changelog_producer == "input":
        table.merge(_with_images(table, operation, rows))
    elif operation == "delete":
        table.delete(arrow(rows).select(["id", "v", "part"]))
    else:
        table.upsert(arrow(rows))


def _with_images(table: LakeTable, operation: str, rows: Sequence[tuple[Any, ...]]) -> pa.Table:
    """Rows with the change that each is, and the images of the rows before."""
    before = {row["id"]: tuple(row[name] for name in SCHEMA.names) for row in table.scan().to_arrow().to_pylist()}
    changes: list[tuple[tuple[Any, ...], str]] = []
    for row in rows:
        was = before.get(row[0])
        if operation == "delete":
            changes += [(was, "delete")] if was else []
        else:
            changes += [(was, "update_preimage"), (row, "update_postimage")] if was else [(row, "insert")]
    kinds = pa.array([kind for _, kind in changes], pa.string())
    return arrow([row for row, _ in changes]).append_column(CHANGE_TYPE, kinds)


def compact(table: LakeTable) -> None:
    planned = plan_compaction(table)
    if planned.instant is not None:
        run_compaction(table, planned.instant.timestamp)


def keyed(table: LakeTable) -> dict[str, Any]:
    """The instants of a keyed table, its rows at each position, and its changes from the first on."""
    last = table.position().position
    return {
        "instants": instants(table),
        "rows": {str(at): rows_at(table, at) for at in range(1, last + 1)},
        "changes": rows_in_order(table.changes(0).to_arrow()),
        "changes of each commit": rows_in_order(table.changes(0).to_arrow(of_each_commit=True)),
    }


def instants(table: LakeTable) -> list[Any]:
    return [[each.timestamp, each.action, each.state, each.position] for each in table.instants()]


def rows_at(table: LakeTable, position: int | None) -> list[str]:
    return rows_in_order(table.scan(as_of=position).to_arrow())


def rows_in_order(rows: pa.Table) -> list[str]:
    """Rows as texts that can be compared with others, without the times of commits."""
    kept = [name for name in rows.column_names if name != COMMIT_TIMESTAMP]
    return sorted(json.dumps(row, default=str, ensure_ascii=False) for row in rows.select(kept).to_pylist())


def fields(value: Any, depth: int = 3) -> Any:
    """The names of fields in a value of JSON; of a list those of its first item."""
    if isinstance(value, dict) and depth:
        return {key: fields(part, depth - 1) for key, part in value.items()}
    return [fields(value[0], depth)] if isinstance(value, list) and value and depth else None


def plain(value: Any) -> Any:
    """A Thrift value as JSON has it, without what isn't set."""
    if isinstance(value, Struct):
        fields = {name: getattr(value, name) for name in value.field_names()}
        return {name: plain(part) for name, part in fields.items() if part is not None}
    if isinstance(value, dict):
        return {str(key): plain(part) for key, part in value.items()}
    if isinstance(value, list | set | tuple):
        return [plain(part) for part in value]
    return value.hex() if isinstance(value, bytes) else value
