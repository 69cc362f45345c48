"""Hudi's own client of its metaserver, as released and with one instruction changed, and our server for Hudi's.

Hudi 0.15.0 is the newest release whose client can read what it wrote. docs/hudi.md tells what it can't do, and why 1.x
can't; the tests that end in an error are the evidence.
"""

import itertools
import shutil
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest
from hudi import HudiTableBuilder

from lake.protocol.connection.thrift_client import ThriftClient
from lake.protocol.hudi import Table, TAction, TState
from lake.protocol.lake import DataFile, SnapshotRequest, TableReference
from metastore.warehouse.hudi_files import timeline as hudi_timeline
from tests.metastore.services.hudi.visible_files import seen_by_hudi_rs, tell
from tests.spark.session import SparkError, SparkSession, require
from tests.support.target import Target, local_path

WORKS = "org.apache.hudi:hudi-spark3.5-bundle_2.12:0.15.0"
MIDDLE = "org.apache.hudi:hudi-spark3.5-bundle_2.12:1.0.2"
NEWEST = "org.apache.hudi:hudi-spark3.5-bundle_2.12:1.2.0"
DATABASE = "hudi_metaserver"
NUMBERS = itertools.count(1)
COLUMNS = ["id", "ts", "note", "dt"]

TIMELINE_CLASS = "org/apache/hudi/common/table/timeline/HoodieMetaserverBasedTimeline.class"
# createFileInMetaPath gives the client's createNewInstant an empty option (`invokestatic`) in place of the plan that
# was handed to it (`aload_2`).
WITHOUT_PLAN = bytes.fromhex("1905 b8001b b9001c0500 b1")
WITH_PLAN = bytes.fromhex("1905 2c0000 b9001c0500 b1")

# Hudi's own view of a table's latest slices: the names of their files by partition and file group.
SLICES = """
jvm = spark._jvm
options = jvm.java.util.HashMap()
for key, value in {options!r}.items():
    options.put(key, value)
configuration = jvm.org.apache.hudi.hadoop.fs.HadoopFSUtils.getStorageConf(spark._jsc.hadoopConfiguration())
builder = jvm.org.apache.hudi.common.table.HoodieTableMetaClient.builder()
client = builder.setConf(configuration).setBasePath({base!r}).setMetaserverConfig(options).build()
timeline = client.getActiveTimeline().getCommitsTimeline().filterCompletedInstants()
view = jvm.org.apache.hudi.common.table.view.HoodieTableFileSystemView(client, timeline)
listed = lambda stream: stream.collect(jvm.java.util.stream.Collectors.toList())
result = []
for partition in {partitions!r}:
    for slice in listed(view.getLatestFileSlices(partition)):
        base = slice.getBaseFile()
        names = [base.get().getFileName()] if base.isPresent() else []
        names += sorted(each.getFileName() for each in listed(slice.getLogFiles()))
        result.append([partition, slice.getFileId(), names])
"""

# What Hudi's writer does beside writing.
CALL = """
jvm = spark._jvm
options = jvm.java.util.HashMap()
for key, value in {options!r}.items():
    options.put(key, value)
config = jvm.org.apache.hudi.config.HoodieWriteConfig.newBuilder().withPath({base!r}).withProps(options).build()
context = jvm.org.apache.hudi.client.common.HoodieSparkEngineContext(spark._jsc)
jvm.org.apache.hudi.client.SparkRDDWriteClient(context, config).{call}
"""


def session(jar: Path, target: Target, directory: Path, *before: Path) -> SparkSession:
    """A session with Hudi's bundle, and with directories of classes `before` it."""
    return SparkSession(
        "3.5",
        f"thrift://{target.host}:{target.port}",
        str(target.warehouse()),
        directory,
        spark_driver_extraClassPath=":".join(map(str, (*before, jar))),
        spark_serializer="org.apache.spark.serializer.KryoSerializer",
        spark_kryo_registrator="org.apache.spark.HoodieSparkKryoRegistrar",
        spark_sql_extensions="org.apache.spark.sql.hudi.HoodieSparkSessionExtension",
    )


