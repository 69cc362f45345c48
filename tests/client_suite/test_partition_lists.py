"""Lists of partitions: all, by partial values, by names, as specs, values, numbers."""

from pathlib import Path

import pytest

from lake.protocol.connection.thrift_client import ThriftClient
from lake.protocol.hive import FieldSchema, MetaException, NoSuchObjectException, PartitionValuesRequest
from tests.support.builders import columns, partition, table
from tests.support.expect import UNDECLARED, common, refused

IN_ORDER = [
    ("2020-01-01", "10"),
    ("2020-01-01", "2"),
    ("2020-01-02", "1"),
    ("2020-01-02", "10"),
    ("Z", "a/b"),
    ("__HIVE_DEFAULT_PARTITION__", "1"),
]
NAMES = [
    "ds=2020-01-01/hr=10",
    "ds=2020-01-01/hr=2",
    "ds=2020-01-02/hr=1",
    "ds=2020-01-02/hr=10",
    "ds=Z/hr=a%2Fb",
    "ds=__HIVE_DEFAULT_PARTITION__/hr=1",
]


@pytest.fixture
def filled(client: ThriftClient, db: str) -> str:
    """The database, with six partitions in its table `t`."""
    client.create_table(table(db, keys=("ds", "hr")))
    client.add_partitions([partition(db, "t", *values) for values in reversed(IN_ORDER)])
    return db


def values_of(partitions: list) -> list[tuple[str, ...]]:
    return [tuple(p.values) for p in partitions]


class TestAll:
    def test_in_order_of_their_names(self, client: ThriftClient, filled: str) -> None:
        assert values_of(client.get_partitions(filled.upper(), "T", -1)) == IN_ORDER
        assert client.get_partition_names(filled.upper(), "T", -1) == NAMES
        assert values_of(client.get_partitions_with_auth(filled, "t", -1, "alice", ["staff"])) == IN_ORDER

    @pytest.mark.parametrize("limit", [1, 3])
    def test_the_first_few(self, client: ThriftClient, filled: str, limit: int) -> None:
        assert values_of(client.get_partitions(filled, "t", limit)) == IN_ORDER[:limit]
        assert client.get_partition_names(filled, "t", limit) == NAMES[:limit]
        assert values_of(client.get_partitions_with_auth(filled, "t", limit, "alice", [])) == IN_ORDER[:limit]

    @pytest.mark.parametrize("limit", [-2, 100, 32767])
    def test_a_negative_or_large_limit_means_all(self, client: ThriftClient, filled: str, limit: int) -> None:
        assert values_of(client.get_partitions(filled, "t", limit)) == IN_ORDER
        assert client.get_partition_names(filled, "t", limit) == NAMES

    def test_a_limit_of_zero(self, client: ThriftClient, filled: str) -> None:
        assert client.get_partitions(filled, "t", 0) == []

    def test_each_as_if_read_alone(self, client: ThriftClient, filled: str) -> None:
        for listed in client.get_partitions(filled, "t", -1):
            assert common(listed) == common(client.get_partition(filled, "t", listed.values))

    def test_a_table_without_keys(self, client: ThriftClient, db: str) -> None:
        client.create_table(table(db))
        assert client.get_partitions(db, "t", -1) == []
        assert client.get_partition_names(db, "t", -1) == []

    def test_missing_table(self, client: ThriftClient, db: str) -> None:
        for name in (db, "no_such"):
            with refused(NoSuchObjectException, message=f"{name}.no_such table not found"):
                client.get_partitions(name, "no_such", -1)
            with refused(NoSuchObjectException, UNDECLARED):
                client.get_partition_names(name, "no_such", -1)

    def test_many(self, client: ThriftClient, db: str) -> None:
        client.create_table(table(db, keys=("k",)))
        client.add_partitions([partition(db, "t", f"{number:04}") for number in range(200)])
        assert [p.values[0] for p in client.get_partitions(db, "t", -1)] == [f"{n:04}" for n in range(200)]
        assert len(client.get_partition_names(db, "t", 199)) == 199


