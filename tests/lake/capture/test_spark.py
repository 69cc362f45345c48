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
    for name in ("t", "t_as_sent", "t_changes"):  # other columns than the layers' tables have
        with pytest.raises(SparkError, match="DROP TABLE raw_"):
            table.refresh(spark)
        spark.sql(f"DROP TABLE {source.into.partition('.')[0]}.{name}")
    check("id, amount, body, n")


def test_values_that_do_not_fit(
    source: Source, hinting_session: Callable[[str], SparkSession], target: Target, tmp_path: Path
) -> None:
    source.run(
        "CREATE TABLE t (id int PRIMARY KEY, n numeric(6,2), f float8, d date, at timestamp, body text);"
        " ALTER TABLE t ALTER body SET STORAGE EXTERNAL"
    )
    source.run(
        "INSERT INTO t SELECT n, n, 'NaN', '2026-01-31', now(), repeat(md5(n::text), 90) FROM generate_series(1, 6) n"
    )
    source.capture()
    spark = hinting_session("4")
    table = TypedTable(tmp_path, source.client, source.into, "public.t")

    def rows() -> list[tuple[object, ...]]:
        return [(int(row[0]), row[1], row[3]) for row in table.refresh(spark)[1]]

    day = "datetime.date(2026, 1, 31)"
    wanted = [(number, f"Decimal('{number}.00')", day) for number in range(1, 7)]
    assert rows() == wanted
    source.run("UPDATE t SET n = 'NaN' WHERE id = 1")
    source.capture()
    with pytest.raises(SparkError, match=r"does not hold.*--misfits quarantine"):
        table.refresh(spark)
    source.run("UPDATE t SET d = 'infinity' WHERE id = 2; UPDATE t SET at = '-infinity' WHERE id = 3")
    source.run("UPDATE t SET n = 44.4 WHERE id = 4; DELETE FROM t WHERE id = 5")
    source.run("UPDATE t SET d = '0044-03-15 BC' WHERE id = 6")
    source.capture()
    table = TypedTable(tmp_path, source.client, source.into, "public.t", quarantines=True)
    after = [*wanted[:3], (4, "Decimal('44.40')", day), wanted[5]]
    assert rows() == after
    database = source.into.partition(".")[0]
    apart = f"SELECT op, misfits, get_json_object(raw, '$.id') FROM {database}.t_misfits ORDER BY 3"
    assert spark.sql(apart) == [["update", "n", "1"], ["update", "d", "2"], ["update", "at", "3"], ["update", "d", "6"]]
    source.run("UPDATE t SET n = 11, body = 'one' WHERE id = 1")
    source.capture()
    assert rows() == [(1, "Decimal('11.00')", day), *after[1:]]
