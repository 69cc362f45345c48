"""Tables that lie in one another: what is done to one leaves the other's files alone."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from lake.protocol.hive import MetaException, Table
from lake.protocol.lake import TableReference
from metastore.services.files.deletable import Deletable
from metastore.services.wiring import Metastore
from metastore.settings import Settings
from metastore.warehouse import WarehouseError
from tests.support.builders import database, external_table, partition, storage, table
from tests.support.postgres import Postgres
from tests.support.target import local_path


def nested(metastore: Metastore, db: str) -> tuple[Table, Path]:
    """Managed table `outer`, external table `inner` in a directory of it, with a file; the outer, and the file."""
    metastore.tables.create(table(db, "outer"), {})
    outer = metastore.tables.get(db, "outer")
    assert outer.sd is not None
    place = local_path(outer.sd.location or "") / "inner"
    metastore.tables.create(external_table(db, "inner", sd=storage("id:bigint", location=f"file:{place}")), {})
    (place / "data").write_text("of the inner table")
    return outer, place / "data"


def test_truncating(metastore: Metastore, db: str) -> None:
    _, data = nested(metastore, db)
    with pytest.raises(MetaException, match="another table or a database lies there"):
        metastore.tables.truncate(db, "outer", None)
    assert data.exists()


def test_renaming(metastore: Metastore, db: str) -> None:
    outer, data = nested(metastore, db)
    with pytest.raises(MetaException, match="another table or a database lies there"):
        metastore.tables.alter(db, "outer", outer.replace(tableName="other"), {})
    assert data.exists()
    assert metastore.tables.get(db, "outer") == outer


def test_dropping(metastore: Metastore, db: str) -> None:
    _, data = nested(metastore, db)
    metastore.tables.drop(db, "outer", delete_data=True)
    assert data.exists()
    metastore.tables.truncate(db, "inner", None)
    assert not data.exists()


def test_dropping_a_database(metastore: Metastore, db: str) -> None:
    _, data = nested(metastore, db)
    other = f"{db}_other"
    metastore.databases.create(database(other))
    metastore.tables.create(
        external_table(other, "theirs", sd=storage("id:bigint", location=f"file:{data.parent}")), {}
    )
    metastore.databases.drop(db, delete_data=True, cascade=True)
    assert data.exists()


# --- the other way round: a table is put into a directory of another's -----------------------------------------


@pytest.fixture
def theirs(metastore: Metastore, db: str) -> Path:
    """A file of a table's, in a directory of a partition's."""
    metastore.tables.create(table(db, "theirs", keys=("ds",)), {})
    metastore.partitions.add(db, "theirs", [partition(db, "theirs", "1")], {})
    owner = metastore.tables.get(db, "theirs")
    assert owner.sd is not None
    place = local_path(owner.sd.location or "") / "ds=1" / "below"
    place.mkdir()
    (place / "data").write_text("of their table")
    return place / "data"


def a_table(metastore: Metastore, db: str, place: Path) -> None:
    metastore.tables.create(table(db, "t", sd=storage("id:bigint", location=f"file:{place}")), {})
    metastore.tables.drop(db, "t", delete_data=True)


def a_table_of_the_partition(metastore: Metastore, db: str, place: Path) -> None:
    a_table(metastore, db, place.parent)


def a_table_that_went_there(metastore: Metastore, db: str, place: Path) -> None:
    metastore.tables.create(table(db, "t"), {})
    found = metastore.tables.get(db, "t")
    assert found.sd is not None
    metastore.tables.alter(db, "t", found.replace(sd=found.sd.replace(location=f"file:{place}")), {})
    metastore.tables.drop(db, "t", delete_data=True)


def a_partition(metastore: Metastore, db: str, place: Path) -> None:
    metastore.tables.create(table(db, "t", keys=("ds",)), {})
    metastore.partitions.add(db, "t", [partition(db, "t", "1", location=f"file:{place}")], {})
    metastore.partitions.drop(db, "t", values=["1"], delete_data=True)


def a_partition_with_its_table(metastore: Metastore, db: str, place: Path) -> None:
    metastore.tables.create(table(db, "t", keys=("ds",)), {})
    metastore.partitions.add(db, "t", [partition(db, "t", "1", location=f"file:{place}")], {})
    metastore.tables.drop(db, "t", delete_data=True)


def an_archived_partition(metastore: Metastore, db: str, place: Path) -> None:
    metastore.tables.create(table(db, "t", keys=("ds",)), {})
    archived = {"is_archived": "true", "original_location": f"file:{place}"}
    metastore.partitions.add(db, "t", [partition(db, "t", "1", parameters=archived)], {})
    metastore.partitions.drop(db, "t", values=["1"], delete_data=True)


def a_database(metastore: Metastore, db: str, place: Path) -> None:
    metastore.databases.create(database(f"{db}_inside", locationUri=f"file:{place}"))
    metastore.databases.drop(f"{db}_inside", delete_data=True, cascade=True)


def a_table_of_such_a_database(metastore: Metastore, db: str, place: Path) -> None:
    metastore.databases.create(database(f"{db}_inside", locationUri=f"file:{place.parent}"))
    metastore.tables.create(table(f"{db}_inside", place.name), {})
    metastore.tables.drop(f"{db}_inside", place.name, delete_data=True)


@pytest.mark.parametrize(
    "drop",
    [
        a_table,
        a_table_of_the_partition,
        a_table_that_went_there,
        a_partition,
        a_partition_with_its_table,
        an_archived_partition,
        a_database,
        a_table_of_such_a_database,
    ],
)
def test_what_was_another_table_s_stays(
    metastore: Metastore, db: str, theirs: Path, drop: Callable[[Metastore, str, Path], None]
) -> None:
    drop(metastore, db, theirs.parent)
    assert theirs.exists()


def test_nor_is_it_emptied(metastore: Metastore, db: str, theirs: Path) -> None:
    metastore.tables.create(external_table(db, "t", sd=storage("id:bigint", location=f"file:{theirs.parent}")), {})
    with pytest.raises(MetaException, match="lies in another table's directory"):
        metastore.tables.truncate(db, "t", None)
    assert theirs.exists()


def test_what_the_server_made_there_goes(metastore: Metastore, db: str, theirs: Path) -> None:
    new = theirs.parent / "new"
    metastore.tables.create(table(db, "t", sd=storage("id:bigint", location=f"file:{new}")), {})
    (new / "data").write_text("of the table")
    metastore.tables.truncate(db, "t", None)
    assert list(new.iterdir()) == []
    metastore.tables.drop(db, "t", delete_data=True)
    assert not new.exists()
    assert theirs.exists()


@pytest.mark.sampled(3)
@pytest.mark.parametrize("levels", [1, 2, 3])
def test_a_table_that_lies_where_databases_do_surrounds_nothing(metastore: Metastore, db: str, levels: int) -> None:
    """Else anybody could have the files of all tables kept: those that are made anew would have the old rows."""
    metastore.tables.create(table(db, "t"), {})
    found = metastore.tables.get(db, "t")
    assert found.sd is not None
    place = local_path(found.sd.location or "")
    (place / "data").write_text("rows")
    around = f"file:{place.parents[levels - 1]}"
    metastore.tables.create(external_table(db, "around", sd=storage("id:bigint", location=around)), {})
    try:
        metastore.tables.drop(db, "t", delete_data=True)
        assert not place.exists()
    finally:
        metastore.tables.drop(db, "around", delete_data=False)


def place_of(metastore: Metastore, db: str, name: str) -> str:
    """The directory for which clients may get credentials; empty for none."""
    return metastore.tables.data_place(TableReference(database=db, table=name))


def test_a_directory_that_another_table_will_write_to(metastore: Metastore, db: str) -> None:
    """The server made the inner directory, and yet rows of the outer table's next day come there."""
    metastore.tables.create(table(db, "outer"), {})
    outer = metastore.tables.get(db, "outer").sd
    assert outer is not None
    assert place_of(metastore, db, "outer") == outer.location
    inside = f"{outer.location}/data/day=2026-12-01"
    metastore.tables.create(external_table(db, "inner", sd=storage("id:bigint", location=inside)), {})
    assert place_of(metastore, db, "inner") == ""
    assert place_of(metastore, db, "outer") == ""
    metastore.databases.create(database(f"{db}_inside", locationUri=f"{outer.location}/x"))
    metastore.tables.create(table(f"{db}_inside", "t"), {})
    assert place_of(metastore, f"{db}_inside", "t") == ""


