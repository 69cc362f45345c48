"""Which tables are keyed (`lake/protocol/formats/keyed_table.py`), and what is refused of their definitions.

Other systems have tables with such a property, too. They are left alone.
"""

import re
from collections.abc import Iterable, Mapping
from enum import Enum

from lake.protocol.formats import spark_schema
from lake.protocol.formats.column_ids import COLUMN_IDS
from lake.protocol.formats.commit_mode import COMMIT_MODE, CommitMode
from lake.protocol.formats.keyed_table import (
    BUCKET_KEY,
    PRIMARY_KEY,
    PUBLISH,
    BadKeyedTable,
    KeyedTable,
    Publish,
    with_features,
)
from lake.protocol.hive import InvalidOperationException, Table
from lake.protocol.lake import CompleteInstantRequest
from metastore.services.commit_flag.policy import LATE_ROWS, LatePolicy
from metastore.services.model import hive_objects
from metastore.store.engine.database import Transaction
from metastore.store.snapshot import data_files, leases
from metastore.store.table.tables import TableRow
from metastore.store.timeline import instants

_INPUT_FORMAT = "org.apache.hadoop.hive.ql.io.parquet.MapredParquetInputFormat"
_SERDE = "org.apache.hadoop.hive.ql.io.parquet.serde.ParquetHiveSerDe"
_HIVES = "org.apache.hadoop."
_SPARKS = frozenset({"orc", "csv", "json", "text", "avro"})
_MARKS = ("storage_handler", "table_type")
"""Parameters by which Iceberg, Paimon, HBase and others mark their tables."""

_PLACEHOLDER = {"col": "array<string>"}
"""What Spark gives as columns where Hive couldn't understand them (HiveExternalCatalog.EMPTY_DATA_SCHEMA)."""

_OWN_COLUMNS = "_metastore_"
"""How the names of the columns begin that files have beside those of the table."""


class _Format(Enum):
    """Whose files a table has: Parquet's, those of another format of Hive's or Spark's, or another system's."""

    PARQUET = 1
    FILES = 2
    FOREIGN = 3


def names_key(parameters: Mapping[str, str]) -> bool:
    """Whether a table's parameters name a primary key, whatever its format is."""
    return bool(parameters.get(PRIMARY_KEY, "").strip())


def is_keyed(row: TableRow) -> bool:
    """Whether a stored table is a keyed one."""
    return names_key(row.parameters) and is_parquet(hive_objects.table_of(row))


def is_parquet(table: Table) -> bool:
    """Whether a table's files are Parquet files that no other system, such as Hudi, describes."""
    return _format(table) is _Format.PARQUET


def definition_of(row: TableRow) -> KeyedTable | None:
    """The definition of a stored table; None unless it is a keyed one that can be written."""
    if not is_keyed(row):
        return None
    try:
        return definition(hive_objects.table_of(row))
    except BadKeyedTable:  # an older server let it pass, and nobody can write it as it says
        return None


def is_table_wide(row: TableRow) -> bool:
    """Whether a stored table is a keyed one whose key is unique over all of its partitions."""
    found = definition_of(row)
    return found is not None and found.is_table_wide


def publishes_at_readiness(row: TableRow) -> bool:
    """Whether partitions of a stored table turn ready only once Hive has their rows."""
    found = definition_of(row)
    return found is not None and found.publish is Publish.AT_READINESS


def check_completion(row: TableRow, request: CompleteInstantRequest) -> None:
    """Raises InvalidOperationException for files that a completion brings into the directories that Hive lists.

    There Hive would find rows that are replaced later, and a publish deletes earlier ones.
    """
    if request.relocate or any(each.staged for each in request.added or ()):
        raise InvalidOperationException(
            f"{row.name} has a primary key: its files stay in the directories of their instants, neither staged nor"
            " relocated. A publish gives Hive its rows"
        )


