"""The grammar and the meaning of partition filters."""

from collections.abc import Iterator

import pytest

from lake.protocol.connection.thrift_client import ThriftClient
from lake.protocol.hive import MetaException, NoSuchObjectException
from tests.support.builders import database, partition, table
from tests.support.expect import refused
from tests.support.target import Target

DEFAULT = "__HIVE_DEFAULT_PARTITION__"


def found(client: ThriftClient, db: str, name: str, text: str) -> list[str]:
    """The values of the partitions that a filter finds, joined by a blank."""
    return [" ".join(p.values) for p in client.get_partitions_by_filter(db, name, text, -1)]


@pytest.fixture(scope="module")
def filtered(target: Target) -> Iterator[str]:
    """A database with partitioned tables, shared by all cases: filters change nothing."""
    db = "filtered"
    with target.connect() as client:
        client.create_database(database(db))
        client.create_table(table(db, "s", keys=("ds", "region")))
        rows = [
            ("2020-01-01", "us"),
            ("2020-01-02", "us"),
            ("2020-01-02", "eu"),
            ("2020-02-01", "asia_x"),
            ("it's", 'a"b'),
            (DEFAULT, "us"),
            ("a/b", "x y"),
            ("5", "back\\slash"),
        ]
        client.add_partitions([partition(db, "s", *row) for row in rows])
        client.create_table(table(db, "i", keys=("n:int", "d:date")))
        rows = [
            ("1", "2020-01-01"),
            ("2", "2020-01-02"),
            ("10", "2020-02-01"),
            ("-3", "2019-12-31"),
            (DEFAULT, "2020-01-01"),
            ("7", DEFAULT),
            ("007", "2020-03-01"),
        ]
        client.add_partitions([partition(db, "i", *row) for row in rows])
        client.create_table(table(db, "m", keys=("t:tinyint", "s:smallint", "b:bigint")))
        client.add_partitions([partition(db, "m", "1", "2", "3"), partition(db, "m", "10", "20", "30")])
        client.create_table(table(db, "o", keys=("f:double", "bo:boolean")))
        client.add_partition(partition(db, "o", "1.5", "true"))
        yield db
        client.drop_database(db, True, True)


class TestStrings:
    @pytest.mark.parametrize(
        ("text", "values"),
        [
            ('ds = "2020-01-01"', ["2020-01-01 us"]),
            ("ds = '2020-01-01'", ["2020-01-01 us"]),
            ('ds="2020-01-01"', ["2020-01-01 us"]),
            ('"2020-01-01" = ds', ["2020-01-01 us"]),
            ('DS = "2020-01-01"', ["2020-01-01 us"]),
            ("ds = 2020-01-01", ["2020-01-01 us"]),
            ('region != "us"', ["2020-01-02 eu", "2020-02-01 asia_x", "5 back\\slash", "a/b x y", "it's a\"b"]),
            ('region <> "us"', ["2020-01-02 eu", "2020-02-01 asia_x", "5 back\\slash", "a/b x y", "it's a\"b"]),
            ('ds < "2020-01-02"', ["2020-01-01 us"]),
            ('ds <= "2020-01-02"', ["2020-01-01 us", "2020-01-02 eu", "2020-01-02 us"]),
            ('ds > "5"', [f"{DEFAULT} us", "a/b x y", "it's a\"b"]),
            ('ds >= "a/b"', ["a/b x y", "it's a\"b"]),
            ('"2020-02-01" > ds', ["2020-01-01 us", "2020-01-02 eu", "2020-01-02 us"]),
            (f'ds = "{DEFAULT}"', [f"{DEFAULT} us"]),
            ('ds = ""', []),
            ('ds = "it\'s"', ["it's a\"b"]),
            ("region = 'a\"b'", ["it's a\"b"]),
            ('region = "back\\slash"', ["5 back\\slash"]),
            ('ds = "a/b"', ["a/b x y"]),
            ('ds = "a%2Fb"', []),
            ('region = "x y"', ["a/b x y"]),
            ('region = "US"', []),
            ('ds = "ü"', []),
        ],
    )
    def test_compare_as_text(self, client: ThriftClient, filtered: str, text: str, values: list[str]) -> None:
        assert found(client, filtered, "s", text) == values

    @pytest.mark.parametrize(
        ("text", "values"),
        [
            ('ds like "2020-01-.*"', ["2020-01-01 us", "2020-01-02 eu", "2020-01-02 us"]),
            ('ds LIKE ".*-01-01"', ["2020-01-01 us"]),
            ('region like "us.*"', ["2020-01-01 us", "2020-01-02 us", f"{DEFAULT} us"]),
            ('region like ".*sia.*"', ["2020-02-01 asia_x"]),
            ('region like "u"', []),
        ],
    )
    def test_like_covers_the_whole_value_and_knows_a_wildcard(
        self, client: ThriftClient, filtered: str, text: str, values: list[str]
    ) -> None:
        assert found(client, filtered, "s", text) == values

    @pytest.mark.parametrize(
        ("text", "values"),
        [
            ('ds between "2020-01-02" and "2020-02-01"', ["2020-01-02 eu", "2020-01-02 us", "2020-02-01 asia_x"]),
            ('ds not between "2020-01-02" and "it\'s"', ["2020-01-01 us"]),
            ('(ds) in ("2020-01-01", "2020-02-01")', ["2020-01-01 us", "2020-02-01 asia_x"]),
            ('(region) not in ("us", "eu")', ["2020-02-01 asia_x", "5 back\\slash", "a/b x y", "it's a\"b"]),
            (
                '(struct(ds,region)) IN (const struct("2020-01-01","us"),const struct("2020-01-02","eu"))',
                ["2020-01-01 us", "2020-01-02 eu"],
            ),
        ],
    )
    def test_ranges_and_sets(self, client: ThriftClient, filtered: str, text: str, values: list[str]) -> None:
        assert found(client, filtered, "s", text) == values

    @pytest.mark.parametrize("text", ["ds = 5", "5 = ds", "ds > 4", "region = 10", "ds = -5"])
    def test_an_integer_is_no_text(self, client: ThriftClient, filtered: str, text: str) -> None:
        with refused(MetaException, message="Filtering is supported only on partition keys of type string"):
            found(client, filtered, "s", text)


