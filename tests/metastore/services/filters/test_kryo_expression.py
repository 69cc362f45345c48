"""Expressions of Hive's planner, as three versions of Hive wrote them, and what they mean."""

import base64
import random
import struct
import time
from collections.abc import Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lake.protocol.formats.partition_names import DEFAULT_PARTITION
from lake.protocol.hive import FieldSchema, MetaException
from metastore.services.filters import hive_plan, kryo, kryo_expression
from metastore.services.filters.grammar import AllOf, AnyOf, Condition, Expression, Literal, Negation
from metastore.services.filters.hive_plan import FUNCTION
from metastore.services.filters.kryo_expression import Planned
from metastore.services.filters.partition_filter import MAX_CONDITIONS, parse_expression_bytes
from metastore.store.engine.predicates import And, Comparison, Everything, In, KeyType, Like, Not, Op

DIRECTORY = Path(__file__).with_name("hive_expressions")
VERSIONS = ["2.3.10", "3.1.3", "4.0.1"]


def samples(version: str) -> dict[str, bytes]:
    """What Samples.java wrote with that version of Hive, by name."""
    lines = (DIRECTORY / f"hive_{version}.tsv").read_text().splitlines()
    return {name: base64.b64decode(data) for name, data, _ in (line.split("\t") for line in lines)}


SAMPLES = {version: samples(version) for version in VERSIONS}


def ds(operator: str, value: Literal) -> Condition:
    return Condition("ds", operator, value)


def n(operator: str, value: Literal) -> Condition:
    return Condition("n", operator, value)


MEANT: dict[str, Expression] = {
    **{f"text {operator}": ds(operator, "2020-01-01") for operator in ("=", "<>", "<", "<=", ">", ">=")},
    "mirrored": ds(">", "2020-01-01"),
    "no character": ds("=", ""),
    "one character": ds("=", "x"),
    "many characters": ds("=", "long " * 50),
    "other characters": ds("=", "ün中😀'\"\\"),
    "varchar": Condition("v", "=", "abc"),
    "char": AnyOf((Condition("c", "=", "abc  "), Condition("c", "=", "abc"))),
    "tinyint": n("=", -7),
    "smallint": n("=", -300),
    "int": n("=", -70000),
    "bigint": n(">=", -(2**63)),
    "bigint and int": n("<", 5),
    "int and text": n("=", Decimal(5)),
    "text and int": ds("=", Decimal(5)),
    "float": Condition("f", "=", Decimal("0.1")),
    "double": Condition("f", "=", Decimal("-5.25e30")),
    "decimal": Condition("f", "=", Decimal("-123456789012345678901234567890123456.78")),
    "decimal and int": Condition("f", "=", Decimal(5)),
    "boolean": Condition("b", "=", "true"),
    "not boolean": Negation(Condition("b", "=", "true")),
    "date": Condition("d", "=", date(2020, 2, 29)),
    "date and text": Condition("d", "=", date(2020, 2, 29)),
    "timestamp": Condition("t", ">", datetime(2020, 2, 29, 12, 34, 56, 789000)),
    "whole minute": Condition("t", ">", datetime(2020, 2, 29, 12, 34)),
    "timestamp and text": Condition("t", ">", datetime(2020, 2, 29, 12, 34, 56)),
    "and": AllOf((ds("=", "a"), n("=", 7), ds("<>", "b"))),
    "or": AnyOf((ds("=", "a"), n("=", 7))),
    "same key": AllOf((n(">", 1), n("<", 9))),
    "not": Negation(ds("=", "a")),
    "in": AnyOf((ds("=", "a"), ds("=", "b"), ds("=", "c"))),
    "in numbers": AnyOf((n("=", 1), n("=", 2))),
    "in dates": AnyOf((Condition("d", "=", date(2020, 1, 1)), Condition("d", "=", date(2020, 7, 1)))),
    "in structs": AnyOf((AllOf((ds("=", "a"), n("=", 1))), AllOf((ds("=", "b"), n("=", 2))))),
    "in constant structs": AnyOf((AllOf((ds("=", "a"), n("=", 1))),)),
    "between": AllOf((n(">=", 1), n("<=", 5))),
    "between texts": AllOf((Condition("v", ">=", "a"), Condition("v", "<=", "b"))),
    "not between": Negation(AllOf((ds(">=", "a"), ds("<=", "b")))),
    "between dates": AllOf((Condition("d", ">=", date(2020, 1, 1)), Condition("d", "<=", date(2020, 7, 1)))),
    "is null": n("=", DEFAULT_PARTITION),
    "is not null": ds("<>", DEFAULT_PARTITION),
    "null or equal": AllOf((n("<>", DEFAULT_PARTITION), n("=", 1))),
    "like": AllOf((ds("<>", DEFAULT_PARTITION), ds("LIKE", r"a\%b\\c_%"))),
    "cast to date": ds(">=", date(2020, 1, 1)),
    "to_date": ds("=", date(2020, 1, 1)),
    "cast to double": ds("=", Decimal(5)),
    "cast to bigint": n("=", 5),
    "cast to timestamp": Condition("t", "=", datetime(2020, 1, 1, 10)),
    "fixed list": ds("=", "a"),
    "unused function": ds("=", "a"),
    "hundred numbers": AnyOf(tuple(n("=", number) for number in range(100))),
}
UNCLEAR: dict[str, tuple[Expression | None, str]] = {
    "null": (None, "null"),
    "narrowed": (None, "function UDFToInteger"),
    "text as int": (None, "function UDFToInteger"),
    "function": (None, "function UDFSubstr"),
    "function and key": (AllOf((n("=", 7),)), "function Upper"),
    "function or key": (None, "function Upper"),
    "not function and key": (None, "function Upper"),
    "two keys": (None, "a condition without a constant"),
    "strange function": (
        None,
        "the expression can't be read: class org.apache.hadoop.hive.ql.udf.generic.GenericUDFRegExp is not known",
    ),
}
MOMENTS = ("timestamp", "whole minute")  # in Hive 2.3 in the time zone of whoever wrote them


