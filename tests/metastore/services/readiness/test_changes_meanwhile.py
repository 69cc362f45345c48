"""Files of an accepted batch are on their way, and somebody changes where they go.

The server that accepted them died before it moved them. Whoever comes first finds things as if it hadn't.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

import pytest

from lake.protocol.hive import NoSuchObjectException
from metastore.services.files.relocator import Mover
from metastore.services.files.staged_files import Publisher
from metastore.services.wiring import Metastore
from tests.metastore.services.readiness.lake import HOUR, HOURLY, StreamTable, at, hour

START = at("2026-01-01 00:00")


class Died(BaseException):
    """The process is gone."""


Dying = Callable[[], AbstractContextManager[None]]


@pytest.fixture
def dying(monkeypatch: pytest.MonkeyPatch) -> Dying:
    """The server dies in this block, right after the commit of what is done in it."""

    def die(*_: object) -> None:
        raise Died

    @contextmanager
    def block() -> Iterator[None]:
        with monkeypatch.context() as patch, pytest.raises(Died):
            patch.setattr(Publisher, "carry_out", die)
            patch.setattr(Mover, "carry_out", die)
            yield

    return block


@pytest.fixture
def accepted(table: StreamTable, dying: Dying) -> StreamTable:
    """A table with a file on its way into each of two partitions."""
    table.add(hour(0), hour(1))
    accept(table, dying, 0, hour(0), hour(1))
    return table


def accept(table: StreamTable, dying: Dying, batch: int, *names: str, **more: object) -> None:
    begun = table.begin(batch)
    files = {f"w-{batch}-{number}.parquet": name for number, name in enumerate(names)}
    table.stage(begun, *files)
    with dying():
        table.report(batch, begun, files, **more)  # type: ignore[arg-type]
    assert table.on_the_way() == len(files)
    assert not any(file in table.all_files() for file in files)


def paths(table: StreamTable) -> set[str]:
    """What readers of the table's directory find, once nothing is on its way."""
    table.metastore.readiness.commit_due_everywhere()
    table.metastore.housekeeping.run()
    assert table.on_the_way() == 0
    return set(table.all_files())


BOTH = {f"{hour(0)}/w-0-0.parquet", f"{hour(1)}/w-0-1.parquet"}


def test_nothing_else_happens(accepted: StreamTable) -> None:
    assert paths(accepted) == BOTH


def test_the_next_batch(accepted: StreamTable) -> None:
    accepted.write(1, hour(2))
    assert accepted.on_the_way() == 0
    assert set(accepted.all_files()) == {*BOTH, f"{hour(2)}/w-1-0.parquet"}


def test_repeated_report(accepted: StreamTable) -> None:
    assert accepted.report(0).repeated is True
    assert paths(accepted) == BOTH


def test_commit_by_hand(accepted: StreamTable) -> None:
    accepted.commit(hour(0))
    assert accepted.files(hour(0)) == {"w-0-0.parquet"}
    assert accepted.files(hour(1)) == set()
    assert paths(accepted) == BOTH


def test_commit_by_an_alteration(accepted: StreamTable) -> None:
    partition = accepted.get(hour(0))
    parameters = {"commit": "true"}
    accepted.metastore.partitions.alter(accepted.db, "t", [partition.replace(parameters=parameters)], {})
    assert accepted.ready() == [hour(0)]
    assert accepted.files(hour(0)) == {"w-0-0.parquet"}


def test_commit_by_event_time(accepted: StreamTable) -> None:
    accepted.report(1, writer="other", s=START + 9 * HOUR)
    assert accepted.ready() == [hour(0), hour(1)]
    assert set(accepted.all_files()) == BOTH


def test_partition_is_dropped(accepted: StreamTable) -> None:
    accepted.metastore.partitions.drop(accepted.db, "t", name=hour(0), delete_data=True)
    assert paths(accepted) == {f"{hour(1)}/w-0-1.parquet"}


def test_partition_is_dropped_and_made_again(accepted: StreamTable) -> None:
    """What was for the old one is gone with it."""
    accepted.metastore.partitions.drop(accepted.db, "t", name=hour(0), delete_data=True)
    accepted.add(hour(0))
    assert paths(accepted) == {f"{hour(1)}/w-0-1.parquet"}


def test_partition_is_dropped_but_its_files_stay(accepted: StreamTable) -> None:
    """All that were accepted for it."""
    accepted.metastore.partitions.drop(accepted.db, "t", name=hour(0), delete_data=False)
    assert set(accepted.all_files()) == {f"{hour(0)}/w-0-0.parquet"}
    assert paths(accepted) == BOTH


def test_partition_of_an_external_table_is_dropped(metastore: Metastore, db: str, dying: Dying) -> None:
    table = StreamTable(metastore, db, external=True)
    table.add(hour(0))
    accept(table, dying, 0, hour(0))
    metastore.partitions.drop(db, "t", name=hour(0), delete_data=True)
    assert set(table.all_files()) == {f"{hour(0)}/w-0-0.parquet"}


def test_external_table_is_dropped(metastore: Metastore, db: str, dying: Dying) -> None:
    table = StreamTable(metastore, db, external=True)
    table.add(hour(0))
    accept(table, dying, 0, hour(0))
    directory = table.directory
    metastore.tables.drop(db, "t", delete_data=True)
    assert (directory / hour(0) / "w-0-0.parquet").is_file()


