"""A client names locations freely: what a drop deletes was made by the server, or lies where its operator said."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fsspec.implementations.memory import MemoryFileSystem
from fsspec.registry import _registry as drivers
from structlog.testing import capture_logs

from lake.protocol.hive import Catalog, InvalidObjectException, InvalidOperationException, MetaException, Table
from metastore.services.model.visibility import Scope
from metastore.services.wiring import Metastore
from metastore.settings import Settings
from tests.support.builders import database, external_table, partition, storage, table
from tests.support.postgres import Postgres
from tests.support.target import local_path


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A directory outside of the warehouse, with somebody's file."""
    place = tmp_path / "home"
    place.mkdir()
    (place / "thesis").write_text("years of work")
    return place


def managed(metastore: Metastore, db: str, name: str, place: Path, *, keys: tuple[str, ...] = ()) -> Table:
    metastore.tables.create(table(db, name, keys=keys, sd=storage("id:bigint", location=f"file:{place}")), {})
    return metastore.tables.get(db, name)


def place_of(value: Table) -> Path:
    assert value.sd is not None and value.sd.location is not None
    return local_path(value.sd.location)


# --- tables ---------------------------------------------------------------------------------------------------


def test_somebody_s_directory_is_kept_and_the_log_says_so(metastore: Metastore, db: str, home: Path) -> None:
    managed(metastore, db, "t", home)
    with capture_logs() as lines:
        metastore.tables.drop(db, "t", delete_data=True)
    assert (home / "thesis").read_text() == "years of work"
    assert [(line["event"], line["location"]) for line in lines] == [("files are kept", f"file:{home}")]


@pytest.mark.parametrize(
    "spelling", ["file://{}", "file:{}/", "{}", "file:{}/../home", "file://localhost{}", "file:///{}"]
)
def test_however_it_is_spelled(metastore: Metastore, db: str, home: Path, spelling: str) -> None:
    metastore.tables.create(table(db, "t", sd=storage("id:bigint", location=spelling.format(home))), {})
    metastore.tables.drop(db, "t", delete_data=True)
    assert (home / "thesis").exists()


@pytest.mark.parametrize("exists", [False, True])
def test_what_was_not_there_or_empty_is_the_server_s(
    metastore: Metastore, db: str, tmp_path: Path, exists: bool
) -> None:
    place = tmp_path / "new"
    if exists:
        place.mkdir()
    managed(metastore, db, "t", place)
    (place / "data").write_text("rows")
    metastore.tables.drop(db, "t", delete_data=True)
    assert not place.exists()


def test_what_was_kept_once_is_nobody_s(metastore: Metastore, db: str, tmp_path: Path) -> None:
    place = tmp_path / "new"
    managed(metastore, db, "t", place)
    (place / "data").write_text("rows")
    metastore.tables.drop(db, "t", delete_data=False)
    managed(metastore, db, "t", place)
    metastore.tables.drop(db, "t", delete_data=True)
    assert (place / "data").exists()


def test_what_was_deleted_and_came_back_is_not_the_server_s(metastore: Metastore, db: str, tmp_path: Path) -> None:
    place = tmp_path / "new"
    managed(metastore, db, "t", place)
    metastore.tables.drop(db, "t", delete_data=True)
    place.mkdir()
    (place / "thesis").write_text("years of work")
    managed(metastore, db, "t", place)
    metastore.tables.drop(db, "t", delete_data=True)
    assert (place / "thesis").exists()


def test_another_location_by_hand_is_not_the_server_s(metastore: Metastore, db: str, home: Path) -> None:
    metastore.tables.create(table(db, "t"), {})
    value = metastore.tables.get(db, "t")
    assert value.sd is not None
    value.sd.location = f"file:{home}"
    metastore.tables.alter(db, "t", value, {})
    metastore.tables.drop(db, "t", delete_data=True)
    assert (home / "thesis").exists()


