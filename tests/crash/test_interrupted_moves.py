"""A change is committed, and the server dies before it has moved or deleted the data.

The next housekeeping makes it good; but others may be quicker, and must find things as if it had been done.
"""

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from datetime import timedelta
from pathlib import Path

import pytest
from sqlalchemy import text

from metastore.services.files.relocator import Mover
from metastore.services.model.visibility import Scope
from metastore.services.table import service as table_service
from metastore.services.wiring import Metastore
from metastore.store.files import moves
from metastore.store.files.moves import Move
from metastore.warehouse import Warehouse, WarehouseError
from tests.support import builders
from tests.support.target import local_path
from tests.support.waiting import wait_until

DB = "d"
FILE = "data"


class Died(BaseException):
    """The process is gone."""


Dying = Callable[[], AbstractContextManager[None]]


@pytest.fixture
def dying(monkeypatch: pytest.MonkeyPatch) -> Dying:
    """The server dies in this block, right after the commit."""

    def die(self: Mover, *_: object) -> None:
        raise Died

    @contextmanager
    def block() -> Iterator[None]:
        with monkeypatch.context() as patch, pytest.raises(Died):
            patch.setattr(Mover, "carry_out", die)
            yield

    return block


@pytest.fixture
def tables(metastore: Metastore) -> "Tables":
    metastore.databases.create(builders.database(DB))
    return Tables(metastore)


class Tables:
    """Tables partitioned by `ds`, each with a file that says whose it is."""

    def __init__(self, metastore: Metastore) -> None:
        self._metastore = metastore

    def directory(self, name: str) -> Path:
        table = self._metastore.tables.get(DB, name)
        assert table.sd is not None and table.sd.location is not None
        return local_path(table.sd.location)

    def create(self, name: str) -> None:
        self._metastore.tables.create(builders.table(DB, name, keys=("ds",)), {})

    def create_with_data(self, name: str, *values: str) -> None:
        self.create(name)
        (self.directory(name) / FILE).write_text(f"of {name}")
        for value in values:
            self.add(name, value)
            (self.directory(name) / f"ds={value}" / FILE).write_text(f"of {value}")

    def add(self, name: str, value: str) -> None:
        self._metastore.partitions.add(DB, name, [builders.partition(DB, name, value)], {})

    def rename(self, name: str, new: str) -> None:
        table = self._metastore.tables.get(DB, name)
        self._metastore.tables.alter(DB, name, table.replace(tableName=new), {})

    def rename_partition(self, name: str, value: str, new: str) -> None:
        self._metastore.partitions.rename(DB, name, [value], builders.partition(DB, name, new), {})

    def drop(self, name: str) -> None:
        self._metastore.tables.drop(DB, name, delete_data=True)

    def drop_partition(self, name: str, value: str) -> None:
        self._metastore.partitions.drop(DB, name, values=[value], delete_data=True)

    def files(self, name: str) -> dict[str, str]:
        """What is in the table's directory: the text of each file, by its path. The directories must be there."""
        directory = self.directory(name)
        assert directory.is_dir()
        for partition in self._metastore.partition_reads.names(Scope.READY, DB, name):
            assert (directory / partition).is_dir()
        return {str(p.relative_to(directory)): p.read_text() for p in directory.rglob("*") if p.is_file()}


def test_housekeeping_finishes_it(metastore: Metastore, tables: Tables, dying: Dying) -> None:
    tables.create_with_data("a", "1")
    with dying():
        tables.rename("a", "b")
    metastore.housekeeping.run()
    assert tables.files("b") == {FILE: "of a", f"ds=1/{FILE}": "of 1"}


def test_renamed_again(tables: Tables, dying: Dying) -> None:
    tables.create_with_data("a")
    with dying():
        tables.rename("a", "b")
    tables.rename("b", "c")
    assert tables.files("c") == {FILE: "of a"}


def test_renamed_twice_before_anybody_moves_anything(metastore: Metastore, tables: Tables, dying: Dying) -> None:
    tables.create_with_data("a")
    with dying():
        tables.rename("a", "b")
    with dying():
        tables.rename("b", "c")
    metastore.housekeeping.run()
    assert tables.files("c") == {FILE: "of a"}


