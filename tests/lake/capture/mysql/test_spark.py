"""A captured table of MariaDB in a project of layers, on Spark: it has the source's rows and types."""

import datetime as dt
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

import pytest

from tests.lake.capture.mysql.conftest import Source
from tests.lake.capture.typed_tables import TypedTable
from tests.spark.session import SparkSession
from tests.support.target import Target

pytestmark = [pytest.mark.spark, pytest.mark.long]

TYPES: dict[str, tuple[str, str, object]] = {
    # by column: its type, a value as SQL, and as the typed table has it
    "t": ("TINYINT UNSIGNED", "255", 255),
    "l": ("BIGINT UNSIGNED", "18446744073709551615", Decimal("18446744073709551615")),
    "d": ("DECIMAL(30,10)", "-12345678901234567890.0123456789", Decimal("-12345678901234567890.0123456789")),
    "big": ("DECIMAL(65,2)", "9" * 63, f"{'9' * 63}.00"),
    "f": ("FLOAT", "16777216", 16777216.0),
    "g": ("DOUBLE", "1.7976931348623157e308", 1.7976931348623157e308),
    "y": ("YEAR", "2026", 2026),
    "day": ("DATE", "'9999-12-31'", dt.date(9999, 12, 31)),
    "dm": ("DATETIME(6)", "'2026-11-24 23:59:59.000001'", dt.datetime(2026, 11, 24, 23, 59, 59, 1)),
    "ts": ("TIMESTAMP(3) NULL", "'2026-11-24 01:02:03.007'", dt.datetime(2026, 11, 24, 1, 2, 3, 7_000)),
    "ti": ("TIME(1)", "'-838:59:59.5'", "-838:59:59.5"),
    "v": ("TEXT", "'grün \"€\"'", 'grün "€"'),
    "vb": ("VARBINARY(10)", "0x00FF", b"\x00\xff"),
    "bits": ("BIT(10)", "b'1000000001'", "1000000001"),
    "e": ("ENUM('small','größe')", "'größe'", "größe"),
    "st": ("SET('a','b','c')", "'c,a'", "a,c"),
    "u": ("UUID", "'123e4567-e89b-12d3-a456-426655440000'", "123e4567-e89b-12d3-a456-426655440000"),
    "i6": ("INET6", "'2001:db8::1'", "2001:db8::1"),
    "j": ("JSON", "'{\"a\": [1, 2.50]}'", '{"a": [1, 2.50]}'),
}


def test_a_captured_table_is_kept_as_mariadb_has_it(
    source: Source, hinting_session: Callable[[str], SparkSession], target: Target, tmp_path: Path
) -> None:
    source.run("SET time_zone = '+00:00'")
    source.run(f"CREATE TABLE items (id INT PRIMARY KEY, {', '.join(f'{n} {k}' for n, (k, _, _) in TYPES.items())})")
    given = ", ".join(sql for _, sql, _ in TYPES.values())
    values = [repr(value) for _, _, value in TYPES.values()]
    nothing = ["None"] * len(TYPES)
    for number in range(1, 5):
        source.run(f"INSERT INTO items VALUES ({number}, {given})")
    source.capture()
    table = TypedTable(tmp_path, source.client, source.into, f"{source.name}.items")
    spark = hinting_session("4")
    _, rows = table.refresh(spark)
    assert rows == [[str(number), *values] for number in range(1, 5)]
    source.run("UPDATE items SET t = 7 WHERE id = 2")
    source.run("DELETE FROM items WHERE id = 3")
    source.run("UPDATE items SET id = 40 WHERE id = 4")
    source.run("INSERT INTO items (id) VALUES (3)")
    source.run(f"INSERT INTO items VALUES (5, {given})")
    source.capture()
    how, rows = table.refresh(spark)
    assert "full" not in how
    assert rows == [["1", *values], ["2", "7", *values[1:]], ["3", *nothing], ["5", *values], ["40", *values]]
    source.run("TRUNCATE TABLE items")
    source.run(f"INSERT INTO items VALUES (1, {given})")
    source.capture()
    assert table.refresh(spark)[1] == [["1", *values]]