def test_not_emptied(metastore: Metastore, db: str, home: Path) -> None:
    managed(metastore, db, "t", home)
    with pytest.raises(MetaException, match=r"can't be emptied: it was there before .* delete_roots"):
        metastore.tables.truncate(db, "t", None)
    assert (home / "thesis").exists()


def test_emptied_where_the_server_made_it(metastore: Metastore, db: str, tmp_path: Path) -> None:
    managed(metastore, db, "t", tmp_path / "new")
    (tmp_path / "new" / "data").write_text("rows")
    metastore.tables.truncate(db, "t", None)
    assert list((tmp_path / "new").iterdir()) == []
    metastore.tables.drop(db, "t", delete_data=True)
    assert not (tmp_path / "new").exists()


def test_not_moved_by_a_rename(metastore: Metastore, db: str, home: Path) -> None:
    """By a database over a directory of homes, a table would take one of them along."""
    other = f"{db}_homes"
    metastore.databases.create(database(other, locationUri=f"file:{home.parent}"))
    metastore.tables.create(table(other, home.name), {})
    value = metastore.tables.get(other, home.name)
    assert place_of(value) == home
    with pytest.raises(MetaException, match="can't be moved"):
        metastore.tables.alter(other, home.name, value.replace(dbName=db, tableName="mine"), {})
    assert (home / "thesis").exists()
    assert metastore.tables.get(other, home.name) == value


def test_a_moved_table_s_new_place_is_the_server_s(metastore: Metastore, db: str, tmp_path: Path) -> None:
    (tmp_path / "full").write_text("")
    other = f"{db}_outside"
    metastore.databases.create(database(other, locationUri=f"file:{tmp_path}"))
    metastore.tables.create(table(db, "t"), {})
    value = metastore.tables.get(db, "t")
    (place_of(value) / "data").write_text("rows")
    metastore.tables.alter(db, "t", value.replace(dbName=other), {})
    assert (tmp_path / "t" / "data").exists()
    metastore.tables.drop(other, "t", delete_data=True)
    assert not (tmp_path / "t").exists()
    metastore.databases.drop(other, delete_data=True, cascade=False)
    assert (tmp_path / "full").exists()


# --- partitions, databases, catalogs --------------------------------------------------------------------------


def test_partitions_elsewhere(metastore: Metastore, db: str, home: Path, tmp_path: Path) -> None:
    metastore.tables.create(table(db, "t", keys=("ds",)), {})
    own = tmp_path / "own"
    new = [
        partition(db, "t", "home", location=f"file:{home}"),
        partition(db, "t", "again", location=f"file:{home}"),
        partition(db, "t", "own", location=f"file:{own}"),
    ]
    metastore.partitions.add(db, "t", new, {})
    (own / "data").write_text("rows")
    with pytest.raises(MetaException, match="can't be emptied"):
        metastore.tables.truncate(db, "t", None)
    with pytest.raises(MetaException, match="can't be moved"):
        metastore.partitions.rename(db, "t", ["home"], partition(db, "t", "mine"), {})
    metastore.partitions.drop(db, "t", values=["home"], delete_data=True)
    metastore.partitions.drop(db, "t", values=["own"], delete_data=True)
    metastore.tables.drop(db, "t", delete_data=True)
    assert (home / "thesis").exists()
    assert not own.exists()


def test_not_moved_by_an_exchange(metastore: Metastore, db: str, home: Path) -> None:
    (home / "ds=1").mkdir()
    (home / "ds=1" / "data").write_text("rows")
    metastore.tables.create(table(db, "a", keys=("ds",), sd=storage(location=f"file:{home}")), {})
    metastore.tables.create(table(db, "b", keys=("ds",)), {})
    metastore.partitions.add(db, "a", [partition(db, "a", "1")], {})

    with pytest.raises(MetaException, match="can't be moved"):
        metastore.partition_exchange.exchange(Scope.READY, {"ds": "1"}, db, "a", db, "b")
    assert (home / "ds=1" / "data").exists()