def test_a_directory_that_only_an_owner_names(metastore: Metastore, db: str, tmp_path: Path) -> None:
    """What lies there may be of others that the metastore doesn't know."""
    sd = storage("id:bigint", location=f"file:{tmp_path}/theirs")
    metastore.tables.create(external_table(db, "t", sd=sd), {})
    assert place_of(metastore, db, "t") == ""


def test_a_directory_that_the_operator_names(postgres: Postgres, tmp_path: Path) -> None:
    with postgres.fresh_database(upgraded=True) as url:
        allowed = (f"{tmp_path}/all", f"database:mine={tmp_path}/mine", f"role:some={tmp_path}/some")
        settings = Settings(database_url=url, warehouse_dir=f"{tmp_path}/warehouse", allowed_locations=allowed)
        opened = Metastore.open(settings)
        for db in ("mine", "yours"):
            opened.databases.create(database(db))
            for name in ("all", "mine", "some"):
                sd = storage("id:bigint", location=f"file:{tmp_path}/{name}/{db}")
                opened.tables.create(external_table(db, name, sd=sd), {})
        given = {
            (db, name) for db in ("mine", "yours") for name in ("all", "mine", "some") if place_of(opened, db, name)
        }
        opened.close()
    assert given == {("mine", "all"), ("yours", "all"), ("mine", "mine")}


