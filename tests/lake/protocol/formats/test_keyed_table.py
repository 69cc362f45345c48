"""What the properties of a keyed table say of its columns' types, and of where its rows are."""

import pickle
from collections.abc import Mapping

import pytest

from lake.protocol.formats.keyed_table import BadKeyedTable, KeyedTable, type_of, with_features

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


BY_ID = {"bucket-key": "ID", "table-type": "merge-on-read+bucket-key"}


def test_columns_by_which_buckets_are_found() -> None:
    assert keyed({}).bucket_key == ("id", "name")
    assert keyed(BY_ID).bucket_key == ("id",)
    assert keyed(BY_ID).is_merge_on_read
    assert keyed({**BY_ID, "bucket-key": "name, id"}) == keyed({"table-type": "merge-on-read"})
    assert keyed({"bucket-key": "id"}) == keyed({}), "the type doesn't say so: others may have placed rows without it"
    assert keyed(BY_ID).layout() == {**keyed({}).layout(), "bucket-key": "id"}
    assert keyed(BY_ID).unlike(keyed({})) == ["bucket-key"]
    for value, message in {
        "other": "bucket-key: other is no column of primary-key, which are id, name",
        "id,id": "the column id is named twice",
        " ": "needs bucket-key: name columns of the key",
    }.items():
        with pytest.raises(BadKeyedTable, match=message):
            keyed({**BY_ID, "bucket-key": value})
    with pytest.raises(BadKeyedTable, match="the table is partitioned by p, so a bucket has one value of it"):
        KeyedTable.of({"primary-key": "id,p", **BY_ID, "bucket-key": "p"}, TYPES, {"p": "date"})


def test_what_a_later_version_has_made_is_refused() -> None:
    with pytest.raises(BadKeyedTable, match="'spirals' isn't known here: a later version has made the table"):
        keyed({**BY_ID, "table-type": "merge-on-read+bucket-key+spirals"})


def test_the_type_says_what_a_client_must_know() -> None:
    by_id = {"bucket-key": "id", "table-type": "copy-on-write+bucket-key"}
    assert with_features({"bucket-key": "id"}) == with_features(by_id, by_id) == by_id
    assert with_features({"bucket-key": "id"}, by_id) == by_id, "an engine may give back less than it was given"
    assert with_features({**by_id, "table-type": "merge-on-read"}, by_id) == {
        "bucket-key": "id",
        "table-type": "merge-on-read+bucket-key",
    }
    assert with_features({"table-type": by_id["table-type"]}, by_id) == {"table-type": "copy-on-write"}
    unknown = {"bucket-key": "id", "table-type": "merge-on-read"}
    assert with_features(unknown, unknown) == unknown, "a server of the release before has let it pass"
    assert with_features({**unknown, "bucket-key": "name"}, unknown)["table-type"] == "merge-on-read+bucket-key"
    assert with_features({"a": "b"}) == {"a": "b"}
    assert [type_of(each) for each in ({}, by_id, BY_ID)] == ["copy-on-write", "copy-on-write", "merge-on-read"]