def check_layout(row: TableRow, layout: Mapping[str, str] | None, *, brings_files: bool = False) -> None:
    """Raises InvalidOperationException for a writer that goes by another layout than the table has.

    `layout`: some properties as of `KeyedTable.layout`; None or empty from a writer that doesn't say. `brings_files`:
    then it must say the columns' version, if some have been renamed or dropped, since files are read by the names of
    their time.
    """
    found = definition_of(row)
    if brings_files and found is not None and found.column_ids.changes:
        layout = {COLUMN_IDS: "", **(layout or {})}
    if (
        found is not None and found.bucket_columns and (layout or brings_files)
    ):  # a writer that doesn't know it says none
        layout = {BUCKET_KEY: "", **(layout or {})}
    if not layout:
        return
    if found is None:
        raise InvalidOperationException(
            f"{row.name} has no {PRIMARY_KEY}, by which the rows were placed: read the schema of the table again"
        )
    own = found.layout()
    if differs := [name for name, value in sorted(layout.items()) if _spelled(value) != _spelled(own.get(name, ""))]:
        name = differs[0]
        if name == COLUMN_IDS:
            raise InvalidOperationException(
                f"columns of {row.name} have been added, renamed or dropped since the writer read its schema, or the"
                " writer doesn't know the columns' ids: read the schema of the table again, and write the rows again,"
                " with a client of the server's version"
            )
        raise InvalidOperationException(
            f"the rows were placed by {name}={layout[name]!r}, and {row.name} has {own.get(name)!r}: read the schema of"
            " the table again, and write the rows again"
        )


def _spelled(value: str) -> str:
    """A property in one spelling: names are compared without case, and separators without spaces around them."""
    return re.sub(r"\s*([,;:])\s*", r"\1", value).strip().lower()


def say_features(table: Table, before: Mapping[str, str] | None = None) -> None:
    """Has the properties of a new or altered table name what a client must know to read it.

    `before`: the properties that an altered table has.
    """
    parameters = table.parameters or {}
    if names_key(parameters) and is_parquet(table):
        table.parameters = with_features(parameters, before)


def _check_names(columns: Iterable[str]) -> None:
    """Raises BadKeyedTable for a column that files would have twice."""
    for name in columns:
        if name.lower().startswith(_OWN_COLUMNS):
            raise BadKeyedTable(
                f"{PRIMARY_KEY}: the column {name} has a name that files of keyed tables have for columns of their own;"
                f" choose one that doesn't begin with {_OWN_COLUMNS}"
            )


def definition(table: Table) -> KeyedTable | None:
    """What a table's properties say of its key; None for a table without one, and for one of another system.

    If a new table of Spark's is refused, Spark gives it once more, with its columns hidden from Hive, and shows the
    message of that call: it is about Spark's columns, then. Raises BadKeyedTable for a table that can't have a key so.
    """
    parameters = table.parameters or {}
    if not names_key(parameters):
        return None
    format = _format(table)
    if format is _Format.FOREIGN:
        return None
    if hive_objects.is_view(table) or table.tableType == "MATERIALIZED_VIEW":
        raise BadKeyedTable(f"{PRIMARY_KEY}: a view has no files of its own; set it for a table")
    if format is not _Format.PARQUET:
        raise BadKeyedTable(f"{PRIMARY_KEY}: only Parquet tables have one; make the table STORED AS PARQUET")
    if any(name.lower() == "transactional" and hive_objects.is_true(value) for name, value in parameters.items()):
        raise BadKeyedTable(f"{PRIMARY_KEY} doesn't go with Hive's transactional tables: leave one of the two away")
    if parameters.get(LATE_ROWS, "").strip().lower() == LatePolicy.NEXT:
        raise BadKeyedTable(
            f"{PRIMARY_KEY} doesn't go with {LATE_ROWS}={LatePolicy.NEXT}: a row's key says in which partition it is"
        )
    columns = {each.name or "": each.type or "" for each in (table.sd and table.sd.cols) or ()}
    partitioned = {each.name or "": each.type or "" for each in table.partitionKeys or ()}
    _check_names((*columns, *partitioned))
    if columns == _PLACEHOLDER and (sparks := spark_schema.columns(parameters)) is not None:
        _check_names(sparks)
        own = {name: kind for name, kind in sparks.items() if name.lower() not in partitioned}
        if own.keys() != columns.keys():
            KeyedTable.of(parameters, own, partitioned)
            raise BadKeyedTable(
                f"{PRIMARY_KEY}: Spark keeps the columns for itself, since Hive doesn't have the type of one, such as"
                " TIMESTAMP_NTZ or an interval; a keyed table has columns of Hive's types, and no CHAR in its key"
            )
    found = KeyedTable.of(parameters, columns, partitioned)
    if found is not None and found.publish is Publish.AT_READINESS:
        mode = parameters.get(COMMIT_MODE, CommitMode.NONE).strip().lower()
        if mode == CommitMode.NONE:
            raise BadKeyedTable(
                f"{PUBLISH}={Publish.AT_READINESS} needs {COMMIT_MODE}: partitions of this table are ready from the"
                " start"
            )
    return found