class TestPartialValues:
    @pytest.mark.parametrize(
        ("values", "found"),
        [
            (["2020-01-01"], IN_ORDER[:2]),
            (["2020-01-01", ""], IN_ORDER[:2]),
            (["", "10"], [IN_ORDER[0], IN_ORDER[3]]),
            (["", ""], IN_ORDER),
            ([""], IN_ORDER),
            (["2020-01-01", "10"], IN_ORDER[:1]),
            (["Z", "a/b"], [IN_ORDER[4]]),
            (["__HIVE_DEFAULT_PARTITION__"], [IN_ORDER[5]]),
            (["Z", "a%2Fb"], []),
            (["z"], []),
            (["nosuch"], []),
            (["2020%"], []),
            ([".*", "10"], []),
            (["", "1_"], []),
        ],
    )
    def test_finds(self, client: ThriftClient, filled: str, values: list[str], found: list[tuple[str, str]]) -> None:
        names = [NAMES[IN_ORDER.index(each)] for each in found]
        assert values_of(client.get_partitions_ps(filled, "t", values, -1)) == found
        assert values_of(client.get_partitions_ps_with_auth(filled, "t", values, -1, "alice", [])) == found
        assert sorted(client.get_partition_names_ps(filled, "t", values, -1)) == names

    # Limits are not asked for here: Hive 2.3 forgets them when its persistence layer reuses a compiled query.

    def test_no_values(self, client: ThriftClient, filled: str) -> None:
        with refused(MetaException):
            client.get_partitions_ps(filled, "t", [], -1)
        with refused(MetaException):
            client.get_partition_names_ps(filled, "t", [], -1)

    def test_more_values_than_keys(self, client: ThriftClient, filled: str) -> None:
        message = "Incorrect number of partition values. numPartKeys=2, part_val=3"
        with refused(MetaException, message=message):
            client.get_partitions_ps(filled, "t", ["a", "b", "c"], -1)
        with refused(MetaException, message=message):
            client.get_partition_names_ps(filled, "t", ["a", "b", "c"], -1)

    def test_missing_table(self, client: ThriftClient, db: str) -> None:
        with refused(NoSuchObjectException, message=f"{db}.no_such table not found"):
            client.get_partitions_ps(db, "no_such", [""], -1)
        with refused(NoSuchObjectException, message=f"{db}.no_such table not found"):
            client.get_partition_names_ps(db, "no_such", [""], -1)


class TestByNames:
    def test_those_that_exist_each_once_in_order(self, client: ThriftClient, filled: str) -> None:
        names = [NAMES[3], NAMES[1], "ds=no/hr=1", "garbage", NAMES[1]]
        assert values_of(client.get_partitions_by_names(filled, "t", names)) == [IN_ORDER[1], IN_ORDER[3]]

    def test_names_are_escaped(self, client: ThriftClient, filled: str) -> None:
        assert values_of(client.get_partitions_by_names(filled, "t", NAMES[4:])) == IN_ORDER[4:]

    @pytest.mark.parametrize("name", ["DS=2020-01-02/HR=10", "hr=10/ds=2020-01-02", "ds=2020-01-02"])
    def test_names_are_exact(self, client: ThriftClient, filled: str, name: str) -> None:
        assert client.get_partitions_by_names(filled, "t", [name]) == []

    def test_no_names(self, client: ThriftClient, filled: str) -> None:
        assert client.get_partitions_by_names(filled, "t", []) == []

    def test_missing_table(self, client: ThriftClient, db: str) -> None:
        with refused(NoSuchObjectException, message=f"{db}.no_such table not found"):
            client.get_partitions_by_names(db, "no_such", ["k=1"])


