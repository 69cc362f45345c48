"""The table of an index's data: the server makes it with the index, and deletes no other with it."""

from typing import Any

import pytest
from sqlalchemy import update

from lake.protocol.hive import Catalog, Index, InvalidObjectException, MetaException, NoSuchObjectException, Table
from metastore.services.wiring import Metastore
from metastore.store.schema.table import table_indexes
from tests.support.builders import database, storage, table
from tests.support.target import local_path


def index(db: str, data: str, **fields: Any) -> Index:
    return Index("i", "handler", db, "t", 0, 0, data, storage("id:bigint"), {}, False, **fields)


def data_table(db: str, name: str = "data", **fields: Any) -> Table:
    return table(db, name, tableType="INDEX_TABLE", **fields)


@pytest.fixture
def home(metastore: Metastore, db: str) -> str:
    """A database with a table `t`, and the database `other_…` with a table `data`."""
    metastore.tables.create(table(db), {})
    metastore.databases.create(database(f"other_{db}"))
    metastore.tables.create(table(f"other_{db}", "data"), {})
    return db


@pytest.mark.parametrize("sent", ["nothing", "one of its own database", "the other"])
def test_no_table_of_another_database(metastore: Metastore, home: str, sent: str) -> None:
    """Not even a name that is free."""
    other = f"other_{home}"
    for name in ("data", "free"):
        tables = {"nothing": None, "one of its own database": data_table(home), "the other": data_table(other, name)}
        with pytest.raises(InvalidObjectException):
            metastore.indexes.add(index(home, f"{other}.{name}"), tables[sent])
    assert metastore.indexes.of_table(home, "t") == []
    assert metastore.tables.names(home, "*") == ["t"]
    assert metastore.tables.names(other, "*") == ["data"]


def test_no_table_that_is_there(metastore: Metastore, home: str) -> None:
    metastore.tables.create(table(home, "data"), {})
    for name in ("data", f"{home}.data", "t", "free"):
        with pytest.raises(InvalidObjectException, match="the table is made with the index"):
            metastore.indexes.add(index(home, name), None)
    assert metastore.indexes.of_table(home, "t") == []


def test_no_table_of_another_name(metastore: Metastore, home: str) -> None:
    for sent in (data_table(home, "another"), data_table(f"other_{home}"), data_table(home, catName="elsewhere")):
        with pytest.raises(InvalidObjectException, match="the table sent for its data is not"):
            metastore.indexes.add(index(home, "data"), sent)
    assert metastore.tables.names(home, "*") == ["t"]


def test_its_own_database_may_be_named(metastore: Metastore, home: str) -> None:
    metastore.indexes.add(index(home, f"{home.upper()}.Data"), data_table(home))
    metastore.indexes.drop(home, "t", "i", delete_data=True)
    assert metastore.tables.names(home, "*") == ["t"]


@pytest.mark.parametrize("of", ["index", "table"])
def test_a_renamed_one_goes_along_and_no_other_of_its_old_name(metastore: Metastore, home: str, of: str) -> None:
    metastore.indexes.add(index(home, "data"), data_table(home))
    made = metastore.tables.get(home, "data")
    metastore.tables.alter(home, "data", made.replace(dbName=f"other_{home}", tableName="moved"), {})
    moved = metastore.tables.get(f"other_{home}", "moved")
    metastore.tables.create(table(home, "data"), {})
    if of == "index":
        metastore.indexes.drop(home, "t", "i", delete_data=True)
    else:
        metastore.tables.drop(home, "t", delete_data=True)
    assert metastore.tables.names(f"other_{home}", "*") == ["data"]
    assert "data" in metastore.tables.names(home, "*")
    assert moved.sd is not None and not local_path(moved.sd.location or "").exists()


def test_in_another_catalog(metastore: Metastore, home: str, tmp_path: Any) -> None:
    """What bears the same names in the default catalog stays."""
    metastore.catalogs.create(Catalog(f"c_{home}", None, f"file:{tmp_path}/c"))
    metastore.databases.create(database(home, catalogName=f"c_{home}"))
    metastore.tables.create(table(home, catName=f"c_{home}"), {})
    metastore.tables.create(table(home, "data"), {})
    metastore.indexes.add(index(f"@c_{home}#{home}", "data"), data_table(home, catName=f"c_{home}"))
    metastore.tables.drop(home, "t", delete_data=True, catalog=f"c_{home}")
    assert metastore.tables.names(home, "*") == ["data", "t"]
    assert metastore.tables.names(f"@c_{home}#{home}", "*") == []


def test_one_that_was_there_before_stays(metastore: Metastore, home: str) -> None:
    """Earlier servers took any table for an index's data. It may be dropped like any other, too."""
    metastore.indexes.add(index(home, "data"), data_table(home))
    with metastore.database.write() as tx:
        tx.execute(update(table_indexes).values(made=False))
    metastore.indexes.drop(home, "t", "i", delete_data=True)
    assert metastore.tables.names(home, "*") == ["data", "t"]
    assert metastore.indexes.of_table(home, "t") == []


def test_whoever_owns_one_that_was_there_before_drops_it(metastore: Metastore, home: str) -> None:
    metastore.indexes.add(index(home, "data"), data_table(home))
    with pytest.raises(MetaException, match="Please do drop index instead"):
        metastore.tables.drop(home, "data", delete_data=True)
    with metastore.database.write() as tx:
        tx.execute(update(table_indexes).values(made=False))
    metastore.tables.drop(home, "data", delete_data=True)
    with pytest.raises(NoSuchObjectException):
        metastore.indexes.get(home, "t", "i")