def test_what_cannot_be_moved_keeps_nobody_from_dropping(metastore: Metastore, db: str, dying: Dying) -> None:
    table = StreamTable(metastore, db, external=True)
    table.add(hour(0), hour(1))
    accept(table, dying, 0, hour(0), hour(1))
    for name in (hour(0), hour(1)):
        (table.directory / name).rmdir()
        (table.directory / name).write_text("no directory")
    metastore.partitions.drop(db, "t", name=hour(0), delete_data=False)
    metastore.tables.drop(db, "t", delete_data=False)
    with metastore.database.read() as tx:
        assert tx.exec_driver_sql("SELECT count(*) FROM publications").scalar_one() == 0


def test_table_is_dropped(accepted: StreamTable) -> None:
    directory = accepted.directory
    accepted.metastore.tables.drop(accepted.db, "t", delete_data=True)
    assert not directory.exists()
    again = StreamTable(accepted.metastore, accepted.db)
    again.add(hour(0))
    assert paths(again) == set()


def test_database_is_dropped(accepted: StreamTable) -> None:
    directory = accepted.directory
    accepted.metastore.databases.drop(accepted.db, delete_data=True, cascade=True)
    accepted.metastore.readiness.commit_due_everywhere()
    assert not directory.exists()


def test_table_is_renamed(accepted: StreamTable) -> None:
    accepted.rename("renamed")
    assert accepted.directory.name == "renamed"
    assert paths(accepted) == BOTH


def test_truncated(accepted: StreamTable) -> None:
    """What was accepted before is emptied too, what comes after stays."""
    accepted.metastore.tables.truncate(accepted.db, "t", [hour(0)])
    assert paths(accepted) == {f"{hour(1)}/w-0-1.parquet"}
    accepted.write(1, hour(0))
    assert paths(accepted) == {f"{hour(0)}/w-1-0.parquet", f"{hour(1)}/w-0-1.parquet"}


# --- the other way round: a rename isn't complete, and a batch comes ------------------------------------------


def test_flags_turn_before_renamed_things_have_moved(metastore: Metastore, db: str, dying: Dying) -> None:
    """The success file doesn't come to a place, or go from it, before what is to move there."""
    policy = {"sink.partition-commit.policy.kind": "metastore,success-file"}
    table = StreamTable(metastore, db, properties=HOURLY | policy)
    table.write(0, hour(0), hour(1))
    table.commit(hour(1))
    with dying():
        table.rename("renamed")
    table.name = "renamed"
    table.commit(hour(0))
    assert (table.files(hour(0)), table.files(hour(1))) == (
        {"w-0-0.parquet", "_SUCCESS"},
        {"w-0-1.parquet", "_SUCCESS"},
    )
    with dying():
        table.rename("t")
    table.name = "t"
    table.reopen(hour(1))
    assert table.files(hour(1)) == {"w-0-1.parquet"}
    assert paths(table) == {f"{hour(0)}/w-0-0.parquet", f"{hour(1)}/w-0-1.parquet"}


def test_others_left_directories_where_a_table_goes(table: StreamTable, dying: Dying) -> None:
    """Those of partitions that were added to it under its name of before, and came too late."""
    table.write(0, hour(0))
    renamed = table.directory.parent / "renamed"
    with dying():
        table.rename("renamed")
    (renamed / hour(5)).mkdir(parents=True)
    table.name = "renamed"
    assert paths(table) == {f"{hour(0)}/w-0-0.parquet"}


def test_batch_for_a_partition_that_comes_back_before_the_old_one_is_deleted(table: StreamTable, dying: Dying) -> None:
    table.write(0, hour(0))
    with dying():
        table.metastore.partitions.drop(table.db, "t", name=hour(0), delete_data=True)
    table.write(1, hour(0))
    assert paths(table) == {f"{hour(0)}/w-1-0.parquet"}


def test_table_is_renamed_while_a_batch_is_staged(table: StreamTable) -> None:
    """Under its old name the report fails, under the new one the files are found."""
    table.add(hour(0))
    begun = table.begin(0)
    table.stage(begun, "a")
    old = table.through(table.metastore)
    table.rename("renamed")
    with pytest.raises(NoSuchObjectException):
        old.report(0, begun, {"a": hour(0)})
    assert table.report(0, begun, {"a": hour(0)}).accepted is True
    assert paths(table) == {f"{hour(0)}/a"}


def test_two_tables_in_one_directory(metastore: Metastore, db: str) -> None:
    """Attempts never meet, though writer and batch are called the same."""
    tables = [StreamTable(metastore, db, name, properties=HOURLY) for name in ("one", "two")]
    table = metastore.tables.get(db, "two")
    assert table.sd is not None
    table.sd.location = f"file:{tables[0].directory}"
    metastore.tables.alter(db, "two", table, {})
    for number, each in enumerate(tables):
        each.add(hour(number))
    begun = [each.begin(0) for each in tables]
    for number, each in enumerate(tables):
        each.stage(begun[number], "a")
    for number, each in enumerate(tables):
        assert each.report(0, begun[number], {"a": hour(number)}).accepted is True
    assert set(tables[0].all_files()) == {f"{hour(0)}/a", f"{hour(1)}/a"}
