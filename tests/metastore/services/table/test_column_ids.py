"""The ids of lake tables' columns, and changes of columns that are refused."""

import json
from collections.abc import Mapping

import pytest

from lake.protocol.formats import spark_schema
from lake.protocol.formats.column_ids import COLUMN_IDS, ColumnIds
from lake.protocol.formats.hive_types import keeps_fields
from lake.protocol.hive import InvalidOperationException, Table
from lake.protocol.lake import BeginInstantRequest, Column, CompleteInstantRequest, DataFile, TableReference
from metastore.services.instant_rules.keyed_tables import definition
from metastore.services.wiring import Metastore
from tests.support import builders

KEYED = {"primary-key": "id"}
COLUMNS = ("id:bigint", "a:int", "b:string")


def make(metastore: Metastore, db: str, parameters: Mapping[str, str], *columns: str) -> None:
    sd = builders.parquet(*(columns or COLUMNS))
    metastore.tables.create(builders.table(db, sd=sd, parameters=dict(parameters)), {})


def write(metastore: Metastore, db: str, *columns: str, replaces: bool = False) -> None:
    """Completes an instant that adds a file, in place of all others if it `replaces` them, and gives the table these
    columns."""
    named = TableReference(database=db, table="t")
    action = "replacecommit" if replaces else "commit"
    begun = metastore.timeline.begin(BeginInstantRequest(named, action, state="inflight"))
    at = begun.timestamp or ""
    file = DataFile("", f"bucket-{at[-5:]}", at, f".instants/{at}.{action}/{at}.parquet", size=1)
    given = [Column(*each.split(":", 1)) for each in columns] or None
    found = definition(metastore.tables.get(db, "t"))
    request = CompleteInstantRequest(
        named,
        at,
        action,
        added=[file],
        columns=given,
        layout=found and found.layout(),
        replacedPartitions=[""] if replaces else None,
    )
    metastore.instant_completion.complete([request])


def alter(metastore: Metastore, db: str, *columns: str, **parameters: str) -> None:
    table = metastore.tables.get(db, "t")
    assert table.sd is not None
    changed = table.replace(
        sd=table.sd.replace(cols=builders.columns(*columns)), parameters={**(table.parameters or {}), **parameters}
    )
    metastore.tables.alter(db, "t", changed, {}, incompatible_types_allowed=True)


def ids(table: Table) -> dict[str, int]:
    assert table.sd is not None
    return ColumnIds.of(table.parameters or {}, [each.name or "" for each in table.sd.cols or ()]).now()


@pytest.mark.parametrize("how", ["alter", "commit"])
@pytest.mark.parametrize("parameters", [{}, KEYED], ids=["unkeyed", "keyed"])
def test_ids_stay_with_columns(metastore: Metastore, db: str, parameters: Mapping[str, str], how: str) -> None:
    make(metastore, db, {**parameters, "timeline.schema-changes": "any"})
    write(metastore, db)
    change = alter if how == "alter" else write
    for columns, expected in (
        (("b:string", "id:bigint", "a:int"), {"id": 1, "a": 2, "b": 3}),
        (("id:bigint", "a:int", "b:string", "c:int"), {"id": 1, "a": 2, "b": 3, "c": 4}),
        (("c:bigint", "b:string", "id:bigint", "a:int"), {"id": 1, "a": 2, "b": 3, "c": 4}),
        (("c:bigint", "id:bigint", "a:int"), {"id": 1, "a": 2, "c": 4}),
        (("c:bigint", "d:int", "id:bigint", "a:int"), {"id": 1, "a": 2, "c": 4, "d": 5}),
    ):
        change(metastore, db, *columns)
        assert ids(metastore.tables.get(db, "t")) == expected


