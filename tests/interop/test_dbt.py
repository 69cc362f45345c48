"""Tests that dbt's adapters share, run by dbt-spark in a session of ours, on keyed tables and tables with a timeline.

dbt is in an environment of its own, with Spark 3.5 (`.venv-dbt`). dbt_suite/suite_dbt.py says which of its tests run,
and has our own. One process and one server run them.
"""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from lake.spark import jar
from lake.spark.configuration import settings
from tests.interop import java, suites
from tests.spark.session import ROOT
from tests.support.server import MetastoreServer

PYTHON = ROOT / ".venv-dbt/bin/python"
SUITE = Path(__file__).with_name("dbt_suite")
EXCLUSIONS = Path(__file__).with_name("dbt_exclusions.tsv")
#: How many tests each class has.
CLASSES = {
    "TestKeyedMaterializations": 1,
    "TestKeyedTableMaterialization": 1,
    "TestKeyedEmpty": 1,
    "TestKeyedEphemeral": 1,
    "TestKeyedGenericTests": 1,
    "TestKeyedSingularTests": 1,
    "TestKeyedSingularTestsEphemeral": 1,
    "TestKeyedIncremental": 1,
    "TestPlainNotSchemaChange": 1,
    "TestKeyedAdapterMethod": 1,
    "TestKeyedValidateConnection": 1,
    "TestKeyedShow": 3,
    "TestKeyedPersistDocs": 1,
    "TestKeyedPersistDocsColumnMissing": 2,
    "TestPlainStoredFailures": 1,
    "TestPlainEmptySeed": 1,
    "TestKeyedSnapshotCheckCols": 1,
    "TestKeyedSnapshotTimestamp": 1,
    "TestKeyedSchemaChange": 4,
    "TestMergedExcludeColumns": 1,
    "TestPlainMaterializations": 1,
    "TestPlainIncremental": 1,
    "TestPlainTableMaterialization": 1,
    "TestAppendUpserts": 1,
    "TestMergeUpserts": 1,
    "TestOverwrittenPartitions": 1,
    "TestOverwrittenPartitionsWithoutKey": 1,
}
SECONDS = 1200


@pytest.fixture(scope="module")
def found(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, list[suites.Outcome]]]:
    """What became of the tests, by class."""
    if not PYTHON.exists():
        pytest.skip("dbt isn't set up: tools/setup.sh --dbt")
    directory = tmp_path_factory.mktemp("dbt")
    extension, warehouse = directory / "extension.jar", directory / "warehouse"
    (package,) = PYTHON.parents[1].glob("lib/python*/site-packages/pyspark")
    jar.build(ROOT / "spark_extension/src", package, extension)
    warehouse.mkdir()
    items = [each for each in request.session.items if each.path == request.path and hasattr(each, "callspec")]
    names = [f"{SUITE / 'suite_dbt.py'}::{each.callspec.params['name']}" for each in items]
    with MetastoreServer(directory / "server", "--warehouse-dir", f"file:{warehouse}") as server:
        spark = {
            **settings(server.uri, extension),
            "spark.master": "local[2]",
            "spark.sql.warehouse.dir": str(warehouse),
            "spark.sql.shuffle.partitions": "2",
            "spark.ui.enabled": "false",
        }
        (directory / "spark-defaults.conf").write_text("".join(f"{key} {value}\n" for key, value in spark.items()))
        foreign = ("SPARK_", "PYSPARK_", "HADOOP_", "HIVE_", "PYTEST_", "COV_")
        environment = {key: value for key, value in os.environ.items() if not key.startswith(foreign)}
        environment |= {"SPARK_CONF_DIR": str(directory), "PYTHONPATH": str(SUITE), "PYTHONDONTWRITEBYTECODE": "1"}
        command = ["env", *(f"{key}={value}" for key, value in environment.items()), str(PYTHON), "-m", "pytest"]
        options = ["-c", os.devnull, "--rootdir", str(directory), "-o", "python_files=suite_*.py"]
        options += ["--confcutdir", str(SUITE), "-p", "lake_plugin"]
        options += ["-p", "no:cacheprovider", "-q", "--junit-xml", str(directory / "dbt.xml")]
        java.run([*command, *options, *names], directory, directory / "suite.log", seconds=SECONDS)
        yield {name.rpartition(".")[2]: outcomes for name, outcomes in suites.junit([directory / "dbt.xml"]).items()}


@pytest.mark.parametrize("name", CLASSES)
def test_class(name: str, found: dict[str, list[suites.Outcome]], request: pytest.FixtureRequest) -> None:
    assert name in found, f"{name} did not run: see suite.log"
    suites.judge(request, f"dbt {name}", found[name], CLASSES[name], suites.exclusions(EXCLUSIONS).get(name, []))


def test_exclusions_are_of_classes_that_run() -> None:
    assert set(suites.exclusions(EXCLUSIONS)) <= set(CLASSES)
