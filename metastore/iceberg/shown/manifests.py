"""Manifests and manifest lists of version 2, in Avro, as Iceberg's specification of tables says.

A manifest is named by the hash of its content, and equal entries make equal bytes. So a manifest that is there already
isn't written again, and several processes may write the same one.
"""

import hashlib
import io
import json
import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import fastavro

from metastore.iceberg.shown.bounds import NONE, Metrics
from metastore.iceberg.shown.footers import PARQUET
from metastore.iceberg.shown.lake_columns import LakeColumns, PartitionValue

MANIFEST_FILES = 1_000
"""Files in one manifest, except for a partition that has more."""

FILES = "lake-metastore.files"
"""What the header of a manifest says of the files in it: `files_key`."""

DATA, DELETES = 0, 1
"""What a file has: rows, or places of rows in other files that don't count."""

_EXISTING = 1
_SYNC = b"lake-metastore:ic"[:16]  # the marker between blocks, else a random one
_AVRO = {
    "boolean": "boolean",
    "int": "int",
    "long": "long",
    "string": "string",
    "date": {"type": "int", "logicalType": "date"},
}


@dataclass(frozen=True)
class Entry:
    """A data file of a snapshot. `position`: the one at which it was added. `path`: absolute; `size` in bytes.

    `rows`: None as long as it isn't known; a manifest needs it. `version`: another one for each content that the path
    had; 0 if it has always had the same.
    """

    partition: str
    path: str
    size: int
    rows: int | None
    position: int
    metrics: Metrics = NONE
    version: int = 0
    format: str = PARQUET
    content: int = DATA


@dataclass(frozen=True)
class ManifestFile:
    """A manifest as a manifest list names it. `name`: of the file; `length`: in bytes.

    `names`: of the columns of its files without field ids, see `names_of`.
    """

    name: str
    length: int
    files: int
    rows: int
    first_position: int
    last_position: int
    values: Sequence[tuple[PartitionValue, ...]]
    content: int = DATA
    names: frozenset[tuple[str, ...]] = frozenset()


