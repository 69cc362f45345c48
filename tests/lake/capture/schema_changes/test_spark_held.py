"""A captured table in a project of layers, on Spark, while changes of its columns are held."""

from collections.abc import Callable
from pathlib import Path

import pytest

from lake.capture.schema_changes.decisions import decide
from lake.capture.schema_changes.history import changes_of
from lake.capture.schema_changes.model import Action
from lake.capture.schema_changes.policy import Policy
from tests.lake.capture.shop import Source
from tests.lake.capture.typed_tables import TypedTable
from tests.lake.layers.projects import write_project
from tests.spark.session import SparkError, SparkSession
from tests.support.server import MetastoreServer

COLUMNS = """SELECT attname FROM pg_attribute WHERE attrelid = 't'::regclass AND attnum > 0 AND NOT attisdropped
 ORDER BY attnum"""

pytestmark = [pytest.mark.spark, pytest.mark.long]


def test_old_columns_flow_on(
    source: Source,
    hinting_session: Callable[[str], SparkSession],
    metastore_server: MetastoreServer,
    tmp_path: Path,
) -> None:
    source.run("CREATE TABLE t (id int PRIMARY KEY, n numeric(6,2), b text, at timestamptz, k smallint)")
    source.run("ALTER TABLE t ALTER b SET STORAGE EXTERNAL")
    at = "timestamptz '2026-01-31 10:00:00.5+02'"
    source.run(f"INSERT INTO t SELECT n, n, repeat(md5(n::text), 90), {at}, n FROM generate_series(1, 4) n")
    source.capture()
    spark = hinting_session("4")
    sql = f"CREATE CAPTURED TABLE t FROM {source.into} TABLE 'public.t'; CREATE MATERIALIZED VIEW sums AS"
    sql += " SELECT k, sum(n) AS n, max(b) AS b, count(*) AS rows FROM t GROUP BY k"
    table = TypedTable(tmp_path, source.client, source.into, "public.t", sql=sql, uri=metastore_server.uri)
    wanted = "SELECT id, n, {b}, at AT TIME ZONE 'UTC', k FROM t {where} ORDER BY id"

    def check(b: str, where: str = "") -> list[str]:
        how, rows = table.refresh(spark)
        found = [[*map(repr, row)] for row in source.run(wanted.format(b=b, where=where))]
        assert rows == found
        return how

    check("b")
    source.run("ALTER TABLE t RENAME b TO d; UPDATE t SET n = 9.5 WHERE id = 1; DELETE FROM t WHERE id = 2")
    source.run("INSERT INTO t VALUES (5, 5.25, 'five', now(), 5)")
    source.capture()
    check("d")
    source.run("UPDATE t SET k = 7 WHERE id = 3; UPDATE t SET id = 40 WHERE id = 4; DELETE FROM t WHERE id = 5")
    source.capture()
    assert "full" not in check("d")
    source.run("ALTER TABLE t ALTER n TYPE numeric(12,4); ALTER TABLE t ALTER k TYPE bigint")
    source.run("INSERT INTO t VALUES (6, 1.25, 'six', now(), 6), (7, 1.2501, 'x', now(), 7), (8, 1, 'x', now(), 99999)")
    source.capture()
    rows = table.refresh(spark)[1]
    assert [[row[0], row[1], row[4]] for row in rows] == [
        ["1", "Decimal('9.50')", "1"],
        ["3", "Decimal('3.00')", "7"],
        ["6", "Decimal('1.25')", "6"],
        ["40", "Decimal('4.00')", "4"],
    ]
    source.run("ALTER TABLE t DROP at; UPDATE t SET n = 2 WHERE id = 1; DELETE FROM t WHERE id = 3")
    source.capture()
    assert [row[0] for row in table.refresh(spark)[1]] == ["1", "6", "40"], "a row waits, and goes when it is deleted"
    database = source.into.partition(".")[0]
    sums = spark.sql(f"SELECT k, CAST(n AS STRING) FROM {database}.sums ORDER BY k")
    assert [[*map(str, row)] for row in sums] == [["1", "9.50"], ["4", "4.00"], ["6", "1.25"]]
    lake = source.client.table(source.into)
    for at_once in dict.fromkeys(each.at for each in changes_of(lake, "public.t")):
        decide(lake, Policy(), "public.t", str(at_once), Action.APPLY)
    with pytest.raises(SparkError, match="`b` cannot be resolved"):
        table.refresh(spark)
    write_project(tmp_path, {"ods.sql": sql.replace("max(b) AS b", "max(d) AS d")}, name=database, database=database)
    with pytest.raises(SparkError, match=r"sums has other columns now \(-k smallint.*--full-refresh"):
        table.refresh(spark)
    before = spark.sql(f"SELECT * FROM {database}.t ORDER BY id")
    for stage in ("computed", "begun", "written"):
        with pytest.raises(SparkError, match=f"killed at {stage}"):
            table.refresh(spark, ["sums"], fails_at=stage)
        assert spark.sql(f"SELECT * FROM {database}.t ORDER BY id") == before, "all at one moment"

    def check_all() -> list[str]:
        how, rows = table.refresh(spark, ["sums"])
        columns = ", ".join(name for (name,) in source.run(COLUMNS))
        assert rows == [[*map(repr, row)] for row in source.run(f"SELECT {columns} FROM t ORDER BY id")]
        return how

    assert check_all() == ["full", "full", "full"]
    source.run("UPDATE t SET d = 'again' WHERE id = 6; INSERT INTO t VALUES (9, 1.2345, 'nine', 9)")
    source.capture()
    assert "full" not in check_all()[:2]
    source.run("ALTER TABLE t ALTER id TYPE bigint; ALTER TABLE t ALTER k TYPE text USING 'k' || k")
    source.run("ALTER TABLE t RENAME n TO amount; INSERT INTO t VALUES (1::bigint << 40, 1, 'x', 'kk')")
    source.capture()
    table.refresh(spark)
    for at_once in dict.fromkeys(each.at for each in changes_of(lake, "public.t")):
        decide(lake, Policy(), "public.t", str(at_once), Action.APPLY)
    write_project(
        tmp_path,
        {"ods.sql": sql.replace("max(b) AS b", "max(d) AS d").replace("sum(n)", "sum(amount)")},
        name=database,
        database=database,
    )
    check_all()
    source.run("UPDATE t SET k = 'new' WHERE id = 6; DELETE FROM t WHERE id = 1")
    source.capture()
    assert "full" not in check_all()[:2]
