"""Decodes the metadata that Hudi writes with the states of an instant.

Hudi 0.x writes commits as JSON, 1.x as Avro; everything else is Avro in both. Its Avro is that of object container
files: each carries the schema that it was written with, so one reader understands every release, and fields are looked
up by name. Field names and what they mean: Hudi's Avro schemas and its format specification.

Nothing in the bytes is trusted: their size, the nesting of JSON, schemas by which few bytes would become many values,
and the memory that the values would take are bounded.
"""

import io
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from fastavro import reader

from metastore.warehouse.hudi_files.avro_size import AvroSize, TooMuch, size_of_json

MAX_BYTES = 64 << 20
"""The longest metadata that is read."""

MAX_MEMORY = 512 << 20
"""The most that metadata may take in memory, in bytes, by an estimate. The longest that Hudi writes takes less."""

MAX_SCHEMA_BYTES = 1 << 20
"""The longest schema of an Avro file."""

MAX_SCHEMA_TYPES = 10_000
"""Types in a schema, counted wherever they are used."""

MAX_DEPTH = 50
"""Deepest nesting of a schema."""

_MAGIC = b"Obj\x01"
_PRIMITIVES = frozenset({"boolean", "int", "long", "float", "double", "bytes", "string"})


class HudiMetadataError(ValueError):
    """Bytes that Hudi didn't write. The message says what is wrong with them."""


class WriteStat(NamedTuple):
    """A file that a commit wrote. `path` is relative to the table, `size` in bytes, event times are in milliseconds."""

    partition: str
    file_id: str
    path: str
    size: int
    rows: int
    min_event_time: int | None
    max_event_time: int | None


@dataclass(frozen=True, slots=True)
class Commit:
    """Of commit, deltacommit, replacecommit and what completes as one of them. `replaced`: file ids by partition;
    `schema`: Avro's JSON; `operation`: what Hudi calls what was done, for example UPSERT.
    """

    written: list[WriteStat]
    replaced: Mapping[str, list[str]]
    schema: str | None
    operation: str | None


@dataclass(frozen=True, slots=True)
class Clean:
    """The files that a clean deleted, as paths relative to the table, and partitions that it took away altogether."""

    deleted: list[str]
    partitions: list[str]


@dataclass(frozen=True, slots=True)
class Undoing:
    """The instants that a rollback or restore undoes: timestamp, and action where it is said."""

    instants: list[tuple[str, str | None]]


@dataclass(frozen=True, slots=True)
class Plan:
    """The file groups that a table service is going to work on: partition and file id."""

    groups: list[tuple[str, str]]


def decode(content: bytes) -> Mapping[str, Any]:
    """The fields of any metadata, as they are named. Raises HudiMetadataError."""
    if len(content) > MAX_BYTES:
        raise HudiMetadataError(f"metadata of {len(content):,} bytes: at most {MAX_BYTES:,} are read")
    fields = _avro(content) if content.startswith(_MAGIC) else _json(content)
    if not isinstance(fields, dict):
        raise HudiMetadataError("metadata has fields; this is a value alone")
    return fields


def commit(content: bytes) -> Commit:
    """Metadata of a completed commit, in any of its forms. Raises HudiMetadataError."""
    fields = _Fields(decode(content))
    written = []
    for partition, stats in fields.map_of_lists("partitionToWriteStats"):
        for each in map(_Fields, stats):
            path = each.text("path")
            if path:  # a task that wrote nothing says so without a path
                written.append(_stat(partition, path, each))
    replaced: dict[str, list[str]] = {}
    for partition, ids in fields.map_of_lists("partitionToReplaceFileIds"):
        if not all(isinstance(each, str) for each in ids):
            raise HudiMetadataError("partitionToReplaceFileIds holds something that is no file id")
        replaced[partition] = ids
    extra = _Fields(fields.map("extraMetadata"))
    return Commit(written, replaced, extra.text("schema") or None, fields.text("operationType"))


def clean(content: bytes) -> Clean:
    """Metadata of a completed clean. Raises HudiMetadataError."""
    deleted, gone = [], []
    for partition, given in _Fields(decode(content)).map("partitionMetadata").items():
        each = _Fields(given)
        if each.flag("isPartitionDeleted"):
            gone.append(partition)
        # The first versions of the format name files by their whole path, later ones by the name alone.
        names = {name.rpartition("/")[2] for name in each.texts("successDeleteFiles")}
        deleted += [_joined(partition, name) for name in sorted(names)]
    return Clean(deleted, gone)


def rollback(content: bytes) -> Undoing:
    """Metadata of a completed rollback. Raises HudiMetadataError."""
    fields = _Fields(decode(content))
    return _undoing(fields.texts("commitsRollback"), fields.items("instantsRollback"))


def restore(content: bytes) -> Undoing:
    """Metadata of a completed restore. Raises HudiMetadataError."""
    fields = _Fields(decode(content))
    return _undoing(fields.texts("instantsToRollback"), fields.items("restoreInstantInfo"))


def compaction_plan(content: bytes) -> Plan:
    """Metadata of a compaction or log compaction that is requested. Raises HudiMetadataError."""
    return Plan([_group(each) for each in _Fields(decode(content)).items("operations")])


# --- fields -----------------------------------------------------------------------------------------------