def chunks(entries: Iterable[Entry]) -> Iterator[list[Entry]]:
    """Entries, sorted by partition, in pieces of whole partitions.

    Where a piece ends depends on the partitions at its end alone, so that a change of one leaves other pieces as they
    are: about half of MANIFEST_FILES are in a piece.
    """
    piece: list[Entry] = []
    for partition in _by_partition(entries):
        if piece and len(piece) + len(partition) > MANIFEST_FILES:
            yield piece
            piece = []
        piece += partition
        if zlib.crc32(partition[0].partition.encode()) % (MANIFEST_FILES // 2) < len(partition):
            yield piece
            piece = []
    if piece:
        yield piece


def _by_partition(entries: Iterable[Entry]) -> Iterator[list[Entry]]:
    group: list[Entry] = []
    for each in entries:
        if group and group[0].partition != each.partition:
            yield group
            group = []
        group.append(each)
    if group:
        yield group


def manifest(columns: LakeColumns, entries: Sequence[Entry]) -> tuple[ManifestFile, bytes]:
    """The manifest of some files, all of rows or all of deletes, and its content."""
    fields = [
        {
            "name": _avro_name(field["name"]),
            "type": ["null", _AVRO[kind]],
            "default": None,
            "field-id": field["field-id"],
        }
        for field, (_, kind) in zip(columns.spec["fields"], columns.keys, strict=True)
    ]
    names = [each["name"] for each in fields]
    partition_values = {each: columns.partition_values(each) for each in {each.partition for each in entries}}
    records = [
        {
            "status": _EXISTING,
            "snapshot_id": each.position,
            "sequence_number": each.position,
            "file_sequence_number": each.position,
            "data_file": {
                "content": each.content,
                "file_path": each.path,
                "file_format": each.format,
                "partition": dict(zip(names, partition_values[each.partition], strict=True)),
                "record_count": each.rows,
                "file_size_in_bytes": each.size,
                "value_counts": _by_field(each.metrics.values),
                "null_value_counts": _by_field(each.metrics.nulls),
                "lower_bounds": _by_field(each.metrics.lower),
                "upper_bounds": _by_field(each.metrics.upper),
            },
        }
        for each in entries
    ]
    content = _avro(
        _entry_schema(fields),
        records,
        {
            "schema": json.dumps(columns.schema, separators=(",", ":")),
            "schema-id": str(columns.schema["schema-id"]),
            "partition-spec": json.dumps(columns.spec["fields"], separators=(",", ":")),
            "partition-spec-id": "0",
            "format-version": "2",
            "content": "deletes" if entries[0].content == DELETES else "data",
            FILES: files_key((each.path, each.size, each.version) for each in entries),
        },
    )
    made = ManifestFile(
        name=f"{hashlib.sha256(content).hexdigest()[:40]}-m.avro",
        length=len(content),
        files=len(entries),
        rows=sum(each.rows or 0 for each in entries),
        first_position=min(each.position for each in entries),
        last_position=max(each.position for each in entries),
        values=list(partition_values.values()),
        content=entries[0].content,
    )
    return made, content


def _by_field(values: Mapping[int, int] | Mapping[int, bytes]) -> list[dict[str, Any]] | None:
    """A map as Avro has one whose keys aren't texts."""
    return [{"key": id, "value": value} for id, value in values.items()] or None


def files_key(files: Iterable[tuple[str, int, int]]) -> str:
    """A hash of some files: their paths, sizes and versions."""
    return hashlib.sha256(json.dumps(sorted(files)).encode()).hexdigest()


def header(content: bytes, key: str) -> str | None:
    """What the header of a file says of a key."""
    found = fastavro.reader(io.BytesIO(content)).metadata.get(key)
    return None if found is None else str(found)


def manifest_list(
    columns: LakeColumns, manifests: Sequence[ManifestFile], path: Callable[[str], str], about: dict[str, str]
) -> bytes:
    """The manifest list of a snapshot. `path`: the absolute path of a manifest by its name. `about`: for the header."""
    records = [
        {
            "manifest_path": path(each.name),
            "manifest_length": each.length,
            "partition_spec_id": 0,
            "content": each.content,
            "sequence_number": each.last_position,
            "min_sequence_number": each.first_position,
            "added_snapshot_id": each.last_position,
            "added_files_count": 0,
            "existing_files_count": each.files,
            "deleted_files_count": 0,
            "added_rows_count": 0,
            "existing_rows_count": each.rows,
            "deleted_rows_count": 0,
            "partitions": [
                _summary(kind, [row[at] for row in each.values]) for at, (_, kind) in enumerate(columns.keys)
            ],
        }
        for each in manifests
    ]
    return _avro(_LIST_SCHEMA, records, {**about, "format-version": "2"})


def _summary(kind: str, values: Sequence[PartitionValue]) -> dict[str, Any]:
    present = [each for each in values if each is not None]
    return {
        "contains_null": len(present) < len(values),
        "contains_nan": False,
        "lower_bound": _bytes(kind, min(present)) if present else None,
        "upper_bound": _bytes(kind, max(present)) if present else None,
    }


def _bytes(kind: str, value: Any) -> bytes:
    """A value in Iceberg's single-value form."""
    if kind == "string":
        return str(value).encode()
    if kind == "boolean":
        return b"\x01" if value else b"\x00"
    return int(value).to_bytes(8 if kind == "long" else 4, "little", signed=True)


def _avro_name(name: str) -> str:
    """A name as Iceberg's Java writes one that isn't Avro's; readers go by field ids."""
    found = re.sub(r"[^A-Za-z0-9_]", lambda match: f"_x{ord(match[0]):X}", name)
    return f"_{found}" if found[:1].isdigit() else found


def _avro(schema: Any, records: Sequence[Any], about: dict[str, str]) -> bytes:
    target = io.BytesIO()
    fastavro.writer(target, schema, records, codec="null", metadata=about, sync_marker=_SYNC)
    return target.getvalue()


def _field(name: str, number: int, kind: Any) -> dict[str, Any]:
    return {"name": name, "type": kind, "field-id": number}


def _optional(name: str, number: int, kind: Any) -> dict[str, Any]:
    return {"name": name, "type": ["null", kind], "default": None, "field-id": number}


def _map(name: str, number: int, key: int, value: int, kind: str) -> dict[str, Any]:
    item = {
        "type": "record",
        "name": f"k{key}_v{value}",
        "fields": [_field("key", key, "int"), _field("value", value, kind)],
    }
    return _optional(name, number, {"type": "array", "logicalType": "map", "items": item})


def _entry_schema(partition: Sequence[dict[str, Any]]) -> Any:
    data_file = {
        "type": "record",
        "name": "r2",
        "fields": [
            _field("content", 134, "int"),
            _field("file_path", 100, "string"),
            _field("file_format", 101, "string"),
            _field("partition", 102, {"type": "record", "name": "r102", "fields": list(partition)}),
            _field("record_count", 103, "long"),
            _field("file_size_in_bytes", 104, "long"),
            _map("value_counts", 109, 119, 120, "long"),
            _map("null_value_counts", 110, 121, 122, "long"),
            _map("lower_bounds", 125, 126, 127, "bytes"),
            _map("upper_bounds", 128, 129, 130, "bytes"),
        ],
    }
    return fastavro.parse_schema(
        {
            "type": "record",
            "name": "manifest_entry",
            "fields": [
                _field("status", 0, "int"),
                _optional("snapshot_id", 1, "long"),
                _optional("sequence_number", 3, "long"),
                _optional("file_sequence_number", 4, "long"),
                _field("data_file", 2, data_file),
            ],
        }
    )


_LIST_SCHEMA = fastavro.parse_schema(
    {
        "type": "record",
        "name": "manifest_file",
        "fields": [
            _field("manifest_path", 500, "string"),
            _field("manifest_length", 501, "long"),
            _field("partition_spec_id", 502, "int"),
            _field("content", 517, "int"),
            _field("sequence_number", 515, "long"),
            _field("min_sequence_number", 516, "long"),
            _field("added_snapshot_id", 503, "long"),
            _field("added_files_count", 504, "int"),
            _field("existing_files_count", 505, "int"),
            _field("deleted_files_count", 506, "int"),
            _field("added_rows_count", 512, "long"),
            _field("existing_rows_count", 513, "long"),
            _field("deleted_rows_count", 514, "long"),
            _optional(
                "partitions",
                507,
                {
                    "type": "array",
                    "element-id": 508,
                    "items": {
                        "type": "record",
                        "name": "r508",
                        "fields": [
                            _field("contains_null", 509, "boolean"),
                            _optional("contains_nan", 518, "boolean"),
                            _optional("lower_bound", 510, "bytes"),
                            _optional("upper_bound", 511, "bytes"),
                        ],
                    },
                },
            ),
        ],
    }
)