@pytest.mark.parametrize("version", VERSIONS)
class TestSamples:
    def test_every_sample_is_tested(self, version: str) -> None:
        assert SAMPLES[version].keys() == MEANT.keys() | UNCLEAR.keys()

    @pytest.mark.parametrize("name", MEANT)
    def test_clear(self, version: str, name: str) -> None:
        planned = kryo_expression.parse(SAMPLES[version][name])
        if version == "2.3.10" and name in MOMENTS:
            assert planned == Planned(None, "a timestamp in a time zone that isn't said")
        else:
            assert planned == Planned(MEANT[name])

    @pytest.mark.parametrize("name", UNCLEAR)
    def test_unclear(self, version: str, name: str) -> None:
        assert kryo_expression.parse(SAMPLES[version][name]) == Planned(*UNCLEAR[name])


KEYS = [
    FieldSchema(name="ds", type="string"),
    FieldSchema(name="n", type="int"),
    FieldSchema(name="d", type="date"),
    FieldSchema(name="f", type="double"),
    FieldSchema(name="v", type="varchar(9)"),
]


@pytest.mark.parametrize("version", VERSIONS)
class TestPredicates:
    def test_the_constant_says_how_a_key_is_compared(self, version: str) -> None:
        def predicate(name: str) -> object:
            return parse_expression_bytes(SAMPLES[version][name], KEYS).at_most

        assert predicate("text =") == Comparison(0, KeyType.STRING, Op.EQ, "2020-01-01")
        assert predicate("int") == Comparison(1, KeyType.INTEGRAL, Op.EQ, -70000)
        assert predicate("date") == Comparison(2, KeyType.DATE, Op.EQ, date(2020, 2, 29))
        assert predicate("double") == Comparison(3, KeyType.NUMBER, Op.EQ, Decimal("-5.25e30"))
        assert predicate("cast to date") == Comparison(0, KeyType.DATE, Op.GE, date(2020, 1, 1))
        assert predicate("in") == In(0, KeyType.STRING, ("a", "b", "c"))
        assert predicate("not") == Not(Comparison(0, KeyType.STRING, Op.EQ, "a"))
        assert predicate("like") == And(
            (Comparison(0, KeyType.STRING, Op.NE, DEFAULT_PARTITION), Like(0, r"a\%b\\c_%"))
        )

    def test_what_is_unclear_is_said(self, version: str) -> None:
        function = parse_expression_bytes(SAMPLES[version]["function"], KEYS)
        assert (function.at_most, function.unclear) == (Everything(), "function UDFSubstr")
        partly = parse_expression_bytes(SAMPLES[version]["function and key"], KEYS)
        assert (partly.at_most, partly.unclear) == (And((Comparison(1, KeyType.INTEGRAL, Op.EQ, 7),)), "function Upper")
        assert parse_expression_bytes(SAMPLES[version]["text ="], KEYS).unclear is None

    def test_unknown_key(self, version: str) -> None:
        with pytest.raises(MetaException, match="Specified key <t> is not a partitioning key for the table"):
            parse_expression_bytes(SAMPLES[version]["timestamp and text"], KEYS)