@pytest.mark.parametrize("how", ["alter", "commit"])
@pytest.mark.parametrize("parameters", [{}, KEYED], ids=["unkeyed", "keyed"])
@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (("id:bigint", "x:int", "y:string"), "a, b would go and x, y come at once"),
        (("id:bigint", "b:string", "x:int"), "a would go and x come at once"),
        (("id:bigint", "x:int"), "a, b would go and x come at once"),
        (("id:bigint", "x:int", "b:string", "c:int"), "a would go and x, c come at once"),
        (("id:bigint", "a:int", "x:date"), "b would go and x come at once"),
    ],
)
def test_what_may_be_a_rename_or_a_drop_is_refused(
    metastore: Metastore, db: str, parameters: Mapping[str, str], how: str, columns: tuple[str, ...], message: str
) -> None:
    make(metastore, db, {**parameters, "timeline.schema-changes": "any"})
    write(metastore, db)
    before = metastore.tables.get(db, "t")
    with pytest.raises(InvalidOperationException, match=f"{db}.t: {message}, which may be a rename, or a drop"):
        (alter if how == "alter" else write)(metastore, db, *columns)
    assert metastore.tables.get(db, "t") == before


def test_columns_of_a_completion_that_replaces_all_files(metastore: Metastore, db: str) -> None:
    """No file is left that has other names, so that these can't be understood in two ways, and all types are right."""
    make(metastore, db, {**KEYED, "timeline.schema-changes": "any"})
    write(metastore, db)
    columns = ("id:string", "y:date", "b:int", "x:int")
    with pytest.raises(InvalidOperationException, match=r"primary-key can't be changed|which may be a rename"):
        write(metastore, db, *columns)
    write(metastore, db, *columns, replaces=True)
    assert ids(metastore.tables.get(db, "t")) == {"id": 1, "b": 3, "y": 4, "x": 5}
    write(metastore, db, "id:string", "a:date", replaces=True)
    assert ids(metastore.tables.get(db, "t")) == {"id": 1, "a": 6}
    with pytest.raises(InvalidOperationException, match="which may be a rename"):
        write(metastore, db, "id:string", "b:string", "c:int")


def test_columns_that_others_find_by_name(metastore: Metastore, db: str) -> None:
    """Hive and Spark read the files of tables without a key themselves, by the names of their columns."""
    make(metastore, db, {})
    alter(metastore, db, "id:bigint", "x:int", "b:string")  # no lake table so far
    alter(metastore, db, *COLUMNS)
    write(metastore, db)
    with pytest.raises(InvalidOperationException, match=r"a can't be renamed to x: .* Add a column of another name"):
        alter(metastore, db, "id:bigint", "x:int", "b:string")
    alter(metastore, db, "id:bigint", "b:string")
    with pytest.raises(InvalidOperationException, match=r"a can't be added again: .* Add a column of another name"):
        alter(metastore, db, "id:bigint", "b:string", "a:int")
    with pytest.raises(InvalidOperationException, match=r"a can't be added again"):
        write(metastore, db, "id:bigint", "b:string", "A:int")
    alter(metastore, db, "id:bigint", "b:string", "c:int")


@pytest.mark.parametrize("parameters", [{}, KEYED], ids=["unkeyed", "keyed"])
def test_types_are_those_of_the_columns_names(metastore: Metastore, db: str, parameters: Mapping[str, str]) -> None:
    """Hive compares the types of columns at the same position, which a drop in the middle changes."""
    make(metastore, db, parameters, "id:bigint", "a:string", "b:struct<x:int>", "c:date")
    write(metastore, db)
    table = metastore.tables.get(db, "t")
    assert table.sd is not None
    for columns in (("id:bigint", "b:struct<x:int>", "c:date"), ("id:bigint", "c:date")):
        metastore.tables.alter(db, "t", table.replace(sd=table.sd.replace(cols=builders.columns(*columns))), {})
    with pytest.raises(InvalidOperationException, match=r"types incompatible .*:\nc$"):
        metastore.tables.alter(
            db, "t", table.replace(sd=table.sd.replace(cols=builders.columns("id:bigint", "c:int"))), {}
        )


NESTED = "struct<x:int,y:array<struct<z:int>>>"