def test_old_name_is_given_to_another_table(metastore: Metastore, tables: Tables, dying: Dying) -> None:
    tables.create_with_data("a")
    with dying():
        tables.rename("a", "b")
    tables.create("a")
    metastore.housekeeping.run()
    assert tables.files("a") == {}
    assert tables.files("b") == {FILE: "of a"}


def test_renamed_table_is_dropped(metastore: Metastore, tables: Tables, dying: Dying) -> None:
    tables.create_with_data("a")
    with dying():
        tables.rename("a", "b")
    tables.drop("b")
    tables.create("a")
    tables.create("b")
    metastore.housekeeping.run()
    assert tables.files("a") == tables.files("b") == {}


def test_renamed_table_gets_a_partition(metastore: Metastore, tables: Tables, dying: Dying) -> None:
    tables.create_with_data("a", "1")
    with dying():
        tables.rename("a", "b")
    tables.add("b", "2")
    metastore.housekeeping.run()
    assert tables.files("b") == {FILE: "of a", f"ds=1/{FILE}": "of 1"}


def test_table_of_a_renamed_partition_is_renamed(metastore: Metastore, tables: Tables, dying: Dying) -> None:
    tables.create_with_data("a", "1")
    with dying():
        tables.rename_partition("a", "1", "2")
    tables.rename("a", "b")
    metastore.housekeeping.run()
    assert tables.files("b") == {FILE: "of a", f"ds=2/{FILE}": "of 1"}


def test_values_of_a_renamed_partition_are_used_again(metastore: Metastore, tables: Tables, dying: Dying) -> None:
    tables.create_with_data("a", "1")
    with dying():
        tables.rename_partition("a", "1", "2")
    tables.add("a", "1")
    metastore.housekeeping.run()
    assert tables.files("a") == {FILE: "of a", f"ds=2/{FILE}": "of 1"}


def test_renamed_partition_is_dropped(metastore: Metastore, tables: Tables, dying: Dying) -> None:
    tables.create_with_data("a", "1")
    with dying():
        tables.rename_partition("a", "1", "2")
    tables.drop_partition("a", "2")
    metastore.housekeeping.run()
    assert tables.files("a") == {FILE: "of a"}


def test_one_move_that_fails_keeps_none_of_the_others(metastore: Metastore, tables: Tables, dying: Dying) -> None:
    tables.create_with_data("a")
    tables.create_with_data("x")
    with dying():
        tables.rename("a", "b")
    obstacle = tables.directory("b")
    obstacle.write_text("somebody else's")
    with dying():
        tables.rename("x", "y")
    metastore.housekeeping.run()
    assert tables.files("y") == {FILE: "of x"}
    assert obstacle.read_text() == "somebody else's"
    obstacle.unlink()
    metastore.housekeeping.run()
    assert tables.files("b") == {FILE: "of a"}


def away(*_: object) -> None:
    raise WarehouseError("the storage is away")


