"""What an alteration says of the table it has made is what the next reader finds."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import text

from lake.protocol.codec import splice
from lake.protocol.hive import FieldSchema, GetTableRequest, GetTableResult, InvalidOperationException, Table
from metastore import api
from metastore.api.methods import HANDLERS
from metastore.services.model import hive_objects
from metastore.services.table.service import TableService
from metastore.services.wiring import Metastore
from metastore.store.catalog.databases import RowLock
from metastore.store.engine.names import TableName
from metastore.store.table import altered_tables, descriptors, tables
from metastore.store.table.tables import LockedTable
from tests.support import builders
from tests.support.waiting import wait_until

api.load()


def alter(metastore: Metastore, db: str, change: Callable[[Table], None], name: str = "t") -> list[LockedTable]:
    value = metastore.tables.get(db, name)
    change(value)
    with altered_tables.collecting() as altered:
        metastore.tables.alter(db, name, value, {})
    return altered


def parameter(value: Table) -> None:
    assert value.parameters is not None
    value.parameters["mark"] = "1"


def no_parameters(value: Table) -> None:
    value.parameters = {}


def location(value: Table) -> None:
    assert value.sd is not None and value.sd.location is not None
    value.sd.location += "_elsewhere"


def columns(value: Table) -> None:
    assert value.sd is not None
    value.sd.cols = [FieldSchema("ID", "bigint", "upper case"), FieldSchema("added", "string")]


def external(value: Table) -> None:
    assert value.parameters is not None
    value.parameters["EXTERNAL"] = "TRUE"
    value.tableType = "EXTERNAL_TABLE"


def owner(value: Table) -> None:
    value.owner, value.lastAccessTime, value.retention = "somebody", 7, 8


def left_out(value: Table) -> None:
    value.owner = value.ownerType = value.tableType = value.writeId = value.catName = None


@pytest.mark.parametrize("change", [parameter, no_parameters, location, columns, external, owner, left_out])
def test_row_is_what_a_reader_finds(metastore: Metastore, db: str, change: Callable[[Table], None]) -> None:
    metastore.tables.create(builders.table(db, keys=("ds",)), {})
    [altered] = alter(metastore, db, change)
    assert altered.row == found(metastore, db)
    assert list(altered.row.parameters) == list(found(metastore, db).parameters)
    assert altered.incarnation
    assert TableService.as_asked(altered.row, db, "t") == metastore.tables.get(db, "t")


def found(metastore: Metastore, db: str, name: str = "t") -> tables.TableRow:
    with metastore.database.read() as tx:
        row = tables.find(tx, TableName("hive", db, name))
    assert row is not None
    return row


def test_row_of_a_view(metastore: Metastore, db: str) -> None:
    metastore.tables.create(builders.view(db, "v"), {})
    [altered] = alter(metastore, db, parameter, "v")
    assert altered.row == found(metastore, db, "v")


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    parameters=st.dictionaries(
        st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1, max_size=8),
        st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=8),
        max_size=12,
    )
)
def test_parameters_come_in_the_order_of_the_database(
    metastore: Metastore, db: str, parameters: dict[str, str]
) -> None:
    if "t" not in metastore.tables.names(db, "*"):
        metastore.tables.create(builders.table(db), {})

    def change(value: Table) -> None:
        value.parameters = parameters

    for altered in alter(metastore, db, change):
        stored = found(metastore, db).parameters
        assert list(altered.row.parameters.items()) == list(stored.items())


def test_renamed_and_failed_alterations_are_not_recorded(metastore: Metastore, db: str) -> None:
    metastore.tables.create(builders.table(db), {})

    def rename(value: Table) -> None:
        value.tableName = "other"

    def break_it(value: Table) -> None:
        value.partitionKeys = [FieldSchema("new", "string")]

    assert alter(metastore, db, rename) == []
    value = metastore.tables.get(db, "other")
    break_it(value)
    with altered_tables.collecting() as altered, pytest.raises(InvalidOperationException):
        metastore.tables.alter(db, "other", value, {})
    assert altered == []


def test_answers_about_one_table_follow_from_its_row(metastore: Metastore, db: str) -> None:
    metastore.tables.create(builders.table(db), {})
    row = found(metastore, db)
    plain, by_request = HANDLERS["get_table"].of_table, HANDLERS["get_table_req"].of_table
    assert plain is not None and by_request is not None
    expected = metastore.tables.get(db, "t")
    assert plain(row, db, "t") == expected
    assert by_request(row, GetTableRequest(dbName=db, tblName="t")) == GetTableResult(expected)
    # Statistics are no part of the row.
    assert by_request(row, GetTableRequest(dbName=db, tblName="t", getColumnStats=True)) is None


@pytest.mark.parametrize("changed", [columns, parameter])
def test_alteration_that_waited_for_another_one(
    metastore: Metastore, db: str, changed: Callable[[Table], None]
) -> None:
    """What it makes of the table follows from what the other one made, be it another descriptor."""
    metastore.tables.create(builders.table(db), {})
    value = metastore.tables.get(db, "t")
    changed(value)
    waiting = text("SELECT count(*) FROM pg_locks WHERE NOT granted")
    with ThreadPoolExecutor() as pool:
        with metastore.database.write() as tx:
            row = tables.find(tx, TableName("hive", db, "t"), RowLock.EXCLUSIVE)
            assert row is not None
            body = splice.descriptor_body(hive_objects.table(value).sd)
            descriptor = descriptors.keep(tx, [body])[body]
            other = hive_objects.table_values(hive_objects.table(value), descriptor)
            tables.change(tx, row.id, row.database_id, other)
            altered = pool.submit(alter_at_last, metastore, db)
            wait_until(lambda: tx.execute(waiting).scalar_one() > 0, 20, "that the other alteration waits")
        [last] = altered.result()
    assert last.row == found(metastore, db)
    assert last.row.version == row.version + 2
    assert last.row.parameters["last"] == "1"


def alter_at_last(metastore: Metastore, db: str) -> list[LockedTable]:
    def change(value: Table) -> None:
        assert value.parameters is not None
        value.parameters["last"] = "1"

    return alter(metastore, db, change)
