"""Constraints go back to Hive 2.3, which keeps the name of each one once, and tells some of them only as long as others
are there."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from lake.protocol.connection.thrift_client import ThriftClient
from lake.protocol.hive import (
    AddForeignKeyRequest,
    AddPrimaryKeyRequest,
    AddUniqueConstraintRequest,
    DropConstraintRequest,
    ForeignKeysRequest,
    MetaException,
    PrimaryKeysRequest,
    SQLForeignKey,
    SQLPrimaryKey,
    SQLUniqueConstraint,
)
from tests.metastore.migration.following import complaint, differences, run
from tests.support import builders
from tests.support.reference import HiveReference
from tests.support.server import MetastoreServer

TIMES = ("createTime: ", "grantInfo.createTime: ")
COLUMNS = ("id:bigint", "up:bigint", "name:string")


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MetastoreServer]:
    with MetastoreServer(tmp_path_factory.mktemp("ours") / "data", "--workers", "1") as server:
        yield server


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody else writes."""
    monkeypatch.setattr("metastore.migration.switching.cutting_over.QUIET_SECONDS", 0.1)
    monkeypatch.setattr("metastore.migration.switching.rolling_back.QUIET_SECONDS", 0.1)


class Both:
    """Hive, and the metastore that one of its databases comes to and goes back from."""

    def __init__(self, hive: HiveReference, ours: MetastoreServer, place: Path, name: str) -> None:
        self.uri, self._ours, self.name, self._place = f"thrift://{hive.host}:{hive.port}", ours, name, place
        self.old, self.here = ThriftClient.from_uri(self.uri), ThriftClient.from_uri(ours.uri)
        self._own = ("--uri", ours.uri, "--databases", name)

    def make(self, *tables: str, database: str | None = None, columns: tuple[str, ...] = COLUMNS) -> None:
        """A database there, with tables that have the columns."""
        home = database or self.name
        place = f"file:{self._place}/{home}"
        self.old.create_database(builders.database(home, locationUri=place))
        for table in tables:
            sd = builders.storage(*columns, location=f"{place}/{table}")
            self.old.create_table(builders.external_table(home, table, sd=sd))

    def come(self) -> None:
        run("import", self.uri, *self._own)
        run("cut-over", self.uri, self.name, *self._own, "--frozen-by-hand")

    def go_back(self) -> None:
        """All is the same there then."""
        run("roll-back", self.uri, self.name, *self._own, "--frozen-by-hand")
        found = differences(self.uri, self._ours, "--databases", self.name)
        assert [each for each in found if not all(part.startswith(TIMES) for part in each[2].split("; "))] == []

    def stays(self) -> str:
        """Why it can't go back."""
        return complaint("roll-back", self.uri, self.name, *self._own, "--frozen-by-hand")

    def change_columns(self, table: str, *columns: str) -> None:
        found = self.here.get_table(self.name, table)
        self.here.alter_table(self.name, table, found.replace(sd=found.sd.replace(cols=builders.columns(*columns))))

    def keys(self, table: str, database: str | None = None) -> list[tuple[str, str | None]]:
        """The columns of a table's primary key there, and its name."""
        found = self.old.get_primary_keys(PrimaryKeysRequest(database or self.name, table)).primaryKeys
        return sorted((each.column_name, each.pk_name) for each in found)

    def foreign(self, table: str, database: str | None = None) -> list[tuple[str | None, ...]]:
        """Foreign keys of a table there: name, column, and what it refers to."""
        request = ForeignKeysRequest(None, None, database or self.name, table)
        return sorted(
            (each.fk_name, each.fkcolumn_name, each.pktable_name, each.pkcolumn_name)
            for each in self.old.get_foreign_keys(request).foreignKeys
        )


def primary(client: ThriftClient, database: str, table: str, name: str, *columns: str) -> None:
    keys = [SQLPrimaryKey(database, table, each, n, name, False, False, True) for n, each in enumerate(columns, 1)]
    client.add_primary_key(AddPrimaryKeyRequest(keys))


def foreign(
    client: ThriftClient,
    database: str,
    table: str,
    name: str,
    to: str,
    *,
    column: str = "id",
    key: str = "id",
    **more: Any,
) -> None:
    home = more.pop("home", database)
    own = SQLForeignKey(home, to, key, database, table, column, 1, 0, 0, name, None, False, False, True)
    client.add_foreign_key(AddForeignKeyRequest([own]))