class TestCombinations:
    @pytest.mark.parametrize(
        ("text", "values"),
        [
            ('ds = "2020-01-02" and region = "us"', ["2020-01-02 us"]),
            ('ds = "2020-01-01" or region = "eu"', ["2020-01-01 us", "2020-01-02 eu"]),
            ('ds = "2020-01-01" OR ds = "2020-01-02" AND region = "eu"', ["2020-01-01 us", "2020-01-02 eu"]),
            ('(ds = "2020-01-01" Or ds = "2020-01-02") aNd region = "eu"', ["2020-01-02 eu"]),
            ('((ds = "2020-01-01"))', ["2020-01-01 us"]),
            ('ds = "2020-01-01" and region = "eu"', []),
            ('ds like "2020.*" and region = "eu"', ["2020-01-02 eu"]),
        ],
    )
    def test_and_binds_tighter_than_or(self, client: ThriftClient, filtered: str, text: str, values: list[str]) -> None:
        assert found(client, filtered, "s", text) == values


class TestIntegers:
    @pytest.mark.parametrize(
        ("text", "values"),
        [
            ("n = 1", ["1"]),
            ("1 = n", ["1"]),
            ("n = 7", ["007", "7"]),
            ("n = 007", ["007", "7"]),
            ("n = -3", ["-3"]),
            ("n < 0", ["-3"]),
            ("n > 2", ["007", "10", "7"]),
            ("2 < n", ["007", "10", "7"]),
            ("n != 1", ["-3", "007", "10", "2", "7"]),
            ("n >= 2 and n <= 10", ["007", "10", "2", "7"]),
            ("n between 1 and 3", ["1", "2"]),
            ("n not between 1 and 7", ["-3", "10"]),
            ("(n) in (1,2,99)", ["1", "2"]),
            ("(n) not in (1,2)", ["-3", "007", "10", "7"]),
            ("n = 99999999999", []),
        ],
    )
    def test_compare_as_numbers_and_never_match_the_default_partition(
        self, client: ThriftClient, filtered: str, text: str, values: list[str]
    ) -> None:
        assert [each.split()[0] for each in found(client, filtered, "i", text)] == values

    @pytest.mark.parametrize("text", ["t = 1", "s >= 1 and s < 20", "b between 1 and 3", "t=1 and s=2 and b=3"])
    def test_of_every_size(self, client: ThriftClient, filtered: str, text: str) -> None:
        assert found(client, filtered, "m", text) == ["1 2 3"]

    @pytest.mark.parametrize("text", ['n = "1"', 'n > "1"', 'n = "abc"', 'n = ""', 'n like "1.*"', '(n) in ("1")'])
    def test_text_is_no_number(self, client: ThriftClient, filtered: str, text: str) -> None:
        with refused(MetaException, message="Filtering is supported only on partition keys of type string"):
            found(client, filtered, "i", text)


