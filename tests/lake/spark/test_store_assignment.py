"""Values that a table's columns don't take are refused as Spark's own INSERT refuses them, by all kinds of writes."""

from collections.abc import Callable
from typing import Any

import pytest

from lake.tables.lake import LakeTable
from tests.lake.spark.conftest import NUMBERS
from tests.lake.spark.lake import Lake
from tests.spark.session import SparkSession

COLUMNS = (
    "id BIGINT, i INT, d DECIMAL(5,2), on_day DATE, v VARCHAR(3), c CHAR(3), s STRUCT<a: INT, b: STRING>,"
    " l ARRAY<STRUCT<x: TINYINT>>, m MAP<STRING, VARCHAR(2)>"
)

REFUSED = {
    "an overflow": "3000000000L i",
    "a decimal that is too large": "123456.78 d",
    "a double beyond a whole number's range": "1e30D i",
    "a text for a number": "'12' i",
    "a text for a date": "'nonsense' on_day",
    "a number for a date": "1 on_day",
    "a boolean for a number": "true i",
    "a text that is too long": "'abcd' v",
    "a CHAR that is too long": "'abcd' c",
    "an overflow in a struct": "named_struct('a', 3000000000L, 'b', 'x') s",
    "an overflow in a list": "array(named_struct('x', 300)) l",
    "a text that is too long in a map": "map('k', 'abc') m",
    "a field that the table doesn't have": "named_struct('a', 1, 'b', 'x', 'c', 2) s",
    "a field that is missing": "named_struct('a', 1) s",
}

TAKEN = {
    "7L i": ("i", 7),
    "7.9D i": ("i", 7),
    "1.005 d": ("string(d)", "1.01"),
    "null i": ("i", None),
    "'abc  ' v": ("v", "abc"),
    "'a' c": ("c", "a  "),
    "12 v": ("v", "12"),
    "named_struct('b', 'x', 'a', 1L) s": ("to_json(s)", '{"a":1,"b":"x"}'),
    "array(named_struct('x', 1L), null) l": ("to_json(l)", '[{"x":1},null]'),
    "timestamp'2026-01-31 10:00:00' on_day": ("string(on_day)", "2026-01-31"),
}


@pytest.fixture(scope="module", params=["4", pytest.param("3.5", marks=pytest.mark.long)], ids=["spark-4", "spark-3.5"])
def spark(request: pytest.FixtureRequest, hinting_session: Callable[[str], SparkSession]) -> SparkSession:
    return hinting_session(request.param)


@pytest.mark.long
@pytest.mark.parametrize("keyed", [True, False], ids=["keyed", "plain"])
def test_values_that_do_not_fit_are_refused(lake: Lake, *, keyed: bool) -> None:
    table = made(lake, keyed=keyed)
    found = attempts(lake, table, list(REFUSED.values()), keyed=keyed, loose=True)
    assert [what for what, error in zip(REFUSED, found, strict=True) if error is None] == []
    assert table.position().position == 0


def test_the_settings_of_a_session_make_no_difference(lake: Lake) -> None:
    table = made(lake, keyed=True)
    some = [REFUSED[each] for each in ("an overflow", "a text for a date", "a text that is too long")]
    assert None not in attempts(lake, table, some, keyed=True, loose=False)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("keyed", [True, False], ids=["keyed", "plain"])
def test_values_that_fit_are_converted(lake: Lake, *, keyed: bool) -> None:
    table = made(lake, keyed=keyed)
    assert attempts(lake, table, list(TAKEN), keyed=keyed, loose=True) == [None] * len(TAKEN)
    code = f"rows = read(spark, {table.name!r}).orderBy('id')\nresult = []\n"
    for number, (shown, _) in enumerate(TAKEN.values()):
        code += f"result.append(rows.where('id = {number}').selectExpr({shown!r}).collect()[0][0])\n"
    assert lake.run(code) == [value for _, value in TAKEN.values()]


def test_observations_of_rows_are_answered(lake: Lake) -> None:
    """They belong to the session that computes the rows."""
    table = made(lake, keyed=False)
    code = f"""
from pyspark.sql import Observation
from pyspark.sql import functions as sf
seen = Observation()
write(spark.range(3).select("id").observe(seen, sf.count(sf.lit(1)).alias("count")), {table.name!r})
from concurrent.futures import ThreadPoolExecutor
waiting = ThreadPoolExecutor(1)
answer = waiting.submit(lambda: seen.get["count"])
waiting.shutdown(wait=False)
result = answer.result(60)
"""
    assert lake.run(code) == 3


def test_partition_values_are_read_from_texts(lake: Lake) -> None:
    table = lake.table(f"p{next(NUMBERS)}", "id BIGINT, hr INT, day DATE", "hr, day")
    text = "SELECT 1L id, '{}' hr, '{}' day".format
    code = f"""
result = []
for query in ({text("07", "2026-01-31")!r}, {text("x", "2026-01-31")!r}, {text("1", "nonsense")!r}):
    try:
        result.append(write(spark.sql(query), {table.name!r}).partitions)
    except Exception as error:
        result.append("refused")
"""
    assert lake.run(code) == [["hr=7/day=2026-01-31"], "refused", "refused"]


def made(lake: Lake, *, keyed: bool) -> LakeTable:
    properties = {"primary-key": "id"} if keyed else {}
    return lake.table(f"s{next(NUMBERS)}", COLUMNS, **properties)


def attempts(lake: Lake, table: LakeTable, values: list[str], *, keyed: bool, loose: bool) -> list[Any]:
    """Writes a row with each of some values; None for those that were written, else the error."""
    operation = "upsert" if keyed else "append"
    found: list[Any] = lake.run(f"""
settings = {{"spark.sql.ansi.enabled": "false", "spark.sql.storeAssignmentPolicy": "LEGACY"}} if {loose} else {{}}
for key, value in settings.items():
    spark.conf.set(key, value)
result = []
try:
    for number, value in enumerate({values!r}):
        try:
            write(spark.sql(f"SELECT {{number}}L id, {{value}}"), {table.name!r}, operation={operation!r})
            result.append(None)
        except Exception as error:
            result.append(f"{{type(error).__name__}}: {{error}}"[:300])
finally:
    for key in settings:
        spark.conf.unset(key)
""")
    return found
