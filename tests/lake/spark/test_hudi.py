"""Tables of Hudi's: the options that Hudi gets, and the error without Hudi."""

from datetime import UTC, datetime

import pytest

from lake.client.lake_types import Completion
from lake.spark import hudi_tables
from lake.tables.lake import LakeTable
from tests.lake.spark.lake import Lake
from tests.spark.session import SparkError
from tests.support import builders


@pytest.fixture
def of_hudi(lake: Lake) -> LakeTable:
    parameters = {"spark.sql.sources.provider": "hudi"}
    value = builders.table(lake.database, "h", keys=("dt",), parameters=parameters)
    lake.client.call(lambda client: client.create_table(value))
    return lake.client.table(f"{lake.database}.h")


def test_without_its_bundle_it_is_said_what_is_missing(lake: Lake, of_hudi: LakeTable) -> None:
    for call in (f"read(spark, {of_hudi.name!r})", f"write(rows_of([1]), {of_hudi.name!r})"):
        with pytest.raises(SparkError, match=r"HudiMissing: .*start Spark with its bundle"):
            lake.run(call)
    with pytest.raises(SparkError, match="see its options"):
        lake.run(f"write(rows_of([1]), {of_hudi.name!r}, event_time='id')")


def test_the_options_that_hudi_gets(of_hudi: LakeTable) -> None:
    first = of_hudi.begin().instant
    of_hudi.complete(first, Completion())
    at, now = first.timestamp, datetime.now(UTC)
    query, begin, end = (
        *("hoodie.datasource.query.type", "hoodie.datasource.read.begin.instanttime"),
        "hoodie.datasource.read.end.instanttime",
    )
    as_of = {
        "20260101": {query: "snapshot", "as.of.instant": "20260101"},
        1: {query: "snapshot", "as.of.instant": at},
        now: {query: "snapshot", "as.of.instant": at},
    }
    for given, expected in as_of.items():
        assert hudi_tables.read_options(of_hudi, given, None, read_optimized=False) == expected
    assert hudi_tables.read_options(of_hudi, None, None, read_optimized=True) == {query: "read_optimized"}
    increments = hudi_tables.read_options(of_hudi, None, (at, None), read_optimized=False)
    assert increments == {query: "incremental", begin: at}
    assert hudi_tables.read_options(of_hudi, None, ("1", 1), read_optimized=False)[end] == at
    expected = hudi_tables.write_options(of_hudi, "replace_partitions")
    assert expected["hoodie.datasource.write.operation"] == "insert_overwrite"
    assert (expected["hoodie.table.name"], expected["hoodie.datasource.write.partitionpath.field"]) == ("h", "dt")
