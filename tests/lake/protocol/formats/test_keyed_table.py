"""What the properties of a keyed table say of its columns' types."""

import pickle
from collections.abc import Mapping

import pytest

from lake.protocol.formats.keyed_table import BadKeyedTable, KeyedTable

TYPES = {"id": "int", "Name": "STRING", "n": "decimal(10, 2)", "at": "timestamp", "other": "double"}
SUM = {"merge-engine": "aggregation", "fields.n.aggregate-function": "sum"}
GROUP = {"merge-engine": "partial-update", "fields.at.sequence-group": "other"}


def keyed(properties: Mapping[str, str], **types: str) -> KeyedTable:
    found = KeyedTable.of({"primary-key": "id,name", **properties}, {**TYPES, **types}, [])
    assert found is not None
    return found


def test_types_are_of_what_rows_are_merged_by() -> None:
    assert keyed({}).types == (("id", "int"), ("name", "string"))
    assert keyed({"sequence.field": "at,n"}).types[2:] == (("at", "timestamp"), ("n", "decimal(10,2)"))
    assert keyed(SUM).types[2:] == (("n", "decimal(10,2)"),)
    assert keyed(GROUP).types[2:] == (("at", "timestamp"),)
    assert pickle.loads(pickle.dumps(keyed(GROUP))) == keyed(GROUP)


@pytest.mark.parametrize(
    ("properties", "types", "changed"),
    [
        ({}, {"id": "BIGINT"}, []),
        ({}, {"id": "tinyint", "Name": "varchar(20)"}, []),
        ({}, {"id": "string"}, ["primary-key"]),
        ({}, {"Name": "binary"}, ["primary-key"]),
        ({}, {"n": "string", "at": "string", "other": "string"}, []),
        ({"sequence.field": "at"}, {"at": "Timestamp"}, []),
        ({"sequence.field": "at"}, {"at": "bigint"}, ["sequence.field"]),
        ({"sequence.field": "at"}, {"at": "bigint", "id": "date"}, ["primary-key", "sequence.field"]),
        (SUM, {"n": "decimal(10,2)"}, []),
        (SUM, {"n": "decimal(10,3)"}, ["fields.*.aggregate-function"]),
        (GROUP, {"other": "int"}, []),
        (GROUP, {"at": "date"}, ["fields.*.sequence-group"]),
    ],
)
def test_changed_types(properties: Mapping[str, str], types: Mapping[str, str], changed: list[str]) -> None:
    assert keyed(properties, **types).unlike(keyed(properties)) == changed
    assert keyed(properties).unlike(keyed(properties, **types)) == changed


def test_unknown_types_are_not_compared() -> None:
    assert keyed({}).unlike(KeyedTable(key=("id", "name"))) == []


@pytest.mark.parametrize("kind", ["timestamp", "FLOAT", "double", "decimal(10, 2)", "binary", "char(3)"])
def test_partitions_by_values_without_one_text(kind: str) -> None:
    properties = {"primary-key": "id,p"}
    with pytest.raises(BadKeyedTable, match=r"p, which is|column p is"):
        KeyedTable.of(properties, TYPES, {"P": kind})
    assert KeyedTable.of(properties, TYPES, ["P"]) == KeyedTable.of(properties, TYPES, {"P": "date"})
    assert KeyedTable.of({}, TYPES, {"P": kind}) is None


def test_no_char_in_a_key() -> None:
    with pytest.raises(BadKeyedTable, match="make it varchar or string"):
        keyed({}, Name="char(3)")
    assert keyed({}, other="char(3)").key == ("id", "name")