class _Fields:
    """Fields by name; one that isn't there is empty, one of another kind is an error."""

    def __init__(self, fields: object) -> None:
        if not isinstance(fields, dict):
            raise HudiMetadataError(f"{_shown(fields)} where fields are expected")
        self._fields: Mapping[str, Any] = fields

    def text(self, name: str) -> str | None:
        found = self._get(name, str)
        return None if found is None else str(found)

    def number(self, name: str) -> int | None:
        found = self._get(name, int)
        return None if found is None else int(found)

    def flag(self, name: str) -> bool:
        return bool(self._get(name, bool))

    def map(self, name: str) -> Mapping[str, Any]:
        return self._get(name, dict) or {}

    def items(self, name: str) -> list[Any]:
        return self._get(name, list) or []

    def texts(self, name: str) -> list[str]:
        found = self.items(name)
        if not all(isinstance(each, str) for each in found):
            raise HudiMetadataError(f"{name} holds something that is no text")
        return found

    def map_of_lists(self, name: str) -> Iterator[tuple[str, list[Any]]]:
        for key, each in self.map(name).items():
            if not isinstance(each, list):
                raise HudiMetadataError(f"{name} has {_shown(each)} where a list is expected")
            yield key, each

    def _get(self, name: str, kind: type) -> Any:
        found = self._fields.get(name)
        if found is not None and not isinstance(found, kind):
            raise HudiMetadataError(f"{name} is {_shown(found)}, not a {kind.__name__}")
        return found


def _stat(partition: str, path: str, stat: _Fields) -> WriteStat:
    # The size of the file, where it is said; before, what was written to it.
    size = stat.number("fileSizeInBytes") or stat.number("totalWriteBytes") or 0
    return WriteStat(
        partition=stat.text("partitionPath") or partition,
        file_id=stat.text("fileId") or "",
        path=path,
        size=max(size, 0),
        rows=max(stat.number("numWrites") or 0, 0),
        min_event_time=stat.number("minEventTime"),
        max_event_time=stat.number("maxEventTime"),
    )


def _undoing(timestamps: Iterable[str], infos: Iterable[object]) -> Undoing:
    found: dict[str, str | None] = dict.fromkeys(timestamps)
    for info in map(_Fields, infos):
        if timestamp := info.text("commitTime"):
            found[timestamp] = info.text("action")
    return Undoing(list(found.items()))


def _group(operation: object) -> tuple[str, str]:
    fields = _Fields(operation)
    return fields.text("partitionPath") or "", fields.text("fileId") or ""


def _joined(partition: str, name: str) -> str:
    return f"{partition}/{name}" if partition else name


def _shown(value: object) -> str:
    return f"{type(value).__name__} {str(value)[:50]!r}"


# --- forms ------------------------------------------------------------------------------------------------


def _json(content: bytes) -> Any:
    if size_of_json(content) > MAX_MEMORY:
        raise _too_much(content)
    try:
        return json.loads(content)
    except RecursionError:
        raise HudiMetadataError("JSON that is nested too deeply") from None
    except ValueError as error:
        raise HudiMetadataError(f"neither Avro nor JSON: {error}") from None


def _avro(content: bytes) -> Any:
    try:
        file = reader(io.BytesIO(content))
        schema, codec = file.metadata.get("avro.schema", ""), file.metadata.get("avro.codec", "null")
        if codec != "null":
            raise HudiMetadataError(f"Avro compressed with {codec!r}: Hudi compresses nothing here")
        if len(schema) > MAX_SCHEMA_BYTES:
            raise HudiMetadataError(f"a schema of {len(schema):,} characters: at most {MAX_SCHEMA_BYTES:,} are read")
        parsed = json.loads(schema)
        _Check().type(parsed)
        AvroSize(content, MAX_MEMORY).of_file(parsed)
        return next(file)
    except HudiMetadataError:
        raise
    except TooMuch:
        raise _too_much(content) from None
    except StopIteration:
        raise HudiMetadataError("an Avro file without a record") from None
    except RecursionError:
        raise HudiMetadataError("a schema that is nested too deeply") from None
    except Exception as error:  # the library raises whatever its reading of the bytes runs into
        raise HudiMetadataError(f"not to be read as Avro: {type(error).__name__}: {error}") from None


def _too_much(content: bytes) -> HudiMetadataError:
    return HudiMetadataError(
        f"metadata of {len(content):,} bytes that would take more than {MAX_MEMORY >> 20} MiB of memory: "
        "commit less at a time"
    )


class _Check:
    """Finds schemas by which few bytes would become many values: where a type contains itself, or takes no bytes."""

    def __init__(self) -> None:
        self._whole: set[str] = set()
        self._count = 0

    def type(self, schema: Any, depth: int = 0) -> None:
        """Raises HudiMetadataError."""
        self._count += 1
        if depth > MAX_DEPTH or self._count > MAX_SCHEMA_TYPES:
            raise HudiMetadataError("a schema that is nested too deeply, or too large")
        if isinstance(schema, list):
            for each in schema:
                if each != "null":
                    self.type(each, depth + 1)
        elif isinstance(schema, dict):
            self._complex(schema, depth)
        elif schema not in _PRIMITIVES and str(schema).rpartition(".")[2] not in self._whole:
            raise HudiMetadataError(f"a schema whose type {str(schema)[:50]!r} takes no bytes, or contains itself")

    def _complex(self, schema: Mapping[str, Any], depth: int) -> None:
        kind = schema["type"]
        if kind in ("array", "map"):
            self.type(schema["items" if kind == "array" else "values"], depth + 1)
        elif kind in ("record", "enum", "fixed"):
            if not schema.get({"record": "fields", "enum": "symbols", "fixed": "size"}[kind]):
                raise HudiMetadataError("a schema with a type that takes no bytes")
            for field in schema.get("fields", ()):
                self.type(field["type"], depth + 1)
            self._whole.add(str(schema["name"]).rpartition(".")[2])
        else:
            self.type(kind, depth + 1)