def test_a_database_over_somebody_s_directory(metastore: Metastore, db: str, home: Path) -> None:
    other = f"{db}_home"
    metastore.databases.create(database(other, locationUri=f"file:{home}"))
    metastore.tables.create(table(other, "t"), {})
    (home / "t" / "data").write_text("rows")
    metastore.databases.drop(other, delete_data=True, cascade=True)
    assert (home / "thesis").exists()
    assert not (home / "t").exists()  # which the server made


def test_a_database_that_the_server_made(metastore: Metastore, db: str, tmp_path: Path) -> None:
    other, place = f"{db}_own", tmp_path / "own"
    metastore.databases.create(database(other, locationUri=f"file:{place}"))
    (place / "t").mkdir()  # as Spark's CREATE TABLE AS SELECT writes first
    (place / "t" / "data").write_text("rows")
    metastore.tables.create(table(other, "t"), {})
    metastore.tables.drop(other, "t", delete_data=True)
    assert not (place / "t").exists()
    metastore.databases.drop(other, delete_data=True, cascade=True)
    assert not place.exists()


def test_a_catalog_is_no_root(metastore: Metastore, db: str, home: Path) -> None:
    catalog = f"{db}_catalog"
    metastore.catalogs.create(Catalog(name=catalog, locationUri=f"file:{home.parent}"))
    value = table("default", "t", catName=catalog, sd=storage("id:bigint", location=f"file:{home}"))
    metastore.tables.create(value, {})
    metastore.tables.drop("default", "t", delete_data=True, catalog=catalog)
    assert (home / "thesis").exists()


def test_what_hive_archived_goes_from_where_it_was(metastore: Metastore, db: str, home: Path) -> None:
    metastore.tables.create(table(db, "t", keys=("ds",)), {})
    base = place_of(metastore.tables.get(db, "t"))
    for value, original in (("1", base / "intermediate"), ("2", home)):
        parameters = {"is_archived": "true", "original_location": f"file:{original}"}
        archive = f"file:{base}/{value}.har"
        metastore.partitions.add(db, "t", [partition(db, "t", value, location=archive, parameters=parameters)], {})
    (base / "intermediate").mkdir()
    for value in ("1", "2"):
        metastore.partitions.drop(db, "t", values=[value], delete_data=True)
    assert not (base / "intermediate").exists()
    assert (home / "thesis").exists()


# --- the same place by another name ---------------------------------------------------------------------------


@pytest.fixture
def two_names(metastore: Metastore, db: str, tmp_path: Path) -> tuple[Path, Path]:
    """A database's directory in the warehouse, and a link to it."""
    metastore.tables.create(table(db, "x"), {})
    place = place_of(metastore.tables.get(db, "x")).parent
    (tmp_path / "link").symlink_to(place)
    return place, tmp_path / "link"


@pytest.mark.parametrize("dropped", ["plain", "linked"])
@pytest.mark.parametrize("below", ["", "/deep/er"])
def test_a_table_behind_a_link(
    metastore: Metastore, db: str, two_names: tuple[Path, Path], dropped: str, below: str
) -> None:
    plain, linked = (name / "t" for name in two_names)
    if dropped == "plain":
        linked = Path(f"{linked}{below}")
    else:
        plain = Path(f"{plain}{below}")
    managed(metastore, db, "plain", plain)
    managed(metastore, db, "linked", linked)
    (plain / "data").write_text("of plain")
    (linked / "data").write_text("of both")
    metastore.tables.drop(db, dropped, delete_data=True)
    assert (plain if dropped == "linked" else linked).joinpath("data").exists()
    with pytest.raises(AssertionError):
        metastore.tables.drop(db, "linked" if dropped == "plain" else "plain", delete_data=True)
        assert (linked if dropped == "plain" else plain).exists()