def drop(client: ThriftClient, database: str, table: str, name: str) -> None:
    client.drop_constraint(DropConstraintRequest(database, table, name))


@pytest.fixture
def both(hive_reference: HiveReference, ours: MetastoreServer, tmp_path: Path) -> Iterator[Callable[[str], Both]]:
    made: list[Both] = []

    def make(name: str) -> Both:
        made.append(Both(hive_reference, ours, tmp_path, name))
        return made[-1]

    yield make
    for each in made:
        each.old.close()
        each.here.close()


def with_keys(place: Both) -> None:
    """Foreign keys of tables before and after the one they refer to, and of itself; names in upper case."""
    place.make("a_child", "parent", "z_child")
    primary(place.old, place.name, "parent", f"PK_{place.name}", "id")
    primary(place.old, place.name, "a_child", f"pk_{place.name}_child", "id")
    for table in ("a_child", "z_child"):
        foreign(place.old, place.name, table, f"FK_{place.name}_{table}", "parent")
    foreign(place.old, place.name, "parent", f"fk_{place.name}_self", "parent", column="up")
    place.come()


def test_columns_that_keys_name_change(both: Callable[[str], Both]) -> None:
    place = both("ga")
    with_keys(place)
    place.change_columns("parent", *COLUMNS, "more:string")
    place.go_back()
    assert place.keys("parent") == [("id", "pk_ga")]
    for table in ("a_child", "z_child"):
        assert place.foreign(table) == [(f"fk_ga_{table}", "id", "parent", "id")]


@pytest.mark.long
def test_keys_change_with_their_columns(both: Callable[[str], Both]) -> None:
    place = both("gi")
    with_keys(place)
    place.change_columns("parent", "number:bigint", "up:bigint", "name:string")
    place.change_columns("a_child", "id:bigint#a number", "up:bigint")
    primary(place.here, "gi", "parent", "pk_gi", "number")
    foreign(place.here, "gi", "a_child", "fk_gi_a_child", "parent", key="number")
    foreign(place.here, "gi", "parent", "fk_gi_self", "parent", column="up", key="number")
    foreign(place.here, "gi", "z_child", "fk_gi_other", "a_child")
    place.go_back()
    assert place.keys("parent") == [("number", "pk_gi")]
    assert place.keys("a_child") == [("id", "pk_gi_child")]
    assert place.foreign("a_child") == [("fk_gi_a_child", "id", "parent", "number")]
    assert place.foreign("z_child") == [("fk_gi_other", "id", "a_child", "id")]
    assert place.foreign("parent") == [("fk_gi_self", "up", "parent", "number")]


@pytest.mark.long
def test_what_hive_has_and_does_not_tell_is_in_nobodys_way(both: Callable[[str], Both]) -> None:
    place = both("gb")
    place.make("parent", "child")
    primary(place.old, "gb", "parent", "pk_gb", "id")
    foreign(place.old, "gb", "child", "fk_gb", "parent")
    drop(place.old, "gb", "parent", "pk_gb")
    assert place.foreign("child") == []
    place.come()
    primary(place.here, "gb", "parent", "pk_gb", "up")
    foreign(place.here, "gb", "child", "fk_gb", "parent", key="up")
    place.go_back()
    assert place.foreign("child") == [("fk_gb", "id", "parent", "up")]


@pytest.mark.long
@pytest.mark.parametrize("columns", [("id",), ("id", "up")])
def test_a_name_that_another_table_there_has(both: Callable[[str], Both], columns: tuple[str, ...]) -> None:
    place = both(f"gc_{len(columns)}")
    place.make("t")
    other = f"{place.name}_other"
    place.make("t", database=other)
    primary(place.old, other, "t", f"taken_{place.name}", "id")
    place.come()
    primary(place.here, place.name, "t", f"taken_{place.name}", *columns)
    for _ in range(2):
        assert "does another table there have a constraint of this name?" in place.stays()
        assert place.keys("t", other) == [("id", f"taken_{place.name}")]
        assert place.keys("t") == []
    drop(place.here, place.name, "t", f"taken_{place.name}")
    primary(place.here, place.name, "t", f"free_{place.name}", *columns)
    place.go_back()


