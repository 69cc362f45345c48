"""Parquet files of keyed tables, on any storage that fsspec knows."""

import os
import shutil
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq

from lake.protocol.formats.keyed_table import INSTANT, INSTANT_ID
from lake.tables.keyed import wide_types
from lake.tables.keyed.wide_types import narrow_schema, pieces

ROW_GROUP = 1 << 17
"""Rows of a row group: rows are sorted by key, so a search for a few keys reads a few groups."""


_CALENDAR = {"org.apache.spark.version": "4.0.0", "writer.date.proleptic": "true"}
"""What footers say, to Spark and to Hive: dates and times are of the proleptic Gregorian calendar, however long ago.

Without it, Spark 3.5 refuses to read dates before 1582 and timestamps before 1900, and Hive shifts them.
"""


_NO_NAMES: Mapping[str, str | None] = {}
_FIELD_ID = b"PARQUET:field_id"


def read_rows(uri: str, schema: pa.Schema, names: Mapping[str, str | None] = _NO_NAMES) -> pa.Table:
    """The rows of a file, with the columns of a schema; those that the file doesn't have are null.

    `names`: the names that columns have in the file if these aren't their own, None for those that it doesn't have.
    Raises what the storage and Parquet raise, such as FileNotFoundError.
    """
    with _opened(uri, "rb") as source:
        # Times of 96 bits would be nanoseconds, which end in the year 2262.
        file = pq.ParquetFile(source, coerce_int96_timestamp_unit="us")
        there = {name.lower(): name for name in file.schema_arrow.names}
        wanted = {there[own]: name for name in schema.names if (own := names.get(name, name)) in there}
        found = _read(file, [*wanted])
    return fitted(found.rename_columns([wanted[name] for name in found.column_names]), schema)


def _read(file: pq.ParquetFile, columns: Sequence[str]) -> pa.Table:
    """The rows of a file, in pieces if they are many: a nested column can't be read at once beyond 2 GiB."""
    groups = [file.metadata.row_group(number) for number in range(file.metadata.num_row_groups)]
    size = sum(each.total_byte_size for each in groups)
    if size <= wide_types.PIECE_BYTES:
        return file.read(columns=columns)
    rows = max(1, min(ROW_GROUP, file.metadata.num_rows * wide_types.PIECE_BYTES // size))
    schema = pa.schema([each for each in file.schema_arrow if each.name in columns])
    return pa.Table.from_batches(file.iter_batches(batch_size=rows, columns=columns), schema)


def write_rows(uri: str, rows: pa.Table, ids: Mapping[str, int]) -> int:
    """Writes rows into a new file, in the usual types. Returns its size in bytes. `ids`: of columns, by their names.

    A file has field ids in all columns or in none: readers that find some go by these alone, and would not find what is
    in nested columns, whose parts have no ids.
    """
    ids = {} if any(pa.types.is_nested(each.type) for each in rows.schema) else {**ids, INSTANT: INSTANT_ID}
    fields = [
        each.with_metadata({_FIELD_ID: str(ids[each.name])}) if each.name in ids else each
        for each in narrow_schema(rows.schema)
    ]
    schema = pa.schema(fields, _CALENDAR)
    if uri.startswith("file:"):
        fsspec.filesystem("file").makedirs(_local(uri).rpartition("/")[0], exist_ok=True)
    with _opened(uri, "wb") as target:
        with pq.ParquetWriter(target, schema, compression="snappy") as writer:
            for each in pieces(rows, ROW_GROUP):
                writer.write_table(each.cast(schema), row_group_size=ROW_GROUP)
        return int(target.tell())


def remove_others(directory: str, kept: Collection[str]) -> list[str]:
    """Removes the Parquet files below a directory but for some. All paths are relative to it; returns the removed ones.

    Raises what the storage raises.
    """
    storage, root = fsspec.url_to_fs(_local(directory) if directory.startswith("file:") else directory)
    storage.invalidate_cache(root)
    paths = [each.removeprefix(root).lstrip("/") for each in storage.find(root)]
    others = [path for path in paths if path.endswith(".parquet") and path not in kept]
    for path in others:
        storage.rm_file(f"{root}/{path}")
    return others


def link_files(pairs: Sequence[tuple[str, str]]) -> int:
    """Puts files at new places of the same storage, given as (source, target). Returns how many became hard links.

    The others are copied, on other storages than the local file system all of them. Raises what the storage raises,
    such as FileNotFoundError.
    """
    linked = 0
    remote = [pair for pair in pairs if not pair[0].startswith("file:")]
    for source, target in ((_local(one), _local(two)) for one, two in pairs if one.startswith("file:")):
        Path(target).parent.mkdir(parents=True, exist_ok=True)
        try:
            os.link(source, target)
            linked += 1
        except FileNotFoundError:
            raise
        except OSError:  # the file system has no links, or no more of them for this file
            shutil.copyfile(source, target)
    if remote:
        storage, _ = fsspec.url_to_fs(remote[0][0])
        # Lists of both are copied as they are, several at a time where the storage's driver can.
        storage.copy(*([storage._strip_protocol(pair[side]) for pair in remote] for side in (0, 1)))
    return linked


def remove_files(uris: Iterable[str]) -> None:
    """Removes files; missing ones are fine."""
    for uri in uris:
        if uri.startswith("file:"):
            Path(_local(uri)).unlink(missing_ok=True)
        else:
            storage, path = fsspec.url_to_fs(uri)
            with suppress(FileNotFoundError):
                storage.rm_file(path)


def fitted(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """The columns of a schema in its order and types; those that are missing are null."""
    names: Sequence[str] = rows.column_names
    columns = [
        rows.column(field.name).cast(field.type)
        if field.name in names
        else pa.chunked_array([pa.nulls(rows.num_rows, field.type)])
        for field in schema
    ]
    return pa.table(columns, schema=schema)


def _opened(uri: str, mode: str) -> "fsspec.core.OpenFile":
    return fsspec.open(_local(uri) if uri.startswith("file:") else uri, mode)


def _local(uri: str) -> str:
    """The path of a `file:` URI. The metastore's locations aren't encoded: a `%3A` is in the name of a directory."""
    return "/" + uri.removeprefix("file:").lstrip("/")