# Expressions of our own making, in the format of Hive 2.3: what none of the samples shows.


class Writer:
    """Writes objects as Kryo 3 does; every class by its name, every object as a new one unless it is a reference."""

    def __init__(self) -> None:
        self.data = bytearray(b"\x01")  # the root, whose class is not written
        self._names: dict[str, int] = {}

    def name(self, name: str) -> "Writer":
        self.data += b"\x01"
        if name in self._names:
            return self.number(self._names[name])
        self._names[name] = len(self._names)
        return self.number(self._names[name]).text(name)

    def number(self, value: int) -> "Writer":
        while value > 0x7F:
            self.data.append(value & 0x7F | 0x80)
            value >>= 7
        self.data.append(value)
        return self

    def text(self, text: str) -> "Writer":
        encoded = text.encode()
        length = len(encoded) + 1
        self.data.append(0x80 | (0x40 if length > 0x3F else 0) | length & 0x3F)
        if length > 0x3F:
            self.number(length >> 6)
        self.data += encoded
        return self

    def bytes(self, data: bytes) -> "Writer":
        self.data += data
        return self


def key_equals(value: bytes, type_name: str = "date", cast: str | None = None) -> bytes:
    """`k = value`, the value being a class and an object of it."""
    writer = Writer()
    writer.name("java.util.ArrayList").bytes(b"\x01").number(2)
    writer.name(hive_plan.COLUMN).bytes(b"\x01" + b"\x01").text("k").bytes(b"\x01\x00" + b"\x00")
    writer.name("org.apache.hadoop.hive.serde2.typeinfo.PrimitiveTypeInfo").bytes(b"\x01" + b"\x01").text(type_name)
    writer.name(hive_plan.CONSTANT).bytes(b"\x01" + b"\x00").bytes(value)
    writer.name(hive_plan.GENERIC + "GenericUDFOPEqual").bytes(b"\x01" + b"\x00" * 5)
    return bytes(writer.bytes(b"\x00" + b"\x00").data)


def sql_date(milliseconds: int) -> bytes:
    return b"\x0c\x01" + struct.pack(">q", milliseconds)


def condition(data: bytes) -> object:
    planned = kryo_expression.parse(data)
    assert planned.unclear is None, planned
    return planned.at_most


