"""Column families of keyed tables from PySpark, on both lines."""

from collections.abc import Callable

import pytest

from lake.tables.lake import LakeTable
from tests.lake.spark.conftest import NUMBERS
from tests.lake.spark.lake import Lake
from tests.spark.session import SparkSession

_BEFORE = """
def plain(frame):
    return sorted([str(value) for value in row] for row in frame.collect())
def rows(columns, *values):
    return spark.createDataFrame(values, columns)
"""


def update(lake: Lake) -> None:
    """Updates columns, and compares what is read with what should be; the Arrow reader must have the same."""
    name = f"{lake.database}.families{next(NUMBERS)}"
    lake.spark.sql(
        f"CREATE TABLE {name} (id BIGINT, Name STRING, score INT, tags ARRAY<STRING>, day STRING) USING parquet"
        " PARTITIONED BY (day) TBLPROPERTIES ('primary-key' = 'id,day', 'bucket' = '2',"
        " 'column-families' = 'scores:score; words:tags')"
    )
    run(
        lake,
        f"""
t = {name!r}
write(rows("id bigint, name string, score int, tags array<string>, day string",
           *((id, f"n{{id}}", 0, ["x"], f"2026-01-0{{id % 2 + 1}}") for id in range(6))), t, operation="upsert")
write(rows("id bigint, SCORE bigint, day string", (1, 10, "2026-01-02"), (2, 20, "2026-01-01"),
           (9, 90, "2026-01-01")), t, operation="update_columns")
write(rows("id bigint, tags array<string>, score int, day string", (2, None, 21, "2026-01-01")), t,
      operation="update_columns")
""",
    )
    wanted = [
        [str(id), f"n{id}", {1: "10", 2: "21"}.get(id, "0"), "None" if id == 2 else "['x']", f"2026-01-0{id % 2 + 1}"]
        for id in range(6)
    ]
    assert run(lake, f"result = plain(read(spark, {name!r}))") == wanted
    table: LakeTable = lake.client.table(name)
    by_arrow = [[str(value) for value in each.values()] for each in table.scan().to_arrow().to_pylist()]
    assert sorted(by_arrow) == wanted
    assert run(lake, f"result = plain(read(spark, {name!r}, view='read_optimized'))") == wanted
    assert [row[2] for row in run(lake, f"result = plain(read(spark, {name!r}, as_of=2))")] == [
        "0",
        "10",
        "20",
        *["0"] * 3,
    ]
    changes = run(
        lake,
        f"result = plain(read(spark, {name!r}, incremental=(1, None), changes=True)"
        ".select('id', 'score', '_change_type', '_commit_version'))",
    )
    assert changes == [
        ["1", "0", "update_preimage", "2"],
        ["1", "10", "update_postimage", "2"],
        ["2", "0", "update_preimage", "3"],
        ["2", "21", "update_postimage", "3"],
    ]
    for columns, values, message in (
        ("id bigint, name string, day string", (1, "x", "2026-01-02"), "the column name is in none of column-families"),
        ("id bigint, day string", (1, "2026-01-02"), "no column to update"),
    ):
        refused = run(
            lake,
            f"""
try:
    write(rows({columns!r}, {values!r}), {name!r}, operation="update_columns")
    result = "written"
except Exception as error:
    result = str(error)
""",
        )
        assert message in refused


def run(lake: Lake, code: str) -> object:
    return lake.run(_BEFORE + code)


def test_columns_are_updated(lake: Lake) -> None:
    update(lake)


@pytest.mark.long
def test_the_older_line_updates_columns(lake: Lake, hinting_session: Callable[[str], SparkSession]) -> None:
    update(Lake(hinting_session("3.5"), lake.client, lake.database))