@pytest.mark.long
def test_a_rest_of_a_key_that_hive_refused_is_not_dropped(both: Callable[[str], Both]) -> None:
    """Hive drops all columns that have its name: here the other table's key, too."""
    place = both("gh")
    place.make("t")
    place.make("t", database="gh_other")
    primary(place.old, "gh_other", "t", "pk_gh", "id")
    with pytest.raises(MetaException):
        primary(place.old, "gh", "t", "pk_gh", "id", "up")
    assert place.keys("t") == [("up", "pk_gh")]
    place.come()
    place.change_columns("t", *COLUMNS, "more:string")
    assert "gh.t pk_gh: its first column is missing" in place.stays()
    assert place.keys("t", "gh_other") == [("id", "pk_gh")]
    drop(place.old, "gh", "t", "pk_gh")
    assert place.keys("t", "gh_other") == []
    place.go_back()


@pytest.mark.long
def test_names_that_change_between_tables(both: Callable[[str], Both]) -> None:
    place = both("gd")
    place.make("a", "b", "c")
    for table in "abc":
        primary(place.old, "gd", table, f"gd_{table}", "id")
    place.come()
    for table in "abc":
        drop(place.here, "gd", table, f"gd_{table}")
    for table, name in zip("abc", "bca", strict=True):
        primary(place.here, "gd", table, f"gd_{name}", "id", "up")
    place.go_back()
    assert place.keys("a") == [("id", "gd_b"), ("up", "gd_b")]


@pytest.mark.long
def test_a_key_that_another_database_refers_to_stays(both: Callable[[str], Both]) -> None:
    place = both("ge")
    place.make("parent")
    place.make("child", database="ge_other")
    primary(place.old, "ge", "parent", "pk_ge", "id")
    foreign(place.old, "ge_other", "child", "fk_ge", "parent", home="ge")
    place.come()
    place.change_columns("parent", *COLUMNS, "more:string")
    assert "ge_other.child fk_ge refers to it from another database" in place.stays()
    assert place.foreign("child", "ge_other") == [("fk_ge", "id", "parent", "id")]
    drop(place.old, "ge_other", "child", "fk_ge")
    place.go_back()


@pytest.mark.long
def test_what_hive_can_not_keep_is_named(both: Callable[[str], Both]) -> None:
    place = both("gf")
    place.make("parent", "child")
    primary(place.old, "gf", "parent", "pk_gf", "id")
    foreign(place.old, "gf", "child", "fk_gf", "parent")
    place.come()
    drop(place.here, "gf", "parent", "pk_gf")
    assert "gf.child fk_gf: Hive tells foreign keys to a primary key alone: drop it here" in place.stays()
    unique = SQLUniqueConstraint("hive", "gf", "parent", "id", 1, "uk_gf", False, False, True)
    place.here.add_unique_constraint(AddUniqueConstraintRequest([unique]))
    drop(place.here, "gf", "child", "fk_gf")
    assert "gf.parent uk_gf: add_unique_constraint: that Hive knows no such constraints" in place.stays()
    drop(place.here, "gf", "parent", "uk_gf")
    place.go_back()
    assert place.foreign("child") == []


@pytest.mark.long
def test_columns_of_types_that_hive_does_not_let_them_get(both: Callable[[str], Both]) -> None:
    """A table that was made anew here."""
    place = both("gg")
    place.make("parent", "child")
    primary(place.old, "gg", "parent", "pk_gg", "id")
    foreign(place.old, "gg", "child", "fk_gg", "parent")
    place.come()
    table = place.here.get_table("gg", "parent")
    place.here.drop_table("gg", "parent", False)
    place.here.create_table(table.replace(sd=table.sd.replace(cols=builders.columns("id:bigint", "up:map<int,int>"))))
    primary(place.here, "gg", "parent", "pk_gg", "id")
    foreign(place.here, "gg", "child", "fk_gg", "parent")
    place.go_back()
    assert place.old.get_table("gg", "parent").sd.cols[1].type == "map<int,int>"
    assert place.foreign("child") == [("fk_gg", "id", "parent", "id")]