@pytest.fixture(scope="module")
def spark(
    class_path: Callable[..., list[Path]], target: Target, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[SparkSession]:
    """Hudi as it was released."""
    require("3.5")
    (jar,) = class_path(WORKS, exclusions=("*:*",))
    with session(jar, target, tmp_path_factory.mktemp("hudi")) as started:
        yield started


@pytest.fixture(scope="module")
def sending_plans(
    class_path: Callable[..., list[Path]], target: Target, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[SparkSession]:
    """The same with one instruction of its timeline changed: it sends the plans of cleans and rollbacks."""
    require("3.5")
    (jar,) = class_path(WORKS, exclusions=("*:*",))
    classes = tmp_path_factory.mktemp("classes")
    with zipfile.ZipFile(jar) as bundle:
        released = bundle.read(TIMELINE_CLASS)
    assert released.count(WITHOUT_PLAN) == 1
    (classes / TIMELINE_CLASS).parent.mkdir(parents=True)
    (classes / TIMELINE_CLASS).write_bytes(released.replace(WITHOUT_PLAN, WITH_PLAN))
    with session(jar, target, tmp_path_factory.mktemp("hudi"), classes) as started:
        yield started


@pytest.fixture(scope="module")
def middle(
    class_path: Callable[..., list[Path]], target: Target, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[SparkSession]:
    """The newest whose client calls the server."""
    require("3.5")
    (jar,) = class_path(MIDDLE, exclusions=("*:*",))
    with session(jar, target, tmp_path_factory.mktemp("hudi")) as started:
        yield started


@pytest.fixture(scope="module")
def newest(
    class_path: Callable[..., list[Path]], target: Target, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[SparkSession]:
    require("3.5")
    (jar,) = class_path(NEWEST, exclusions=("*:*",))
    with session(jar, target, tmp_path_factory.mktemp("hudi")) as started:
        yield started


@pytest.fixture
def client(target: Target) -> Iterator[ThriftClient]:
    with target.connect() as client:
        yield client


def rows_of_hudi_rs(location: Path) -> list[list[Any]]:
    batches = HudiTableBuilder.from_base_uri(str(location)).build().read()
    return sorted([row[name] for name in COLUMNS] for batch in batches for row in batch.to_pylist())


class HudiTable:
    """A table whose timeline is in our server: as Hudi writes and reads it, and as our snapshot tells it."""

    def __init__(self, spark: SparkSession, client: ThriftClient, location: Path, kind: str, **options: str) -> None:
        self.spark, self.client, self.location = spark, client, location
        self.name = f"t{next(NUMBERS)}"
        self.reference = TableReference(database=DATABASE, table=self.name)
        uris = spark.python("result = spark.conf.get('spark.hadoop.hive.metastore.uris')")
        self.reading = {
            "hoodie.metaserver.enabled": "true",
            "hoodie.metaserver.uris": uris,
            "hoodie.database.name": DATABASE,
            "hoodie.table.name": self.name,
            "hoodie.metadata.enable": "false",
        }
        self.writing = {
            **self.reading,
            "hoodie.table.type": kind,
            "hoodie.datasource.write.table.type": kind,
            "hoodie.datasource.write.recordkey.field": "id",
            "hoodie.datasource.write.partitionpath.field": "dt",
            "hoodie.datasource.write.precombine.field": "ts",
            "hoodie.datasource.write.hive_style_partitioning": "true",
            "hoodie.upsert.shuffle.parallelism": "2",
            "hoodie.insert.shuffle.parallelism": "2",
            "hoodie.delete.shuffle.parallelism": "2",
            "hoodie.clean.automatic": "false",
            **options,
        }

    def write(self, query: str, operation: str = "upsert", **options: str) -> None:
        """Writes what a query answers; `options` with underscores for their dots."""
        settings = {
            **self.writing,
            "hoodie.datasource.write.operation": operation,
            **{f"hoodie.{key.replace('_', '.')}": value for key, value in options.items()},
        }
        self.spark.python(
            f"spark.sql({query!r}).write.format('hudi').options(**{settings!r}).mode('append')"
            f".save({str(self.location)!r})"
        )

    def rows(self) -> list[list[Any]]:
        """What Hudi reads."""
        return self._rows(self.location, self.reading)

    def agreed_rows(self) -> list[list[Any]]:
        """The table's rows, once Hudi and our snapshot agree on them, and on the slices."""
        rows = self.rows()
        assert rows == self.rows_of_snapshot()
        assert self.slices() == self.slices_of_hudi()
        return rows

    def rows_in_files(self, copy: Path) -> list[list[Any]]:
        """What Hudi, and hudi-rs, read of a copy in which the completed instants that the server has are files."""
        shutil.copytree(self.location, copy)
        for each in self.client.listInstants(DATABASE, self.name, 24):
            assert each.state == TState.COMPLETED
            name = f"{each.timestamp}.{TAction(each.action).name.lower()}"
            (copy / ".hoodie" / name).write_bytes(self.client.getInstantMetadata(DATABASE, self.name, each))
        assert seen_by_hudi_rs(copy) == {file.path for file in self.files()}
        rows = self._rows(copy, {"hoodie.metadata.enable": "false"})
        assert rows == rows_of_hudi_rs(copy)
        return rows

    def _rows(self, location: Path, options: dict[str, str]) -> list[list[Any]]:
        return self.spark.python(
            f"found = spark.read.format('hudi').options(**{options!r}).load({str(location)!r})\n"
            f"result = [list(row) for row in found.select({COLUMNS!r}).orderBy({COLUMNS!r}).collect()]"
        )

    def files(self, **fields: Any) -> list[DataFile]:
        return self.client.lake_get_snapshot(SnapshotRequest(self.reference, **fields)).files

    def rows_of_snapshot(self) -> list[list[Any]]:
        """The rows of the base files of our snapshot."""
        found = [
            row
            for file in self.files(readOptimized=True)
            for row in pyarrow.parquet.read_table(self.location / file.path, partitioning=None).to_pylist()
        ]
        return sorted([row[name] for name in COLUMNS] for row in found)

    def slices(self) -> list[list[Any]]:
        """The files of our snapshot, as Hudi tells its own."""
        found: dict[tuple[str, str], list[str]] = {}
        for file in self.files():
            found.setdefault((file.partition, file.fileGroup), []).append(file.path.rpartition("/")[2])
        return [[*key, [each[0], *sorted(each[1:])]] for key, each in sorted(found.items())]

    def slices_of_hudi(self) -> list[list[Any]]:
        partitions = sorted(path.name for path in self.location.glob("dt=*"))
        return sorted(
            self.spark.python(SLICES.format(options=self.reading, base=str(self.location), partitions=partitions))
        )

    def instants(self) -> list[tuple[str, str]]:
        return [
            (TAction(each.action).name, TState(each.state).name)
            for each in self.client.listInstants(DATABASE, self.name, 24)
        ]


class TableInFiles(HudiTable):
    """A table whose timeline Hudi keeps in files, which is sent to the server after each write."""

    def __init__(self, *args: Any, **options: str) -> None:
        super().__init__(*args, **options)
        self.reading["hoodie.metaserver.enabled"] = self.writing["hoodie.metaserver.enabled"] = "false"
        self._states: dict[tuple[str, str], TState] = {}

    def tell(self) -> None:
        if not self._states:
            self.client.createTable(Table(tableName=self.name, dbName=DATABASE, location=str(self.location)))
        files = (self.location / ".hoodie/timeline").iterdir()
        contents = {path.name: path.read_bytes() for path in files if path.is_file() and path.suffix != ".crc"}
        for step in hudi_timeline.history(hudi_timeline.instants(contents)):
            tell(self.client, DATABASE, self.name, step, contents, self._states)

    def agreed_rows(self) -> list[list[Any]]:
        """The table's rows, once Hudi, hudi-rs and our snapshot agree on them, and on the files that hold them."""
        self.tell()
        rows = self.rows()
        assert rows_of_hudi_rs(self.location) == rows
        assert {file.path for file in self.files()} == seen_by_hudi_rs(self.location)
        if all(file.kind == "base" for file in self.files()):
            assert self.rows_of_snapshot() == rows
        return rows


def test_copy_on_write(spark: SparkSession, client: ThriftClient, tmp_path: Path) -> None:
    table = HudiTable(spark, client, tmp_path / "table", "COPY_ON_WRITE")
    table.write("SELECT 1 id, 1 ts, 'a' note, '2026-01-01' dt UNION ALL SELECT 2, 1, 'b', '2026-01-02'", "insert")
    assert table.agreed_rows() == [[1, 1, "a", "2026-01-01"], [2, 1, "b", "2026-01-02"]]

    seen = client.get_table(DATABASE, table.name)
    assert local_path(seen.sd.location) == table.location
    assert [key.name for key in seen.partitionKeys] == ["dt"]
    assert [column.name for column in seen.sd.cols if not column.name.startswith("_hoodie_")] == ["id", "ts", "note"]
    assert sorted(client.get_partition_names(DATABASE, table.name, -1)) == ["dt=2026-01-01", "dt=2026-01-02"]
    first = client.get_partition(DATABASE, table.name, ["2026-01-01"])
    assert (first.parameters["numFiles"], first.parameters["numRows"]) == ("1", "1")

    table.write("SELECT 1 id, 2 ts, 'A' note, '2026-01-01' dt UNION ALL SELECT 3, 2, 'c', '2026-01-01'")
    assert len(table.agreed_rows()) == 3

    table.write("SELECT 2 id, 3 ts, 'b' note, '2026-01-02' dt", "delete")
    assert table.agreed_rows() == [[1, 2, "A", "2026-01-01"], [3, 2, "c", "2026-01-01"]]

    table.write("SELECT 9 id, 4 ts, 'z' note, '2026-01-01' dt", "insert_overwrite")
    assert table.agreed_rows() == [[9, 4, "z", "2026-01-01"]]
    assert table.instants() == [("COMMIT", "COMPLETED")] * 3 + [("REPLACECOMMIT", "COMPLETED")]


def test_merge_on_read(spark: SparkSession, client: ThriftClient, tmp_path: Path) -> None:
    table = HudiTable(spark, client, tmp_path / "table", "MERGE_ON_READ")
    table.write("SELECT 1 id, 1 ts, 'a' note, '2026-01-01' dt UNION ALL SELECT 2, 1, 'b', '2026-01-02'", "insert")
    assert table.agreed_rows() == [[1, 1, "a", "2026-01-01"], [2, 1, "b", "2026-01-02"]]
    assert client.getTable(DATABASE, table.name).tableType == "MERGE_ON_READ"

    table.write("SELECT 1 id, 2 ts, 'A' note, '2026-01-01' dt UNION ALL SELECT 3, 2, 'c', '2026-01-01'")
    assert len(table.agreed_rows()) == 3
    table.write("SELECT 2 id, 3 ts, 'b' note, '2026-01-02' dt", "delete")
    assert any(len(names) > 1 for _, _, names in table.slices())
    # Its reader passes over log files, as the one with the delete: it looks for their instants in a timeline of files.
    assert [2, 1, "b", "2026-01-02"] in table.agreed_rows()
    assert table.rows_in_files(tmp_path / "deleted") == [[1, 2, "A", "2026-01-01"], [3, 2, "c", "2026-01-01"]]

    table.write("SELECT 9 id, 4 ts, 'z' note, '2026-01-01' dt", "insert_overwrite")
    assert table.agreed_rows() == [[2, 1, "b", "2026-01-02"], [9, 4, "z", "2026-01-01"]]
    assert table.rows_in_files(tmp_path / "overwritten") == [[9, 4, "z", "2026-01-01"]]


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_cleans_and_rollbacks(sending_plans: SparkSession, client: ThriftClient, tmp_path: Path, kind: str) -> None:
    table = HudiTable(sending_plans, client, tmp_path / "table", kind)
    cleaning = {"clean_automatic": "true", "clean_commits_retained": "1", "cleaner_commits_retained": "1"}
    table.write("SELECT 1 id, 1 ts, 'a' note, '2026-01-01' dt UNION ALL SELECT 2, 1, 'b', '2026-01-02'", "insert")
    for number in range(3):
        query = f"SELECT {number} id, 1 ts, 'n' note, '2026-01-01' dt"
        table.write(query, "insert_overwrite", **cleaning)
        assert table.agreed_rows() == sorted([[2, 1, "b", "2026-01-02"], [number, 1, "n", "2026-01-01"]])
    assert ("CLEAN", "COMPLETED") in table.instants()
    kept = {file.path for file in table.files(allVersions=True)}
    assert kept == {str(path.relative_to(table.location)) for path in table.location.glob("dt=*/*.parquet")}

    with pytest.raises(SparkError, match="planned"):
        table.write("SELECT 5 id, CAST(raise_error('planned') AS INT) ts, 'x' note, '2026-01-02' dt")
    table.write("SELECT 6 id, 6 ts, 'f' note, '2026-01-02' dt")
    assert ("ROLLBACK", "COMPLETED") in table.instants()
    assert {state for _, state in table.instants()} == {"COMPLETED"}
    expected = [[2, 1, "b", "2026-01-02"], [2, 1, "n", "2026-01-01"], [6, 6, "f", "2026-01-02"]]
    assert table.agreed_rows() == expected == table.rows_in_files(tmp_path / "copy")


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_the_newest_release_in_files(newest: SparkSession, client: ThriftClient, tmp_path: Path, kind: str) -> None:
    """All that its client of the metaserver can't do, sent by the calls that such a client would make."""
    table = TableInFiles(newest, client, tmp_path / "table", kind)
    table.write("SELECT 1 id, 1 ts, 'a' note, '2026-01-01' dt UNION ALL SELECT 2, 1, 'b', '2026-01-02'", "insert")
    assert table.agreed_rows() == [[1, 1, "a", "2026-01-01"], [2, 1, "b", "2026-01-02"]]
    table.write("SELECT 1 id, 2 ts, 'A' note, '2026-01-01' dt UNION ALL SELECT 3, 2, 'c', '2026-01-01'")
    assert len(table.agreed_rows()) == 3
    table.write("SELECT 2 id, 3 ts, 'b' note, '2026-01-02' dt", "delete")
    assert table.agreed_rows() == [[1, 2, "A", "2026-01-01"], [3, 2, "c", "2026-01-01"]]

    compacting = {}
    if kind == "MERGE_ON_READ":
        compacting = {"compact_inline": "true", "compact_inline_max_delta_commits": "1"}
    table.write("SELECT 3 id, 4 ts, 'C' note, '2026-01-01' dt", **compacting)
    assert table.agreed_rows() == [[1, 2, "A", "2026-01-01"], [3, 4, "C", "2026-01-01"]]
    if kind == "MERGE_ON_READ":
        assert all(file.kind == "base" for file in table.files(filter="dt = '2026-01-01'"))

    before = table.agreed_rows()
    table.write("SELECT 4 id, 5 ts, 'd' note, '2026-01-02' dt", "insert")
    assert len(table.agreed_rows()) == 3
    last = max(path.name[:17] for path in (table.location / ".hoodie/timeline").glob("2*.*commit"))
    newest.python(CALL.format(options=table.writing, base=str(table.location), call=f"rollback({last!r})"))
    assert table.agreed_rows() == before

    cleaning = {"clean_automatic": "true", "clean_commits_retained": "1", "cleaner_commits_retained": "1"}
    for number in range(3):
        table.write(f"SELECT 1 id, {6 + number} ts, 'n' note, '2026-01-01' dt", **cleaning, **compacting)
        assert table.agreed_rows()[0] == [1, 6 + number, "n", "2026-01-01"]
    assert any(action == "CLEAN" for action, _ in table.instants())


class TestWhatTheReleasedClientCannotDo:
    """Each fails within Hudi. Where it begins an instant, that is left as it was."""

    def test_clean(self, spark: SparkSession, client: ThriftClient, tmp_path: Path) -> None:
        """The plan isn't sent, and then missed."""
        table = HudiTable(spark, client, tmp_path / "table", "COPY_ON_WRITE")
        cleaning = {"clean_automatic": "true", "clean_commits_retained": "1", "cleaner_commits_retained": "1"}
        with pytest.raises(SparkError, match="No value present in Option"):
            for number in range(4):
                table.write(f"SELECT 1 id, {number} ts, 'a' note, '2026-01-01' dt", **cleaning)
        assert table.instants()[-1] == ("CLEAN", "REQUESTED")
        assert table.rows() == table.rows_of_snapshot()

    @pytest.mark.parametrize(
        ("session", "cause"),
        [
            ("spark", "No value present in Option"),  # the plan isn't sent
            ("sending_plans", r"this\.details\b.* is null"),  # its timeline has no function to read details with
        ],
    )
    def test_compaction(
        self, session: str, cause: str, client: ThriftClient, tmp_path: Path, request: pytest.FixtureRequest
    ) -> None:
        table = HudiTable(request.getfixturevalue(session), client, tmp_path / "table", "MERGE_ON_READ")
        table.write("SELECT 1 id, 1 ts, 'a' note, '2026-01-01' dt", "insert")
        compacting = {"compact_inline": "true", "compact_inline_max_delta_commits": "1"}
        with pytest.raises(SparkError, match=f"(?s)Could not compact.*{cause}"):
            table.write("SELECT 1 id, 2 ts, 'A' note, '2026-01-01' dt", **compacting)
        assert table.instants()[-1] == ("COMPACTION", "REQUESTED")

    def test_clustering(self, sending_plans: SparkSession, client: ThriftClient, tmp_path: Path) -> None:
        table = HudiTable(sending_plans, client, tmp_path / "table", "COPY_ON_WRITE")
        clustering = {"clustering_inline": "true", "clustering_inline_max_commits": "1"}
        with pytest.raises(SparkError, match="Clustering plan produced 0 WriteStatus"):
            table.write("SELECT 1 id, 1 ts, 'a' note, '2026-01-01' dt", "insert", **clustering)
        assert table.instants()[0] == ("COMMIT", "COMPLETED")
        assert table.rows() == [[1, 1, "a", "2026-01-01"]] == table.rows_of_snapshot()

    @pytest.mark.parametrize(
        ("call", "error"),
        [
            ("rollback({last!r})", "Unsupported now"),  # of what is completed: there is no way back to inflight
            ("restoreToInstant({first!r}, False)", "Unsupported now"),
            ("savepoint({last!r}, 'me', 'why')", "IllegalArgumentException"),  # it begins as inflight
        ],
    )
    def test_rollback_restore_and_savepoint(
        self, sending_plans: SparkSession, client: ThriftClient, tmp_path: Path, call: str, error: str
    ) -> None:
        table = HudiTable(sending_plans, client, tmp_path / "table", "COPY_ON_WRITE")
        for number in range(2):
            table.write(f"SELECT 1 id, {number} ts, 'a' note, '2026-01-01' dt")
        first, last = (each.timestamp for each in client.listInstants(DATABASE, table.name, 24))
        program = CALL.format(options=table.writing, base=str(table.location), call=call.format(first=first, last=last))
        with pytest.raises(SparkError, match=error):
            table.spark.python(program)
        assert table.instants()[0] == ("COMMIT", "COMPLETED")
        assert table.rows() == table.rows_of_snapshot()

    def test_what_follows_a_first_commit_in_1_0(
        self, middle: SparkSession, client: ThriftClient, tmp_path: Path
    ) -> None:
        """Metadata is sent to the server, and looked for in a file."""
        table = HudiTable(middle, client, tmp_path / "table", "COPY_ON_WRITE")
        table.write("SELECT 1 id, 1 ts, 'a' note, '2026-01-01' dt", "insert")
        assert table.instants() == [("COMMIT", "COMPLETED")]
        with pytest.raises(SparkError, match="Could not read commit details from"):
            table.write("SELECT 1 id, 2 ts, 'a' note, '2026-01-01' dt")
        with pytest.raises(SparkError, match="Could not read commit details from"):
            table.rows()

    def test_anything_in_1_2(self, newest: SparkSession, client: ThriftClient, tmp_path: Path) -> None:
        """What makes its client asks for a constructor that it doesn't have: nothing reaches the server."""
        table = HudiTable(newest, client, tmp_path / "table", "COPY_ON_WRITE")
        with pytest.raises(SparkError, match=r"Unable to instantiate class .*\.HoodieTableMetaserverClient"):
            table.write("SELECT 1 id, 1 ts, 'a' note, '2026-01-01' dt", "insert")
        assert table.name not in client.get_all_tables(DATABASE)
