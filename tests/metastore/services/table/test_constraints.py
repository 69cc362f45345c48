"""Constraints: what is kept, what can't be, and what goes with what."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from lake.protocol.codec import binary
from lake.protocol.hive import (
    AlreadyExistsException,
    InvalidObjectException,
    MetaException,
    NoSuchObjectException,
    SQLAllTableConstraints,
    SQLCheckConstraint,
    SQLDefaultConstraint,
    SQLForeignKey,
    SQLNotNullConstraint,
    SQLPrimaryKey,
    SQLUniqueConstraint,
)
from metastore.services.table.constraints import ConstraintService
from metastore.services.wiring import Metastore
from metastore.store.engine.names import TableName
from metastore.store.table import constraints as stored
from metastore.store.table import tables
from tests.support import builders
from tests.support.expect import refused

FLAGS = {"enable_cstr": True, "validate_cstr": False, "rely_cstr": True}


@pytest.fixture(scope="module")
def constraints(metastore: Metastore) -> ConstraintService:
    return metastore.constraints


class Maker:
    """Makes constraints in one database, and tables with them."""

    def __init__(self, service: ConstraintService, db: str) -> None:
        self.service, self.db = service, db

    def primary(self, table: str, column: str, position: int = 1, name: str | None = None) -> SQLPrimaryKey:
        return SQLPrimaryKey(self.db, table, column, position, name, **FLAGS)

    def unique(self, table: str, column: str, position: int = 1, name: str | None = None) -> SQLUniqueConstraint:
        return SQLUniqueConstraint("hive", self.db, table, column, position, name, **FLAGS)

    def foreign(
        self, parent: str, parent_column: str, table: str, column: str, position: int = 1, name: str | None = None
    ) -> SQLForeignKey:
        return SQLForeignKey(
            pktable_db=self.db,
            pktable_name=parent,
            pkcolumn_name=parent_column,
            fktable_db=self.db,
            fktable_name=table,
            fkcolumn_name=column,
            key_seq=position,
            fk_name=name,
            update_rule=1,
            **FLAGS,
        )

    def table(self, name: str, *columns: str, keys: tuple[str, ...] = (), **wanted: Any) -> None:
        table = builders.table(self.db, name, keys=keys, sd=builders.storage(*columns))
        self.service.create_table(table, {}, SQLAllTableConstraints(**wanted))

    def add(self, **wanted: Any) -> None:
        self.service.add(SQLAllTableConstraints(**wanted))

    def primary_keys(self, table: str) -> list[tuple[str | None, int | None]]:
        found = self.service.of_table(SQLPrimaryKey, self.db, table)
        return [(key.column_name, key.key_seq) for key in found]

    def foreign_keys(self, parent: str | None, table: str | None) -> list[tuple[str | None, ...]]:
        found = self.service.foreign_keys(self.db, parent, self.db, table)
        return [(k.pktable_name, k.pkcolumn_name, k.fktable_name, k.fkcolumn_name, k.pk_name) for k in found]


@pytest.fixture
def make(constraints: ConstraintService, db: str) -> Maker:
    return Maker(constraints, db)


@pytest.fixture
def family(make: Maker) -> Maker:
    """`parent` with the primary key `id`, `child` with a foreign key to it."""
    make.table("parent", "id:int", "name", primaryKeys=[make.primary("parent", "id", name="pk_parent")])
    make.table("child", "of:int", "x", foreignKeys=[make.foreign("parent", "id", "child", "of", name="fk_child")])
    return make


class TestCreateTable:
    def test_a_primary_key(self, make: Maker) -> None:
        make.table("T", "A:int", "b", primaryKeys=[make.primary("T", "A", name="PkT")])
        assert make.service.of_table(SQLPrimaryKey, make.db.upper(), "T") == [
            SQLPrimaryKey(make.db, "t", "a", 1, "pkt", **FLAGS, catName="hive")
        ]

    def test_every_kind(self, make: Maker) -> None:
        names = ("hive", make.db, "t")
        make.table("parent", "id:int", primaryKeys=[make.primary("parent", "id", name="pkp")])
        wanted = SQLAllTableConstraints(
            primaryKeys=[make.primary("t", "a", name="pk").replace(catName="hive")],
            foreignKeys=[make.foreign("parent", "id", "t", "a", name="fk").replace(catName="hive")],
            uniqueConstraints=[make.unique("t", "b", 1, "uk"), make.unique("t", "c", 2, "uk")],
            notNullConstraints=[SQLNotNullConstraint(*names, "b", "nn", **FLAGS)],
            defaultConstraints=[SQLDefaultConstraint(*names, "c", "'x'", "dc", **FLAGS)],
            checkConstraints=[
                SQLCheckConstraint(*names, "c", "c > 1", "cc", **FLAGS),
                SQLCheckConstraint(*names, None, "a < b", "cc2", **FLAGS),
            ],
        )
        make.service.create_table(builders.table(make.db, sd=builders.storage("a:int", "b", "c")), {}, wanted)
        expected = wanted.replace(
            foreignKeys=[wanted.foreignKeys[0].replace(pk_name="pkp", delete_rule=0)]  # type: ignore[index]
        )
        assert make.service.all(make.db, "t") == expected
        assert make.service.of_table(SQLUniqueConstraint, make.db, "t") == expected.uniqueConstraints
        assert make.service.of_table(SQLNotNullConstraint, make.db, "t") == expected.notNullConstraints
        assert make.service.of_table(SQLDefaultConstraint, make.db, "t") == expected.defaultConstraints
        assert make.service.of_table(SQLCheckConstraint, make.db, "t") == expected.checkConstraints

    def test_keys_of_several_columns_come_in_the_order_of_their_positions(self, make: Maker) -> None:
        keys = [make.primary("t", "b", 2, "pk"), make.primary("t", "a", 1, "pk")]
        make.table("t", "a", "b", primaryKeys=keys)
        assert make.primary_keys("t") == [("a", 1), ("b", 2)]

    def test_names_are_made_up_one_for_a_key(self, make: Maker) -> None:
        make.table(
            "t",
            "a",
            "b",
            "c",
            primaryKeys=[make.primary("t", "a", 1), make.primary("t", "b", 2)],
            uniqueConstraints=[make.unique("t", "b", 1), make.unique("t", "c", 2), make.unique("t", "a", 1)],
        )
        primary = {key.pk_name for key in make.service.of_table(SQLPrimaryKey, make.db, "t")}
        unique = [key.uk_name for key in make.service.of_table(SQLUniqueConstraint, make.db, "t")]
        assert len(primary) == 1
        assert unique[0] == unique[1] != unique[2]
        assert None not in primary | set(unique)

    def test_partition_keys_count_as_columns(self, make: Maker) -> None:
        make.table("t", "a", keys=("p:int",), primaryKeys=[make.primary("t", "p")])
        assert make.primary_keys("t") == [("p", 1)]

    def test_a_foreign_key_to_the_table_itself(self, make: Maker) -> None:
        make.table(
            "t",
            "a:int",
            "b:int",
            primaryKeys=[make.primary("t", "a", name="pk")],
            foreignKeys=[make.foreign("t", "a", "t", "b")],
        )
        assert make.foreign_keys("t", "t") == [("t", "a", "t", "b", "pk")]

    def test_constraints_that_name_no_table_are_on_the_new_one(self, make: Maker) -> None:
        make.table("t", "a", primaryKeys=[SQLPrimaryKey(column_name="a")])
        assert make.primary_keys("t") == [("a", 1)]

    def test_fields_of_newer_clients_survive(self, make: Maker) -> None:
        extra = b"\x08\x00\x63\x00\x00\x00\x07"
        newer = binary.encode(make.primary("t", "a"))[:-1] + extra + b"\x00"
        make.table("t", "a", primaryKeys=[binary.decode_preserving(SQLPrimaryKey, newer)])
        assert make.service.of_table(SQLPrimaryKey, make.db, "t")[0].unknown == extra

    def test_what_can_not_be_leaves_no_table(self, metastore: Metastore, family: Maker) -> None:
        make = family
        for message, kind, wanted in (
            ("Parent column not found: zz", InvalidObjectException, {"primaryKeys": [make.primary("t", "ZZ")]}),
            (
                "Child column not found: zz",
                InvalidObjectException,
                {"foreignKeys": [make.foreign("parent", "id", "t", "zz")]},
            ),
            (
                "Parent table not found: none",
                InvalidObjectException,
                {"foreignKeys": [make.foreign("None", "id", "t", "a")]},
            ),
            (
                "Parent column not found: zz",
                InvalidObjectException,
                {"foreignKeys": [make.foreign("parent", "zz", "t", "a")]},
            ),
            (
                "but no corresponding primary key or unique key exists. Possible keys: [id:int;]",
                MetaException,
                {"foreignKeys": [make.foreign("parent", "name", "t", "b")]},
            ),
            (
                "Foreign key references id:string; but no corresponding",
                MetaException,
                {"foreignKeys": [make.foreign("parent", "id", "t", "b")]},
            ),
            (
                "there are no primary keys or unique keys for referenced table",
                MetaException,
                {"foreignKeys": [make.foreign("child", "x", "t", "b")]},
            ),
            (
                "Cannot be both foreign key and primary/unique key on same table",
                MetaException,
                {"primaryKeys": [make.primary("t", "a")], "foreignKeys": [make.foreign("t", "a", "t", "a")]},
            ),
            (
                " Primary key already exists for: ",
                MetaException,
                {"primaryKeys": [make.primary("t", "a"), make.primary("t", "b")]},
            ),
            (
                "Constraint name already exists: k",
                InvalidObjectException,
                {
                    "primaryKeys": [make.primary("t", "a", name="K")],
                    "uniqueConstraints": [make.unique("t", "b", name="k")],
                },
            ),
            ("a constraint on ", InvalidObjectException, {"primaryKeys": [make.primary("child", "x")]}),
            ("needs a column", MetaException, {"primaryKeys": [SQLPrimaryKey(make.db, "t")]}),
        ):
            with refused(kind, message=message):
                make.table("t", "a:int", "b", **wanted)
            with refused(NoSuchObjectException):
                metastore.tables.get(make.db, "t")

    def test_the_tables_own_checks_come_first(self, family: Maker) -> None:
        with refused(AlreadyExistsException):
            family.table("child", "a", primaryKeys=[family.primary("child", "zz")])


class TestAdd:
    def test_keys(self, family: Maker) -> None:
        family.add(primaryKeys=[family.primary("child", "x", name="pk_child")])
        assert family.primary_keys("child") == [("x", 1)]
        with refused(MetaException, message=f" Primary key already exists for: {family.db}.child"):
            family.add(primaryKeys=[family.primary("child", "of")])
        family.table("other", "a:int")
        family.add(foreignKeys=[family.foreign("parent", "id", "other", "a")])
        assert family.foreign_keys(None, "other") == [("parent", "id", "other", "a", "pk_parent")]

    def test_a_foreign_key_to_a_unique_key_of_several_columns(self, make: Maker) -> None:
        make.table(
            "p", "a:int", "b", "c", uniqueConstraints=[make.unique("p", "a", 1, "u"), make.unique("p", "b", 2, "u")]
        )
        make.table("t", "x", "y:int")
        with refused(MetaException, message="Possible keys: [a:int;b:string;]"):
            make.add(foreignKeys=[make.foreign("p", "a", "t", "y")])
        make.add(foreignKeys=[make.foreign("p", "b", "t", "x", 1), make.foreign("p", "a", "t", "y", 2)])
        assert make.foreign_keys("p", "t") == [("p", "b", "t", "x", None), ("p", "a", "t", "y", None)]

    def test_two_foreign_keys_at_once(self, family: Maker) -> None:
        family.table("other", "a:int", "b:int")
        family.add(
            foreignKeys=[
                family.foreign("parent", "id", "other", "a", name="fk_a"),
                family.foreign("parent", "id", "other", "b", name="fk_b"),
            ]
        )
        assert [k[3] for k in family.foreign_keys("parent", "other")] == ["a", "b"]

    def test_what_can_not_be(self, family: Maker) -> None:
        for wanted in (
            {"primaryKeys": [family.primary("none", "x")]},
            {"primaryKeys": [family.primary("child", "zz")]},
            {"uniqueConstraints": [family.unique("child", "x", name="fk_child")]},
            {"foreignKeys": [family.foreign("parent", "id", "none", "of")]},
            {"foreignKeys": [family.foreign("none", "id", "child", "of")]},
            {"notNullConstraints": [SQLNotNullConstraint(None, family.db, "child", "zz")]},
        ):
            with refused(InvalidObjectException):
                family.add(**wanted)
        family.add(primaryKeys=[])

    def test_two_at_once(self, family: Maker) -> None:
        """Only one of several primary keys that are added at the same time is kept."""

        def add(column: str) -> bool:
            try:
                family.add(primaryKeys=[family.primary("child", column)])
            except MetaException:
                return False
            return True

        with ThreadPoolExecutor(4) as pool:
            assert sorted(pool.map(add, ["x", "of", "x", "of"])) == [False, False, False, True]
        assert len(family.primary_keys("child")) == 1

    def test_tables_that_refer_to_each_other_at_once(self, make: Maker) -> None:
        """Requests that hold the same tables in opposite roles don't deadlock."""
        for name in ("a", "b"):
            make.table(name, "id:int", "x:int", primaryKeys=[make.primary(name, "id")])

        def add(number: int) -> None:
            parent, child = ("a", "b") if number % 2 else ("b", "a")
            make.add(foreignKeys=[make.foreign(parent, "id", child, "x")])

        with ThreadPoolExecutor(4) as pool:
            list(pool.map(add, range(20)))
        assert len(make.foreign_keys(None, None)) == 20

    def test_a_name_may_be_used_on_several_tables(self, family: Maker) -> None:
        family.add(uniqueConstraints=[family.unique("parent", "name", name="fk_child")])
        assert [u.uk_name for u in family.service.of_table(SQLUniqueConstraint, family.db, "parent")] == ["fk_child"]