class TestSpecs:
    def values(self, specs: list) -> list[tuple[str, ...]]:
        """The values of all partitions of the specs, whichever of their two forms they have."""
        found = []
        for spec in specs:
            found += values_of(spec.partitionList.partitions if spec.partitionList else [])
            found += values_of(spec.sharedSDPartitionSpec.partitions if spec.sharedSDPartitionSpec else [])
        return found

    def test_all(self, client: ThriftClient, filled: str, home: Path) -> None:
        specs = client.get_partitions_pspec(filled, "t", -1)
        assert self.values(specs) == IN_ORDER
        assert {(s.dbName, s.tableName, s.rootPath) for s in specs} == {(filled, "t", f"file:{home}/t")}

    def test_the_first_few(self, client: ThriftClient, filled: str) -> None:
        assert self.values(client.get_partitions_pspec(filled, "t", 2)) == IN_ORDER[:2]

    def test_by_filter(self, client: ThriftClient, filled: str) -> None:
        assert self.values(client.get_part_specs_by_filter(filled, "t", 'ds = "Z"', -1)) == [IN_ORDER[4]]
        assert self.values(client.get_part_specs_by_filter(filled, "t", 'ds = "no"', -1)) == []

    def test_grouped_where_the_table_says_so(self, client: ThriftClient, db: str, home: Path, tmp_path: Path) -> None:
        grouped = {"hive.hcatalog.partition.spec.grouping.enabled": "TRUE"}
        client.create_table(table(db, keys=("k",), parameters=grouped))
        elsewhere = partition(db, "t", "3", location=str(tmp_path / "elsewhere"))
        client.add_partitions([partition(db, "t", "1"), partition(db, "t", "2"), elsewhere])
        shared, whole = client.get_partitions_pspec(db, "t", -1)
        assert shared.sharedSDPartitionSpec.sd.location == shared.rootPath == f"file:{home}/t"
        assert [p.relativePath for p in shared.sharedSDPartitionSpec.partitions] == ["/k=1", "/k=2"]
        assert values_of(whole.partitionList.partitions) == [("3",)]
        [shared] = client.get_part_specs_by_filter(db, "t", 'k = "2"', -1)
        assert values_of(shared.sharedSDPartitionSpec.partitions) == [("2",)]

    def test_missing_table(self, client: ThriftClient, db: str) -> None:
        with refused(NoSuchObjectException):
            client.get_partitions_pspec(db, "no_such", -1)
        with refused(NoSuchObjectException):
            client.get_part_specs_by_filter(db, "no_such", 'ds = "Z"', -1)


class TestValues:
    def rows(self, client: ThriftClient, db: str, keys: list[FieldSchema], **options: object) -> list[tuple[str, ...]]:
        request = PartitionValuesRequest(dbName=db, tblName="t", partitionKeys=keys, **options)
        return [tuple(row.row) for row in client.get_partition_values(request).partitionValues]

    def test_distinct_and_in_order(self, client: ThriftClient, filled: str) -> None:
        assert self.rows(client, filled, columns("ds")) == [
            ("2020-01-01",),
            ("2020-01-02",),
            ("Z",),
            ("__HIVE_DEFAULT_PARTITION__",),
        ]
        assert self.rows(client, filled, columns("hr")) == [("1",), ("10",), ("2",), ("a%2Fb",)]

    def test_of_several_keys_in_the_order_asked_for(self, client: ThriftClient, filled: str) -> None:
        assert self.rows(client, filled, columns("hr", "ds"))[:3] == [
            ("1", "2020-01-02"),
            ("1", "__HIVE_DEFAULT_PARTITION__"),
            ("10", "2020-01-01"),
        ]

    def test_with_duplicates(self, client: ThriftClient, filled: str) -> None:
        rows = self.rows(client, filled, columns("ds"), applyDistinct=False)
        assert sorted(rows) == sorted((values[0],) for values in IN_ORDER)

    def test_a_limit(self, client: ThriftClient, filled: str) -> None:
        assert self.rows(client, filled, columns("ds"), maxParts=2) == [("2020-01-01",), ("2020-01-02",)]
        assert len(self.rows(client, filled, columns("ds"), maxParts=-1)) == 4

    def test_a_filter(self, client: ThriftClient, filled: str) -> None:
        rows = self.rows(client, filled, columns("ds", "hr"), filter='ds = "2020-01-01"')
        assert rows == [("2020-01-01", "10"), ("2020-01-01", "2")]

    def test_unknown_keys_and_tables(self, client: ThriftClient, filled: str) -> None:
        with refused(MetaException, UNDECLARED):
            self.rows(client, filled, columns("nosuch"))
        with refused(MetaException, UNDECLARED):
            self.rows(client, "no_such", columns("ds"))


class TestNumbers:
    @pytest.mark.parametrize(("text", "number"), [("", 6), (None, 6), ('ds = "2020-01-01"', 2), ('ds = "no"', 0)])
    def test_counts(self, client: ThriftClient, filled: str, text: str | None, number: int) -> None:
        assert client.get_num_partitions_by_filter(filled, "t", text) == number

    def test_missing_table(self, client: ThriftClient, db: str) -> None:
        with refused(NoSuchObjectException):
            client.get_num_partitions_by_filter(db, "no_such", "")
