"""The queries of Spark's own tests, as layers: each is what Spark answers, or refused with the reason.

The files come out of Spark's tests, as released. They stay as they are: what they set up is set up, and each query is a
layer over it. `SPARK_QUERIES` is how many are tried, one of so many: 1 is all of them, and takes an hour and a half.
"""

import os
import re
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from lake.spark.jar import EXTENSION_CLASS
from tests.interop.spark_queries import LEFT_OUT, statements
from tests.lake.layers.in_spark import call
from tests.lake.layers.spark_examples import counted
from tests.spark.session import SparkSession, require

TESTS = {
    "4": "org.apache.spark:spark-sql_2.13:4.2.0:tests",  # those of 4.3 aren't released
    "3.5": "org.apache.spark:spark-sql_2.12:3.5.9:tests",
}
"""By the line of Spark, what has its tests."""

EVERY = int(os.environ.get("SPARK_QUERIES", "8"))
PARTS = 12
AT_ONCE = 20
_FILE = re.compile(r"sql-tests/inputs/(?P<name>(?!udf/|udaf/|udtf/|scripting/|nonansi/|ansi/).+\.sql)")
"""Without those whose functions are made by the tests' own programs, and those that are others under other settings."""


class Files(NamedTuple):
    """The files of a line's tests by their names, and the directory with the rows of the tables that they share."""

    texts: dict[str, str]
    rows: Path


@pytest.fixture(scope="module")
def files(class_path: Callable[..., list[Path]], tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Files]:
    def read(line: str) -> Files:
        (jar,) = class_path(TESTS[line], exclusions=("*:*",))
        directory = tmp_path_factory.mktemp("rows")
        with zipfile.ZipFile(jar) as archive:
            archive.extractall(directory, [each for each in archive.namelist() if "test-data/postgresql/" in each])
            named = [found for each in archive.namelist() if (found := _FILE.fullmatch(each)) is not None]
            texts = {each["name"]: archive.read(each[0]).decode() for each in named}
        return Files(texts, directory / "test-data/postgresql")

    return read


@pytest.fixture(scope="module")
def session(released_jar: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], SparkSession]]:
    """The session of a line with the extension, and without a metastore."""
    started: dict[str, SparkSession] = {}

    def of(line: str) -> SparkSession:
        require(line)
        if line not in started:
            directory = tmp_path_factory.mktemp("queries")
            settings = {
                "spark_sql_extensions": EXTENSION_CLASS,
                "spark_jars": str(released_jar),
                "spark_sql_catalogImplementation": "in-memory",
                "spark_sql_codegen_wholeStage": "false",
                "spark_sql_adaptive_enabled": "false",
                "spark_sql_legacy_createHiveTableByDefault": "false",
                "spark_driver_memory": "1g",
            }
            started[line] = SparkSession(
                line, "thrift://127.0.0.1:1", str(directory / "warehouse"), directory, **settings
            )
        return started[line]

    yield of
    for each in started.values():
        each.close()


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("line", TESTS, ids=["spark-4", "spark-3.5"])
def test_queries_of_sparks_tests(
    line: str,
    part: int,
    files: Callable[[str], Files],
    session: Callable[[str], SparkSession],
    capsys: pytest.CaptureFixture[str],
) -> None:
    given = files(line)
    found: list[list[str]] = []
    for number, (name, text) in enumerate(sorted(given.texts.items())):
        if number % PARTS == part:
            found += [[name, *each] for each in outcomes(session(line), number, given.rows, statements(text))]
    counts = counted(found)
    with capsys.disabled():
        print(f"\n{sum(counts.values())} queries of Spark {line}'s tests, part {part}:")
        print(*(f"  {count:5} {kind}" for kind, count in counts.items()), sep="\n")
        print(*(each for each in found if each[2] == "wrong"), sep="\n")
    assert not [each for each in found if each[2] == "wrong"]
    kinds = Counter(each[2] for each in found)
    assert kinds["equal"] > (kinds.total() - kinds[LEFT_OUT]) // 3, "many are computed, and not refused"


def outcomes(spark: SparkSession, number: int, rows: Path, texts: list[str]) -> list[list[str]]:
    """What became of the queries among the statements of a file: the query, the kind of outcome, and why."""
    found: list[list[str]] = []
    for begin in range(0, len(texts), AT_ONCE):
        some = texts[begin : begin + AT_ONCE]
        found += call(
            spark, "tests.interop.spark_queries", f"outcomes(spark, {number}, {str(rows)!r}, {EVERY}, {some!r})"
        )
    if texts:
        call(spark, "tests.interop.spark_queries", f"close({number})")
    return found