def check_change(tx: Transaction, row: TableRow, old: Table, new: Table, *, up_to: int | None = None) -> bool:
    """Whether files of earlier snapshots of a keyed table can't be read by its new definition.

    `up_to`: files that were added after this position don't count. Raises InvalidOperationException if there are such
    files in the latest snapshot, BadKeyedTable as `changed_definition` does.
    """
    changed = changed_definition(old, new)
    if changed and data_files.has_live(tx, row.id, up_to=up_to):
        raise InvalidOperationException(
            f"{row.name}: {', '.join(changed)} can't be changed, nor the types of the columns that it names, since the"
            " table has files that were written by it: rewrite them into a new table"
        )
    return bool(changed)


def end_earlier_snapshots(tx: Transaction, row: TableRow, position: int) -> None:
    """Ends what keeps snapshots before a position readable: a table's new definition doesn't read their files.

    The caller sets `oldest_readable`. Readers lose their leases on them. Raises InvalidOperationException if a
    savepoint keeps one.
    """
    if saved := [each for each in instants.saved_positions(tx, row.id) if each < position]:
        raise InvalidOperationException(
            f"{row.name}: a savepoint keeps position {saved[0]}, whose files the table's new definition doesn't read:"
            " remove the savepoint first"
        )
    leases.hold_off_leases(tx, row.id)
    leases.remove_before(tx, row.id, position)


def changed_definition(old: Table, new: Table) -> list[str]:
    """The properties of an altered table in which files of the old one can't be read any more; empty if there are none.

    Raises BadKeyedTable if the new one can't have a key so.
    """
    after = definition(new)
    try:
        before = definition(old)
    except BadKeyedTable:  # an older server let it pass, and nobody could write it as it says
        return []
    if before is None or after is None:
        return [] if before is after else [PRIMARY_KEY]
    return after.unlike(before)


def _format(table: Table) -> _Format:
    """Spark's format of a table goes before Hive's."""
    parameters, storage = table.parameters or {}, table.sd
    provider = parameters.get(spark_schema.PROVIDER, "").strip().lower()
    if provider not in ("", "hive"):
        known = {"parquet": _Format.PARQUET, **dict.fromkeys(_SPARKS, _Format.FILES)}
        return known.get(provider, _Format.FOREIGN)
    input_format = (storage and storage.inputFormat) or ""
    if any(parameters.get(name) for name in _MARKS) or (input_format and not input_format.startswith(_HIVES)):
        return _Format.FOREIGN  # Hudi, too, has an input format of its own, with Parquet's serde
    serde = storage and storage.serdeInfo and storage.serdeInfo.serializationLib
    is_parquet = input_format == _INPUT_FORMAT or (not input_format and serde == _SERDE)
    return _Format.PARQUET if is_parquet else _Format.FILES