class TestDatesAreMomentsUntilHive3:
    @pytest.mark.parametrize("hours", [-10, -9.5, -8, -3, 0, 1, 5.75, 8, 9.5, 12, 12.75, 13])
    @pytest.mark.parametrize("day", [date(2020, 2, 29), date(1969, 12, 31), date(1, 1, 2)])
    def test_midnight_of_any_time_zone(self, day: date, hours: float) -> None:
        begins = datetime(day.year, day.month, day.day) - timedelta(hours=hours)
        milliseconds = (begins - datetime(1970, 1, 1)) // timedelta(milliseconds=1)
        assert condition(key_equals(sql_date(milliseconds))) == Condition("k", "=", day)

    def test_a_day_that_begins_at_one(self) -> None:
        begins = datetime(2018, 11, 4, 3)  # in São Paulo, when summer time began
        milliseconds = (begins - datetime(1970, 1, 1)) // timedelta(milliseconds=1)
        assert condition(key_equals(sql_date(milliseconds))) == Condition("k", "=", date(2018, 11, 4))

    @pytest.mark.parametrize("milliseconds", [2**63 - 1, -(2**63), 253402300800000 - 1])
    def test_beyond_the_calendar(self, milliseconds: int) -> None:
        planned = kryo_expression.parse(key_equals(sql_date(milliseconds)))
        assert planned == Planned(None, "a date that is none")


class TestOddConstants:
    @pytest.mark.parametrize(
        ("type_name", "value"),
        [
            ("double", b"\x0a" + struct.pack(">d", float("nan"))),
            ("double", b"\x0a" + struct.pack(">d", float("inf"))),
            ("string", b"\x03\x01" + Writer().text("a\0b").data[1:]),
            ("int", b"\x03\x01" + Writer().text("five").data[1:]),
            ("date", b"\x03\x01" + Writer().text("2020-02-30").data[1:]),
            ("timestamp", b"\x03\x01" + Writer().text("noon").data[1:]),
            ("int", b"\x05\x01"),  # true
            ("interval_day_time", b"\x02\x02"),
            ("string", b"\x01\x07\xff"),
            ("string", Writer().name("[B").bytes(b"\x01\x03ab").data[1:]),
        ],
    )
    def test_is_unclear(self, type_name: str, value: bytes) -> None:
        planned = kryo_expression.parse(key_equals(bytes(value), type_name))
        assert planned.at_most is None and planned.unclear

    def test_a_number_is_one_whatever_its_class(self) -> None:
        assert condition(key_equals(b"\x09" + b"\x0e", "int")) == Condition("k", "=", 7)  # a long
        assert condition(key_equals(b"\x0a" + struct.pack(">d", 0.1), "int")) == Condition("k", "=", Decimal("0.1"))
        assert condition(key_equals(b"\x04" + struct.pack(">f", 3.4028235e38), "float")) == Condition(
            "k", "=", Decimal("3.4028235e38")
        )


