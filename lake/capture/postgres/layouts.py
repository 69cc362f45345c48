"""What a source's catalog says of how a table is stored: by that, changes are found which the log doesn't tell.

The log brings no row where a change of a table's definition changes rows: the default of a new column, a type changed
by USING, a column that was dropped and added again, partitions that come and go below a published root. Each of these
changes something in the catalog.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from lake.capture.postgres.values import TEXTS
from lake.capture.schema_changes.model import Kind


class StoredColumn(NamedTuple):
    """A column in the catalog. `number`: pg_attribute.attnum, which no other column of the table ever gets.

    `attributes`: of a composite type. `version`: the transaction that last changed the column's definition.
    `is_filled`: older rows have a value that isn't stored with them, the default that the column was added with.
    `missing`: that value as Postgres writes it; None if there is none, or if partitions may have others.
    """

    number: int
    name: str
    type_oid: int
    modifier: int
    attributes: str
    version: str
    is_filled: bool
    missing: str | None = None


class Unlogged(NamedTuple):
    """A change of which the log doesn't bring all rows. `why`: what it is, in words. `kind`: what all of it is, if rows
    alone have changed, or older rows have a column more; None for anything else."""

    why: str
    kind: Kind | None = None


class StoredPart(NamedTuple):
    """A table, or a partition of one at any level. `file`: pg_class.relfilenode, another one after it was rewritten or
    emptied. `attached`: the transaction that made it a partition. `is_made_there`: it was made as a partition, so no
    rows came with it."""

    oid: int
    file: int
    attached: str
    is_made_there: bool


@dataclass(frozen=True)
class Layout:
    """What is kept of a table's place in the catalog.

    `count`: of its columns. `columns`, `versions` and `labels` are fingerprints: of the columns, of when these were
    last defined, of the labels of enums, of which there are `label_count`. `key`: names the constraint that identifies
    rows. `parts`: fingerprints of the table, or of its partitions; None if the table was emptied since they were read.
    `last`: the highest number that a column had by then.
    """

    count: int
    columns: str
    versions: str
    key: str
    label_count: int
    labels: str
    parts: tuple[str, ...] | None
    last: int

    def emptied(self) -> "Layout":
        """The layout after a truncation that the log has brought."""
        return replace(self, parts=None)

    @classmethod
    def parse(cls, sent: Mapping[str, Any] | None) -> "Layout | None":
        """From the JSON object of `sent`."""
        if sent is None:
            return None
        parts = None if sent["parts"] is None else tuple(sent["parts"])
        return cls(**{"last": sent["count"], **sent, "parts": parts})

    @staticmethod
    def sent(fields: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
        """The fields of a layout as they are kept, so that earlier versions can read those of most tables."""
        if fields is None or fields["last"] != fields["count"]:
            return fields
        return {name: value for name, value in fields.items() if name != "last"}


@dataclass(frozen=True)
class CatalogTable:
    """A table as the catalog has it now.

    `labels`: oid and text of each label of its columns' enums, by oid. `is_root`: changes of its partitions come as its
    own. `is_named`: the publication names it, so that Postgres refuses to make it UNLOGGED, whose changes aren't in the
    log. `last`: the highest number that a column of it has had; `dropped`: that of one that is dropped, 0 for none.
    """

    columns: Sequence[StoredColumn]
    key: str
    labels: Sequence[tuple[int, str]]
    parts: Sequence[StoredPart]
    is_root: bool
    is_named: bool
    last: int
    dropped: int

    def layout(self) -> Layout:
        """What is kept of it."""
        return Layout(
            len(self.columns),
            _columns(self.columns),
            _versions(self.columns),
            self.key,
            len(self.labels),
            _fingerprint(self.labels),
            tuple(sorted(map(_part, self.parts))),
            self.last,
        )

    def change_since(self, known: Layout, *, may_be_emptied: bool = False) -> Unlogged | None:
        """What has changed of which the log doesn't bring all rows; None if nothing.

        Rows that were read by `known`, and changes of the log since, are the table's rows then. `may_be_emptied`: the
        log may not have brought a truncation yet that the catalog shows.
        """
        before, added = self.columns[: known.count], self.columns[known.count :]
        parts = {_part(each): each for each in self.parts}
        are_same = known.parts is not None and parts.keys() == set(known.parts)
        if self.key != known.key:
            return Unlogged("its key changed")
        if len(before) < known.count or _columns(before) != known.columns:
            return Unlogged("its columns changed")
        if _fingerprint(self.labels[: known.label_count]) != known.labels:
            return Unlogged("labels of an enum changed", Kind.LABELS if are_same and not added else None)
        if added and self.dropped > known.last:
            return Unlogged("columns were added and dropped")  # those that are there now may have the others' names
        if any(each.is_filled for each in added):
            return Unlogged("a column was added with a default", Kind.ADD_FILLED if are_same else None)
        if known.parts is None:
            return Unlogged("a column was added") if added else None
        if are_same:
            return None
        if self.is_root:
            came = [each for name, each in parts.items() if name not in known.parts]
            if may_be_emptied:
                return None
            if set(known.parts) - parts.keys() or not all(each.is_made_there for each in came):
                return Unlogged("its partitions changed", Kind.PARTITIONS if not added else None)
            return None
        # VACUUM FULL, CLUSTER and the like write the same rows into another file, and change no column.
        if added or _versions(before) != known.versions or not (self.is_named or may_be_emptied):
            return Unlogged("its rows were written anew", Kind.ROWS if not added else None)
        return None


def catalog_table(sent: Mapping[str, Any], key: str | None, *, is_named: bool) -> CatalogTable:
    """From the JSON that the source's query makes: `columns`, `labels`, `parts` and `root`."""
    return CatalogTable(
        [StoredColumn(*each) for each in sent["columns"] or ()],
        key or "",
        sorted((oid, label) for oid, label in sent["labels"] or ()),
        [StoredPart(*each) for each in sent["parts"]],
        sent["root"],
        is_named,
        sent["last"],
        sent["dropped"],
    )


def _columns(columns: Iterable[StoredColumn]) -> str:
    return _fingerprint([(each.number, each.name, *_type(each), each.attributes) for each in columns])


def _type(column: StoredColumn) -> tuple[int, int]:
    """The type, and its modifier. Texts stay the same between types of texts, unless they are written again."""
    return (0, 0) if column.type_oid in TEXTS else (column.type_oid, column.modifier)


def _versions(columns: Iterable[StoredColumn]) -> str:
    return _fingerprint([(each.number, each.version) for each in columns])


def _part(part: StoredPart) -> str:
    return _fingerprint([part.oid, part.file, part.attached])[:8]


def _fingerprint(values: Iterable[object]) -> str:
    return hashlib.sha256(json.dumps([*values]).encode()).hexdigest()[:16]
