"""Whether layers are still defined as when they were refreshed the last time."""

from collections.abc import Sequence

from lake.layers.compiler.compiling import Compiled
from lake.layers.compiler.defined import Change, Comparer, Defined, changes_between
from lake.layers.errors import BadDefinition
from lake.layers.runner.records import Record, latest_refresh
from lake.protocol.hive import NoSuchObjectException
from lake.tables.lake import LakeTable
from lake.tables.properties import keep_property

_REVERTED = "pipeline.reverted"
"""A property of layers' tables: when a definition was taken back, and its digest."""


class Definitions:
    """Compares the definitions of layers with those of records, each once. For one refresh.

    May be used by several threads for different layers.
    """

    def __init__(self, comparer: Comparer) -> None:
        self._comparer = comparer
        self._found: dict[tuple[str, str], Sequence[Change]] = {}

    def changes(self, made: Compiled, lake: LakeTable, record: Record) -> Sequence[Change]:
        """In what a layer's definition differs from that of a record, if it may have other rows; else nothing."""
        key = made.name, record.definition if record.kept is None else record.kept.digest
        if key not in self._found:
            self._found[key] = self._compared(made, lake, record)
        return self._found[key]

    def _compared(self, made: Compiled, lake: LakeTable, record: Record) -> Sequence[Change]:
        kept = record.kept
        if kept is not None and kept.digest == made.defined.digest:
            return []
        content = None if kept is None else kept.content(lake)
        if kept is not None and content is None:
            return [Change.UNKNOWN]
        before = None if content is None else Defined.of_json(content)
        if before is None:  # another version has kept it, or none: the digest is all that is known
            return [] if record.definition == made.definition else [Change.UNKNOWN]
        return changes_between(before, made.defined, self._comparer)


def definition_of(lake: LakeTable, record: Record) -> Defined | None:
    """The definition that a record's refresh went by; None if it isn't known."""
    content = None if record.kept is None else record.kept.content(lake)
    return None if content is None else Defined.of_json(content)


def keep_reverted(lake: LakeTable, time: str, digest: str) -> None:
    """Keeps in a layer's table that the definition of a digest is taken back: until somebody applies another one than
    the table's, no refresh does."""
    keep_property(lake, _REVERTED, f"{time} {digest}")


def forget_reverted(lake: LakeTable) -> None:
    """Forgets that a definition was taken back, since another one has been applied."""
    keep_property(lake, _REVERTED, None)


def reverted_at(lake: LakeTable) -> str | None:
    """When the table of a layer was reverted to the definition by which it stands; None if it wasn't, or isn't there.

    Not so where that has been begun alone, and the table stands by the definition that was to be taken back.
    """
    try:
        time, _, digest = lake.schema().properties.get(_REVERTED, "").partition(" ")
    except NoSuchObjectException:
        return None
    latest = latest_refresh(lake) if time else None
    if latest is None or (latest[1].kept is not None and latest[1].kept.digest == digest):
        return None
    return time


def is_reverted(made: Compiled, lake: LakeTable, definitions: Definitions) -> bool:
    """Whether a layer's table was reverted, and its definition is another one."""
    if reverted_at(lake) is None:
        return False
    latest = latest_refresh(lake)
    return latest is not None and bool(definitions.changes(made, lake, latest[1]))


def check_not_reverted(made: Compiled, lake: LakeTable, definitions: Definitions) -> None:
    """Raises BadDefinition if a layer's table was reverted, and its definition is another one."""
    if is_reverted(made, lake, definitions):
        raise BadDefinition(
            made.node.place,
            f"{made.name} was reverted to an earlier definition at {reverted_at(lake)}, and this is another one: write"
            " the earlier one here, as metastore pipeline revert --dry-run shows it, or have this one applied by"
            " metastore pipeline apply",
        )
