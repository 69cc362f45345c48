"""Partitions with some of their fields, in groups that share a descriptor. Expectations are from Hive 4's source."""

from pathlib import Path
from typing import Any

import pytest

from lake.protocol.connection.thrift_client import ThriftClient
from lake.protocol.hive import (
    GetPartitionsFilterSpec,
    GetPartitionsRequest,
    GetProjectionsSpec,
    MetaException,
    Order,
    PartitionFilterMode,
    PartitionSpec,
    SerDeInfo,
    SkewedInfo,
    StorageDescriptor,
)
from tests.support.builders import SERDE, columns, partition, storage, table
from tests.support.expect import UNDECLARED, refused

pytestmark = pytest.mark.hive4

DAYS = ("2026-01-01", "2026-01-02", "2026-01-03")
BY_NAMES, BY_VALUES, BY_EXPR = PartitionFilterMode.BY_NAMES, PartitionFilterMode.BY_VALUES, PartitionFilterMode.BY_EXPR


@pytest.fixture
def filled(client: ThriftClient, db: str) -> str:
    """A table `t` by day and hour with six partitions."""
    client.create_table(table(db, keys=("ds", "hr:int")))
    client.add_partitions(
        [
            partition(db, "t", day, hour, parameters={"a1": day, "a2": hour, "b": "x"}, lastAccessTime=5)
            for day in DAYS
            for hour in ("1", "2")
        ]
    )
    return db


def read(
    client: ThriftClient,
    db: str,
    *fields: str,
    mode: PartitionFilterMode | None = None,
    filters: list[str] | None = None,
    include: str | None = None,
    exclude: str | None = None,
) -> list[PartitionSpec]:
    request = GetPartitionsRequest(
        dbName=db,
        tblName="t",
        projectionSpec=GetProjectionsSpec(list(fields), include, exclude),
        filterSpec=GetPartitionsFilterSpec(filterMode=mode, filters=filters),
    )
    return client.get_partitions_with_specs(request).partitionSpec


def values(specs: list[PartitionSpec]) -> list[list[str]]:
    (spec,) = specs
    return [member.values for member in spec.sharedSDPartitionSpec.partitions]


class TestGroups:
    def test_partitions_below_the_table_share_a_descriptor(self, client: ThriftClient, filled: str, home: Path) -> None:
        (spec,) = read(client, filled)
        assert (spec.dbName, spec.tableName, spec.catName) == (filled, "t", "hive")
        assert spec.rootPath == spec.sharedSDPartitionSpec.sd.location == f"file:{home}/t"
        assert spec.sharedSDPartitionSpec.sd.cols == columns("id:bigint", "name")
        assert spec.partitionList is None
        first = spec.sharedSDPartitionSpec.partitions[0]
        assert (first.values, first.relativePath) == (["2026-01-01", "1"], "/ds=2026-01-01/hr=1")
        assert (first.lastAccessTime, first.parameters["a1"]) == (5, "2026-01-01")
        assert first.createTime > 0

    def test_partitions_elsewhere_are_returned_whole(self, client: ThriftClient, filled: str, tmp_path: Path) -> None:
        client.add_partition(partition(filled, "t", "2026-02-01", "1", location=str(tmp_path / "far")))
        shared, listed = read(client, filled)
        assert len(shared.sharedSDPartitionSpec.partitions) == 6
        (far,) = listed.partitionList.partitions
        assert far == client.get_partition(filled, "t", ["2026-02-01", "1"])

    def test_other_columns_other_group(self, client: ThriftClient, filled: str) -> None:
        client.add_partition(partition(filled, "t", "2026-02-01", "1", sd=storage("other:int")))
        specs = sorted(read(client, filled), key=lambda spec: -len(spec.sharedSDPartitionSpec.partitions))
        assert [len(spec.sharedSDPartitionSpec.partitions) for spec in specs] == [6, 1]
        assert specs[1].sharedSDPartitionSpec.sd.cols == columns("other:int")

    def test_skewed_or_differently_bucketed_ones_are_returned_whole(self, client: ThriftClient, filled: str) -> None:
        skewed = storage(skewedInfo=SkewedInfo(["id"], [["1"]], {}))
        client.add_partition(partition(filled, "t", "2026-02-01", "1", sd=skewed))
        client.add_partition(partition(filled, "t", "2026-02-01", "2", sd=storage(numBuckets=8)))
        shared, listed = read(client, filled)
        assert len(shared.sharedSDPartitionSpec.partitions) == 6
        assert [each.values for each in listed.partitionList.partitions] == [["2026-02-01", "1"], ["2026-02-01", "2"]]

    def test_no_partitions(self, client: ThriftClient, db: str) -> None:
        client.create_table(table(db, keys=("ds",)))
        assert read(client, db) == []

    def test_missing_table(self, client: ThriftClient, db: str) -> None:
        with refused(MetaException, UNDECLARED):
            read(client, db)


