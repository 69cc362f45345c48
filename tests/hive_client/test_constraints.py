"""Primary and foreign keys through Hive's Java client."""

import pytest

from lake.protocol.hive import (
    ForeignKeysRequest,
    MetaException,
    NoSuchObjectException,
    PrimaryKeysRequest,
    SQLForeignKey,
    SQLPrimaryKey,
)
from tests.hive_client.conftest import HiveClient, JavaFailure
from tests.support.builders import table


def primary_key(db: str, name: str | None, column: str = "id", sequence: int = 1) -> SQLPrimaryKey:
    return SQLPrimaryKey(db, "parent", column, sequence, name, False, False, True)


def foreign_key(db: str, name: str | None) -> SQLForeignKey:
    return SQLForeignKey(
        pktable_db=db,
        pktable_name="parent",
        pkcolumn_name="id",
        fktable_db=db,
        fktable_name="child",
        fkcolumn_name="id",
        key_seq=1,
        update_rule=0,
        delete_rule=0,
        fk_name=name,
        pk_name="parent_key",
        enable_cstr=False,
        validate_cstr=False,
        rely_cstr=True,
    )


def test_made_with_the_table(client: HiveClient, db: str) -> None:
    client.createTableWithConstraints(table(db, "parent"), [primary_key(db, "parent_key")], [])
    client.createTableWithConstraints(table(db, "child"), [], [foreign_key(db, "child_key")])
    (key,) = client.getPrimaryKeys(PrimaryKeysRequest(db, "parent"))
    assert (key.column_name, key.key_seq, key.pk_name, key.rely_cstr) == ("id", 1, "parent_key", True)
    (key,) = client.getForeignKeys(ForeignKeysRequest(db, "parent", db, "child"))
    assert (key.fkcolumn_name, key.pkcolumn_name, key.fk_name) == ("id", "id", "child_key")
    assert client.getPrimaryKeys(PrimaryKeysRequest(db, "child")) == []


def test_added_and_dropped(client: HiveClient, db: str) -> None:
    client.createTable(table(db, "parent"))
    client.createTable(table(db, "child"))
    client.addPrimaryKey([primary_key(db, "parent_key")])
    client.addForeignKey([foreign_key(db, "child_key")])
    assert len(client.getForeignKeys(ForeignKeysRequest(None, None, db, "child"))) == 1
    client.dropConstraint(db, "child", "child_key")
    assert client.getForeignKeys(ForeignKeysRequest(None, None, db, "child")) == []
    # Hive 2.3 has no exception for it, Hive 4 declares none but these.
    with pytest.raises((NoSuchObjectException, MetaException, JavaFailure)):
        client.dropConstraint(db, "child", "child_key")


def test_of_two_columns(client: HiveClient, db: str) -> None:
    client.createTable(table(db, "parent"))
    client.addPrimaryKey([primary_key(db, "parent_key", "name", 2), primary_key(db, "parent_key")])
    found = client.getPrimaryKeys(PrimaryKeysRequest(db, "parent"))
    assert sorted((each.key_seq, each.column_name) for each in found) == [(1, "id"), (2, "name")]


def test_gone_with_the_table(client: HiveClient, db: str) -> None:
    client.createTableWithConstraints(table(db, "parent"), [primary_key(db, None)], [])
    assert client.getPrimaryKeys(PrimaryKeysRequest(db, "parent"))[0].pk_name
    client.dropTable(db, "parent")
    client.createTable(table(db, "parent"))
    assert client.getPrimaryKeys(PrimaryKeysRequest(db, "parent")) == []
