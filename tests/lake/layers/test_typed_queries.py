"""Random queries over tables of many types, as layers on Spark: each is what Spark answers, or refused."""

from collections.abc import Callable

import pytest

from tests.lake.layers.in_spark import call
from tests.spark.session import SparkSession
from tests.support.long_runs import share_of

pytestmark = pytest.mark.spark

SEED = 43_000
COUNT, AT_ONCE = 40, 4


@pytest.mark.parametrize(
    ("line", "seed", "count"),
    [
        pytest.param("4", SEED, 4, id="spark-4-some"),
        *(
            pytest.param(line, SEED + seed, COUNT, id=f"spark-{line}-{SEED + seed}", marks=pytest.mark.long)
            for line in ("4", "3.5")
            for seed in range(1, share_of(12) + 1)
        ),
    ],
)
def test_random_queries(hinting_session: Callable[[str], SparkSession], line: str, seed: int, count: int) -> None:
    spark = hinting_session(line)
    found: list[list[str]] = []
    for begin in range(0, count, AT_ONCE):
        expression = f"outcomes(spark, {seed * 100 + begin}, {min(AT_ONCE, count - begin)})"
        found += call(spark, "tests.lake.layers.typed_queries", expression)
    print(*map(" | ".join, found), sep="\n")  # beside a failure
    assert not [each for each in found if each[1] == "wrong"]
    assert sum(each[1] == "equal" for each in found) > count // 2, "most are computed, and not refused"


SELF_JOINED = """
SELECT if(false, 'Oslo', 'no') AS c72 FROM (
  SELECT t63.d4 AS c69, element_at(t68.p8, 1) AS c70,
    count(*) OVER (PARTITION BY exists(array(4, 3, 0), x -> x > t65.id), t63.t3) AS c71
  FROM table_3 t63 LEFT SEMI JOIN table_2 t64 ON t63.n2 = t64.n2 LEFT JOIN table_1 t65 ON t63.n1 <=> t65.n1
  LEFT ANTI JOIN table_5 t66 ON t63.d4 = t66.d4 AND coalesce(t65.f6, t66.n6 = 1)
  LEFT JOIN table_5 t67 ON t63.n2 = t67.n6 AND (t67.n6 < 2 OR t63.t3 IS NULL)
  RIGHT JOIN table_5 t68 ON t63.id <=> t68.n6 WHERE t67.n1 IN (1, 2.5, NULL)
) t62
"""
"""What is kept of its increment is joined with what it was computed from."""

ANTI_JOINED = """
SELECT t23.n2 AS c27, t25.n2 AS c28 FROM table_2 t23
  RIGHT JOIN table_3 t24 ON t23.d5 = t24.d4 AND coalesce(t24.f8, t23.id = 1) RIGHT JOIN table_4 t25 ON t23.t3 = t25.t3
  LEFT ANTI JOIN table_0 t26 ON t24.n1 = t26.id AND t25.t3 = t26.t5 WHERE t25.n8 > 1 AND t23.n1 IN (1, 2.5, NULL)
"""
"""Its increment joins two steps that both come from a third."""


@pytest.mark.long
@pytest.mark.parametrize(("seed", "query"), [(2000, SELF_JOINED), (4300100, ANTI_JOINED)], ids=["kept", "not-kept"])
@pytest.mark.parametrize("line", ["4", "3.5"])
def test_rows_are_told_from_those_they_come_from(
    hinting_session: Callable[[str], SparkSession], line: str, seed: int, query: str
) -> None:
    expression = f"outcomes_of(spark, {seed}, {[query]!r})"
    [[_, kind, why]] = call(hinting_session(line), "tests.lake.layers.typed_queries", expression)
    assert kind == "equal", why
