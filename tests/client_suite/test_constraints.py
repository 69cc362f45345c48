"""Primary and foreign keys, which the metastore remembers and nobody enforces."""

from typing import Any

import pytest

from lake.protocol.connection.thrift_client import ThriftClient
from lake.protocol.hive import (
    AddForeignKeyRequest,
    AddPrimaryKeyRequest,
    DropConstraintRequest,
    ForeignKeysRequest,
    InvalidObjectException,
    MetaException,
    NoSuchObjectException,
    PrimaryKeysRequest,
    SQLForeignKey,
    SQLPrimaryKey,
)
from tests.support.builders import storage, table
from tests.support.expect import UNDECLARED, refused


def primary_key(db: str, column: str = "a", table: str = "t", **fields: Any) -> SQLPrimaryKey:
    defaults: dict[str, Any] = {"key_seq": 1, "pk_name": f"pk_{db}_{table}"}
    flags = {"enable_cstr": False, "validate_cstr": False, "rely_cstr": True}
    return SQLPrimaryKey(table_db=db, table_name=table, column_name=column, **(flags | defaults | fields))


def foreign_key(db: str, child: str = "u", **fields: Any) -> SQLForeignKey:
    """From column a of `child` to column a of `p`."""
    defaults: dict[str, Any] = {
        "pktable_db": db,
        "pktable_name": "p",
        "pkcolumn_name": "a",
        "fktable_db": db,
        "fktable_name": child,
        "fkcolumn_name": "a",
        "key_seq": 1,
        "update_rule": 1,
        "delete_rule": 2,
        "fk_name": f"fk_{db}_{child}",
        "pk_name": f"pk_{db}_p",
        "enable_cstr": True,
        "validate_cstr": False,
        "rely_cstr": True,
    }
    return SQLForeignKey(**(defaults | fields))


def primary_keys(client: ThriftClient, db: str, name: str = "t") -> list[SQLPrimaryKey]:
    found = client.get_primary_keys(PrimaryKeysRequest(db_name=db, tbl_name=name)).primaryKeys
    for key in found:
        key.catName = None
    return found


def foreign_keys(client: ThriftClient, db: str, child: str = "u", **parent: str) -> list[SQLForeignKey]:
    request = ForeignKeysRequest(foreign_db_name=db, foreign_tbl_name=child, **parent)
    found = client.get_foreign_keys(request).foreignKeys
    for key in found:
        key.catName = None
    return found


@pytest.fixture(autouse=True)
def tables(client: ThriftClient, db: str) -> None:
    """Table `t` with a primary key of a and b, `p` with one of a, `u` without."""
    keys = [primary_key(db), primary_key(db, "b", key_seq=2)]
    client.create_table_with_constraints(table(db, sd=storage("a:int", "b:int")), keys, [])
    client.create_table_with_constraints(table(db, "p", sd=storage("a:int")), [primary_key(db, table="p")], [])
    client.create_table_with_constraints(table(db, "u", sd=storage("a:int", "b:int")), None, None)


class TestPrimaryKeys:
    def test_read_back_as_created(self, client: ThriftClient, db: str) -> None:
        assert primary_keys(client, db) == [primary_key(db), primary_key(db, "b", key_seq=2)]

    def test_a_table_without(self, client: ThriftClient, db: str) -> None:
        assert primary_keys(client, db, "u") == []
        assert primary_keys(client, db, "no_such") == []

    def test_the_columns_must_exist(self, client: ThriftClient, db: str) -> None:
        with refused(InvalidObjectException):
            client.create_table_with_constraints(
                table(db, "w", sd=storage("a:int")), [primary_key(db, "nosuch", "w")], []
            )

    def test_added_later(self, client: ThriftClient, db: str) -> None:
        client.add_primary_key(AddPrimaryKeyRequest(primaryKeyCols=[primary_key(db, table="u")]))
        assert primary_keys(client, db, "u") == [primary_key(db, table="u")]

    def test_only_one(self, client: ThriftClient, db: str) -> None:
        another = primary_key(db, "b", pk_name=f"other_{db}")
        with refused(MetaException, message=f"Primary key already exists for: {db}.t"):
            client.add_primary_key(AddPrimaryKeyRequest(primaryKeyCols=[another]))

    def test_a_name_is_made_up(self, client: ThriftClient, db: str) -> None:
        client.add_primary_key(AddPrimaryKeyRequest(primaryKeyCols=[primary_key(db, table="u", pk_name=None)]))
        (key,) = primary_keys(client, db, "u")
        assert key.pk_name

    def test_missing_table(self, client: ThriftClient, db: str) -> None:
        with refused(NoSuchObjectException, InvalidObjectException, MetaException, UNDECLARED):
            client.add_primary_key(AddPrimaryKeyRequest(primaryKeyCols=[primary_key(db, table="no_such")]))

    def test_dropped(self, client: ThriftClient, db: str) -> None:
        client.drop_constraint(DropConstraintRequest(dbname=db, tablename="t", constraintname=f"pk_{db}_t"))
        assert primary_keys(client, db) == []

    def test_follow_a_renamed_table(self, client: ThriftClient, db: str) -> None:
        new = client.get_table(db, "t")
        new.tableName = "renamed"
        client.alter_table(db, "t", new)
        assert [key.column_name for key in primary_keys(client, db, "renamed")] == ["a", "b"]


class TestForeignKeys:
    def test_read_back_as_created(self, client: ThriftClient, db: str) -> None:
        created = table(db, "w", sd=storage("a:int"))
        client.create_table_with_constraints(created, [], [foreign_key(db, "w")])
        assert foreign_keys(client, db, "w") == [foreign_key(db, "w")]

    def test_added_later_and_found_by_child_or_both(self, client: ThriftClient, db: str) -> None:
        client.add_foreign_key(AddForeignKeyRequest(foreignKeyCols=[foreign_key(db)]))
        assert foreign_keys(client, db) == [foreign_key(db)]
        assert foreign_keys(client, db, parent_db_name=db, parent_tbl_name="p") == [foreign_key(db)]
        assert foreign_keys(client, db, parent_db_name=db, parent_tbl_name="other") == []

    def test_none(self, client: ThriftClient, db: str) -> None:
        assert foreign_keys(client, db) == []
        assert foreign_keys(client, db, "no_such") == []

    @pytest.mark.parametrize("wrong", [{"pkcolumn_name": "nosuch"}, {"pktable_name": "nosuch"}])
    def test_parent_table_and_column_must_exist(self, client: ThriftClient, db: str, wrong: dict[str, str]) -> None:
        with refused(NoSuchObjectException, InvalidObjectException, MetaException, UNDECLARED):
            client.add_foreign_key(AddForeignKeyRequest(foreignKeyCols=[foreign_key(db, **wrong)]))
        assert foreign_keys(client, db) == []

    def test_dropped(self, client: ThriftClient, db: str) -> None:
        client.add_foreign_key(AddForeignKeyRequest(foreignKeyCols=[foreign_key(db)]))
        request = DropConstraintRequest(dbname=db, tablename="u", constraintname=f"fk_{db}_u")
        client.drop_constraint(request)
        assert foreign_keys(client, db) == []
        with refused(NoSuchObjectException, UNDECLARED):
            client.drop_constraint(request)

    def test_a_dropped_parent_takes_them_along(self, client: ThriftClient, db: str) -> None:
        client.add_foreign_key(AddForeignKeyRequest(foreignKeyCols=[foreign_key(db)]))
        client.drop_table(db, "p", True)
        assert foreign_keys(client, db) == []
