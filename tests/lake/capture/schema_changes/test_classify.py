"""What differs between a table's columns and those before: from columns alone, by numbers, and by statements."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from lake.capture.schema_changes.classify import Cause, differences
from lake.capture.schema_changes.history import begin_of, changes_in, history_in
from lake.capture.schema_changes.model import Column, Kind
from lake.capture.schema_changes.types import kind_of
from lake.capture.schemas import DescribedColumn, schema_of

K = Kind
ID = Column("id", "int", "int", True)


def column(name: str, type: str = "int", number: int | None = None, *, source: str | None = None) -> Column:
    return Column(name, type, source or type, False, number)


def numbered(*names: str) -> list[Column]:
    """Columns such as `a:2`, with their numbers."""
    return [column(each.partition(":")[0], number=int(each.partition(":")[2])) for each in names]


def kinds(old: list[Column], new: list[Column], cause: Cause = Cause()) -> list[Kind]:
    return [each.kind for each in differences(old, new, cause)]


@pytest.mark.parametrize(
    ("old", "new", "found"),
    [
        ([ID], [ID, column("c")], [K.ADD]),
        ([ID, column("b")], [ID], [K.DROP]),
        ([ID, column("b")], [ID, column("d")], [K.UNCLEAR]),
        ([ID, column("b")], [ID, column("d"), column("e")], [K.UNCLEAR]),
        ([ID, column("a"), column("b")], [ID, column("b"), column("a")], [K.UNCLEAR, K.UNCLEAR]),
        ([ID, column("a"), column("b")], [ID, column("c"), column("b"), column("a")], [K.UNCLEAR, K.UNCLEAR, K.ADD]),
        ([ID, column("a")], [ID, column("a", "bigint")], [K.WIDEN]),
        ([ID, column("a")], [ID, column("a", "string")], [K.TYPE]),
        ([ID, column("a", "string", source="mood")], [ID, column("a", "string", source="text")], [K.TYPE]),
        ([ID, column("k")], [column("id"), Column("k", "int", "int", True)], [K.KEY]),
        ([ID, column("k")], [ID, Column("k", "int", "int", True)], [K.KEY]),
        ([ID], [column("id")], [K.KEY]),
        ([ID, column("a")], [ID, column("A")], [K.RENAME]),
        ([ID, column("a")], [ID, column("a")], []),
    ],
)
def test_columns_alone(old: list[Column], new: list[Column], found: list[Kind]) -> None:
    assert kinds(old, new) == found


def test_a_column_with_values_in_older_rows() -> None:
    assert kinds([ID], [ID, column("c")], Cause(is_read_again=True)) == [K.ADD_FILLED]


@pytest.mark.parametrize(
    ("old", "new", "found"),
    [
        (["id:1", "b:2"], ["id:1", "d:2"], [K.RENAME]),
        (["id:1", "b:2"], ["id:1", "d:3"], [K.DROP, K.ADD]),
        (["id:1", "b:2"], ["id:1", "b:3"], [K.REPLACE]),
        (["id:1", "a:2", "b:3"], ["id:1", "b:2", "a:3"], [K.RENAME, K.RENAME]),
        (["id:1", "a:2", "b:3"], ["id:1", "b:2", "c:4"], [K.RENAME, K.DROP, K.ADD]),
    ],
)
def test_numbers_tell_what_was_renamed(old: list[str], new: list[str], found: list[Kind]) -> None:
    assert sorted(kinds(numbered(*old), numbered(*new))) == sorted(found)


@pytest.mark.parametrize(
    ("statements", "old", "new", "found"),
    [
        ([("ALTER …", {"b": "d"})], ["b"], ["d"], [K.RENAME]),
        ([("ALTER …", {"B": "d"})], ["b"], ["d"], [K.RENAME]),
        ([("ALTER …", {"b": "x"}), ("ALTER …", {"x": "d"})], ["b"], ["d"], [K.RENAME]),
        ([("ALTER …", {"a": "b", "b": "a"})], ["a", "b"], ["b", "a"], [K.RENAME, K.RENAME]),
        ([("ALTER … DROP b, ADD d", {})], ["b"], ["d"], [K.DROP, K.ADD]),
        ([("ALTER … MODIFY a … AFTER b", {})], ["a", "b"], ["b", "a"], [K.MOVE]),
        ([("ALTER …", {"b": None})], ["a", "b"], ["a", "b"], [K.REPLACE]),
        ([("ALTER …", {"b": None}), ("ALTER …", {"a": "b"})], ["a", "b"], ["b"], [K.RENAME, K.DROP]),
        ([("ALTER …", {"B": None, "a": "b"})], ["a", "b"], ["b"], [K.RENAME, K.DROP]),
        ([("ALTER …", {"b": "e"}), ("ALTER …", {"e": None})], ["b"], ["b"], [K.REPLACE]),
        ([("ALTER …", {"a": None, "b": "e"})], ["a", "b"], ["a", "b"], [K.REPLACE]),
        ([("ALTER …", {"b": "e"})], ["b"], ["d"], [K.DROP, K.ADD]),
        ([("ALTER …", {"b": "d"}), ("ALTER … ADD b", {})], ["b"], ["d", "b"], [K.RENAME, K.ADD]),
    ],
)
def test_statements_tell_what_was_renamed(
    statements: list[Any], old: list[str], new: list[str], found: list[Kind]
) -> None:
    cause = Cause(statements, tells_all=True)
    assert kinds([ID, *map(column, old)], [ID, *map(column, new)], cause) == found


@pytest.mark.parametrize(
    ("statement", "kind"),
    [
        ("ALTER TABLE t MODIFY a ENUM('y','x')", K.LABELS),
        ("ALTER TABLE t CONVERT TO CHARACTER SET ucs2", K.CHARSET),
        ("ALTER TABLE t MODIFY a INT NOT NULL", K.NULLABILITY),
        ("ALTER TABLE t EXCHANGE PARTITION p WITH TABLE u", K.PARTITIONS),
        ("RENAME TABLE t TO _t_old, _t_gho TO t", K.RENAME_TABLE),
        ("ALTER TABLE t DROP a, ADD a INT", K.ROWS),
    ],
)
def test_statements_that_leave_the_columns(statement: str, kind: Kind) -> None:
    assert kinds([ID], [ID], Cause([(statement, {})], is_read_again=True, tells_all=True)) == [kind]


@pytest.mark.parametrize(
    ("old", "new", "kind"),
    [
        ("smallint", "int", K.WIDEN),
        ("int", "bigint", K.WIDEN),
        ("int", "decimal(10,0)", K.WIDEN),
        ("int", "decimal(9,0)", K.NARROW),
        ("bigint", "decimal(20,0)", K.WIDEN),
        ("decimal(10,2)", "decimal(12,4)", K.WIDEN),
        ("decimal(10,2)", "decimal(12,5)", K.NARROW),
        ("decimal(9,4)", "decimal(9,2)", K.NARROW),
        ("decimal(20,0)", "bigint", K.NARROW),
        ("bigint", "int", K.NARROW),
        ("float", "double", K.WIDEN),
        ("int", "double", K.WIDEN),
        ("bigint", "double", K.TYPE),
        ("double", "float", K.NARROW),
        ("date", "timestamp_ntz", K.WIDEN),
        ("date", "timestamp", K.NARROW),
        ("int", "string", K.TYPE),
        ("string", "int", K.TYPE),
        ("string", "string", K.TYPE),
        ("boolean", "int", K.TYPE),
    ],
)
def test_types(old: str, new: str, kind: Kind) -> None:
    assert kind_of(old, new) is kind


@pytest.mark.parametrize(
    ("old", "new", "kind"),
    [
        ("character varying(10)", "character varying(20)", K.WIDEN),
        ("character varying(10)", "character varying", K.WIDEN),
        ("character varying", "text", K.WIDEN),
        ("text", "character varying(20)", K.NARROW),
        ("character(10)", "character(20)", K.TYPE),
        ("datetime(0)", "datetime(6)", K.WIDEN),
        ("timestamp(6) with time zone", "timestamp(0) with time zone", K.NARROW),
        ("timestamp without time zone", "timestamp(6) without time zone", K.WIDEN),
        ("time(3)", "text", K.TYPE),
        ("bit(10)", "bit(20)", K.TYPE),
        ("mood", "text", K.TYPE),
    ],
)
def test_types_of_sources_that_are_one_type(old: str, new: str, kind: Kind) -> None:
    assert kind_of("string", "string", old, new) is kind


def raw(*rows: tuple[str, str | None]) -> list[dict[str, Any]]:
    """Rows of a raw table, by their operations and what is after."""
    names = ("op", "after", "epoch", "commit_lsn", "ordinal", "committed_at")
    return [
        dict(zip(names, (op, after, 1, 100 + place, 1, datetime(2026, 1, 31, tzinfo=UTC)), strict=True))
        for place, (op, after) in enumerate(rows)
    ]


def schema(*names: str) -> tuple[str, str]:
    columns = [{"name": each, "type": "int", "source_type": "int", "key": each == "id"} for each in names]
    return "schema", json.dumps(columns)


def statement(text: str, **renamed: str) -> tuple[str, str]:
    return "statement", json.dumps({"statement": text, "renamed": renamed})


def test_a_change_is_where_it_began() -> None:
    found = changes_in(
        "shop.t",
        raw(
            schema("id", "a"),
            ("insert", "{}"),
            ("truncate", "it is read again"),
            statement("ALTER TABLE t CHANGE a b INT", a="b"),
            ("insert", "{}"),
            schema("id", "b"),
        ),
    )
    assert [(str(each.at), each.difference.kind, each.statement) for each in found] == [
        ("1.102.1", K.RENAME, "ALTER TABLE t CHANGE a b INT")
    ]


@pytest.mark.parametrize(
    ("rows", "found"),
    [
        ([schema("id"), schema("id")], []),
        ([("truncate", None), schema("id")], []),
        ([schema("id"), ("truncate", None), schema("id")], [K.TRUNCATE]),
        ([schema("id"), ("truncate", None), schema("id", "a")], [K.TRUNCATE, K.ADD]),
        ([schema("id"), ("truncate", "again"), schema("id", "a")], [K.ADD_FILLED]),
        ([schema("id"), ("hold", "why"), schema("id", "a")], [K.ADD_FILLED]),
        ([schema("id"), ("hold", "why"), schema("id")], [K.UNKNOWN]),
        ([schema("id"), ("truncate", "again"), schema("id")], []),  # by foreign keys
        ([schema("id"), statement("ALTER TABLE t FORCE"), ("truncate", "again"), schema("id")], [K.ROWS]),
        ([schema("id"), statement("ALTER TABLE t ADD c INT"), schema("id", "c")], [K.ADD]),
    ],
)
def test_rows_between(rows: list[tuple[str, str | None]], found: list[Kind]) -> None:
    assert [each.difference.kind for each in changes_in("shop.t", raw(*rows))] == found


def test_what_blocks_a_table_counts_until_its_rows_are_gone() -> None:
    rows = [schema("id"), ("hold", "why"), schema("id", "a")]
    assert [each.blocked for each in changes_in("shop.t", raw(*rows))] == ["why"]
    assert [each.blocked for each in changes_in("shop.t", raw(*rows, ("truncate", None)))] == [None, None]


@pytest.mark.parametrize(
    ("row", "found"),
    [
        (statement("ALTER TABLE t DROP b, ADD d INT"), [K.DROP, K.ADD]),
        (statement("alter table t RENAME COLUMN b TO d", b="d"), [K.RENAME]),
        (statement("RENAME TABLE t TO _t_old, _t_gho TO t"), [K.UNCLEAR]),
        (statement("ALTER TABLE u RENAME TO t"), [K.UNCLEAR]),
        (statement("DROP TABLE t"), [K.UNCLEAR]),
        (statement("/* hm */ ALTER TABLE t DROP b, ADD d INT"), [K.UNCLEAR]),
        (("statement", json.dumps({"statement": "ALTER TABLE t CHANGE b d INT"})), [K.UNCLEAR]),  # Debezium's
    ],
)
def test_what_statements_say_for_certain(row: tuple[str, str], found: list[Kind]) -> None:
    rows = raw(schema("id", "b"), row, schema("id", "d"))
    assert [each.difference.kind for each in changes_in("shop.t", rows)] == found


def test_a_new_epoch_is_no_change() -> None:
    rows = raw(schema("id"), statement("ALTER TABLE t FORCE"), ("truncate", "again"), schema("id"))
    assert changes_in("shop.t", [*rows[:1], *(each | {"epoch": 2} for each in rows[2:])]) == []


A, AB = (schema_of(DescribedColumn(name, "int", "int", name == "a", False) for name in names) for names in ("a", "ab"))
EMPTIED, AGAIN, INCOMPLETE = ("truncate", None), ("truncate", "again"), ("incomplete", "why")
OF_A, OF_AB, COMPLETE, ROW = ("schema", A.text), ("schema", AB.text), ("complete", None), ("insert", "{}")


@pytest.mark.parametrize(
    ("rows", "begin"),
    [
        ([OF_A, ROW], None),
        ([OF_A, EMPTIED, OF_A, ROW], None),
        ([EMPTIED, OF_A, ROW], 0),
        ([OF_A, AGAIN, OF_AB, ROW], None),
        ([OF_A, AGAIN, OF_AB, ROW, COMPLETE], 1),
        ([OF_A, EMPTIED, AGAIN, OF_AB, ROW], 1),
        ([OF_A, AGAIN, OF_AB, COMPLETE, ROW, AGAIN, OF_AB, COMPLETE, EMPTIED, OF_AB], 1),
        ([OF_A, AGAIN, OF_A, AGAIN, OF_AB, COMPLETE], 3),
        ([OF_A, EMPTIED, INCOMPLETE, OF_AB, ROW], 1),
        ([OF_A, INCOMPLETE, EMPTIED, OF_AB, ROW], None),
        ([OF_A, INCOMPLETE, EMPTIED, OF_AB, ROW, COMPLETE], 2),
        ([OF_AB, AGAIN, OF_A, AGAIN, OF_AB, COMPLETE], 3),
    ],
)
def test_from_where_on_rows_count_for_the_latest_columns(rows: list[tuple[str, str | None]], begin: int | None) -> None:
    made = raw(*rows)
    history = history_in("shop.t", made)
    places = [(each["epoch"], each["commit_lsn"], each["ordinal"]) for each in made]
    form = AB.form if OF_AB in rows else A.form
    assert begin_of(history, form, None) == (None if begin is None else places[begin])
