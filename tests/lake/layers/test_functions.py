"""The examples that Spark has of its functions, each as a layer: what Spark answers, or refused with the reason."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

from tests.spark.session import ROOT, SparkSession

pytestmark = pytest.mark.spark

PARTS = 20
"""An ordinary run has one of them; it has functions of all kinds, since they are dealt out by their names."""

QUICK = 3
AT_ONCE = 8


@pytest.mark.parametrize(
    "part", [QUICK, *(pytest.param(part, marks=pytest.mark.long) for part in range(PARTS) if part != QUICK)]
)
@pytest.mark.parametrize("line", ["4", "3.5"], ids=["spark-4", "spark-3.5"])
def test_examples_of_functions(hinting_session: Callable[[str], SparkSession], line: str, part: int) -> None:
    spark = hinting_session(line)
    names: list[str] = run(spark, f"spark_examples.functions(spark, {part}, {PARTS})")
    found: list[list[str]] = []
    for some in batched(names, AT_ONCE):
        found += run(spark, f"spark_examples.outcomes(spark, {some!r})")
    print(*map(" | ".join, found), sep="\n")  # beside a failure
    assert not [each for each in found if each[2] == "wrong"]
    assert sum(each[2] == "equal" for each in found) > len(found) // 2, "most are computed, and not refused"


def run(spark: SparkSession, expression: str) -> Any:
    """What an expression over `spark_examples` has as its value in Spark's process."""
    return spark.python(
        f"import sys\nsys.path.insert(0, {str(ROOT)!r})\nfrom tests.lake.layers import spark_examples\n"
        f"result = {expression}"
    )


def batched(names: Sequence[str], count: int) -> Iterator[Sequence[str]]:
    """Some names at a time."""
    for begin in range(0, len(names), count):
        yield names[begin : begin + count]