@pytest.mark.parametrize("parameters", [{}, KEYED], ids=["unkeyed", "keyed"])
def test_fields_of_structs(metastore: Metastore, db: str, parameters: Mapping[str, str]) -> None:
    make(metastore, db, {**parameters, "timeline.schema-changes": "any"}, "id:bigint", f"a:{NESTED}")
    write(metastore, db)
    for kind in ("struct<x:int>", "struct<x:int,w:array<struct<z:int>>>", "struct<x:int,y:array<struct<v:int>>>"):
        for change in (alter, write):
            with pytest.raises(InvalidOperationException, match="the column a can't become"):
                change(metastore, db, "id:bigint", f"a:{kind}")
    alter(metastore, db, "id:bigint", "a:struct<X:bigint, y:array<struct<z:int,v:int>>,w:int>")


def test_types_in_types() -> None:
    deep = "array<" * 5_000 + "int" + ">" * 5_000
    assert keeps_fields(deep, deep)
    assert not keeps_fields(deep, deep.replace("int", "bigint"))
    assert keeps_fields("map<string,struct<a:int>>", "map<string,struct<a:int,b:int>>")
    assert not keeps_fields("map<string,struct<a:int>>", "map<string,struct<b:int,a:int>>")
    assert not keeps_fields("struct<a:int>", "string")
    assert keeps_fields("decimal(10,2)", "decimal(12,2)")


def test_nobody_else_sets_ids(metastore: Metastore, db: str) -> None:
    make(metastore, db, {**KEYED, COLUMN_IDS: "[]"})
    assert COLUMN_IDS not in (metastore.tables.get(db, "t").parameters or {})
    write(metastore, db)
    alter(metastore, db, "id:bigint", "b:string")
    stored = (metastore.tables.get(db, "t").parameters or {})[COLUMN_IDS]
    alter(metastore, db, "id:bigint", "b:string", **{COLUMN_IDS: "[]", "comment": "new"})
    bare = metastore.tables.get(db, "t").replace(parameters=dict(KEYED))
    metastore.tables.alter(db, "t", bare, {})
    assert (metastore.tables.get(db, "t").parameters or {})[COLUMN_IDS] == stored
    copy = metastore.tables.get(db, "t").replace(tableName="u", sd=builders.parquet("id:bigint", "b:string"))
    metastore.tables.create(copy, {})
    assert ids(metastore.tables.get(db, "u")) == {"id": 1, "b": 2}


def test_tables_of_others_change_as_in_hive(metastore: Metastore, db: str) -> None:
    for parameters in ({"spark.sql.sources.provider": "hudi"}, {"table_type": "ICEBERG"}):
        make(metastore, db, parameters)
        write(metastore, db)
        alter(metastore, db, "x:int", "y:int")
        alter(metastore, db, *COLUMNS)
        assert COLUMN_IDS not in (metastore.tables.get(db, "t").parameters or {})
        metastore.tables.drop(db, "t", delete_data=True)


def test_sparks_schema_follows(metastore: Metastore, db: str) -> None:
    """Hive doesn't know the schema that Spark keeps of its own tables."""
    types = {"Id": "long", "a": "integer", "B": "timestamp_ntz", "dt": "string"}
    fields = [{"name": name, "type": kind, "nullable": True, "metadata": {}} for name, kind in types.items()]
    schema = spark_schema.split(json.dumps({"type": "struct", "fields": fields}))
    further = {"spark.sql.sources.provider": "parquet", "spark.sql.sources.schema.numPartCols": "1"}
    parameters = {"primary-key": "id,dt", **schema, **further}
    sd = builders.parquet("id:bigint", "a:int", "b:timestamp")
    metastore.tables.create(builders.table(db, sd=sd, keys=("dt",), parameters=parameters), {})
    alter(metastore, db, "id:bigint", "b:timestamp")
    found = metastore.tables.get(db, "t").parameters or {}
    assert json.loads(spark_schema.joined(found) or "")["fields"] == [fields[0], fields[2], fields[3]]
    assert found["spark.sql.sources.schema.numPartCols"] == "1"