def test_a_committed_rename_is_no_failure(
    metastore: Metastore, tables: Tables, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever gets a failure would go on with the old names, which are gone."""
    tables.create_with_data("a", "1")
    with monkeypatch.context() as patch:
        patch.setattr(Warehouse, "move_directory", away)
        tables.rename("a", "b")
        assert metastore.tables.names(DB, "*") == ["b"]
    metastore.housekeeping.run()
    assert tables.files("b") == {FILE: "of a", f"ds=1/{FILE}": "of 1"}
    with monkeypatch.context() as patch:
        patch.setattr(Warehouse, "move_directory", away)
        tables.rename_partition("b", "1", "2")
    metastore.housekeeping.run()
    assert tables.files("b") == {FILE: "of a", f"ds=2/{FILE}": "of 1"}


def test_a_rename_in_a_read_only_warehouse_is_refused(
    metastore: Metastore, tables: Tables, monkeypatch: pytest.MonkeyPatch
) -> None:
    tables.create_with_data("a", "1")
    with monkeypatch.context() as patch:
        patch.setattr(os, "access", lambda *_: False)
        with pytest.raises(WarehouseError, match="may not be written"):
            tables.rename("a", "b")
        with pytest.raises(WarehouseError, match="may not be written"):
            tables.rename_partition("a", "1", "2")
    assert metastore.tables.names(DB, "*") == ["a"]
    assert tables.files("a") == {FILE: "of a", f"ds=1/{FILE}": "of 1"}


def test_dropped_table_is_made_again(metastore: Metastore, tables: Tables, dying: Dying) -> None:
    tables.create_with_data("a", "1")
    with dying():
        tables.drop("a")
    tables.create("a")
    assert tables.files("a") == {}
    metastore.housekeeping.run()
    assert tables.files("a") == {}


def test_table_is_renamed_to_a_dropped_one_s_name(metastore: Metastore, tables: Tables, dying: Dying) -> None:
    tables.create_with_data("a")
    tables.create_with_data("b")
    with dying():
        tables.drop("a")
    tables.rename("b", "a")
    metastore.housekeeping.run()
    assert tables.files("a") == {FILE: "of b"}


def test_dropped_partition_is_made_again(metastore: Metastore, tables: Tables, dying: Dying) -> None:
    tables.create_with_data("a", "1", "2")
    with dying():
        tables.drop_partition("a", "1")
    tables.add("a", "1")
    metastore.housekeeping.run()
    assert tables.files("a") == {FILE: "of a", f"ds=2/{FILE}": "of 2"}


def test_dropped_database_is_made_again(metastore: Metastore, tables: Tables, dying: Dying) -> None:
    tables.create_with_data("a")
    with dying():
        metastore.databases.drop(DB, delete_data=True, cascade=True)
    metastore.databases.create(builders.database(DB))
    tables.create("a")
    metastore.housekeeping.run()
    assert tables.files("a") == {}


def test_what_was_dropped_goes_with_the_next_housekeeping(metastore: Metastore, tables: Tables, dying: Dying) -> None:
    tables.create_with_data("a")
    directory = tables.directory("a")
    with dying():
        tables.drop("a")
    assert directory.exists()
    metastore.housekeeping.run()
    assert not directory.exists()


# --- large tables, whose directories are moved out of the way first -----------------------------------------------


@pytest.fixture
def large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every table with a partition is one."""
    monkeypatch.setattr(table_service, "_MANY_PARTITIONS", 0)


def beside(directory: Path) -> list[Path]:
    return [path for path in directory.parent.iterdir() if path.name.startswith(".")]


@pytest.mark.usefixtures("large")
def test_large_table_is_gone_at_once_and_deleted_soon(tables: Tables) -> None:
    tables.create_with_data("a", "1", "2")
    directory = tables.directory("a")
    tables.drop("a")
    assert not directory.exists()
    wait_until(lambda: not beside(directory), 30, "its directory to be deleted")


@pytest.mark.usefixtures("large")
def test_large_dropped_table_is_made_again(metastore: Metastore, tables: Tables, dying: Dying) -> None:
    tables.create_with_data("a", "1")
    with dying():
        tables.drop("a")
    tables.create_with_data("a", "2")
    metastore.housekeeping.run()
    assert tables.files("a") == {FILE: "of a", f"ds=2/{FILE}": "of 2"}
    assert not beside(tables.directory("a"))


@pytest.mark.usefixtures("large")
def test_server_dies_with_a_large_table_out_of_the_way(
    metastore: Metastore, tables: Tables, monkeypatch: pytest.MonkeyPatch
) -> None:
    tables.create_with_data("a", "1")
    directory = tables.directory("a")
    with monkeypatch.context() as patch:
        patch.setattr(Mover, "_carry_out_later", lambda *_: None)
        tables.drop("a")
    assert len(beside(directory)) == 1
    tables.create_with_data("a", "2")
    metastore.housekeeping.run()
    assert tables.files("a") == {FILE: "of a", f"ds=2/{FILE}": "of 2"}
    assert not beside(directory)


@pytest.mark.usefixtures("large")
def test_large_table_that_can_not_be_moved_is_deleted_in_its_place(
    tables: Tables, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(self: Warehouse, source: str, target: str) -> bool:
        raise WarehouseError("a mount point")

    monkeypatch.setattr(Warehouse, "move_directory", refuse)
    tables.create_with_data("a", "1")
    directory = tables.directory("a")
    tables.drop("a")
    assert not directory.exists()


@pytest.mark.usefixtures("large")
def test_nobody_looks_for_what_is_still_on_its_way(metastore: Metastore, tables: Tables, dying: Dying) -> None:
    tables.create_with_data("a", "1")
    with dying():
        tables.drop("a")

    def next_for_housekeeping() -> Move | None:
        with metastore.database.write() as tx:
            return moves.claim_next(tx, 0)

    with metastore.database.write() as mover, ThreadPoolExecutor(1) as housekeeper:
        move, deletion = moves.pending(mover)
        assert move.target == deletion.source
        assert moves.claim(mover, [move.id]) == [move]
        assert housekeeper.submit(next_for_housekeeping).result() is None


# --- what can't be done, or should not be any more --------------------------------------------------------------


def test_what_fails_is_tried_again_after_growing_pauses(
    metastore: Metastore, tables: Tables, dying: Dying, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else each round of each server would try all of them, however long each takes to fail."""
    tables.create_with_data("a")
    with dying():
        tables.rename("a", "b")
    tried = []

    def fail(_: Warehouse, source: str, target: str) -> bool:
        tried.append(source)
        raise WarehouseError("the storage is down")

    with monkeypatch.context() as patch:
        patch.setattr(Warehouse, "move_directory", fail)
        for seconds, times in ((0, 1), (0, 2), (0, 2), (11, 3), (11, 3), (20, 4)):
            pass_time(metastore, seconds=seconds)
            metastore.housekeeping.run()
            assert len(tried) == times
    tables.rename("b", "c")  # who needs it doesn't wait for the pause
    with metastore.database.read() as tx:
        assert moves.pending(tx) == []


def test_a_clock_that_jumped_ahead_and_back_puts_nothing_off_for_long(
    metastore: Metastore, tables: Tables, dying: Dying
) -> None:
    tables.create_with_data("a")
    with dying():
        tables.rename("a", "b")
    pass_time(metastore, seconds=-400 * 86_400)
    metastore.housekeeping.run()
    assert tables.files("b") == {FILE: "of a"}


def pass_time(metastore: Metastore, *, seconds: int) -> None:
    """As if so much time had passed since all attempts."""
    with metastore.database.write() as tx:
        tx.execute(
            text("UPDATE moves SET next_attempt_at = greatest(next_attempt_at, now() - interval '1 day') - :by"),
            {"by": timedelta(seconds=seconds)},
        )


def test_a_deletion_of_an_older_server_s_is_looked_at(metastore: Metastore, tables: Tables, tmp_path: Path) -> None:
    """It recorded what a client had named: somebody's directory, or one that another table lies in."""
    tables.create_with_data("a")
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / FILE).write_text("of somebody")
    directory = tables.directory("a")
    with metastore.database.write() as tx:
        for place in (directory.parent, tmp_path / "home", directory / "ds=gone"):
            place.mkdir(exist_ok=True)
            tx.execute(text("INSERT INTO moves (source) VALUES (:source)"), {"source": f"file:{place}"})
    metastore.housekeeping.run()
    assert tables.files("a") == {FILE: "of a"}
    assert (tmp_path / "home" / FILE).exists()
    assert not (directory / "ds=gone").exists()
    with metastore.database.read() as tx:
        assert moves.pending(tx) == []


def test_a_partition_that_is_altered_to_lie_there(metastore: Metastore, tables: Tables, dying: Dying) -> None:
    tables.create_with_data("a", "1")
    tables.create_with_data("b", "1")
    place = tables.directory("a") / "ds=1"
    with dying():
        tables.drop_partition("a", "1")
    there = builders.partition(DB, "b", "1", location=f"file:{place}")
    metastore.partitions.alter(DB, "b", [there], {})
    place.mkdir(exist_ok=True)
    (place / "new").write_text("of b")
    metastore.housekeeping.run()
    assert [each.name for each in place.iterdir()] == ["new"]


def test_a_deletion_that_a_backup_brings_back_is_not_done(metastore: Metastore, tables: Tables, dying: Dying) -> None:
    """Since the backup others may have written there, of whom it doesn't know."""
    tables.create_with_data("gone")
    tables.create_with_data("renamed")
    place = tables.directory("gone")
    with dying():
        tables.drop("gone")
    with dying():
        tables.rename("renamed", "kept")
    (place / FILE).write_text("of a table that was made after the backup")
    with metastore.database.write() as tx:  # the database lies elsewhere than when somebody last looked
        tx.execute(text("UPDATE event_log SET place = 'another/' || substr(place, strpos(place, '/') + 1)"))
    metastore.housekeeping.run()
    assert (place / FILE).exists()
    assert tables.files("kept") == {FILE: "of renamed"}
    with metastore.database.read() as tx:
        assert moves.pending(tx) == []
