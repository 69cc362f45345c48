"""Partitions by expressions that Hive's planner serialised: how Hive prunes and drops."""

import pytest

from lake.protocol.connection.thrift_client import ThriftClient
from lake.protocol.hive import (
    DropPartitionsExpr,
    DropPartitionsRequest,
    MetaException,
    NoSuchObjectException,
    Partition,
    PartitionsByExprRequest,
    RequestPartsSpec,
)
from tests.support.builders import partition, table
from tests.support.expect import UNDECLARED, refused
from tests.support.expressions import serialised

# Hive 4 writes expressions in another form; to read one of Hive 2.3 ends its process.
pytestmark = pytest.mark.hive2

DEFAULT = "__HIVE_DEFAULT_PARTITION__"
STRINGS = [
    ("2020-01-01", "10"),
    ("2020-01-01", "2"),
    ("2020-01-02", "1"),
    ("2020-01-02", "10"),
    ("Z", "a/b"),
    (DEFAULT, "1"),
]
TYPED = [("1", "2020-01-01"), ("2", "2020-01-02"), ("10", "2020-02-01"), ("7", DEFAULT), (DEFAULT, "2020-01-01")]


@pytest.fixture(autouse=True)
def filled(client: ThriftClient, db: str) -> None:
    """Table `s` with keys of type string, table `i` with an int and a date."""
    client.create_table(table(db, "s", keys=("ds", "hr")))
    client.add_partitions([partition(db, "s", *values) for values in STRINGS])
    client.create_table(table(db, "i", keys=("n:int", "d:date")))
    client.add_partitions([partition(db, "i", *values) for values in TYPED])


def request(db: str, name: str, text: str, **options: object) -> PartitionsByExprRequest:
    return PartitionsByExprRequest(dbName=db, tblName=name, expr=serialised(text), **options)


class TestGet:
    def found(self, client: ThriftClient, db: str, name: str, text: str, **options: object) -> list[str]:
        partitions = client.get_partitions_by_expr(request(db, name, text, **options)).partitions
        return [" ".join(p.values) for p in partitions]

    @pytest.mark.parametrize(
        ("text", "values"),
        [
            ("ds = '2020-01-01'", ["2020-01-01 10", "2020-01-01 2"]),
            ("'2020-01-01' = ds", ["2020-01-01 10", "2020-01-01 2"]),
            ("ds = 'nosuch'", []),
            ("ds <= '2020-01-01'", ["2020-01-01 10", "2020-01-01 2"]),
            ("ds = '2020-01-02' and hr = '10'", ["2020-01-02 10"]),
            ("ds in ('2020-01-01', 'Z')", ["2020-01-01 10", "2020-01-01 2", "Z a/b"]),
            (
                "ds between '2020-01-01' and '2020-01-02'",
                ["2020-01-01 10", "2020-01-01 2", "2020-01-02 1", "2020-01-02 10"],
            ),
        ],
    )
    def test_of_strings(self, client: ThriftClient, db: str, text: str, values: list[str]) -> None:
        assert self.found(client, db, "s", text) == values

    @pytest.mark.parametrize(
        ("text", "values"),
        [
            ("ds <> '2020-01-01'", ["2020-01-02 1", "2020-01-02 10", "Z a/b"]),
            ("ds > '2020-01-01'", ["2020-01-02 1", "2020-01-02 10", "Z a/b"]),
            (
                "ds is not null",
                ["2020-01-01 10", "2020-01-01 2", "2020-01-02 1", "2020-01-02 10", "Z a/b"],
            ),
        ],
    )
    def test_of_the_default_partition_nothing_is_known(
        self, client: ThriftClient, db: str, text: str, values: list[str]
    ) -> None:
        """Hive's planner checks again what comes back: the default partition may or may not be in it."""
        found = self.found(client, db, "s", text)
        assert [each for each in found if not each.startswith(DEFAULT)] == values

    @pytest.mark.parametrize(
        ("text", "values"),
        [
            ("n = 7", [f"7 {DEFAULT}"]),
            ("n > 2", ["10 2020-02-01", f"7 {DEFAULT}"]),
            ("n in (1, 10)", ["1 2020-01-01", "10 2020-02-01"]),
            ("d = date '2020-01-01'", ["1 2020-01-01", f"{DEFAULT} 2020-01-01"]),
            ("d >= date '2020-01-02'", ["10 2020-02-01", "2 2020-01-02"]),
        ],
    )
    def test_of_numbers_and_dates(self, client: ThriftClient, db: str, text: str, values: list[str]) -> None:
        assert self.found(client, db, "i", text, defaultPartitionName=DEFAULT) == values

    def test_says_whether_it_is_sure(self, client: ThriftClient, db: str) -> None:
        assert client.get_partitions_by_expr(request(db, "s", "ds = '2020-01-01'")).hasUnknownPartitions is False

    def test_missing_table(self, client: ThriftClient, db: str) -> None:
        with refused(NoSuchObjectException):
            client.get_partitions_by_expr(request(db, "no_such", "n = 7"))

    @pytest.mark.parametrize("expression", [b"", b"no expression", b"\xff" * 100])
    def test_bytes_that_are_none(self, client: ThriftClient, db: str, expression: bytes) -> None:
        broken = PartitionsByExprRequest(dbName=db, tblName="s", expr=expression)
        with refused(MetaException, UNDECLARED):
            client.get_partitions_by_expr(broken)


class TestDrop:
    def drop(self, client: ThriftClient, db: str, *texts: str, **options: bool) -> list[Partition]:
        expressions = [DropPartitionsExpr(expr=serialised(text)) for text in texts]
        spec = RequestPartsSpec(exprs=expressions)
        return client.drop_partitions_req(
            DropPartitionsRequest(dbName=db, tblName="s", parts=spec, deleteData=True, **options)
        ).partitions

    def test_those_that_match(self, client: ThriftClient, db: str) -> None:
        dropped = self.drop(client, db, "ds = '2020-01-01'")
        assert sorted(p.values for p in dropped) == [["2020-01-01", "10"], ["2020-01-01", "2"]]
        left = [tuple(p.values) for p in client.get_partitions(db, "s", -1)]
        assert left == STRINGS[2:]

    def test_several_expressions(self, client: ThriftClient, db: str) -> None:
        self.drop(client, db, "ds = '2020-01-01'", "ds = '2020-01-02' and hr = '10'")
        left = [tuple(p.values) for p in client.get_partitions(db, "s", -1)]
        assert left == [STRINGS[2], *STRINGS[4:]]

    def test_something_must_match_by_default(self, client: ThriftClient, db: str) -> None:
        with refused(NoSuchObjectException, message="Some partitions to drop are missing"):
            self.drop(client, db, "ds = 'nosuch'")
        assert self.drop(client, db, "ds = 'nosuch'", ifExists=True) == []
        assert len(client.get_partition_names(db, "s", -1)) == len(STRINGS)
