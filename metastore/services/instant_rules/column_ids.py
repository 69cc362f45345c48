"""The ids of lake tables' columns, and changes of columns after which files would be read wrongly.

Hive's alteration gives the new list of columns alone. What can be understood in two ways is refused.
"""

from collections.abc import Collection, Mapping, Sequence

from lake.protocol.formats import spark_schema
from lake.protocol.formats.column_ids import COLUMN_IDS, MAX_NAMES, ColumnIds
from lake.protocol.formats.hive_types import keeps_fields
from lake.protocol.hive import FieldSchema, InvalidOperationException, Table
from metastore.services.instant_rules.keyed_tables import is_keyed, is_parquet
from metastore.services.model.type_compatibility import compatible
from metastore.store.engine.database import Transaction
from metastore.store.snapshot import data_files
from metastore.store.table.tables import TableRow
from metastore.store.timeline import instants


def keep_column_ids(tx: Transaction, row: TableRow, old: Table, new: Table, *, is_rewritten: bool = False) -> Table:
    """An altered table with the property COLUMN_IDS, which no client changes. The caller has locked the table's row.

    `is_rewritten`: all of the table's files have the new columns, and have them by their names. Of a lake table, the
    schema that Spark keeps follows the change, too. Raises InvalidOperationException for a change
    of a lake table's columns that could be understood in two ways, or after which its files would be read wrongly.
    """
    given = {key: value for key, value in (new.parameters or {}).items() if key != COLUMN_IDS}
    stored = row.parameters.get(COLUMN_IDS)
    if stored is not None:
        given[COLUMN_IDS] = stored
    new = new.replace(parameters=given)
    before, after = _columns(old), _columns(new)
    if [*before.items()] == [*after.items()] or not is_parquet(old):
        return new
    has_files = instants.has_timeline(tx, row.id)
    if not has_files and not is_keyed(row):
        return new
    try:
        ids = ColumnIds.of(row.parameters, [*before])
    except ValueError as error:
        raise InvalidOperationException(f"{row.name}: {error}") from None
    renamed = {} if is_rewritten else _renamed(row, before, after)
    if has_files:
        _check(tx, row, ids, before, after, renamed)
    only_added = [*after][: len(before)] == [*before]
    changed = ids.changed([*after], renamed, instants.timeline(tx, row.id).position)
    if len(changed.names) > MAX_NAMES:
        raise InvalidOperationException(
            f"{row.name} has had {MAX_NAMES} names of columns, which is the limit: copy its rows into a new table"
        )
    if stored is not None or not only_added:
        given[COLUMN_IDS] = changed.to_text()
    if only_added or spark_schema.joined(given) != spark_schema.joined(row.parameters):  # Spark made the change
        return new.replace(parameters=given)
    keys = [(each.name or "").lower() for each in new.partitionKeys or ()]
    earlier = {name: renamed.get(name, name) for name in after}
    return new.replace(parameters=spark_schema.following(given, earlier, keys))


def _columns(table: Table) -> dict[str, str]:
    """The types of a table's data columns by their names."""
    columns: Sequence[FieldSchema] = (table.sd and table.sd.cols) or ()
    return {(each.name or "").lower(): each.type or "" for each in columns}


def _renamed(row: TableRow, before: Mapping[str, str], after: Mapping[str, str]) -> dict[str, str]:
    """The earlier name of a renamed column by its new one; empty if none is. Raises InvalidOperationException.

    One column is renamed if it alone has another name, at its place, and a type that its values can be read as.
    """
    gone, come = [name for name in before if name not in after], [name for name in after if name not in before]
    if not gone or not come:
        return {}
    changed = [pair for pair in zip(before, after, strict=False) if pair[0] != pair[1]]
    if len(before) == len(after) and len(changed) == 1 and compatible(before[gone[0]], after[come[0]]):
        return {come[0]: gone[0]}
    raise InvalidOperationException(
        f"{row.name}: {_listed(gone)} would go and {_listed(come)} come at once, which may be a rename, or a drop and"
        " an addition. Rename one column at a time, and change nothing else; or drop columns first, and then add others"
    )


def _check(
    tx: Transaction,
    row: TableRow,
    ids: ColumnIds,
    before: Mapping[str, str],
    after: Mapping[str, str],
    renamed: Mapping[str, str],
) -> None:
    """Raises InvalidOperationException for a change after which the table's files would be read wrongly."""
    for name, kind in after.items():
        earlier = renamed.get(name, name)
        if earlier in before and not keeps_fields(before[earlier], kind):
            raise InvalidOperationException(
                f"{row.name}: the column {name} can't become {kind}: fields of structs are found by their names in"
                " files, so they can only be added, after those that are there. Add another column instead"
            )
    former = {each.name for each in ids.names if each.up_to is not None}
    again = [name for name in after if name not in before and name in former]
    if renamed:
        [(name, earlier)] = renamed.items()
        what = f"{earlier} can't be renamed to {name}"
    elif again:
        what = f"{_listed(again)} can't be added again"
    else:
        return
    if not is_keyed(row):
        files = "the table's files"
    elif data_files.any_published(tx, row.id):
        files = "the published files, which Hive reads"
    else:
        return
    raise InvalidOperationException(
        f"{row.name}: {what}: columns are found by their names in {files}. Add a column of another name"
    )


def _listed(names: Collection[str]) -> str:
    return ", ".join(names)