class TestDates:
    @pytest.mark.parametrize(
        ("text", "values"),
        [
            ('d = "2020-01-01"', ["2020-01-01", "2020-01-01"]),
            ("d = '2020-01-01'", ["2020-01-01", "2020-01-01"]),
            ("d = 2020-01-01", ["2020-01-01", "2020-01-01"]),
            ("d > 2020-01-01", ["2020-03-01", "2020-02-01", "2020-01-02"]),
            ('d >= "2020-02-01"', ["2020-03-01", "2020-02-01"]),
            ('d != "2020-01-01"', ["2019-12-31", "2020-03-01", "2020-02-01", "2020-01-02"]),
            ('d between "2020-01-02" and "2020-02-15"', ["2020-02-01", "2020-01-02"]),
            ("(d) in (2020-01-02, 2020-02-01)", ["2020-02-01", "2020-01-02"]),
            ('n = 1 and d = "2020-01-01"', ["2020-01-01"]),
            ('n = 1 or d = "2020-02-01"', ["2020-01-01", "2020-02-01"]),
            ("(struct(n,d)) in (const struct(1,2020-01-01),const struct(2,2020-01-02))", ["2020-01-01", "2020-01-02"]),
        ],
    )
    def test_compare_as_dates_and_never_match_the_default_partition(
        self, client: ThriftClient, filtered: str, text: str, values: list[str]
    ) -> None:
        assert [each.split()[1] for each in found(client, filtered, "i", text)] == values

    @pytest.mark.parametrize("text", ['d = "nonsense"', "d = 5", 'd like "2020.*"'])
    def test_other_values_are_refused(self, client: ThriftClient, filtered: str, text: str) -> None:
        with refused(MetaException):
            found(client, filtered, "i", text)


class TestRefusals:
    @pytest.mark.parametrize("text", ['f = "1.5"', "f > 1", 'bo = "true"'])
    def test_keys_of_other_types(self, client: ThriftClient, filtered: str, text: str) -> None:
        with refused(MetaException, message="Filtering is supported only on partition keys of type string"):
            found(client, filtered, "o", text)

    def test_unknown_keys(self, client: ThriftClient, filtered: str) -> None:
        with refused(MetaException, message="Specified key <nokey> is not a partitioning key for the table"):
            found(client, filtered, "s", 'nokey = "1"')

    @pytest.mark.parametrize(
        "text",
        [
            *("   ", "ds", "ds =", '= "1"', '(ds = "1"', 'ds = "1" and', "ds = unquoted", "ds = region"),
            *("1 = 1", '"a" = "a"', "true", 'ds = "1" && region = "2"', 'ds = "1"; drop', 'db.ds = "1"', 'ds = "open'),
            *('ds rlike "2.*"', "ds in ()", 'ds <=> "5"', 'ds == "5" = "5"'),
        ],
    )
    def test_what_it_cannot_parse(self, client: ThriftClient, filtered: str, text: str) -> None:
        with refused(MetaException):
            found(client, filtered, "s", text)

    def test_missing_table(self, client: ThriftClient, filtered: str) -> None:
        with refused(NoSuchObjectException, message=f"{filtered}.no_such table not found"):
            found(client, filtered, "no_such", 'ds = "1"')


class TestLimits:
    @pytest.mark.parametrize(("limit", "number"), [(2, 2), (1, 1), (0, 0), (-1, 4), (100, 4)])
    def test_the_first_few(self, client: ThriftClient, filtered: str, limit: int, number: int) -> None:
        listed = client.get_partitions_by_filter(filtered, "s", 'ds < "3"', limit)
        assert [" ".join(p.values) for p in listed] == [
            "2020-01-01 us",
            "2020-01-02 eu",
            "2020-01-02 us",
            "2020-02-01 asia_x",
        ][:number]

    @pytest.mark.parametrize("text", ["", None])
    def test_no_filter_finds_all(self, client: ThriftClient, filtered: str, text: str | None) -> None:
        assert len(client.get_partitions_by_filter(filtered, "s", text, -1)) == 8