def test_a_database_and_a_partition_behind_a_link(metastore: Metastore, db: str, two_names: tuple[Path, Path]) -> None:
    place, link = two_names
    other = f"{db}_linked"
    metastore.databases.create(database(other, locationUri=f"file:{link}/t/db"))
    metastore.tables.create(external_table(db, "e", keys=("ds",)), {})
    metastore.partitions.add(db, "e", [partition(db, "e", "1", location=f"file:{link}/u/part")], {})
    for name in ("t", "u"):
        managed(metastore, db, name, place / name)
        metastore.tables.drop(db, name, delete_data=True)
    assert (place / "t" / "db").is_dir()
    assert (place / "u" / "part").is_dir()


def test_a_partition_of_another_table(metastore: Metastore, db: str) -> None:
    metastore.tables.create(table(db, "t"), {})
    place = place_of(metastore.tables.get(db, "t"))
    metastore.tables.create(external_table(db, "e", keys=("ds",)), {})
    metastore.partitions.add(db, "e", [partition(db, "e", "1", location=f"file:{place}/part")], {})
    with pytest.raises(MetaException, match="another table"):
        metastore.tables.truncate(db, "t", None)
    metastore.tables.drop(db, "t", delete_data=True)
    assert (place / "part").is_dir()


def test_a_link_that_came_later(metastore: Metastore, db: str, tmp_path: Path) -> None:
    """Somebody moves a directory of tables and leaves a link; then a table comes to the new place."""
    warehouse = place_of_database(metastore, db)
    managed(metastore, db, "old", warehouse / "before" / "t")
    (warehouse / "before" / "t" / "data").write_text("rows")
    (warehouse / "before").rename(warehouse / "after")
    (warehouse / "before").symlink_to(warehouse / "after")
    metastore.housekeeping.run()
    managed(metastore, db, "new", warehouse / "after" / "t")
    metastore.tables.drop(db, "new", delete_data=True)
    assert (warehouse / "after" / "t" / "data").exists()
    metastore.tables.drop(db, "old", delete_data=True)
    assert not (warehouse / "after" / "t").exists()


def test_a_link_out_of_the_warehouse(metastore: Metastore, db: str, home: Path) -> None:
    warehouse = place_of_database(metastore, db)
    (warehouse / "out").symlink_to(home.parent)
    managed(metastore, db, "t", warehouse / "out" / home.name)
    metastore.tables.drop(db, "t", delete_data=True)
    assert (home / "thesis").exists()


def place_of_database(metastore: Metastore, db: str) -> Path:
    location = metastore.databases.get(db).locationUri
    assert location is not None
    return local_path(location)


# --- what an operator allows, and what Hive refuses -----------------------------------------------------------


@pytest.fixture
def lenient(postgres: Postgres, tmp_path: Path) -> Iterator[Metastore]:
    with postgres.fresh_database(upgraded=True) as url:
        settings = Settings(database_url=url, warehouse_dir=f"{tmp_path}/wh", delete_roots=(f"{tmp_path}/home",))
        opened = Metastore.open(settings)
        yield opened
        opened.close()


def test_more_roots(lenient: Metastore, home: Path) -> None:
    (home / "t").mkdir()
    (home / "t" / "data").write_text("rows")
    lenient.databases.create(database("d", locationUri=f"file:{home}"))
    managed(lenient, "d", "t", home / "t")
    lenient.tables.drop("d", "t", delete_data=True)
    assert not (home / "t").exists()
    lenient.databases.drop("d", delete_data=True, cascade=True)
    assert (home / "thesis").exists()  # a root itself is never deleted


