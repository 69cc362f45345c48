"""Partition filters: what texts mean, and what they select in a real Postgres."""

import re
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import (
    ARRAY,
    Column,
    Connection,
    Integer,
    MetaData,
    Table,
    Text,
    create_engine,
    insert,
    select,
    text,
)

from lake.protocol.hive import FieldSchema, MetaException
from metastore.services.filters import grammar
from metastore.services.filters.partition_filter import MAX_CONDITIONS, parse, parse_expression_bytes
from metastore.store.engine import predicates
from metastore.store.engine.predicates import (
    And,
    Comparison,
    Everything,
    In,
    KeyType,
    Like,
    Not,
    Op,
    Or,
    Predicate,
    to_sql,
)
from tests.support.postgres import Postgres

DEFAULT = "__HIVE_DEFAULT_PARTITION__"
KEYS = [
    FieldSchema(name="s", type="string"),
    FieldSchema(name="i", type="int"),
    FieldSchema(name="d", type="date"),
    FieldSchema(name="t", type="timestamp"),
    FieldSchema(name="v", type="varchar(10)"),
    FieldSchema(name="f", type="double"),
    FieldSchema(name="date", type="string"),
]
POSITIONS = {key.name: position for position, key in enumerate(KEYS)}

ROWS = Table(
    "rows",
    MetaData(),
    Column("id", Integer, primary_key=True),
    Column("values", ARRAY(Text(collation="C")), nullable=False),
)


@pytest.fixture(scope="module")
def connection(postgres: Postgres) -> Iterator[Connection]:
    with postgres.fresh_database() as url:
        engine = create_engine(url)
        ROWS.create(engine)
        with engine.connect() as connection:
            yield connection
        engine.dispose()


def selected(connection: Connection, predicate: Predicate, rows: Sequence[Sequence[str]]) -> list[int]:
    """The positions of the rows that Postgres finds the predicate true for, in either way of asking."""
    with connection.begin() as transaction:
        connection.execute(insert(ROWS), [{"id": i, "values": list(row)} for i, row in enumerate(rows)])
        found = []
        for few in (0, 1_000_000):
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(predicates, "FEW_CONVERSIONS", few)
                query = select(ROWS.c.id).where(to_sql(predicate, ROWS.c["values"])).order_by(ROWS.c.id)
            found.append(list(connection.execute(query).scalars()))
        transaction.rollback()
    assert found[0] == found[1]
    return found[0]


def found_in_column(connection: Connection, filter_text: str, key: str, values: Sequence[str]) -> list[str]:
    """Those of one key's values that a filter finds."""
    rows = [[""] * POSITIONS[key] + [value] for value in values]
    return [values[i] for i in selected(connection, parse(filter_text, KEYS), rows)]


def string(key: str, op: Op, value: str) -> Comparison:
    return Comparison(POSITIONS[key], KeyType.STRING, op, value)


def integer(key: str, op: Op, value: int) -> Comparison:
    return Comparison(POSITIONS[key], KeyType.INTEGRAL, op, value)


