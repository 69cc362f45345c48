"""A captured table in a project of layers, on Spark: it has the source's rows and types."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.lake.capture.shop import Source
from tests.lake.capture.typed_tables import TypedTable
from tests.spark.session import SparkError, SparkSession
from tests.support.target import Target

pytestmark = [pytest.mark.spark, pytest.mark.long]


def test_a_captured_table_is_kept_as_the_source_has_it(
    source: Source, hinting_session: Callable[[str], SparkSession], target: Target, tmp_path: Path
) -> None:
    source.run(
        "CREATE TABLE items (id int PRIMARY KEY, price numeric(12,2), at timestamptz, body text, raw bytea, ok bool,"
        " n numeric); ALTER TABLE items ALTER body SET STORAGE EXTERNAL"
    )
    source.run(
        "INSERT INTO items SELECT n, n / 8.0, timestamptz '2026-01-31 10:00:00.123456+02' + n * interval '1 h',"
        " n || repeat(md5(n::text), 90), '\\x00ff', n % 2 = 0, 1e50 + n / 8.0 FROM generate_series(1, 5) n"
    )
    source.capture()
    table = TypedTable(tmp_path, source.client, source.into, "public.items")
    spark = hinting_session("4")

    def check() -> list[str]:
        how, rows = table.refresh(spark)
        expected = source.run("SELECT id, price, at AT TIME ZONE 'UTC', body, raw, ok, n::text FROM items ORDER BY id")
        wanted = [
            [*map(repr, (id, price, at, body, None if raw is None else bytes(raw), ok, n))]
            for id, price, at, body, raw, ok, n in expected
        ]
        assert rows == wanted
        return how

    check()
    source.run("UPDATE items SET price = 9.90 WHERE id = 2; DELETE FROM items WHERE id = 3")
    source.run("UPDATE items SET id = 40 WHERE id = 4; INSERT INTO items (id) VALUES (3)")
    source.capture()
    assert "full" not in check()
    source.run("TRUNCATE items; INSERT INTO items (id, body) VALUES (1, 'after')")
    source.capture()
    check()


def test_a_table_that_is_altered(
    source: Source, hinting_session: Callable[[str], SparkSession], target: Target, tmp_path: Path
) -> None:
    source.run("CREATE TABLE t (id int PRIMARY KEY, a int, body text); ALTER TABLE t ALTER body SET STORAGE EXTERNAL")
    source.run("INSERT INTO t SELECT n, n, repeat(md5(n::text), 90) FROM generate_series(1, 4) n")
    source.capture()
    spark = hinting_session("4")

    def definitions() -> TypedTable:
        return TypedTable(tmp_path, source.client, source.into, "public.t")

    def check(columns: str) -> None:
        rows = [[*map(repr, row)] for row in source.run(f"SELECT {columns} FROM t ORDER BY id")]
        assert table.refresh(spark)[1] == rows

    table = definitions()
    check("id, a, body")
    source.run("ALTER TABLE t ADD n bigint; UPDATE t SET a = 11, n = 5 WHERE id = 1")
    source.capture()
    check("id, a, body")
    source.run("ALTER TABLE t RENAME a TO amount; UPDATE t SET amount = 12 WHERE id = 2; DELETE FROM t WHERE id = 3")
    source.capture()
    with pytest.raises(SparkError, match="changed at the source: print its definitions again"):
        table.refresh(spark)
    table = definitions()
    for name in ("t", "t_changes"):  # other columns than the layers' tables have
        with pytest.raises(SparkError, match="DROP TABLE raw_"):
            table.refresh(spark)
        spark.sql(f"DROP TABLE {source.into.partition('.')[0]}.{name}")
    check("id, amount, body, n")