class TestHostileBytes:
    @given(data=st.binary(max_size=200), prefix=st.sampled_from([b"\x01\x01\x00", b"\x01\x00", b"\x01\x0f"]))
    def test_junk(self, data: bytes, prefix: bytes) -> None:
        assert kryo_expression.parse(prefix + data).unclear is not None

    @pytest.mark.sampled(3)
    @pytest.mark.parametrize("version", VERSIONS)
    def test_cut_short(self, version: str) -> None:
        for data in SAMPLES[version].values():
            whole = kryo_expression.parse(data)
            for length in range(3, len(data), 7):
                planned = kryo_expression.parse(data[:length])
                assert planned.unclear is not None or planned == whole

    @pytest.mark.parametrize("version", VERSIONS)
    def test_something_behind(self, version: str) -> None:
        with pytest.raises(kryo.Unreadable, match="1 bytes are left"):
            hive_plan.read_expression(SAMPLES[version]["text ="] + b"\0")

    @given(seed=st.integers(0, 2**32), version=st.sampled_from(VERSIONS))
    def test_damaged(self, seed: int, version: str) -> None:
        random_ = random.Random(seed)
        damaged = bytearray(random_.choice(list(SAMPLES[version].values())))
        for _ in range(random_.randint(1, 4)):
            at = random_.randrange(len(damaged))
            damaged[at : at + random_.randint(0, 2)] = random_.randbytes(random_.randint(0, 2))
        assert isinstance(kryo_expression.parse(bytes(damaged)), Planned)

    def test_too_long(self) -> None:
        assert "more than" in str(kryo_expression.parse(b"\x01\x01\x00" + b"\0" * kryo.MAX_BYTES).unclear)

    def test_a_list_that_claims_more_than_there_is(self) -> None:
        data = Writer().name("java.util.ArrayList").bytes(b"\x01").number(2**31).data
        assert "elements don't fit" in str(kryo_expression.parse(bytes(data)).unclear)

    def test_nested_too_deep(self) -> None:
        writer = Writer()
        for _ in range(kryo.MAX_DEPTH):
            writer.name("java.util.ArrayList").bytes(b"\x01\x01")
        assert "nested more than" in str(kryo_expression.parse(bytes(writer.data)).unclear)

    def test_a_part_of_itself(self) -> None:
        writer = Writer().name("java.util.ArrayList").bytes(b"\x01\x01").name(FUNCTION).bytes(b"\x02")
        assert "no object 0 yet" in str(kryo_expression.parse(bytes(writer.data)).unclear)

    def test_many_from_few(self) -> None:
        """An AND of an AND with itself, and so on: 2 to the power of 40 conditions in few bytes."""
        writer = Writer()

        def conjunction(level: int) -> None:
            child_class = FUNCTION if level < 40 else hive_plan.COLUMN
            writer.name("java.util.ArrayList").bytes(b"\x01\x02").name(child_class).bytes(b"\x01")
            if level < 40:
                conjunction(level + 1)
            else:
                writer.bytes(b"\x01").text("b").bytes(b"\x01\x00" + b"\x00")
                writer.name("org.apache.hadoop.hive.serde2.typeinfo.PrimitiveTypeInfo").bytes(b"\x01\x01").text(
                    "boolean"
                )
            # Objects are numbered as they begin: the root, then a list and its first element on every level.
            writer.name(child_class).number(2 * level + 2)
            writer.name(hive_plan.GENERIC + "GenericUDFOPAnd").bytes(b"\x01\x00" + b"\x00" + b"\x00")

        conjunction(1)
        start = time.thread_time()
        assert kryo_expression.parse(bytes(writer.data)).unclear == "the expression has more than 100000 parts"
        assert time.thread_time() - start < 5

    @pytest.mark.long
    def test_many_conditions(self) -> None:
        with pytest.raises(MetaException, match=f"more than {MAX_CONDITIONS}"):
            parse_expression_bytes(_alternatives(MAX_CONDITIONS + 1), KEYS)
        assert parse_expression_bytes(_alternatives(MAX_CONDITIONS), KEYS).unclear is None


def _alternatives(count: int) -> bytes:
    """`ds <> '0' or ds <> '1' or ...` in the format of Hive 2.3."""
    writer = Writer()
    writer.name("java.util.ArrayList").bytes(b"\x01").number(count)
    for index in range(count):
        writer.name(FUNCTION).bytes(b"\x01")
        writer.name("java.util.ArrayList").bytes(b"\x01\x02")
        writer.name(hive_plan.COLUMN).bytes(b"\x01" + b"\x01").text("ds").bytes(b"\x01\x00" + b"\x00")
        writer.name("org.apache.hadoop.hive.serde2.typeinfo.PrimitiveTypeInfo").bytes(b"\x01" + b"\x01").text("string")
        writer.name(hive_plan.CONSTANT).bytes(b"\x01" + b"\x00" + b"\x03\x01").text(str(index))
        writer.name(hive_plan.GENERIC + "GenericUDFOPNotEqual").bytes(b"\x01" + b"\x00" * 5)
        writer.bytes(b"\x00" + b"\x00")
    writer.name(hive_plan.GENERIC + "GenericUDFOPOr").bytes(b"\x01\x00")
    return bytes(writer.bytes(b"\x00" + b"\x00").data)


def test_what_is_no_expression_of_the_planner() -> None:
    texts: Sequence[bytes] = (b"", b"ds = 'a'", b"\x01", b"\x01ds", b"\xac\xed\x00\x05")
    assert not any(map(hive_plan.is_expression, texts))
    assert all(hive_plan.is_expression(data) for some in SAMPLES.values() for data in some.values())