class TestMeaning:
    @pytest.mark.parametrize("filter_text", [None, ""])
    def test_empty_is_everything(self, filter_text: str | None) -> None:
        assert parse(filter_text, KEYS) == Everything()

    # What Spark 3.5 and 4.x send, taken from their logs.
    @pytest.mark.parametrize(
        ("filter_text", "predicate"),
        [
            ('s = "2020"', string("s", Op.EQ, "2020")),
            ('s = "a\'b"', string("s", Op.EQ, "a'b")),
            ("s = 'a\"b'", string("s", Op.EQ, 'a"b')),
            ('s = "a\nb"', string("s", Op.EQ, "a\nb")),
            ('s = "é"', string("s", Op.EQ, "é")),
            ("(i) in (1, 2)", In(1, KeyType.INTEGRAL, (1, 2))),
            ("(i = 1 or i = 2)", In(1, KeyType.INTEGRAL, (1, 2))),
            ('(s) not in ("a", "b")', Not(In(0, KeyType.STRING, ("a", "b")))),
            ('(s != "a" and s != "b")', And((string("s", Op.NE, "a"), string("s", Op.NE, "b")))),
            ('s like "abc.*"', Like(0, "abc%")),
            ('s like ".*abc"', Like(0, "%abc")),
            ('s like ".*x.y.*"', Like(0, "%x_y%")),
            ('s like ".*a_b%.*"', Like(0, r"%a\_b\%%")),
            (r's like "x\.*"', Like(0, r"x\\%")),
            ('d = "2020-01-01"', Comparison(2, KeyType.DATE, Op.EQ, date(2020, 1, 1))),
            ("d > 2020-01-01", Comparison(2, KeyType.DATE, Op.GT, date(2020, 1, 1))),
            (
                'i >= 1 and i <= 3 and s > "a"',
                And((integer("i", Op.GE, 1), integer("i", Op.LE, 3), string("s", Op.GT, "a"))),
            ),
            ("i > -5", integer("i", Op.GT, -5)),
            ("5 < i", integer("i", Op.GT, 5)),
            (
                '(s = "a" or (i = 1 and s = "b"))',
                Or((And((integer("i", Op.EQ, 1), string("s", Op.EQ, "b"))), string("s", Op.EQ, "a"))),
            ),
            ('date = "x"', string("date", Op.EQ, "x")),
        ],
    )
    def test_spark(self, filter_text: str, predicate: Predicate) -> None:
        assert parse(filter_text, KEYS) == predicate

    @pytest.mark.parametrize(
        ("filter_text", "predicate"),
        [
            ("S = 'a'", string("s", Op.EQ, "a")),
            ("`s` == 'a'", string("s", Op.EQ, "a")),
            ("'a' <> s", string("s", Op.NE, "a")),
            ("s='a'AND i=1", And((string("s", Op.EQ, "a"), integer("i", Op.EQ, 1)))),
            ("i = - 0007", integer("i", Op.EQ, -7)),
            ("i = 9223372036854775807", integer("i", Op.EQ, 2**63 - 1)),
            ("i = -9223372036854775808", integer("i", Op.EQ, -(2**63))),
            ("i BETWEEN 1 AND 3", And((integer("i", Op.GE, 1), integer("i", Op.LE, 3)))),
            ("i not between 1 and 3", Not(And((integer("i", Op.GE, 1), integer("i", Op.LE, 3))))),
            ("(i) IN (1)", integer("i", Op.EQ, 1)),
            ("i in (1, 2, 1)", In(1, KeyType.INTEGRAL, (1, 2))),
            (f"(i) in (1, '{DEFAULT}')", Or((integer("i", Op.EQ, 1), string("i", Op.EQ, DEFAULT)))),
            ("(struct(s, i)) in (struct('a', 1))", And((string("s", Op.EQ, "a"), integer("i", Op.EQ, 1)))),
            (
                "(STRUCT(s,i)) NOT IN (CONST STRUCT('a',1), struct('b', 2), struct('c', 3))",
                Not(
                    Or(
                        tuple(
                            And((string("s", Op.EQ, letter), integer("i", Op.EQ, number)))
                            for letter, number in [("a", 1), ("b", 2), ("c", 3)]
                        )
                    )
                ),
            ),
            ("NOT s = 'a'", Not(string("s", Op.EQ, "a"))),
            ("not not s = 'a'", string("s", Op.EQ, "a")),
            ("d = date '2024-02-29'", Comparison(2, KeyType.DATE, Op.EQ, date(2024, 2, 29))),
            ("d = '2024-2-9 12:00:00'", Comparison(2, KeyType.DATE, Op.EQ, date(2024, 2, 9))),
            ("s = DATE '2024-02-29'", string("s", Op.EQ, "2024-02-29")),
            ("s = 2024-02-29 10:20:30", string("s", Op.EQ, "2024-02-29 10:20:30")),
            (
                "t = timestamp '2024-02-29 10:20:30'",
                Comparison(3, KeyType.TIMESTAMP, Op.EQ, datetime(2024, 2, 29, 10, 20, 30)),
            ),
            (
                "t < '2024-02-29 10:20:30.5'",
                Comparison(3, KeyType.TIMESTAMP, Op.LT, datetime(2024, 2, 29, 10, 20, 30, 500000)),
            ),
            ("t > date '2024-02-29'", Comparison(3, KeyType.TIMESTAMP, Op.GT, datetime(2024, 2, 29))),
            ("v = 'x'", string("v", Op.EQ, "x")),
            ("date = date '2024-02-29'", string("date", Op.EQ, "2024-02-29")),
            (f"d >= '{DEFAULT}'", string("d", Op.GE, DEFAULT)),
            ("s LIKE 'a%'", Like(0, "a%")),
            (r"s like 'a\_b.c'", Like(0, r"a\_b.c")),
            # A backslash keeps the quote from ending the string, and stays.
            (r's = "a\"b\\"', string("s", Op.EQ, r"a\"b\\")),
        ],
    )
    def test_hive(self, filter_text: str, predicate: Predicate) -> None:
        assert parse(filter_text, KEYS) == predicate

    def test_and_binds_closer_than_or(self) -> None:
        a, b, c = (string("s", Op.NE, letter) for letter in "abc")
        assert parse("s!='a' or s!='b' and s!='c'", KEYS) == Or((a, And((b, c))))
        assert parse("(s!='a' or s!='b') and s!='c'", KEYS) == And((Or((a, b)), c))

    def test_names_with_signs(self) -> None:
        keys = [FieldSchema(name="a`b c", type="string"), FieldSchema(name="größe", type="int")]
        assert parse("`a``b c` = 'x'", keys) == string("s", Op.EQ, "x")
        assert parse("Größe = 2", keys) == integer("i", Op.EQ, 2)