class TestLookingAndDropping:
    def test_foreign_keys_from_both_sides(self, family: Maker) -> None:
        key = ("parent", "id", "child", "of", "pk_parent")
        service, db = family.service, family.db
        assert family.foreign_keys("PARENT", "Child") == [key]
        assert family.foreign_keys("parent", None) == family.foreign_keys(None, "child") == [key]
        assert family.foreign_keys("child", None) == family.foreign_keys(None, "parent") == []
        assert len(service.foreign_keys(db, "parent", None, None)) == 1
        assert len(service.foreign_keys(None, None, db, "child")) == 1
        assert len(service.foreign_keys(None, None, None, None)) >= 1

    def test_nothing_there(self, make: Maker) -> None:
        assert make.primary_keys("none") == []
        assert make.service.of_table(SQLPrimaryKey, "nowhere", "none") == []
        with refused(MetaException):
            make.service.of_table(SQLPrimaryKey, make.db, None)

    def test_a_constraint_is_dropped_by_its_name(self, family: Maker) -> None:
        with refused(NoSuchObjectException, message=f"associated table: {family.db}.child"):
            family.service.drop(family.db, "child", "none")
        with refused(NoSuchObjectException):
            family.service.drop(family.db, "none", "fk_child")
        family.service.drop(family.db, "CHILD", "FK_child")
        assert family.foreign_keys("parent", "child") == []

    def test_a_foreign_key_is_dropped_from_its_parents_side_too(self, family: Maker) -> None:
        family.service.drop(family.db, "parent", "fk_child")
        assert family.foreign_keys("parent", "child") == []
        assert family.primary_keys("parent") == [("id", 1)]

    def test_a_foreign_key_outlives_the_key_it_refers_to(self, family: Maker) -> None:
        family.service.drop(family.db, "parent", "pk_parent")
        assert family.foreign_keys("parent", "child") == [("parent", "id", "child", "of", None)]


