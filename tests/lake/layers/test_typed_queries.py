"""Random queries over tables of many types, as layers on Spark: each is what Spark answers, or refused."""

from collections.abc import Callable

import pytest

from tests.lake.layers.in_spark import call
from tests.spark.session import SparkSession
from tests.support.long_runs import share_of

pytestmark = pytest.mark.spark

SEED = 43_000
COUNT, AT_ONCE = 40, 8


@pytest.mark.parametrize(
    ("line", "seed", "count"),
    [
        pytest.param("4", SEED, 8, id="spark-4-some"),
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
