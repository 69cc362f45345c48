"""Every pattern that a client may send, at its worst: each is answered, or refused by its bound, in no time.

docs/limits.md lists them. Whoever lets clients send another adds it there and here.
"""

import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lake.protocol.events import wildcards
from lake.protocol.events.filters import MAX_LENGTH, MAX_PATTERNS, MAX_STARS, MAX_WILD_PATTERNS, BadFilter, Filter
from lake.protocol.events.types import EventType
from lake.protocol.formats import durations
from lake.protocol.hive import FieldSchema, GetProjectionsSpec, InvalidOperationException, MetaException, Partition
from metastore.services.commit_flag.timestamp_extractor import TimestampExtractor
from metastore.services.commit_flag.timestamp_formats import TimestampFormat
from metastore.services.filters import grammar, kryo_expression, partition_filter, table_filter
from metastore.services.model import patterns, type_compatibility
from metastore.services.partition.projection import Projection
from metastore.services.registry import quartz
from metastore.services.snapshot.service import _page
from metastore.services.transactions.valid_txns import parse_materialization
from metastore.store.engine.names import TableName
from metastore.store.table.tables import TableRow

SECONDS = 2.0
"""Of processor time. What the bounds are there for took minutes or hours; a slow machine takes a tenth of this."""

KEYS = [FieldSchema(name="dt", type="string"), FieldSchema(name="hr", type="int")]


@contextmanager
def in_no_time() -> Iterator[None]:
    begun = time.process_time()
    yield
    assert time.process_time() - begun < SECONDS


# --- the matcher ------------------------------------------------------------------------------------------------


@settings(max_examples=1_000)
@given(pattern=st.text("ab*?.", max_size=10), text=st.text("ab.\n", max_size=12))
def test_wildcards_match_as_backtracking_does(pattern: str, text: str) -> None:
    meanings = {"*": ".*", "?": "."}
    reference = "".join(meanings.get(each, re.escape(each)) for each in pattern)
    expected = re.fullmatch(reference, text, re.DOTALL) is not None
    assert (wildcards.expression(pattern, one="?").fullmatch(text) is not None) == expected


def test_many_wildcards_take_no_time() -> None:
    with in_no_time():
        for length in (1_000, 10_000):
            assert not wildcards.expression("*a" * 40 + "*b").fullmatch("a" * length)
            assert not wildcards.expression("*a?" * 40 + "*b", one="?").fullmatch("a" * length)


# --- events -----------------------------------------------------------------------------------------------------


def test_a_subscribers_patterns() -> None:
    worst = Filter.parse([f"{'*a' * (MAX_STARS - 1)}*{i}b.x" for i in range(MAX_WILD_PATTERNS)], ())
    with in_no_time():
        for _ in range(20):
            assert not worst.lets_pass(EventType.CREATE_TABLE.value, "hive", "a" * 128, "x")


def test_many_tables_are_looked_up() -> None:
    wanted = Filter.parse([f"db.t{i}" for i in range(MAX_PATTERNS)], ())
    with in_no_time():
        for i in range(100_000):
            assert wanted.lets_pass("CREATE_TABLE", "hive", "db", f"t{i}") == (i < MAX_PATTERNS)


@pytest.mark.parametrize(
    ("tables", "types", "says"),
    [
        (["db." + "a*" * (MAX_STARS + 1)], [], r"more than 16 \*"),
        (["db." + "a" * MAX_LENGTH], [], "1024 are allowed"),
        ([f"db.t{i}" for i in range(MAX_PATTERNS + 1)], [], "at most 1000"),
        ([f"db.t{i}*" for i in range(MAX_WILD_PATTERNS + 1)], [], "at most 100"),
        ([], ["x" * 1_000_000], "is no type of events"),
    ],
)
def test_a_subscribers_patterns_beyond_the_bounds(tables: list[str], types: list[str], says: str) -> None:
    with pytest.raises(BadFilter, match=says) as refused:
        Filter.parse(tables, types)
    assert len(str(refused.value)) < 2 * MAX_LENGTH


# --- names ------------------------------------------------------------------------------------------------------


def test_names_of_tables() -> None:
    matches = patterns.matcher("|".join("*a" * (patterns.MAX_WILDCARDS - 1) + f"*b{i}" for i in range(50)))
    with in_no_time():
        assert not any(matches("a" * 100 + str(i)) for i in range(100))


@pytest.mark.parametrize(
    "pattern",
    [
        "x" * (patterns.MAX_LENGTH + 1),
        "x" * (patterns.MAX_LIKE_LENGTH + 1),
        "|".join(f"t{i}" for i in range(patterns.MAX_ALTERNATIVES + 1)),
        "|".join(f"t{i}*" for i in range(patterns.MAX_WILD_ALTERNATIVES + 1)),
        "|".join(f"t{i}." for i in range(patterns.MAX_WILD_ALTERNATIVES + 1)),
        "a*" * (patterns.MAX_WILDCARDS + 1),
    ],
)
def test_names_of_tables_beyond_the_bounds(pattern: str) -> None:
    with in_no_time(), pytest.raises(MetaException, match="allowed"):
        patterns.like_patterns(pattern)


def test_as_many_names_as_may_be() -> None:
    names = [f"t_{i}" for i in range(patterns.MAX_ALTERNATIVES)]
    assert len(patterns.like_patterns("|".join(names)) or ()) == len(names)