class TestRefusal:
    @pytest.mark.parametrize(
        "filter_text",
        [
            "s",
            "s =",
            "= 'a'",
            "s = 'a",
            "s = 'a\\'",
            "s = 'a' s = 'b'",
            "s = 'a')",
            "(s = 'a'",
            "s = 'a';",
            "s = 'it''s'",
            "s = v",
            "s <=> 'a'",
            "s is null",
            "s = null",
            "i = 1.5",
            "i = 1e3",
            "i = 9223372036854775808",
            "i = " + "9" * 10_000,
            "i in ()",
            "1 between i and 3",
            "(struct(s, i)) in (struct('a'))",
            "d = 2023-02-29",
            "d = date '2024-2-9'",
            "d = date '20240209'",
            "t = timestamp '2024-02-09'",
            "t = timestamp '2024-02-09 24:00:00'",
            "s = 'a\0'",
            "s = 'a\ud800'",
            "s = 'a' # and i = 1",
            "s ! = 'a'",
            "`s = 'a'",
            "(" * 100_000,
            "s in (" * 50_000,
            "'" + "a" * grammar.MAX_LENGTH + "' = s",
        ],
    )
    def test_no_filter(self, filter_text: str) -> None:
        with pytest.raises(MetaException, match=r"^Error parsing partition filter; "):
            parse(filter_text, KEYS)

    def test_says_what_and_where(self) -> None:
        with pytest.raises(MetaException) as raised:
            parse("s = 'a' b = 2", KEYS)
        assert raised.value.message == "Error parsing partition filter; unexpected 'b' at position 9"

    def test_unknown_key(self) -> None:
        with pytest.raises(MetaException) as raised:
            parse("x = 1", KEYS)
        assert raised.value.message == "Specified key <x> is not a partitioning key for the table"

    def test_like_the_wrong_way_round(self) -> None:
        with pytest.raises(MetaException) as raised:
            parse("'a%' like s", KEYS)
        assert raised.value.message == "Value should be on the RHS for LIKE operator : Key <s>"

    @pytest.mark.parametrize(
        "filter_text",
        [
            "f = 1",
            "f = '1.5'",
            "s = 5",
            "i = '5'",
            "i = 2020-01-01",
            "i like '5'",
            "s like 5",
            "d = 5",
            "d = 'foo'",
            "d = '2023-02-29'",
            "d = timestamp '2020-01-01 00:00:00'",
            "d like '2020%'",
            "t = 5",
            "t = 'foo'",
        ],
    )
    def test_constant_of_another_kind(self, filter_text: str) -> None:
        with pytest.raises(MetaException, match=r"^Filtering is supported only on partition keys of type string"):
            parse(filter_text, KEYS)

    def test_too_deep(self) -> None:
        deep = grammar.MAX_DEPTH // 2
        assert parse("(i=1 or (i=2 and " * (deep - 1) + "i=3" + "))" * (deep - 1), KEYS)
        with pytest.raises(MetaException, match="nested more than"):
            parse("(i=1 or (i=2 and " * (deep + 1) + "i=3" + "))" * (deep + 1), KEYS)
        with pytest.raises(MetaException, match="nested more than"):
            parse("not(i=1 or " * 20_000 + "i=2" + ")" * 20_000, KEYS)

    def test_too_many_conditions(self) -> None:
        def comparisons(count: int) -> str:
            return " or ".join(f"i > {number}" for number in range(count))

        assert parse(comparisons(MAX_CONDITIONS), KEYS)
        with pytest.raises(MetaException, match=r"^Error parsing partition filter; "):
            parse(comparisons(MAX_CONDITIONS + 1), KEYS)

    @given(st.text(st.sampled_from("si= '\"`()<>!-0123andorlikebetween,\\\n"), max_size=40) | st.text(max_size=40))
    def test_any_text_is_a_filter_or_refused(self, filter_text: str) -> None:
        try:
            parse(filter_text, KEYS)
        except MetaException as refused:
            assert refused.message


