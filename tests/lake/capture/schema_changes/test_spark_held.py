"""A captured table in a project of layers, on Spark, while changes of its columns are held."""

from collections.abc import Callable
from pathlib import Path

import pytest

from lake.capture.schema_changes.decisions import decide
from lake.capture.schema_changes.history import changes_of
from lake.capture.schema_changes.model import Action, Kind, Untouched
from lake.capture.schema_changes.policy import Policy, UntouchedRule
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

    assert {*check_all()} == {"full"}
    source.run("UPDATE t SET d = 'again' WHERE id = 6; INSERT INTO t VALUES (9, 1.2345, 'nine', 9)")
    source.capture()
    assert "full" not in check_all()[:3]
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
    assert "full" not in check_all()[:3]


def test_another_key(
    source: Source,
    hinting_session: Callable[[str], SparkSession],
    metastore_server: MetastoreServer,
    tmp_path: Path,
) -> None:
    """Rows of the captured table are told apart by `_row_key`, and those of `picked` by the key that it declares."""
    source.run("CREATE TABLE t (id int PRIMARY KEY, a int NOT NULL, b text)")
    source.run("INSERT INTO t SELECT n, n % 2, 'b' || n FROM generate_series(1, 6) n")
    source.capture()
    spark = hinting_session("4")
    database, lake = source.into.partition(".")[0], source.client.table(source.into)

    def sql(key: str) -> str:
        return (
            f"CREATE CAPTURED TABLE t FROM {source.into} TABLE 'public.t';"
            " CREATE MATERIALIZED VIEW sums AS SELECT a, count(*) AS rows FROM t GROUP BY a;"
            f" CREATE MATERIALIZED VIEW picked TBLPROPERTIES ('primary-key' = '{key}') AS SELECT * FROM t WHERE a < 5"
        )

    table = TypedTable(tmp_path, source.client, source.into, "public.t", sql=sql("id"), uri=metastore_server.uri)

    def write(key: str) -> None:
        write_project(tmp_path, {"ods.sql": sql(key)}, name=database, database=database)

    def check(*full: str) -> list[str]:
        how, rows = table.refresh(spark, full)
        wanted = [[*map(repr, row)] for row in source.run("SELECT * FROM t")]
        assert sorted(rows) == sorted(wanted)
        sums = spark.sql(f"SELECT a, rows FROM {database}.sums ORDER BY a")
        listed = source.run("SELECT a, count(*) FROM t GROUP BY a ORDER BY a")
        assert [[*map(int, row)] for row in sums] == [[*row] for row in listed]
        picked = spark.sql(f"SELECT id, a FROM {database}.picked ORDER BY id, a")
        listed = source.run("SELECT id, a FROM t WHERE a < 5 ORDER BY id, a")
        assert [[*map(int, row)] for row in picked] == [[*row] for row in listed]
        return how

    def approve() -> None:
        for at in dict.fromkeys(each.at for each in changes_of(lake, "public.t")):
            decide(lake, Policy(), "public.t", str(at), Action.APPLY)

    def key() -> str:
        return source.client.table(f"{database}.picked").schema().properties["primary-key"]

    check()
    assert key() == "id"
    source.run("ALTER TABLE t DROP CONSTRAINT t_pkey; ALTER TABLE t ADD PRIMARY KEY (id, a)")
    source.run("INSERT INTO t VALUES (1, 4, 'second'), (7, 7, 'new'); DELETE FROM t WHERE id = 2")
    source.capture()
    assert len(table.refresh(spark)[1]) == 6, "it stays as it was"
    before = [spark.sql(f"SELECT * FROM {database}.{each} ORDER BY id") for each in ("t", "picked")]
    approve()
    with pytest.raises(SparkError, match="primary-key is id, and what tells the rows apart is id, a"):
        table.refresh(spark)
    write("id,a")
    with pytest.raises(SparkError, match=r"picked was keyed by id, and is by id,a now: .*--full-refresh \w+\.picked"):
        table.refresh(spark)
    for stage in ("computed", "begun", "written"):
        with pytest.raises(SparkError, match=f"killed at {stage}"):
            table.refresh(spark, ["picked"], fails_at=stage)
        found = [spark.sql(f"SELECT * FROM {database}.{each} ORDER BY id") for each in ("t", "picked")]
        assert found == before, "all at one moment"
        assert key() == "id"
    check("picked")
    assert key() == "id,a"
    source.run("UPDATE t SET b = 'changed' WHERE id = 1 AND a = 4; UPDATE t SET a = 3 WHERE id = 3")
    source.run("DELETE FROM t WHERE id = 1 AND a = 1; INSERT INTO t VALUES (3, 4, 'x')")
    source.capture()
    assert "full" not in check()
    source.run("ALTER TABLE t DROP CONSTRAINT t_pkey; ALTER TABLE t ADD no int GENERATED ALWAYS AS IDENTITY")
    source.run("ALTER TABLE t ADD PRIMARY KEY (no); ALTER TABLE t RENAME b TO c; UPDATE t SET c = 'y' WHERE id = 3")
    source.capture()
    approve()
    write("no")
    check("picked")
    assert key() == "no"
    source.run("DELETE FROM t WHERE no = 1; UPDATE t SET a = 9 WHERE no = 2; INSERT INTO t (id, a) VALUES (9, 9)")
    source.capture()
    assert "full" not in check()


def test_columns_that_older_rows_have_filled(
    source: Source,
    hinting_session: Callable[[str], SparkSession],
    metastore_server: MetastoreServer,
    tmp_path: Path,
) -> None:
    fill = Policy(untouched=(UntouchedRule("*", frozenset({Kind.ADD_FILLED}), Untouched.FILL),)).of_untouched
    source.run("CREATE TABLE t (id int PRIMARY KEY, a int)")
    source.run("INSERT INTO t SELECT n, n FROM generate_series(1, 5) n")
    source.capture()
    sql = f"CREATE CAPTURED TABLE t FROM {source.into} TABLE 'public.t'"
    table = TypedTable(tmp_path, source.client, source.into, "public.t", sql=sql, uri=metastore_server.uri)
    spark = hinting_session("4")

    def check() -> list[str]:
        how, rows = table.refresh(spark)
        assert rows == [[*map(repr, row)] for row in source.run("SELECT * FROM t ORDER BY id")]
        return how

    check()
    source.run("ALTER TABLE t ADD b text DEFAULT E'it''s \\\\ \"x\"', ADD c numeric(6,2) DEFAULT 7.50, ADD d int")
    source.run("INSERT INTO t VALUES (6, 6, 'y', 1, 1); UPDATE t SET a = 9 WHERE id = 1; DELETE FROM t WHERE id = 2")
    source.capture(untouched=fill)
    assert "truncate" not in source.ops("t")
    check()
    source.run("UPDATE t SET c = NULL WHERE id = 3; UPDATE t SET id = 40 WHERE id = 4")
    source.capture(untouched=fill)
    assert "full" not in check()
