"""Partitions selected and dropped by expressions, as Hive's planner makes and its client sends them."""

from typing import Any

import pytest

from lake.protocol.hive import MetaException, NoSuchObjectException, Partition
from tests.hive_client.conftest import HiveClient
from tests.support.builders import partition, table
from tests.support.expressions import Planner
from tests.support.target import Target

DEFAULT = "__HIVE_DEFAULT_PARTITION__"
VALUES = [("2020-01-01", "1"), ("2020-01-01", "10"), ("2020-01-02", "2"), ("x_%", "3"), (DEFAULT, "4"), ("5", DEFAULT)]


@pytest.fixture(autouse=True)
def filled(client: HiveClient, db: str) -> None:
    client.createTable(table(db, "p", keys=("ds", "hr:int")))
    client.add_partitions([partition(db, "p", *values) for values in VALUES])


class Expressions(Planner):
    """Conditions on the keys `ds string, hr int`."""

    def __init__(self, client: HiveClient) -> None:
        super().__init__(client.jvm)
        self.ds = self.column("ds", "string")
        self.hr = self.column("hr", "int")

    def is_day(self, day: str) -> Any:
        return self.call("OPEqual", self.ds, self.constant(day))

    def is_hour(self, hour: int) -> Any:
        return self.call("OPEqual", self.hr, self.constant(hour, "int"))


@pytest.fixture
def plan(client: HiveClient) -> Expressions:
    return Expressions(client)


class TestList:
    @staticmethod
    def found(client: HiveClient, db: str, plan: Expressions, expression: Any) -> tuple[str, bool]:
        """The hours of what is found, and whether the client has to look again."""
        some = client.jvm.java.util.ArrayList()
        unknown = client.listPartitionsByExpr(db, "p", plan.serialise(expression), DEFAULT, -1, some)
        partitions: list[Partition] = client.to_python(some)
        return " ".join(each.values[1] for each in partitions), unknown

    def test_simple(self, client: HiveClient, db: str, plan: Expressions) -> None:
        def found(expression: Any) -> tuple[str, bool]:
            return self.found(client, db, plan, expression)

        assert found(plan.is_day("2020-01-01")) == ("1 10", False)
        assert found(plan.is_hour(2)) == ("2", False)
        assert found(plan.call("OPAnd", plan.is_day("2020-01-01"), plan.is_hour(10))) == ("10", False)
        assert found(plan.call("OPOr", plan.is_hour(10), plan.is_hour(2))) == ("10 2", False)
        one_of = plan.call("In", plan.hr, plan.constant(1, "int"), plan.constant(3, "int"))
        assert found(one_of) == ("1 3", False)
        range_ = plan.call(
            "Between", plan.constant(False, "boolean"), plan.hr, *(plan.constant(n, "int") for n in (2, 9))
        )
        assert sorted(found(range_)[0].split()) == ["2", "3", "4"]

    def test_missing_table(self, client: HiveClient, db: str, plan: Expressions) -> None:
        data = plan.serialise(plan.is_hour(1))
        with pytest.raises(NoSuchObjectException):
            client.listPartitionsByExpr(db, "no_such_table", data, DEFAULT, -1, client.jvm.java.util.ArrayList())


class TestBeyondFilters:
    """What no filter's text says. Hive's server computes it for every partition, if it has all its classes."""

    @pytest.fixture(autouse=True)
    def ours(self, target: Target) -> None:
        if target.name != "ours":
            pytest.skip("PySpark's jars lack classes with which Hive's server computes expressions")

    found = staticmethod(TestList.found)

    def test_null(self, client: HiveClient, db: str, plan: Expressions) -> None:
        assert self.found(client, db, plan, plan.call("OPNull", plan.ds)) == ("4", False)
        assert self.found(client, db, plan, plan.call("OPNull", plan.hr)) == (DEFAULT, False)
        assert self.found(client, db, plan, plan.call("OPNotNull", plan.hr)) == ("1 10 2 4 3", False)

    def test_not(self, client: HiveClient, db: str, plan: Expressions) -> None:
        assert self.found(client, db, plan, plan.call("OPNot", plan.is_hour(10))) == ("1 2 4 3", False)

    def test_text_as_number_and_as_day(self, client: HiveClient, db: str, plan: Expressions) -> None:
        number = plan.call("OPEqual", plan.ds, plan.constant(5, "int"))
        assert self.found(client, db, plan, number) == (DEFAULT, False)
        day = plan.call("OPGreaterThan", plan.call("ToDate", plan.ds), plan.constant("2020-01-01", "date"))
        assert self.found(client, db, plan, day) == ("2", False)

    def test_what_only_the_client_can_tell(self, client: HiveClient, db: str, plan: Expressions) -> None:
        function = plan.call("OPEqual", plan.call("Upper", plan.ds), plan.constant("X_%"))
        assert self.found(client, db, plan, function) == (" ".join(["1", "10", "2", DEFAULT, "4", "3"]), True)
        assert self.found(client, db, plan, plan.call("OPAnd", function, plan.is_hour(3))) == ("3", True)
        assert self.found(client, db, plan, plan.call("OPNot", function))[1] is True

    def test_drop_of_what_only_the_client_can_tell(self, client: HiveClient, db: str, plan: Expressions) -> None:
        function = plan.call("OPEqual", plan.call("Upper", plan.ds), plan.constant("X_%"))
        with pytest.raises(MetaException, match="Unexpected unknown partitions to drop: function Upper"):
            TestDrop.drop(client, db, plan, function)
        assert len(client.listPartitionNames(db, "p", -1)) == len(VALUES)


class TestDrop:
    @staticmethod
    def drop(client: HiveClient, db: str, plan: Expressions, *expressions: Any, **options: bool) -> list[Partition]:
        pairs = client.jvm.java.util.ArrayList()
        for expression in expressions:
            pair = client.jvm.org.apache.hadoop.hive.common.ObjectPair(0, plan.serialise(expression))
            pairs.add(pair)
        chosen = client.jvm.org.apache.hadoop.hive.metastore.PartitionDropOptions.instance()
        for name, value in {"deleteData": True, "returnResults": True, **options}.items():
            getattr(chosen, name)(value)
        dropped: list[Partition] = client.dropPartitions(db, "p", pairs, chosen)
        return dropped

    def test_several(self, client: HiveClient, db: str, plan: Expressions) -> None:
        dropped = self.drop(client, db, plan, plan.is_day("2020-01-01"), plan.is_hour(2))
        assert sorted(each.values[1] for each in dropped) == ["1", "10", "2"]
        assert len(client.listPartitionNames(db, "p", -1)) == 3

    def test_nothing_to_drop(self, client: HiveClient, db: str, plan: Expressions) -> None:
        with pytest.raises(NoSuchObjectException, match="Some partitions to drop are missing"):
            self.drop(client, db, plan, plan.is_hour(99))
        assert self.drop(client, db, plan, plan.is_hour(99), ifExists=True) == []

    def test_without_an_answer(self, client: HiveClient, db: str, plan: Expressions) -> None:
        assert self.drop(client, db, plan, plan.is_hour(2), returnResults=False) is None
        assert len(client.listPartitionNames(db, "p", -1)) == len(VALUES) - 1