class TestSize:
    """Filters that are long, but not deep, whatever parentheses clients put round their parts."""

    @pytest.mark.long
    def test_parentheses(self) -> None:
        assert parse("(" * 100_000 + "i=1" + ")" * 100_000, KEYS) == integer("i", Op.EQ, 1)

    def test_many_negations(self) -> None:
        assert parse("not " * 50_001 + "i=1", KEYS) == Not(integer("i", Op.EQ, 1))

    @pytest.mark.sampled(3)
    @pytest.mark.parametrize(
        "filter_text",
        [
            "(" * 10_000 + "i=0" + "".join(f" or i={number})" for number in range(1, 10_001)),
            "".join(f"(i={number} or " for number in range(10_000)) + "i=10000" + ")" * 10_000,
            " or ".join(f"i={number}" for number in range(10_001)),
        ],
        ids=["left", "right", "flat"],
    )
    def test_many_alternatives(self, connection: Connection, filter_text: str) -> None:
        predicate = parse(filter_text, KEYS)
        assert predicate == In(1, KeyType.INTEGRAL, tuple(range(10_001)))
        assert selected(connection, predicate, [["", "10000"], ["", "10001"]]) == [0]

    def test_all_that_is_allowed_runs(self, connection: Connection) -> None:
        wide = parse(" or ".join(f"s > 'x{number}'" for number in range(MAX_CONDITIONS)), KEYS)
        assert selected(connection, wide, [["y"], ["a"]]) == [0]
        levels = grammar.MAX_DEPTH // 2 - 1
        deep = parse("(s='x' or (s<'b' and " * levels + "s='a'" + "))" * levels, KEYS)
        limit = sys.getrecursionlimit()
        assert selected(connection, deep, [["a"], ["b"], ["x"]]) == [0, 2]
        assert sys.getrecursionlimit() == limit


