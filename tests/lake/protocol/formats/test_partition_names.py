"""Partition names, by themselves and compared with Hive's own classes."""

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lake.protocol.formats.partition_names import escape, make_name, parse_name, unescape, values_in, values_of
from lake.protocol.hive import InvalidObjectException, MetaException
from tests.support import jvm, reference

# What Hive 2.3's FileUtils escapes of all characters up to U+0250, as it answered when asked.
ESCAPED_BY_HIVE = {chr(code) for code in range(0x20)} | set("\"#%'*/:=?[\\]^{\x7f")

TEXT = st.text(min_size=1, max_size=20)
# Texts in which what is special comes often.
SPECIAL = st.text(st.sampled_from("ab%2Ff=/:\\\"'{}[]^ \n\x7fé😀"), min_size=1, max_size=12)
KEYS = st.lists(st.from_regex(r"[a-z0-9_:= é]{1,8}", fullmatch=True), min_size=1, max_size=4, unique=True)


def test_exactly_hives_characters_are_escaped() -> None:
    assert {chr(code) for code in range(0x250) if escape(chr(code)) != chr(code)} == ESCAPED_BY_HIVE


@pytest.mark.parametrize(
    ("value", "escaped"),
    [
        ("a/b=c", "a%2Fb%3Dc"),
        ("12:30:00 +1", "12%3A30%3A00 +1"),
        ("100%", "100%25"),
        ("\n", "%0A"),
        ("日本 😀", "日本 😀"),
        ("__HIVE_DEFAULT_PARTITION__", "__HIVE_DEFAULT_PARTITION__"),
        ("", "__HIVE_DEFAULT_PARTITION__"),
        (None, "__HIVE_DEFAULT_PARTITION__"),
    ],
)
def test_escape(value: str | None, escaped: str) -> None:
    assert escape(value) == escaped


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("%2f%2F", "//"),
        ("%", "%"),
        ("%4", "%4"),
        ("%zz", "%zz"),
        ("%%41", "%A"),
        ("%25%34%31", "%41"),
        ("%E4", "ä"),
        ("% 1", "% 1"),
        ("%٣1", "%٣1"),
        ("__HIVE_DEFAULT_PARTITION__", "__HIVE_DEFAULT_PARTITION__"),
    ],
)
def test_unescape(text: str, value: str) -> None:
    assert unescape(text) == value


@given(TEXT | SPECIAL)
def test_escaping_round_trip(value: str) -> None:
    escaped = escape(value)
    assert unescape(escaped) == value
    assert "/" not in escaped and "=" not in escaped


@given(KEYS, st.data())
def test_name_round_trip(keys: list[str], data: st.DataObject) -> None:
    values = data.draw(st.lists(TEXT | SPECIAL, min_size=len(keys), max_size=len(keys)))
    name = make_name(keys, values)
    assert list(parse_name(name).items()) == list(zip(keys, values, strict=True))
    assert values_of(name, keys) == values
    assert values_of(name, keys[::-1]) == values[::-1]


def test_keys_are_lower_cased_and_escaped() -> None:
    assert make_name(["DT", "a:b"], ["X", ""]) == "dt=X/a%3Ab=__HIVE_DEFAULT_PARTITION__"


def test_what_is_no_pair_is_passed_over() -> None:
    assert parse_name("/a=1//junk/=2/b=/c=d=3/a=4/") == {"a": "4", "c=d": "3"}


def test_case_of_keys_is_kept() -> None:
    assert parse_name("DT=1") == {"DT": "1"}


@pytest.mark.parametrize("name", ["", None])
def test_no_name(name: str | None) -> None:
    with pytest.raises(MetaException, match="Partition name is invalid"):
        parse_name(name)


def test_missing_key() -> None:
    with pytest.raises(InvalidObjectException, match="incomplete partition name - missing hr"):
        values_of("dt=1", ["dt", "hr"])


def test_other_keys_are_passed_over() -> None:
    assert values_of("x=0/dt=1", ["dt"]) == ["1"]


@pytest.mark.parametrize(
    ("keys", "values", "message"),
    [
        (["a"], ["x", "y"], "Invalid partition key & values; keys [a, ], values [x, y, ]"),
        (["a", "b"], ["x"], "Invalid partition key & values; keys [a, b, ], values [x, ]"),
        ([], [], "Invalid partition key & values; keys [], values []"),
    ],
)
def test_keys_and_values_do_not_fit(keys: list[str], values: list[str], message: str) -> None:
    with pytest.raises(MetaException) as raised:
        make_name(keys, values)
    assert raised.value.message == message


@pytest.fixture(scope="module")
def hive(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A view of a JVM with Hive 2.3's classes."""
    if (reason := reference.missing()) is not None:
        pytest.skip(reason)
    with jvm.running([jvm.pyspark_class_path()], tmp_path_factory.mktemp("jvm"), auto_convert=True) as gateway:
        yield gateway.jvm.org.apache.hadoop.hive


@pytest.mark.hive
@settings(deadline=None)
@given(value=TEXT | SPECIAL)
def test_escaping_is_hives(hive: Any, value: str) -> None:
    files = hive.common.FileUtils
    assert escape(value) == files.escapePathName(value)
    assert unescape(escape(value)) == files.unescapePathName(escape(value))


@pytest.mark.hive
@settings(deadline=None)
@given(keys=KEYS, data=st.data())
def test_names_are_hives(hive: Any, keys: list[str], data: st.DataObject) -> None:
    values = data.draw(st.lists(TEXT | SPECIAL, min_size=len(keys), max_size=len(keys)))
    name = make_name(keys, values)
    assert name == hive.common.FileUtils.makePartName(keys, values)
    assert parse_name(name) == dict(hive.metastore.Warehouse.makeSpecFromName(name))


@given(st.lists(st.one_of(TEXT, SPECIAL), min_size=1, max_size=3))
def test_values_are_read_out_of_names(values: list[str]) -> None:
    assert values_in(make_name([f"k{n}" for n in range(len(values))], values)) == values
