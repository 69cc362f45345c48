"""The test suite of Hive 3's client, unchanged, against our server.

Each class runs on a server that nobody used before. To run one by hand, quickly:

    python -m tests.interop.hive4_suite --release 3.1.3 TestDatabases testAlterDatabase

`hive3_exclusions.tsv` names the tests that fail, as `hive4_exclusions.tsv` does. Where Hive 3 and 4 differ, the server
answers as Hive 4, or as Hive 2.3 where its clients depend on it.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.interop import maven, suites
from tests.interop.hive4_suite import HIVE3, HiveSuite, judge_on_fresh_server

#: How many tests each class has: none may get lost on the way.
CLASSES = {
    "TestAddPartitions": 81,
    "TestAddPartitionsFromPartSpec": 45,
    "TestAlterPartitions": 75,
    "TestAppendPartitions": 37,
    "TestCatalogs": 9,
    "TestCheckConstraint": 9,
    "TestDatabases": 32,
    "TestDefaultConstraint": 9,
    "TestDropPartitions": 40,
    "TestExchangePartitions": 78,
    "TestForeignKey": 10,
    "TestFunctions": 49,
    "TestGetPartitions": 49,
    "TestGetTableMeta": 9,
    "TestListPartitions": 122,
    "TestNotNullConstraint": 9,
    "TestPrimaryKey": 14,
    "TestRuntimeStats": 3,
    "TestTablesCreateDropAlterTruncate": 67,
    "TestTablesGetExists": 24,
    "TestTablesList": 14,
    "TestUniqueConstraint": 9,
}
EXCLUSIONS = Path(__file__).with_name("hive3_exclusions.tsv")


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HiveSuite]:
    try:
        yield HiveSuite(HIVE3, tmp_path_factory.mktemp("hive3-suite"))
    except maven.Unavailable as reason:
        pytest.skip(str(reason))


@pytest.mark.parametrize("name", CLASSES)
def test_class(name: str, suite: HiveSuite, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    judge_on_fresh_server(suite, name, CLASSES[name], EXCLUSIONS, tmp_path, request)


def test_exclusions_are_of_these_classes() -> None:
    assert set(suites.exclusions(EXCLUSIONS)) <= set(CLASSES)