class TestSelection:
    """Single conditions, on columns of values, as Hive 2.3 answers where it doesn't fail."""

    STRINGS = ["a", "ab", "a.b", "a%b", "a_b", "abc", "AB", "1", "01", DEFAULT, "a'b", 'a"b', "a\\b", "é", ""]

    @pytest.mark.parametrize(
        ("filter_text", "found"),
        [
            ('s = "1"', ["1"]),
            ('s like "a.*"', ["a", "ab", "a.b", "a%b", "a_b", "abc", "a'b", 'a"b', "a\\b"]),
            ('s like ".*b.*"', ["ab", "a.b", "a%b", "a_b", "abc", "a'b", 'a"b', "a\\b"]),
            ('s like "a%"', ["a", "ab", "a.b", "a%b", "a_b", "abc", "a'b", 'a"b', "a\\b"]),
            (r's like "a\%b"', ["a%b"]),
            (r's like "a\\b"', ["a\\b"]),
            (r's like "a\\"', []),
            ('s like "a_b"', ["a.b", "a%b", "a_b", "a'b", 'a"b', "a\\b"]),
            ('s like "a.b"', ["a.b"]),
            ('s = "a\\b"', ["a\\b"]),
            ("s = 'a\"b'", ['a"b']),
            ('s between "a" and "ab"', ["a", "ab", "a.b", "a%b", "a_b", "a'b", 'a"b', "a\\b"]),
            ('s > "abb"', ["abc", "é"]),
            ('s < "1"', ["01", ""]),
            ('s not between "0" and "ab"', ["abc", "é", ""]),
            (f's = "{DEFAULT}"', [DEFAULT]),
            (
                f's != "{DEFAULT}" and s > "A"',
                ["a", "ab", "a.b", "a%b", "a_b", "abc", "AB", "a'b", 'a"b', "a\\b", "é"],
            ),
        ],
    )
    def test_strings(self, connection: Connection, filter_text: str, found: list[str]) -> None:
        assert found_in_column(connection, filter_text, "s", self.STRINGS) == found

    NUMBERS = [
        "1",
        "01",
        "2",
        "10",
        "-5",
        "+7",
        DEFAULT,
        "",
        "x",
        "1.5",
        "1e1",
        " 1",
        "NaN",
        "٣",
        "9" * 38,
        "9" * 200_000,
    ]

    @pytest.mark.parametrize(
        ("filter_text", "found"),
        [
            ("i = 1", ["1", "01"]),
            ("i != 1", ["2", "10", "-5", "+7", "9" * 38]),
            ("not i = 1", ["2", "10", "-5", "+7", "9" * 38]),
            ("i >= 10", ["10", "9" * 38]),
            ("1 < i", ["2", "10", "+7", "9" * 38]),
            ("i between -5 and 7", ["1", "01", "2", "-5", "+7"]),
            ("i not between 1 and 5", ["10", "-5", "+7", "9" * 38]),
            ("(i) in (1, 2)", ["1", "01", "2"]),
            ("(i) not in (1, 2)", ["10", "-5", "+7", "9" * 38]),
            ("(i) in (1, 9223372036854775807)", ["1", "01"]),
            (f"i = '{DEFAULT}'", [DEFAULT]),
            (f"i = 2 or i = '{DEFAULT}'", ["2", DEFAULT]),
        ],
    )
    def test_numbers(self, connection: Connection, filter_text: str, found: list[str]) -> None:
        assert found_in_column(connection, filter_text, "i", self.NUMBERS) == found

    DAYS = [
        "2020-01-01",
        "2020-01-02",
        "2020-02-29",
        "2020-01-01 10:00:00",
        DEFAULT,
        "2019-02-29",
        "2020-02-30",
        "2020-13-01",
        "0000-01-01",
        "2020-1-1",
        "20200101",
        "x",
        "2020-01-011",
    ]

    @pytest.mark.parametrize(
        ("filter_text", "found"),
        [
            ("d = 2020-01-01", ["2020-01-01", "2020-01-01 10:00:00", "2020-1-1"]),
            ("d > '2020-01-01'", ["2020-01-02", "2020-02-29"]),
            ("d != date '2020-01-01'", ["2020-01-02", "2020-02-29"]),
            ("(d) in ('2020-01-02', '2020-02-29')", ["2020-01-02", "2020-02-29"]),
            (f"d = '{DEFAULT}'", [DEFAULT]),
        ],
    )
    def test_days(self, connection: Connection, filter_text: str, found: list[str]) -> None:
        assert found_in_column(connection, filter_text, "d", self.DAYS) == found

    MOMENTS = [
        "2020-01-01 10:00:00",
        "2020-01-01 10:00:00.0",
        "2020-01-01T10:00:00.000000999",
        "2020-01-01 10:00:00.5",
        "2020-01-01",
        "9999-12-31 23:59:59.9999999",
        DEFAULT,
        "2020-01-01 24:00:00",
        "2020-01-01 10:00",
        "x",
    ]

    @pytest.mark.parametrize(
        ("filter_text", "found"),
        [
            ("t = '2020-01-01 10:00:00'", MOMENTS[:3]),
            ("t != timestamp '2020-01-01 10:00:00'", MOMENTS[3:6]),
            ("t < 2020-01-01 10:00:00", ["2020-01-01"]),
            ("t > '2020-01-01 10:00:00.4'", [MOMENTS[3], MOMENTS[5]]),
        ],
    )
    def test_moments(self, connection: Connection, filter_text: str, found: list[str]) -> None:
        assert found_in_column(connection, filter_text, "t", self.MOMENTS) == found

    def test_numbers_of_any_kind(self, connection: Connection) -> None:
        values = [
            "1.5",
            "+1.50",
            "15e-1",
            ".15E1",
            "1.",
            "2",
            "-1e2",
            "1e999",
            "1e",
            "e1",
            ".",
            "1.5d",
            " 1.5",
            "NaN",
            "",
        ]

        def found(predicate: Predicate) -> list[str]:
            return [values[i] for i in selected(connection, predicate, [[value] for value in values])]

        def number(op: Op, value: str) -> Comparison:
            return Comparison(0, KeyType.NUMBER, op, Decimal(value))

        assert found(number(Op.EQ, "1.5")) == ["1.5", "+1.50", "15e-1", ".15E1"]
        assert found(number(Op.LT, "1.5")) == ["1.", "-1e2"]
        assert found(Not(number(Op.LE, "1.5"))) == ["2", "1e999"]
        assert found(In(0, KeyType.NUMBER, (Decimal(1), Decimal("-100")))) == ["1.", "-1e2"]

    def test_every_day_of_every_kind_of_year(self, connection: Connection) -> None:
        days = [
            f"{year}-{month:02}-{day:02}"
            for year in ("0001", "1900", "2000", "2023", "2024", "9999")
            for month in range(14)
            for day in range(33)
        ]
        real = [day for day in days if grammar.parse_date(day) is not None]
        assert len(real) == 4 * 365 + 2 * 366
        assert found_in_column(connection, "d >= '0001-01-01'", "d", days) == real
        without_zeros = [re.sub("-0", "-", day) for day in real]
        assert found_in_column(connection, "d >= '0001-01-01'", "d", without_zeros) == without_zeros

    def test_partitions_with_fewer_values_are_not_found(self, connection: Connection) -> None:
        assert selected(connection, parse("i = 1 or not i = 1", KEYS), [["a"]]) == []

    def test_equality_on_the_first_key_uses_an_index(self, connection: Connection) -> None:
        with connection.begin() as transaction:
            connection.execute(text('CREATE INDEX first_value ON rows ((("values")[1]))'))
            connection.execute(text("SET LOCAL enable_seqscan = off"))
            for filter_text in [
                "s = 'x' and i > 5",
                "s in ('x', 'y')",
                "s between 'a' and 'b'",
                "s like 'abc.*'",
            ]:
                query = select(ROWS.c.id).where(to_sql(parse(filter_text, KEYS), ROWS.c["values"]))
                compiled = query.compile(connection.engine, compile_kwargs={"render_postcompile": True})
                plan = connection.exec_driver_sql(f"EXPLAIN {compiled}", compiled.params).scalars().all()
                assert any("Index Cond" in line for line in plan), (filter_text, plan)
            transaction.rollback()