@pytest.mark.parametrize("root", ["file:///", "/", "s3a://bucket", "s3a://bucket/"])
def test_the_root_of_a_storage_is_no_place(metastore: Metastore, db: str, root: str) -> None:
    with pytest.raises(InvalidObjectException, match="must not be root path"):
        metastore.tables.create(table(db, "t", sd=storage("id:bigint", location=root)), {})
    with pytest.raises(InvalidObjectException, match="must not be root path"):
        metastore.databases.create(database(f"{db}_root", locationUri=root))
    with pytest.raises(MetaException, match="root of a storage"):
        metastore.databases.alter(db, database(db, managedLocationUri=root))
    with pytest.raises(MetaException, match="root of a storage"):
        metastore.catalogs.create(Catalog(name=f"{db}_c", locationUri=root))
    metastore.tables.create(table(db, "t", keys=("ds",)), {})
    value = metastore.tables.get(db, "t")
    with pytest.raises(InvalidOperationException, match="must not be root path"):
        metastore.tables.alter(db, "t", value.replace(sd=storage("id:bigint", location=root)), {})
    with pytest.raises(MetaException, match="root of a storage"):
        metastore.partitions.add(db, "t", [partition(db, "t", "1", location=root)], {})


# --- where managed tables go ----------------------------------------------------------------------------------


def test_managed_tables_go_to_their_own_location(metastore: Metastore, db: str, tmp_path: Path) -> None:
    other, outer, inner = f"{db}_two", tmp_path / "external", tmp_path / "managed"
    metastore.databases.create(database(other, locationUri=f"file:{outer}", managedLocationUri=f"file:{inner}"))
    assert metastore.databases.get(other).managedLocationUri == f"file:{inner}"
    metastore.tables.create(table(other, "m"), {})
    metastore.tables.create(external_table(other, "e"), {})
    assert place_of(metastore.tables.get(other, "m")) == inner / "m"
    assert place_of(metastore.tables.get(other, "e")) == outer / "e"
    value = metastore.tables.get(other, "m")
    metastore.tables.alter(other, "m", value.replace(tableName="n"), {})
    assert place_of(metastore.tables.get(other, "n")) == inner / "n"
    metastore.databases.drop(other, delete_data=True, cascade=True)
    assert not inner.exists()
    assert not outer.exists()


def test_a_database_s_places_are_altered(metastore: Metastore, db: str, tmp_path: Path) -> None:
    new = database(db, description="new", locationUri=f"file:{tmp_path}/e", managedLocationUri=f"file:{tmp_path}/m")
    metastore.databases.alter(db, new)
    found = metastore.databases.get(db)
    assert (found.description, found.locationUri, found.managedLocationUri) == (
        "new",
        f"file:{tmp_path}/e",
        f"file:{tmp_path}/m",
    )
    metastore.databases.alter(db, database(db, parameters={"a": "b"}))
    again = metastore.databases.get(db)
    assert again == found.replace(parameters={"a": "b"})


class Bucket(MemoryFileSystem):
    """A bucket in memory. An empty directory is one, and no object whose name ends in a slash."""

    def pipe_file(self, path: str, value: bytes, **options: Any) -> None:
        if path.endswith("/"):
            self.makedirs(path.rstrip("/"), exist_ok=True)
        else:
            super().pipe_file(path, value, **options)


def test_one_bucket_by_all_names_of_its_scheme(metastore: Metastore, db: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(drivers, "s3", Bucket)
    fs = Bucket()
    for name, location in (("t", "s3://bucket/t"), ("free", "s3n://bucket/free")):
        metastore.tables.create(table(db, name, sd=storage("id:bigint", location=location)), {})
    inner = storage("id:bigint", location="s3a://bucket/t/inner")
    metastore.tables.create(external_table(db, "e", sd=inner), {})
    for name in ("t/inner/data", "free/data"):
        fs.pipe_file(f"/bucket/{name}", b"rows")
    metastore.tables.drop(db, "free", delete_data=True)
    metastore.tables.drop(db, "t", delete_data=True)
    assert not fs.exists("/bucket/free/data")  # the server made it
    assert fs.exists("/bucket/t/inner/data")
