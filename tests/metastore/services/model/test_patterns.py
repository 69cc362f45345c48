"""Name patterns: what Hive answers for them, and that Postgres and `matches` agree."""

from collections.abc import Iterator

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from sqlalchemy import Connection, create_engine, literal, or_, select

from metastore.services.model.patterns import like_patterns, matcher, regex_to_like
from tests.support.postgres import Postgres

NAMES = ["a", "a%b", "a.b", "a_b", "ab", "abc", "axb", "db1", "db2", "db3"]

# What Hive 2.3's ObjectStore, on Postgres, answered for databases of these names.
HIVES_ANSWERS = {
    "*": NAMES,
    ".*": NAMES,
    "a*": ["a", "a%b", "a.b", "a_b", "ab", "abc", "axb"],
    "A*": ["a", "a%b", "a.b", "a_b", "ab", "abc", "axb"],
    "*b": ["a%b", "a.b", "a_b", "ab", "axb"],
    "a_b": ["a_b"],
    "a.b": ["a%b", "a.b", "a_b", "axb"],
    "a.*": ["a%b", "a.b", "a_b", "ab", "abc", "axb"],
    "a.": ["ab"],
    "a\\.b": ["a.b"],
    "a%": [],
    "a?": [],
    "a[bx]": [],
    "DB.": ["db1", "db2", "db3"],
    " db*  ": ["db1", "db2", "db3"],
    "db1|db2": ["db1", "db2"],
    "db1 | db2": [],
    "|db1": ["db1"],
    "db1||": ["db1"],
    "": [],
}

ALPHABET = "aB_%.*\\|[$ é"
PATTERNS = st.text(st.sampled_from(ALPHABET), max_size=8)
# Names come to the database lower-cased.
LOWER_NAMES = st.text(st.sampled_from(ALPHABET), min_size=1, max_size=8).map(str.lower)


@pytest.fixture(scope="module")
def connection(postgres: Postgres) -> Iterator[Connection]:
    with postgres.fresh_database() as url:
        engine = create_engine(url)
        with engine.connect() as connection:
            yield connection
        engine.dispose()


@pytest.mark.parametrize("pattern", HIVES_ANSWERS)
def test_as_hive_answers(pattern: str) -> None:
    assert [name for name in NAMES if matcher(pattern)(name)] == HIVES_ANSWERS[pattern]


@pytest.mark.parametrize("pattern", [None, "*", " * ", "x|*"])
def test_every_name(pattern: str | None) -> None:
    assert like_patterns(pattern) is None
    assert matcher(pattern)("any_name")


@pytest.mark.parametrize("pattern", ["", "|", " | ", "\0", "a\0*"])
def test_no_name(pattern: str) -> None:
    patterns = like_patterns(pattern)
    assert patterns is not None and set(patterns) == {""}
    assert not matcher(pattern)("a")


def test_like_patterns() -> None:
    assert like_patterns("Sales_*|%x.y|\\.z\\") == ["sales\\_%", "\\%x_y", ".z\\\\"]


@pytest.mark.parametrize(
    ("regex", "like"),
    [("a.*b", "a%b"), ("a*", "a*"), (".", "_"), (r"\.\\", r".\\"), (r"\a", r"\\a"), ("", "")],
)
def test_regex_to_like(regex: str, like: str) -> None:
    assert regex_to_like(regex) == like


@settings(max_examples=300, deadline=None)
@given(pattern=PATTERNS, names=st.lists(LOWER_NAMES, min_size=1, max_size=5))
@example(pattern="\\", names=["\\"])
def test_postgres_agrees(connection: Connection, pattern: str, names: list[str]) -> None:
    patterns = like_patterns(pattern)
    expected = [matcher(pattern)(name) for name in names]
    if patterns is None:
        assert all(expected)
        return
    answers = [or_(False, *(literal(name).ilike(like, escape="\\") for like in patterns)) for name in names]
    row = connection.execute(select(*(answer.label(f"name_{i}") for i, answer in enumerate(answers)))).one()
    assert list(row) == expected


def test_many_wildcards_take_no_time() -> None:
    assert not matcher("*a" * 30 + "b")("a" * 120)
