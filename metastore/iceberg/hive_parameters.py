"""What the metastore keeps of an Iceberg table or view: exactly what Iceberg's own HiveCatalog writes.

So clients of both catalogs share their tables.
"""

import json
from collections.abc import Mapping
from typing import Any

from lake.protocol.clock import now_seconds
from lake.protocol.hive import SerDeInfo, StorageDescriptor, Table
from metastore.iceberg.schemas import columns

METADATA, PREVIOUS = "metadata_location", "previous_metadata_location"
TYPE = "table_type"
TABLE, VIEW = "ICEBERG", "ICEBERG-VIEW"

OWNER = "hive.metastore.table.owner"
"""A property that names the owner of a new table."""

_LONGEST = 32_672
"""Characters of a parameter that older databases of Hive take; a longer one is left out."""

_TRANSLATED = {"gc.enabled": "external.table.purge"}
_FROM_SUMMARY = {"total-data-files": "numFiles", "total-records": "numRows", "total-files-size": "totalSize"}
_FROM_METADATA = ("current-schema", "default-partition-spec", "default-sort-order")
_FROM_SNAPSHOT = ("current-snapshot-id", "current-snapshot-timestamp-ms", "current-snapshot-summary")
_FORMATS = (
    "org.apache.hadoop.mapred.FileInputFormat",
    "org.apache.hadoop.mapred.FileOutputFormat",
    "org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe",
)
_HIVE_FORMATS = (
    "org.apache.iceberg.mr.hive.HiveIcebergInputFormat",
    "org.apache.iceberg.mr.hive.HiveIcebergOutputFormat",
    "org.apache.iceberg.mr.hive.HiveIcebergSerDe",
)
_HANDLER = "org.apache.iceberg.mr.hive.HiveIcebergStorageHandler"


def is_iceberg(table: Table, kind: str) -> bool:
    """Whether a stored table is one of Iceberg's: TABLE or VIEW."""
    parameters = table.parameters or {}
    return parameters.get(TYPE, "").upper() == kind and bool(parameters.get(METADATA))


def table(
    before: Table | None, name: tuple[str, str, str], metadata: dict[str, Any], location: str, removed: set[str]
) -> Table:
    """A table with new metadata at `location`. `before`: as it is stored. `name`: catalog, database, table.

    `removed`: names of properties that the metadata before had and the new one doesn't. Raises RestError.
    """
    properties: dict[str, str] = metadata.get("properties") or {}
    schema = _by_id(metadata["schemas"], "schema-id", metadata["current-schema-id"])
    found = _new(name, properties, "EXTERNAL_TABLE") if before is None else before.replace()
    parameters = _kept(before, properties, removed, metadata["table-uuid"], location, TABLE)
    parameters.pop("COLUMN_STATS_ACCURATE", None)
    parameters.update({"EXTERNAL": "TRUE", "DO_NOT_UPDATE_STATS": "true"})
    formats = _FORMATS
    if str(properties.get("engine.hive.enabled", "")).lower() == "true":
        parameters["storage_handler"] = _HANDLER
        formats = _HIVE_FORMATS
    else:
        parameters.pop("storage_handler", None)
    for key in (*_FROM_METADATA, *_FROM_SNAPSHOT):
        parameters.pop(key, None)
    _put(parameters, "current-schema", schema)
    spec = _by_id(metadata["partition-specs"], "spec-id", metadata["default-spec-id"])
    if spec["fields"]:
        _put(parameters, "default-partition-spec", spec)
    order = _by_id(metadata["sort-orders"], "order-id", metadata["default-sort-order-id"])
    if order["fields"]:
        _put(parameters, "default-sort-order", order)
    snapshots = metadata.get("snapshots") or []
    parameters["snapshot-count"] = str(len(snapshots))
    current = metadata.get("current-snapshot-id")
    if current not in (None, -1):
        snapshot = _by_id(snapshots, "snapshot-id", current)
        summary = snapshot.get("summary") or {}
        parameters["current-snapshot-id"] = str(current)
        parameters["current-snapshot-timestamp-ms"] = str(snapshot["timestamp-ms"])
        _put(parameters, "current-snapshot-summary", summary)
        parameters.update({ours: str(summary[key]) for key, ours in _FROM_SUMMARY.items() if key in summary})
    found.parameters = parameters
    found.sd = _descriptor(schema, metadata["location"], formats)
    return found


def view(
    before: Table | None, name: tuple[str, str, str], metadata: dict[str, Any], location: str, removed: set[str]
) -> Table:
    """As `table`, for a view."""
    properties: dict[str, str] = metadata.get("properties") or {}
    version = _by_id(metadata["versions"], "version-id", metadata["current-version-id"])
    schema = _by_id(metadata["schemas"], "schema-id", version["schema-id"])
    found = _new(name, properties, "VIRTUAL_VIEW") if before is None else before.replace()
    found.parameters = _kept(before, properties, removed, metadata["view-uuid"], location, VIEW)
    found.parameters.pop("current-schema", None)
    _put(found.parameters, "current-schema", schema)
    found.viewOriginalText = found.viewExpandedText = _text_for_hive(version)
    found.sd = _descriptor(schema, metadata["location"], _FORMATS)
    return found


def _text_for_hive(version: dict[str, Any]) -> str:
    texts = [each for each in version["representations"] if each.get("type") == "sql"]
    return next((each["sql"] for each in texts if each.get("dialect") == "hive"), texts[0]["sql"] if texts else "")


def _new(name: tuple[str, str, str], properties: Mapping[str, str], kind: str) -> Table:
    catalog, database, own = name
    now = now_seconds()
    return Table(
        catName=catalog,
        dbName=database,
        tableName=own,
        owner=properties.get(OWNER),
        createTime=now,
        lastAccessTime=now,
        retention=(1 << 31) - 1,
        partitionKeys=[],
        tableType=kind,
    )


def _kept(
    before: Table | None, properties: Mapping[str, str], removed: set[str], uuid: str, location: str, kind: str
) -> dict[str, str]:
    parameters = dict((before and before.parameters) or {})
    previous = parameters.get(METADATA)
    for key in removed:
        parameters.pop(_TRANSLATED.get(key, key), None)
    parameters.update({_TRANSLATED.get(key, key): value for key, value in properties.items() if key != OWNER})
    parameters.update({"uuid": uuid, TYPE: kind, METADATA: location})
    parameters.pop(PREVIOUS, None)
    if previous:
        parameters[PREVIOUS] = previous
    return parameters


def _put(parameters: dict[str, str], key: str, value: Any) -> None:
    text = json.dumps(value, separators=(",", ":"))
    if len(text) <= _LONGEST:
        parameters[key] = text


def _descriptor(schema: dict[str, Any], location: str, formats: tuple[str, str, str]) -> StorageDescriptor:
    input_format, output_format, serde = formats
    return StorageDescriptor(
        cols=columns(schema),
        location=location,
        inputFormat=input_format,
        outputFormat=output_format,
        serdeInfo=SerDeInfo(serializationLib=serde, parameters={}),
    )


def _by_id(items: list[dict[str, Any]], key: str, wanted: Any) -> dict[str, Any]:
    return next(each for each in items if each[key] == wanted)
