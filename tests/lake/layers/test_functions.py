"""The examples that Spark has of its functions, each as a layer: what Spark answers, or refused with the reason."""

from collections.abc import Callable, Iterator, Sequence

import pytest

from tests.lake.layers.in_spark import call
from tests.spark.session import SparkSession

pytestmark = pytest.mark.spark

PARTS = 20
"""All of them take half an hour on each line."""

SOME = 320
"""An ordinary run has one function of so many. They are of all kinds, since they are dealt out by their names."""

AT_ONCE = 8


@pytest.mark.parametrize(
    ("line", "part", "parts"),
    [
        pytest.param("4", 3, SOME, id="spark-4-some"),
        *(
            pytest.param(line, part, PARTS, id=f"spark-{line}-{part}", marks=pytest.mark.long)
            for line in ("4", "3.5")
            for part in range(PARTS)
        ),
    ],
)
def test_examples_of_functions(
    hinting_session: Callable[[str], SparkSession], line: str, part: int, parts: int
) -> None:
    spark = hinting_session(line)
    names: list[str] = call(spark, "tests.lake.layers.spark_examples", f"functions(spark, {part}, {parts})")
    found: list[list[str]] = []
    for some in batched(names, AT_ONCE):
        found += call(spark, "tests.lake.layers.spark_examples", f"outcomes(spark, {some!r})")
    print(*map(" | ".join, found), sep="\n")  # beside a failure
    assert not [each for each in found if each[2] == "wrong"]
    assert sum(each[2] == "equal" for each in found) > len(found) // 2, "most are computed, and not refused"


def batched(names: Sequence[str], count: int) -> Iterator[Sequence[str]]:
    """Some names at a time."""
    for begin in range(0, len(names), count):
        yield names[begin : begin + count]