class TestExpressionBytes:
    def test_equality_is_of_text(self) -> None:
        predicate = parse_expression_bytes(b"(s='a%2Fb' AND i='07' AND d='x')", KEYS).at_most
        assert predicate == And((string("s", Op.EQ, "a/b"), string("i", Op.EQ, "07"), string("d", Op.EQ, "x")))

    def test_of_keys_of_any_type(self) -> None:
        assert parse_expression_bytes(b"f='1.5'", KEYS).at_most == string("f", Op.EQ, "1.5")

    def test_anything_else_is_a_filter(self) -> None:
        assert parse_expression_bytes("i > 5 and s like 'é%2F'".encode(), KEYS).at_most == And(
            (integer("i", Op.GT, 5), Like(0, "é%2F"))
        )

    @pytest.mark.parametrize("data", [b"", b"\x01\xff\xfe", b"\xac\xed\x00\x05sr\x00"])
    def test_no_text(self, data: bytes) -> None:
        with pytest.raises(MetaException, match="Failed to deserialize expression"):
            parse_expression_bytes(data, KEYS)

    def test_no_filter(self) -> None:
        with pytest.raises(MetaException, match=r"^Error parsing partition filter; "):
            parse_expression_bytes(b"\x01org.apache.hadoop", KEYS)

    def test_unknown_key(self) -> None:
        with pytest.raises(MetaException, match="Specified key <x>"):
            parse_expression_bytes(b"x='1'", KEYS)


# A model of what Hive does, in plain Python: a filter's text, and what it says of a partition's values.

Holds = Callable[[Sequence[str]], bool | None]


@dataclass(frozen=True)
class Filter:
    text: str
    holds: Holds


def as_text(value: str) -> bytes:
    return value.encode()


def as_number(value: str) -> int | None:
    return int(value) if re.fullmatch(r"[+-]?[0-9]+", value) else None


