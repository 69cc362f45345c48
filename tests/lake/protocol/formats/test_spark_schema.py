"""The schema that Spark keeps in a table's properties."""

import pytest

from lake.protocol.formats.spark_schema import MAX_PROPERTY, SCHEMA, beside_columns, columns, joined, split


@pytest.mark.parametrize("length", [1, MAX_PROPERTY, MAX_PROPERTY + 1, 3 * MAX_PROPERTY])
def test_what_is_split_is_joined(length: int) -> None:
    text = ("0123456789" * length)[:length]
    properties = split(text)
    assert joined(properties) == text
    assert max(map(len, properties.values())) <= MAX_PROPERTY


def test_it_may_be_in_one_property() -> None:
    assert joined({SCHEMA: "{}"}) == "{}"


def test_other_tables_have_none() -> None:
    assert joined({}) is None
    assert joined({SCHEMA: ""}) is None


def test_what_is_beside_the_columns() -> None:
    others = {f"{SCHEMA}.numPartCols": "1", f"{SCHEMA}.partCol.0": "dt"}
    assert beside_columns({**split("{}"), SCHEMA: "{}", **others, "owner": "me"}) == others


def test_columns() -> None:
    schema = (
        '{"type":"struct","fields":[{"name":"Id","type":"long"},{"name":"t","type":"timestamp_ntz"},'
        '{"name":"a","type":{"type":"array","elementType":"integer"}},{"name":"n","type":"decimal(10,2)"}]}'
    )
    assert columns({}) is None
    assert columns(split(schema)) == {
        "Id": "bigint",
        "t": "timestamp_ntz",
        "a": "array<…>",
        "n": "decimal(10,2)",
    }
    for odd in (
        "",
        "[]",
        '{"fields": [{"name": "a", "type": 1}]}',
        "{}",
        '{"fields": 1}',
        '{"fields": [{"name": "a"}]}',
        '{"fields": ["a"]}',
        "[" * 100_000,
    ):
        assert columns({SCHEMA: odd}) is None
    assert columns({f"{SCHEMA}.numParts": "2"}) is None
    assert columns({f"{SCHEMA}.numParts": "many"}) is None