class TestTablesThatChange:
    def test_dropped_tables_take_their_constraints_and_those_that_refer_to_them(
        self, metastore: Metastore, family: Maker
    ) -> None:
        family.add(primaryKeys=[family.primary("child", "x")])
        metastore.tables.drop(family.db, "parent", delete_data=True)
        assert family.foreign_keys(None, None) == family.primary_keys("parent") == []
        assert family.primary_keys("child") == [("x", 1)]
        metastore.tables.drop(family.db, "child", delete_data=True)
        family.table("child", "x")
        assert family.primary_keys("child") == []

    def test_dropped_databases_too(self, metastore: Metastore, family: Maker) -> None:
        metastore.databases.drop(family.db, delete_data=True, cascade=True)
        assert family.service.foreign_keys(family.db, None, family.db, None) == []

    def test_renamed_tables_keep_them(self, metastore: Metastore, family: Maker) -> None:
        for old, new in (("parent", "mother"), ("child", "daughter")):
            table = metastore.tables.get(family.db, old)
            metastore.tables.alter(family.db, old, table.replace(tableName=new), {})
        assert family.primary_keys("mother") == [("id", 1)]
        assert family.foreign_keys("mother", "daughter") == [("mother", "id", "daughter", "of", "pk_parent")]

    def test_columns_take_what_names_them(self, metastore: Metastore, family: Maker) -> None:
        family.add(
            primaryKeys=[family.primary("child", "x", 1, "pk"), family.primary("child", "of", 2, "pk")],
            uniqueConstraints=[family.unique("child", "x", name="uk")],
        )
        with metastore.database.write() as tx:
            row = tables.find(tx, TableName("hive", family.db, "child"))
            assert row is not None
            stored.remove_columns(tx, row.id, ["of"])
        assert family.primary_keys("child") == family.foreign_keys(None, "child") == []
        assert len(family.service.of_table(SQLUniqueConstraint, family.db, "child")) == 1

    def test_a_parents_column_takes_the_foreign_key(self, metastore: Metastore, family: Maker) -> None:
        with metastore.database.write() as tx:
            row = tables.find(tx, TableName("hive", family.db, "parent"))
            assert row is not None
            stored.remove_columns(tx, row.id, ["id"])
        assert family.primary_keys("parent") == family.foreign_keys("parent", None) == []

    def test_a_constraint_is_a_new_version_of_its_table(self, metastore: Metastore, family: Maker) -> None:
        def version() -> int:
            with metastore.database.read() as tx:
                row = tables.find(tx, TableName("hive", family.db, "child"))
                assert row is not None
                return row.version

        before = version()
        family.add(primaryKeys=[family.primary("child", "x", name="pk")])
        added = version()
        family.service.drop(family.db, "child", "pk")
        assert before < added < version()