def as_day(value: str) -> date | None:
    head, rest = value[:10], value[10:]
    if rest and rest[0] not in " T":
        return None
    try:
        return date(*map(int, head.split("-"))) if re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", head) else None
    except ValueError:
        return None


def as_moment(value: str) -> datetime | None:
    day = as_day(value)
    if day is None or len(value) == 10:
        return datetime(day.year, day.month, day.day) if day else None
    match = re.fullmatch(r"([0-9]{2}):([0-9]{2}):([0-9]{2})(?:\.([0-9]+))?", value[11:])
    if match is None:
        return None
    hours, minutes, seconds = map(int, match.groups()[:3])
    if hours > 23 or minutes > 59 or seconds > 59:
        return None
    microseconds = int((match[4] or "").ljust(6, "0")[:6])
    start = datetime(day.year, day.month, day.day)
    return start + timedelta(hours=hours, minutes=minutes, seconds=seconds, microseconds=microseconds)


READ: dict[str, Callable[[str], object]] = {"s": as_text, "i": as_number, "d": as_day, "t": as_moment}
COMPARE: dict[str, Callable[[object, object], bool]] = {
    "=": lambda a, b: a == b,
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "<>": lambda a, b: a != b,
    "<": lambda a, b: a < b,  # type: ignore[operator]
    "<=": lambda a, b: a <= b,  # type: ignore[operator]
    ">": lambda a, b: a > b,  # type: ignore[operator]
    ">=": lambda a, b: a >= b,  # type: ignore[operator]
}
MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}


def comparison(key: str, operator: str, constant: str) -> Holds:
    read = as_text if constant == DEFAULT else READ[key]

    def holds(values: Sequence[str]) -> bool | None:
        value = read(values[POSITIONS[key]])
        return None if value is None else COMPARE[operator](value, read(constant))

    return holds


def negation(part: Holds) -> Holds:
    def holds(values: Sequence[str]) -> bool | None:
        known = part(values)
        return None if known is None else not known

    return holds


def conjunction(parts: Sequence[Holds]) -> Holds:
    def holds(values: Sequence[str]) -> bool | None:
        known = [part(values) for part in parts]
        return False if False in known else None if None in known else True

    return holds


def disjunction(parts: Sequence[Holds]) -> Holds:
    return negation(conjunction([negation(part) for part in parts]))


def like(pattern: str) -> Holds:
    regex = re.sub(r"\\?.", lambda m: {"%": ".*", "_": "."}.get(m[0], re.escape(m[0][-1])), pattern)
    return lambda values: re.fullmatch(regex, values[0], re.DOTALL) is not None


STRINGS = st.sampled_from(["a", "A", "ab", "b", "é", "日", "a%b", "10", "9", DEFAULT]) | st.text(
    "abAB19_%.é ", max_size=4
)
NUMBERS = st.integers(-12, 12).map(str)
DATES = st.sampled_from(["2019-12-31", "2020-01-01", "2020-02-29", "0001-01-01", "9999-12-31"])
TIMESTAMPS = st.builds("{} {}".format, DATES, st.sampled_from(["00:00:00", "23:59:59"]))
CONSTANTS = {"s": STRINGS, "i": NUMBERS, "d": DATES, "t": TIMESTAMPS}
QUOTED = st.sampled_from(["'{}'", '"{}"'])
FORMS = {
    "s": QUOTED,
    "i": st.just("{}"),
    "d": QUOTED | st.sampled_from(["{}", "date '{}'", 'DATE "{}"']),
    "t": QUOTED | st.sampled_from(["{}", "timestamp '{}'", 'TIMESTAMP "{}"']),
}
KEY_NAMES = st.sampled_from("sidt")


@st.composite
def constants(draw: st.DrawFn, key: str) -> tuple[str, str]:
    """A constant for a key, and how a filter writes it."""
    if key != "s" and draw(st.integers(0, 9)) == 0:
        return DEFAULT, draw(QUOTED).format(DEFAULT)
    constant = draw(CONSTANTS[key])
    return constant, draw(FORMS[key]).format(constant)


def spelled(words: str) -> st.SearchStrategy[str]:
    return st.sampled_from([words, words.upper()])


