"""Files that nothing refers to any more: one server deletes them, in bulk, and what it can't delete keeps no others."""

import json
import os
from pathlib import Path

import pytest

from lake.protocol.lake import FindOrphansRequest
from metastore.services.maintenance import file_deletions
from metastore.services.timeline import orphan_files
from metastore.services.wiring import Metastore
from metastore.store.snapshot import data_files
from metastore.warehouse import Warehouse, WarehouseError
from tests.metastore.services.timeline.lake import LakeTable
from tests.support import builders
from tests.support.command import output


def schedule_deletion(table: LakeTable, *paths: str) -> list[Path]:
    with table.metastore.database.write() as tx:
        row = table.metastore.tables.row(tx, table.db, table.name)
        data_files.schedule_deletion(tx, row.id, paths)
    files = [table.directory / path for path in paths]
    for file in files:
        file.parent.mkdir(parents=True, exist_ok=True)
    return files


def make_due(table: LakeTable) -> None:
    """Time passes."""
    with table.metastore.database.write() as tx:
        tx.exec_driver_sql("UPDATE pending_deletions SET next_attempt_at = '-infinity'")


@pytest.fixture(autouse=True)
def nothing_left_over(metastore: Metastore) -> None:
    with metastore.database.write() as tx:
        tx.exec_driver_sql("DELETE FROM pending_deletions")


def test_what_can_t_be_deleted_keeps_no_others(table: LakeTable, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_deletions, "AT_ONCE", 5)
    blocked = schedule_deletion(table, *(f"blocked{number}" for number in range(12)))
    for directory in blocked:
        directory.mkdir()  # a directory where a file should be
    [file] = schedule_deletion(table, "free")
    file.write_text("rows")
    table.delete_files()
    assert not file.exists()
    assert table.metastore.pending_work.counts()[:2] == (12, 0)


def test_it_is_tried_again_after_growing_pauses(table: LakeTable, monkeypatch: pytest.MonkeyPatch) -> None:
    [file] = schedule_deletion(table, "a")
    file.write_text("rows")
    tries: list[int] = []

    def refuse(self: Warehouse, paths: list[str], base: str) -> dict[str, WarehouseError]:
        tries.append(len(paths))
        return {path: WarehouseError("the storage is away") for path in paths}

    pauses = []
    with monkeypatch.context() as patch:
        patch.setattr(Warehouse, "delete_files", refuse)
        for _ in range(3):
            table.delete_files()
            table.delete_files()  # too early
            with table.metastore.database.read() as tx:
                query = "SELECT extract(epoch FROM next_attempt_at - clock_timestamp()) FROM pending_deletions"
                pauses.append(tx.exec_driver_sql(query).scalar_one())
            make_due(table)
    assert len([each for each in tries if each]) == 3
    assert [round(float(pause), -1) for pause in pauses] == [10, 20, 40]
    assert table.metastore.pending_work.counts()[:2] == (1, 1)
    assert table.metastore.server_info.counts()["undeletable_files"] == 1
    url = table.metastore.database.url.render_as_string(hide_password=False)
    [shown] = json.loads(output("db", "undeletable", "--json", "--database-url", url))
    assert shown["table"].endswith(f"{table.db}.t")
    assert (shown["files"], shown["path"], shown["attempts"]) == (1, "a", 3)
    assert shown["failure"] == "the storage is away"
    assert "the storage is away" in output("db", "undeletable", "--database-url", url)
    table.delete_files()
    assert not file.exists()
    assert table.metastore.pending_work.counts()[:2] == (0, 0)


def test_a_commit_deletes_nothing(table: LakeTable, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever others have left over, and however slow the storage is."""
    schedule_deletion(table, "a")
    monkeypatch.setattr(Warehouse, "delete_files", lambda *_: pytest.fail("deleted"))
    monkeypatch.setattr(Warehouse, "delete_directory", lambda *_, **__: pytest.fail("deleted"))
    table.commit("a")
    begun = table.begin()
    table.metastore.timeline.delete(table.reference, begun.timestamp, begun.action)


@pytest.mark.parametrize("path", ["../secret", "link/secret", "/secret"])
def test_nothing_outside_of_the_table(table: LakeTable, path: str) -> None:
    secret = table.directory.parent / "secret"
    secret.write_text("rows")
    (table.directory / "link").symlink_to(table.directory.parent)
    schedule_deletion(table, path)
    table.delete_files()
    assert secret.exists()


def test_a_lake_over_somebody_s_directory(metastore: Metastore, db: str, tmp_path: Path) -> None:
    """Its instants' directories are the server's, what lay there before is not."""
    (tmp_path / "thesis").write_text("years of work")
    table = object.__new__(LakeTable)
    table.metastore, table.db, table.name = metastore, db, "t"
    place = builders.storage("id:bigint", location=f"file:{tmp_path}")
    metastore.tables.create(builders.table(db, "t", sd=place), {})
    thesis, staged = schedule_deletion(table, "thesis", ".instants/1.commit/a")
    staged.write_text("rows")
    table.delete_files()
    assert thesis.read_text() == "years of work"
    assert not staged.exists()
    assert table.metastore.pending_work.counts()[:2] == (0, 0)


def test_a_search_for_orphan_files_goes_on_where_it_stopped(table: LakeTable, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(orphan_files, "SECONDS", 0)
    table.commit("a")
    names = [f"202001010000000{number:02}.commit" for number in range(4)]
    for name in names:
        file = table.directory / ".instants" / name / "file"
        file.parent.mkdir(parents=True)
        file.write_text("rows")
        os.utime(file, (1, 1))
    after, found, calls = None, [], 0
    while True:
        some = table.metastore.orphan_files.find(FindOrphansRequest(table.reference, None, after))
        found += [each.path for each in some.files]
        calls += 1
        after = some.last
        if after is None:
            break
    assert found == [f".instants/{name}/file" for name in names]
    assert calls == 4