class TestProjections:
    def test_values_alone(self, client: ThriftClient, filled: str) -> None:
        (spec,) = read(client, filled, "values")
        assert spec.rootPath is None
        assert spec.sharedSDPartitionSpec.sd == StorageDescriptor(compressed=False, numBuckets=0)
        first = spec.sharedSDPartitionSpec.partitions[0]
        assert (first.values, first.createTime, first.lastAccessTime) == (["2026-01-01", "1"], 0, 0)
        assert (first.parameters, first.relativePath) == (None, None)

    def test_parts_of_the_descriptor(self, client: ThriftClient, db: str, home: Path) -> None:
        client.create_table(table(db, keys=("ds",)))
        sd = storage("a:int#c", sortCols=[Order("a", 1)], inputFormat="in", outputFormat="out", numBuckets=3)
        client.add_partition(partition(db, "t", "1", sd=sd))
        (spec,) = read(client, db, "sd.location", "sd.cols.name", "sd.sortCols.col", "sd.serdeInfo.serializationLib")
        found = spec.sharedSDPartitionSpec.sd
        assert found.cols[0].name == "a"
        assert (found.cols[0].type, found.cols[0].comment) == (None, None)
        assert (found.sortCols, found.serdeInfo) == ([Order("a", 0)], SerDeInfo(serializationLib=SERDE))
        assert (found.inputFormat, found.numBuckets, found.compressed) == (None, 0, False)
        assert spec.rootPath == f"file:{home}/t"
        assert spec.sharedSDPartitionSpec.partitions[0].relativePath == "/ds=1"

    def test_a_beginning_stands_for_all_that_begins_so(self, client: ThriftClient, filled: str) -> None:
        (spec,) = read(client, filled, "sd")
        assert spec.sharedSDPartitionSpec.sd.cols == columns("id:bigint", "name")
        assert spec.sharedSDPartitionSpec.partitions[0].values is None
        assert spec.sharedSDPartitionSpec.partitions[0].relativePath == "/ds=2026-01-01/hr=1"

    def test_names_are_returned_once(self, client: ThriftClient, filled: str) -> None:
        (spec,) = read(client, filled, "dbName", "tableName", "catName", "sd.serdeInfo.description")
        assert (spec.dbName, spec.tableName) == (filled, "t")
        assert spec.sharedSDPartitionSpec.sd == StorageDescriptor(compressed=False, numBuckets=0)

    def test_unknown_field(self, client: ThriftClient, filled: str) -> None:
        with refused(MetaException, message="Invalid partition fields in the projection spec[color]"):
            read(client, filled, "values", "color")
        with refused(MetaException):
            read(client, filled, "")

    @pytest.mark.parametrize(
        ("include", "exclude", "found"),
        [
            ("a%", None, {"a1", "a2"}),
            ("a_", "%2", {"a1"}),
            (None, "a%", {"b", "transient_lastDdlTime"}),
            ("", "", {"a1", "a2", "b", "transient_lastDdlTime"}),
            ("A%", None, set()),
        ],
    )
    def test_parameters_by_pattern(
        self, client: ThriftClient, filled: str, include: str | None, exclude: str | None, found: set[str]
    ) -> None:
        for fields in (["parameters"], []):
            (spec,) = read(client, filled, *fields, include=include, exclude=exclude)
            parameters = spec.sharedSDPartitionSpec.partitions[0].parameters or {}
            assert parameters.keys() - {"numFiles", "totalSize"} == found


class TestFilters:
    @pytest.mark.parametrize(
        ("mode", "filters", "found"),
        [
            (BY_NAMES, ["ds=2026-01-02/hr=2", "ds=2026-01-01/hr=1", "ds=2027-01-01/hr=1"], [(0, "1"), (1, "2")]),
            (BY_VALUES, ["2026-01-02"], [(1, "1"), (1, "2")]),
            (BY_VALUES, ["", "2"], [(0, "2"), (1, "2"), (2, "2")]),
            (BY_EXPR, ["ds >= '2026-01-02'", "hr = 1"], [(1, "1"), (2, "1")]),
            (BY_EXPR, ["ds = '2026-01-01' or hr = 1", "hr = 2"], [(0, "2")]),
            (None, ["nonsense"], [(day, hour) for day in range(3) for hour in ("1", "2")]),
        ],
    )
    def test_by(
        self,
        client: ThriftClient,
        filled: str,
        mode: PartitionFilterMode | None,
        filters: list[str],
        found: list[tuple[int, str]],
    ) -> None:
        answered = values(read(client, filled, "values", mode=mode, filters=filters))
        assert answered == [[DAYS[day], hour] for day, hour in found]

    @pytest.mark.parametrize(
        ("mode", "filters", "message"),
        [
            (BY_NAMES, [], ""),
            (BY_EXPR, ["nonsense"], "Error parsing partition filter"),
            (BY_VALUES, ["1", "2", "3"], "Incorrect number of partition values"),
        ],
    )
    def test_is_checked(
        self, client: ThriftClient, filled: str, mode: PartitionFilterMode, filters: list[str], message: str
    ) -> None:
        with refused(MetaException, message=message):
            read(client, filled, "values", mode=mode, filters=filters)


@pytest.mark.hive4(differs="knows no uncommitted partitions")
def test_the_readers_scope_counts(client: ThriftClient, filled: str) -> None:
    hidden: dict[str, Any] = {"parameters": {"commit": "false"}}
    client.add_partition(partition(filled, "t", "2026-02-01", "1", **hidden))
    assert len(values(read(client, filled, "values"))) == 6
    request = GetPartitionsRequest(dbName=filled, tblName="t@includeuncommit")
    (spec,) = client.get_partitions_with_specs(request).partitionSpec
    assert (spec.tableName, len(spec.sharedSDPartitionSpec.partitions)) == ("t@includeuncommit", 7)