def test_names_of_parameters() -> None:
    """The patterns of a projection."""
    pattern = "%a" * (patterns.MAX_WILDCARDS - 1) + "%b"
    keys = {"a" * 10_000 + str(i): "" for i in range(10)}
    with in_no_time():
        projection = Projection(GetProjectionsSpec(includeParamKeyPattern=pattern))
        assert projection.partition(Partition(parameters=keys)).parameters == {}
    with pytest.raises(MetaException, match="allowed"):
        Projection(GetProjectionsSpec(excludeParamKeyPattern="%a" * 100))


# --- filters ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("parse", [lambda text: partition_filter.parse(text, KEYS), table_filter.parse])
def test_many_likes(parse: Callable[[str], object]) -> None:
    key = "dt" if parse is not table_filter.parse else table_filter.NAME
    allowed = " or ".join(f"{key} like '%{i}'" for i in range(grammar.MAX_LIKES))
    parse(allowed)
    with pytest.raises(MetaException, match="101 times LIKE are more than 100"):
        parse(f"{allowed} or {key} like '%x'")
    for pattern in ("%a" * 33, "a" * 1_025):
        with pytest.raises(MetaException, match="are allowed"):
            parse(f"{key} like '{pattern.replace('%', '.*') if key != 'dt' else pattern}'")


def test_many_conditions_on_tables() -> None:
    text = " or ".join(f"{table_filter.NAME} = 't{i}'" for i in range(table_filter.MAX_CONDITIONS + 1))
    with pytest.raises(MetaException, match="1001 conditions are more than 1000"):
        table_filter.parse(text)


@pytest.mark.parametrize(
    "text",
    [
        "(" * 20_000 + "dt='1'" + ")" * 20_000,
        "not " * 20_000 + "dt='1'",
        "dt='" + "\\'" * 100_000,
        "`" * 100_001 + "='1'",
        "dt=" + "1" * 100_000,
        "dt=1 and (hr=1 or " * 1_000 + "hr=1" + ")" * 1_000,
        "x" * (grammar.MAX_LENGTH + 1),
    ],
    ids=["parentheses", "not", "quotes", "backquotes", "digits", "nested", "long"],
)
def test_odd_filters(text: str) -> None:
    with in_no_time():
        try:
            partition_filter.parse(text, KEYS)
        except MetaException as refused:
            assert len(str(refused)) < 200


def test_expressions_of_hives_planner() -> None:
    """That name one object many times: `test_kryo_expression` bounds their parts, and this what is no expression."""
    with in_no_time():
        assert kryo_expression.parse(b"\x01" * 1_000_000).at_most is None


# --- properties and schedules -----------------------------------------------------------------------------------


def test_formats_of_timestamps() -> None:
    with pytest.raises(ValueError, match="no digit behind a number of unknown width"):
        TimestampFormat.of_pattern("y0M0d0H0m0s")
    with pytest.raises(ValueError, match="at most 256"):
        TimestampFormat.of_pattern("yyyy-MM-dd" + "'x'" * 1_000)
    with in_no_time():
        assert TimestampFormat.of_pattern("y-M-d H:m:s").read("0" * 1_000_000 + "-") is None


def test_patterns_of_timestamps() -> None:
    format = TimestampFormat.of_pattern("yyyy-MM-dd")
    keys = [f"k{i}" for i in range(2_000)]
    with in_no_time():
        extractor = TimestampExtractor.of_pattern("".join(f"$k{i}-" for i in range(150)), keys, format)
        assert extractor.read(["1"] * 2_000) is None
        with pytest.raises(ValueError, match="expected at most 1024 characters"):
            TimestampExtractor.of_pattern("$" * 1_000_000 + "$dt", ["dt"], format)


@pytest.mark.parametrize("text", ["1" + " " * 1_000_000 + "1", "1" * 1_000_000, " " * 1_000_000])
def test_lengths_of_time(text: str) -> None:
    with in_no_time(), pytest.raises(ValueError, match="expected"):
        durations.parse_duration(text)


@pytest.mark.parametrize("type", ["(" * 100_000, " " * 100_000, "int" + " " * 100_000 + "x", "(a" * 100_000])
def test_types_of_columns(type: str) -> None:
    with in_no_time():
        assert not type_compatibility.compatible(type, "int")


def test_parameters_of_types_still_do_not_count() -> None:
    assert type_compatibility.compatible("decimal(10,2)", "decimal (12, 2)")
    assert not type_compatibility.compatible("string", "decimal(10,2)")


@pytest.mark.parametrize(
    "schedule",
    ["0 0 0 30 2 ?", "* * * ? 2 2#5", "0-59/1," * 100 + "0 0 0 30 2 ?", "59 59 23 31 2,4,6,9,11 ? 2090-2099"],
)
def test_schedules(schedule: str) -> None:
    with in_no_time():
        quartz.next_time(schedule, time.time())


def test_long_schedules() -> None:
    with in_no_time(), pytest.raises(ValueError, match="longer than 1000"):
        quartz.next_time("0-59/1," * 100_000 + "0 0 0 30 2 ?", time.time())


def test_nested_json() -> None:
    deep = "[" * 1_000_000
    row = TableRow(1, 1, TableName("hive", "d", "t"), "MANAGED_TABLE", None, 0, None, 1, b"", {}, b"", 1)
    with in_no_time():
        assert parse_materialization(deep) == {}
        with pytest.raises(InvalidOperationException) as refused:
            _page(row, deep)
    assert len(str(refused.value)) < 200