# --- at the same time -----------------------------------------------------------------------------------------


def test_a_drop_waits_for_who_comes_to_its_place(
    metastore: Metastore, db: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither would see the other: the drop not the new table, the new table not what is still to be deleted."""
    metastore.tables.create(table(db, "old"), {})
    found = metastore.tables.get(db, "old")
    assert found.sd is not None
    place = local_path(found.sd.location or "")
    (place / "data").write_text("rows")
    has_place, may_go_on = threading.Event(), threading.Event()
    hold = Deletable.hold

    def slow(self: Deletable, *arguments: object, **named: object) -> None:
        hold(self, *arguments, **named)  # type: ignore[arg-type]
        has_place.set()
        assert may_go_on.wait(30)

    monkeypatch.setattr(Deletable, "hold", slow)
    with ThreadPoolExecutor(2) as threads:
        new = external_table(db, "new", sd=storage("id:bigint", location=f"file:{place}/below"))
        creating = threads.submit(metastore.tables.create, new, {})
        assert has_place.wait(30)
        dropping = threads.submit(metastore.tables.drop, db, "old", delete_data=True)
        with pytest.raises(TimeoutError):
            dropping.result(0.5)
        may_go_on.set()
        creating.result()
        dropping.result()
    assert (place / "below").is_dir()
    assert (place / "data").exists()


# --- links ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("leads_to", ["nowhere", "itself"])
def test_a_rename_to_where_a_link_lies_is_refused(metastore: Metastore, db: str, leads_to: str) -> None:
    """It was committed, and its data could never be moved."""
    metastore.tables.create(table(db, "t", keys=("ds",)), {})
    metastore.partitions.add(db, "t", [partition(db, "t", "1")], {})
    found = metastore.tables.get(db, "t")
    assert found.sd is not None
    place = local_path(found.sd.location or "")
    for link in (place.with_name("u"), place / "ds=2"):
        link.symlink_to(link if leads_to == "itself" else place / "nowhere")
    with pytest.raises(WarehouseError):
        metastore.tables.alter(db, "t", found.replace(tableName="u"), {})
    with pytest.raises(WarehouseError):
        metastore.partitions.rename(db, "t", ["1"], partition(db, "t", "2"), {})
    assert metastore.tables.get(db, "t") == found
    metastore.partitions.drop(db, "t", values=["1"], delete_data=True)
