"""Hive 4's own test suite of its client, unchanged, against our server.

Each class runs on a server that nobody used before. To run one by hand, quickly:

    python -m tests.interop.hive4_suite TestDatabases testAlterDatabase

`hive4_exclusions.tsv` names the tests that fail, a line each: class, test, kind, reason. `artefact`s are about the
test's own process (its settings, its database, its trash). `difference`s are ours on purpose, each a row of
docs/compatibility.md. One that passes must go from the list.
"""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.interop import maven, suites
from tests.interop.hive4_suite import HIVE4, HiveSuite, judge_on_fresh_server

#: How many tests each class has: none may get lost on the way.
CLASSES = {
    "TestAddPartitions": 88,
    "TestAddPartitionsFromPartSpec": 52,
    "TestAlterPartitions": 75,
    "TestAppendPartitions": 37,
    "TestCatalogNonDefaultClient": 16,
    "TestCatalogs": 9,
    "TestCheckConstraint": 9,
    "TestDatabases": 35,
    "TestDefaultConstraint": 9,
    "TestDropPartitions": 40,
    "TestExchangePartitions": 78,
    "TestForeignKey": 10,
    "TestFunctions": 51,
    "TestGetAllTableConstraints": 3,
    "TestGetAllWriteEventInfo": 5,
    "TestGetPartitions": 50,
    "TestGetPartitionsUsingProjectionAndFilterSpecs": 23,
    "TestGetTableMeta": 9,
    "TestHiveMetaStoreClient": 3,
    "TestHiveMetaStorePartitionSpecs": 3,
    "TestListPartitions": 129,
    "TestMetastoreScheduledQueries": 18,
    "TestNotNullConstraint": 9,
    "TestPartitionStat": 2,
    "TestPrimaryKey": 14,
    "TestRemoteHiveMetaStore": 55,
    "TestReplicationMetrics": 4,
    "TestRuntimeStats": 3,
    "TestStats": 6,
    "TestTablesCreateDropAlterTruncate": 73,
    "TestTablesGetExists": 35,
    "TestTablesList": 14,
    "TestUniqueConstraint": 9,
}
EXCLUSIONS = Path(__file__).with_name("hive4_exclusions.tsv")
#: Of the 872 tests of the client; the classes beside them start servers in their own process, and look into them.
MOST = {"artefact": 31, "difference": 20}


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HiveSuite]:
    try:
        yield HiveSuite(HIVE4, tmp_path_factory.mktemp("hive4-suite"))
    except maven.Unavailable as reason:
        pytest.skip(str(reason))


@pytest.mark.parametrize("name", CLASSES)
def test_class(name: str, suite: HiveSuite, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    judge_on_fresh_server(suite, name, CLASSES[name], EXCLUSIONS, tmp_path, request)


def test_few_are_excluded_each_for_a_reason() -> None:
    found = suites.exclusions(EXCLUSIONS)
    assert set(found) <= set(CLASSES)
    count = Counter(each.kind for name, of_class in found.items() if name not in HIVE4.outside for each in of_class)
    assert all(count[kind] <= most for kind, most in MOST.items()), count
