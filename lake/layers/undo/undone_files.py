"""Undoes instants of a table without a primary key: the files that they added are removed from the table."""

from collections.abc import Sequence
from dataclasses import dataclass

from lake.client.lake_types import Completion, FileGroup, Instant
from lake.layers.runner.records import SERVICES, undoing_metadata, writes_rows
from lake.protocol.errors import UserError
from lake.tables.keyed_writes import Action
from lake.tables.lake import LakeTable, Writing


class CannotUndo(UserError):
    """What instants did can't be undone. Nothing was written."""


@dataclass(frozen=True)
class UndoneFiles:
    """What is undone of a table without a key.

    `instants` are those that are undone, `groups` the files that they added and that the table still has, `rows` how
    many rows these have.
    """

    lake: LakeTable
    instants: Sequence[Instant]
    position: int
    groups: Sequence[FileGroup]
    rows: int

    def action(self) -> Action | None:
        """The instant that removes the files; None if there is nothing to undo."""
        return Action(self.lake, "replacecommit", self._completion, self.position) if self.groups else None

    def _completion(self, _: Writing) -> Completion:
        return Completion(removed_groups=self.groups, metadata=undoing_metadata(self.instants))


def undone_files(lake: LakeTable, after: int, up_to: int, now: int) -> UndoneFiles:
    """What it takes to undo the instants after a position up to another, of a table that is read at `now`.

    Raises CannotUndo if they removed files, or if their rows were merged with others by a clustering.
    """
    done = [each for each in lake.changes(after, up_to, include_uncommitted=True) if writes_rows(each)]
    for each in done:
        if each.removed:
            raise CannotUndo(
                f"{lake.name}: the instant {each.instant.timestamp} has replaced {len(each.removed):,} files, which can"
                " only be brought back by rolling back all instants since then: metastore timeline rollback"
            )
    added = {FileGroup(file.partition, file.file_group) for each in done for file in each.added}
    there = {}
    for file in lake.snapshot(now, include_uncommitted=True):
        group = FileGroup(file.partition, file.file_group)
        if group in added:
            there[group] = file.rows or 0
    gone = added - there.keys()
    for each in lake.changes(up_to, now, include_uncommitted=True) if gone else ():
        merged = {FileGroup(file.partition, file.file_group) for file in each.removed} & gone
        if merged and each.instant.begun_as in SERVICES:
            raise CannotUndo(
                f"{lake.name}: the {each.instant.begun_as} {each.instant.timestamp} has merged {len(merged):,} files of"
                " these instants with others: their rows can't be told apart any more"
            )
    return UndoneFiles(lake, [each.instant for each in done], now, sorted(there), sum(there.values()))