@st.composite
def comparisons(draw: st.DrawFn) -> Filter:
    key, operator = draw(KEY_NAMES), draw(st.sampled_from(list(COMPARE)))
    constant, written = draw(constants(key))
    name = draw(st.sampled_from([key, key.upper(), f"`{key}`"]))
    space = draw(st.sampled_from(["", " ", "\n"]))
    if draw(st.booleans()):
        return Filter(f"{name}{space}{operator}{space}{written}", comparison(key, operator, constant))
    mirrored = comparison(key, MIRRORED.get(operator, operator), constant)
    return Filter(f"{written}{space}{operator}{space}{name}", mirrored)


@st.composite
def ranges(draw: st.DrawFn) -> Filter:
    key = draw(KEY_NAMES)
    (low, written_low), (high, written_high) = draw(constants(key)), draw(constants(key))
    inside = conjunction([comparison(key, ">=", low), comparison(key, "<=", high)])
    words = draw(spelled("between") | spelled("not between"))
    filter_text = f"{key} {words} {written_low} {draw(spelled('and'))} {written_high}"
    return Filter(filter_text, negation(inside) if "not" in words.lower() else inside)


@st.composite
def memberships(draw: st.DrawFn) -> Filter:
    key = draw(KEY_NAMES)
    chosen = draw(st.lists(constants(key), min_size=1, max_size=4))
    some = disjunction([comparison(key, "=", constant) for constant, _ in chosen])
    words = draw(spelled("in") | spelled("not in"))
    filter_text = f"({key}) {words} ({', '.join(written for _, written in chosen)})"
    return Filter(filter_text, negation(some) if "not" in words.lower() else some)


@st.composite
def struct_memberships(draw: st.DrawFn) -> Filter:
    keys = draw(st.lists(KEY_NAMES, min_size=1, max_size=3))
    structs = draw(st.lists(st.tuples(*map(constants, keys)), min_size=1, max_size=3))
    some = disjunction(
        [
            conjunction([comparison(key, "=", constant) for key, (constant, _) in zip(keys, struct, strict=True)])
            for struct in structs
        ]
    )
    words = draw(spelled("in") | spelled("not in"))
    const = draw(st.sampled_from(["", "const "]))
    written = ",".join(f"{const}struct({','.join(constant for _, constant in struct)})" for struct in structs)
    filter_text = f"(struct({','.join(keys)})) {words} ({written})"
    return Filter(filter_text, negation(some) if "not" in words.lower() else some)


@st.composite
def likes(draw: st.DrawFn) -> Filter:
    pattern = "".join(draw(st.lists(st.sampled_from(["a", "b", "%", "_", r"\%", r"\_", "é"]), max_size=5)))
    return Filter(f"s {draw(spelled('like'))} {draw(QUOTED).format(pattern)}", like(pattern))


def combined(inner: st.SearchStrategy[Filter]) -> st.SearchStrategy[Filter]:
    def joined(parts: list[Filter], word: str) -> Filter:
        holds = (conjunction if word.lower() == "and" else disjunction)([part.holds for part in parts])
        return Filter("(" + f" {word} ".join(part.text for part in parts) + ")", holds)

    negated = st.builds(lambda word, part: Filter(f"{word} ({part.text})", negation(part.holds)), spelled("not"), inner)
    parts = st.lists(inner, min_size=2, max_size=4)
    return st.builds(joined, parts, spelled("and") | spelled("or")) | negated


CONDITIONS = comparisons() | ranges() | memberships() | struct_memberships() | likes()
FILTERS = st.recursive(CONDITIONS, combined, max_leaves=10)
JUNK = st.sampled_from([DEFAULT, "", "x", "1.5", "2020-02-30", "2020-01-01x", "2020-01-01 25:00:00", "007", "-0"])
VALUES = st.tuples(
    STRINGS | JUNK,
    NUMBERS | JUNK,
    DATES | TIMESTAMPS | JUNK,
    TIMESTAMPS | DATES | st.builds("{}.{}".format, TIMESTAMPS, st.integers(0, 10**8)) | JUNK,
)


@settings(max_examples=25, deadline=None)
@given(some=FILTERS, rows=st.lists(VALUES, min_size=1, max_size=8))
def test_postgres_selects_what_the_model_says(
    connection: Connection, some: Filter, rows: list[tuple[str, ...]]
) -> None:
    expected = [position for position, row in enumerate(rows) if some.holds(row) is True]
    assert selected(connection, parse(some.text, KEYS), rows) == expected
