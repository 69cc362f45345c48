"""Table metadata: how it is created, which requirements it meets, and what updates make of it.

Metadata is what JSON says, so that fields which this version doesn't know pass through. The rules are those of
Iceberg's specifications of tables (versions 1 to 3) and of the REST catalog; texts of errors are those of its reference
implementation where clients are known to look at them.
"""

import copy
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from metastore.iceberg import forms
from metastore.iceberg.errors import RestError, bad_request, conflict

Json = dict[str, Any]

MAIN = "main"
LATEST_VERSION = 3
_DEFAULT_VERSION = 2
_FIRST_PARTITION_ID = 999
_LAST_ADDED = -1
_UNSORTED = 0
_PREVIOUS_FILES = "write.metadata.previous-versions-max"
_DEFAULT_PREVIOUS_FILES = 100
_MOST_COUNTED = 100_000
_DEFAULTS = {"write.parquet.compression-codec": "zstd"}  # of new tables, as in Iceberg's own catalogs


def now_ms() -> int:
    return time.time_ns() // 1_000_000


# -- new tables ------------------------------------------------------------------------------------------------


def new_table(
    schema: Json, spec: Json | None, order: Json | None, location: str, properties: Mapping[str, str]
) -> Json:
    """The metadata of a new table. Ids of fields, specs and orders are given again, as the specification says.

    The property `format-version` chooses the version, and isn't kept. Raises RestError (400).
    """
    kept = {**_DEFAULTS, **{key: value for key, value in properties.items() if key != "format-version"}}
    ids: dict[int, int] = {}
    fresh = _fresh_schema(schema, ids)
    builder = Builder(None)
    version = properties.get("format-version", str(_DEFAULT_VERSION))
    if not version.isdecimal():
        raise bad_request(f"format-version {version[:40]!r} is no number")
    builder.apply({"action": "upgrade-format-version", "format-version": int(version)})
    builder.apply({"action": "assign-uuid", "uuid": str(uuid.uuid4())})
    builder.apply({"action": "add-schema", "schema": fresh})
    builder.apply({"action": "set-current-schema", "schema-id": _LAST_ADDED})
    fields = [_with_source(each, ids) for each in (spec or {}).get("fields") or ()]
    for number, each in enumerate(fields, _FIRST_PARTITION_ID + 1):
        each["field-id"] = number
    builder.apply({"action": "add-spec", "spec": {"spec-id": 0, "fields": fields}})
    builder.apply({"action": "set-default-spec", "spec-id": _LAST_ADDED})
    sorted_by = [_with_source(each, ids) for each in (order or {}).get("fields") or ()]
    builder.apply({"action": "add-sort-order", "sort-order": {"order-id": 1 if sorted_by else 0, "fields": sorted_by}})
    builder.apply({"action": "set-default-sort-order", "sort-order-id": _LAST_ADDED})
    builder.apply({"action": "set-location", "location": location})
    builder.apply({"action": "set-properties", "updates": kept})
    return builder.build()


def _fresh_schema(schema: Json, ids: dict[int, int]) -> Json:
    """A schema with ids from 1 on, the fields of a level before what is in them. Fills `ids`: old ones to new ones."""
    last = 0

    def following(old: Any) -> int:
        nonlocal last
        last += 1
        if old is not None:
            ids[old] = last
        return last

    def type_of(type: Any) -> Any:
        if not isinstance(type, dict):
            return type
        match type["type"]:
            case "struct":
                return {**type, "fields": fields_of(type["fields"])}
            case "list":
                number = following(type.get("element-id"))
                return {**type, "element-id": number, "element": type_of(type["element"])}
            case "map":
                key, value = following(type.get("key-id")), following(type.get("value-id"))
                inner = {"key": type_of(type["key"]), "value": type_of(type["value"])}
                return {**type, "key-id": key, "value-id": value, **inner}
        raise bad_request(f"unknown type {str(type.get('type'))[:100]!r}")

    def fields_of(fields: Sequence[Json]) -> list[Json]:
        numbers = [following(each.get("id")) for each in fields]
        return [
            {**each, "id": number, "type": type_of(each["type"])} for each, number in zip(fields, numbers, strict=True)
        ]

    found = {**schema, "type": "struct", "schema-id": 0, "fields": fields_of(schema["fields"])}
    if identifiers := schema.get("identifier-field-ids"):
        found["identifier-field-ids"] = [ids[each] for each in identifiers]
    return found


def _with_source(field: Json, ids: Mapping[int, int]) -> Json:
    if field.get("source-id") not in ids:
        raise bad_request(f"Cannot find source column for {field.get('name') or 'a field'}: {field.get('source-id')}")
    return {**field, "source-id": ids[field["source-id"]]}


# -- requirements ----------------------------------------------------------------------------------------------


def check_requirements(base: Json | None, requirements: Sequence[Json], key: str = "table-uuid") -> None:
    """Raises RestError (409) for a requirement that doesn't hold, (400) for an unknown one.

    `base`: None for a table that isn't there. `key`: where its UUID is.
    """
    for each in requirements:
        type = each.get("type")
        if type == "assert-create":
            if base is not None:
                raise conflict("Requirement failed: table already exists")
            continue
        if base is None:
            raise conflict(f"Requirement failed: the table isn't there ({type})")
        if type in ("assert-table-uuid", "assert-view-uuid"):
            _require(
                "view UUID" if key == "view-uuid" else "UUID",
                each["uuid"].lower(),
                base[key].lower(),
                " does not match",
            )
        elif type == "assert-ref-snapshot-id":
            _check_ref(base, each["ref"], each.get("snapshot-id"))
        elif type in _ASSERTED:
            field, name, words = _ASSERTED[type]
            _require(words, each[name], base.get(field), " changed")
        else:
            raise bad_request(f"unknown requirement {str(type)[:100]!r}")


_ASSERTED = {
    "assert-last-assigned-field-id": ("last-column-id", "last-assigned-field-id", "last assigned field id"),
    "assert-current-schema-id": ("current-schema-id", "current-schema-id", "current schema"),
    "assert-last-assigned-partition-id": (
        "last-partition-id",
        "last-assigned-partition-id",
        "last assigned partition id",
    ),
    "assert-default-spec-id": ("default-spec-id", "default-spec-id", "default partition spec"),
    "assert-default-sort-order-id": ("default-sort-order-id", "default-sort-order-id", "default sort order"),
}


def _require(what: str, expected: Any, actual: Any, how: str) -> None:
    if expected != actual:
        raise conflict(f"Requirement failed: {what}{how}: expected {_id(expected)} != {actual}")


def _id(value: Any) -> str:
    return f"id {value}" if isinstance(value, int) else str(value)


def _check_ref(base: Json, name: str, expected: int | None) -> None:
    ref = (base.get("refs") or {}).get(name)
    actual = ref and ref["snapshot-id"]
    if actual is None and name == MAIN and base.get("current-snapshot-id") not in (None, -1):
        actual = base["current-snapshot-id"]  # metadata from before there were references
    if actual == expected:
        return
    kind = (ref or {}).get("type", "branch")
    if expected is None:
        raise conflict(f"Requirement failed: {kind} {name} was created concurrently")
    if actual is None:
        raise conflict(f"Requirement failed: branch or tag {name} is missing, expected {expected}")
    raise conflict(f"Requirement failed: {kind} {name} has changed: expected id {expected} != {actual}")


# -- updates ---------------------------------------------------------------------------------------------------


class Builder:
    """Applies updates to the metadata of a table, or to none for a new one."""

    def __init__(self, base: Json | None) -> None:
        self._base = base
        self._value: Json = copy.copy(base) if base is not None else _empty()
        for key in ("schemas", "partition-specs", "sort-orders", "snapshots", "snapshot-log", "statistics"):
            self._value[key] = list(self._value.get(key) or ())
        self._value["partition-statistics"] = list(self._value.get("partition-statistics") or ())
        self._value["properties"] = dict(self._value.get("properties") or {})
        self._value["refs"] = dict(self._value.get("refs") or {})
        current = self._value.get("current-snapshot-id")
        if MAIN not in self._value["refs"] and current not in (None, -1):
            self._value["refs"][MAIN] = {"snapshot-id": current, "type": "branch"}
        self._before = {key: copy.copy(each) for key, each in self._value.items()}
        self._added: dict[str, int] = {}  # the last ids by kind
        self._snapshots = {each["snapshot-id"] for each in self._value["snapshots"]}
        self._new_snapshots: set[int] = set()
        self._passed: set[int] = set()  # snapshots that the main branch had for a while
        self._updated_at: int | None = None

    def apply(self, update: Json) -> None:
        """One update. Raises RestError: 400 for one that is unknown or wrong, 409 for one that comes too late."""
        action = update.get("action")
        method = _ACTIONS.get(str(action))
        if method is None:
            raise bad_request(f"unknown update {str(action)[:100]!r}")
        method(self, update)

    @property
    def changed(self) -> bool:
        return self._base is None or any(self._value.get(key) != self._before.get(key) for key in self._value)

    def build(self, location: str | None = None) -> Json:
        """The new metadata. `location`: of the file that has the metadata before. Raises RestError (400)."""
        value = self._value
        for key in ("table-uuid", "location", "current-schema-id", "default-spec-id", "default-sort-order-id"):
            if value.get(key) is None:
                raise bad_request(f"the table would have no {key}")
        self._forget_intermediate()
        if self._base is not None and location is not None:
            entry = {"timestamp-ms": self._base["last-updated-ms"], "metadata-file": location}
            kept = [*(value.get("metadata-log") or ()), entry]
            value["metadata-log"] = kept[-_previous_files(value["properties"]) :]
        log = value["snapshot-log"]
        value["last-updated-ms"] = max(  # readers refuse a table whose times go back by more than a minute
            self._updated_at or now_ms(),
            0 if self._base is None else self._base["last-updated-ms"],
            log[-1]["timestamp-ms"] if log else 0,
        )
        if value["format-version"] == 1:
            value["schema"] = _find(value["schemas"], "schema-id", value["current-schema-id"])
            value["partition-spec"] = _find(value["partition-specs"], "spec-id", value["default-spec-id"])["fields"]
        return {key: each for key, each in value.items() if each is not None or key in (self._base or {})}

    # one method for each update

    def _assign_uuid(self, update: Json) -> None:
        current, wanted = self._value.get("table-uuid"), str(uuid.UUID(update["uuid"]))
        if current is not None and current.lower() != wanted:
            raise bad_request(f"Cannot reassign uuid: the table has {current}")
        self._value["table-uuid"] = current or wanted

    def _upgrade(self, update: Json) -> None:
        version = int(update["format-version"])
        if version > LATEST_VERSION or version < 1:
            raise bad_request(f"Unsupported format version: v{version} (supported: v{LATEST_VERSION})")
        if self._base is None:
            self._value["format-version"] = version
        elif version < self._value["format-version"]:
            raise bad_request(f"Cannot downgrade v{self._value['format-version']} table to v{version}")
        self._value["format-version"] = version
        if version == 1:
            self._value.pop("last-sequence-number", None)
        else:
            self._value.setdefault("last-sequence-number", 0)
            self._value.pop("schema", None)
            self._value.pop("partition-spec", None)
        if version >= 3:
            self._value.setdefault("next-row-id", 0)

    def _add_schema(self, update: Json) -> None:
        schema = update["schema"]
        forms.check_schema(schema)
        highest = _highest_id(schema)
        self._value["last-column-id"] = max(self._value["last-column-id"], highest)
        same = _same(self._value["schemas"], schema, _form_of_schema)
        if same is None:
            number = self._next("schemas", "schema-id", 0)
            same = {**schema, "type": "struct", "schema-id": number}
            self._value["schemas"].append(same)
        self._added["schema"] = same["schema-id"]

    def _set_schema(self, update: Json) -> None:
        self._value["current-schema-id"] = self._chosen("schema", "schemas", "schema-id", update["schema-id"])

    def _remove_schemas(self, update: Json) -> None:
        gone = set(update["schema-ids"])
        if self._value["current-schema-id"] in gone:
            raise bad_request(f"Cannot remove current schema: {self._value['current-schema-id']}")
        self._value["schemas"] = [each for each in self._value["schemas"] if each["schema-id"] not in gone]

    def _add_spec(self, update: Json) -> None:
        last = self._value["last-partition-id"]
        known = self._field_ids()
        fields = []
        for each in update["spec"]["fields"]:
            if each["source-id"] not in known:
                raise bad_request(f"Cannot find source column for partition field: {each['source-id']}")
            number = each.get("field-id")
            if number is None:
                number = last = last + 1
            fields.append({**each, "field-id": number})
        forms.check_spec(fields)
        same = _same(self._value["partition-specs"], {"fields": fields}, _form_of_spec)
        if same is None:
            same = {"spec-id": self._next("partition-specs", "spec-id", 0), "fields": fields}
            self._value["partition-specs"].append(same)
            self._value["last-partition-id"] = max([last, *(each["field-id"] for each in fields)])
        self._added["spec"] = same["spec-id"]

    def _set_spec(self, update: Json) -> None:
        self._value["default-spec-id"] = self._chosen("spec", "partition-specs", "spec-id", update["spec-id"])

    def _remove_specs(self, update: Json) -> None:
        gone = set(update["spec-ids"])
        if self._value["default-spec-id"] in gone:
            raise bad_request("Cannot remove the default partition spec")
        self._value["partition-specs"] = [
            each for each in self._value["partition-specs"] if each["spec-id"] not in gone
        ]

    def _add_order(self, update: Json) -> None:
        order = update["sort-order"]
        forms.check_order(order)
        known = self._field_ids()
        for each in order["fields"]:
            if each["source-id"] not in known:
                raise bad_request(f"Cannot find source column for sort field: {each['source-id']}")
        same = _same(self._value["sort-orders"], order, lambda each: each["fields"])
        if same is None:
            number = self._next("sort-orders", "order-id", 1) if order["fields"] else _UNSORTED
            same = {**order, "order-id": number}
            self._value["sort-orders"].append(same)
        self._added["sort-order"] = same["order-id"]

    def _set_order(self, update: Json) -> None:
        chosen = self._chosen("sort-order", "sort-orders", "order-id", update["sort-order-id"])
        self._value["default-sort-order-id"] = chosen

    def _add_snapshot(self, update: Json) -> None:
        snapshot, value = update["snapshot"], self._value
        number, sequence = snapshot["snapshot-id"], snapshot.get("sequence-number")
        forms.check_snapshot(snapshot)
        for key, what in (("schemas", "schema"), ("partition-specs", "partition spec"), ("sort-orders", "sort order")):
            if not value[key]:
                raise bad_request(f"Attempting to add a snapshot before a {what} is added")
        if number in self._snapshots:
            raise bad_request(f"Snapshot already exists for id: {number}")
        if value["format-version"] > 1:
            last = value["last-sequence-number"]
            if not isinstance(sequence, int):
                raise bad_request("a snapshot needs a sequence-number")
            if sequence <= last and snapshot.get("parent-snapshot-id") is not None:
                raise conflict(
                    f"Cannot add snapshot with sequence number {sequence} older than last sequence number {last}"
                )
            value["last-sequence-number"] = max(last, sequence)
        if value["format-version"] >= 3:
            first, rows = snapshot.get("first-row-id"), snapshot.get("added-rows")
            if not isinstance(first, int) or not isinstance(rows, int) or rows < 0:
                raise bad_request("Cannot add a snapshot without first-row-id and added-rows")
            if first < value["next-row-id"]:
                raise conflict(
                    f"Cannot add a snapshot, first-row-id is behind table next-row-id: {first} < {value['next-row-id']}"
                )
            value["next-row-id"] += rows
        value["snapshots"].append(snapshot)
        self._snapshots.add(number)
        self._new_snapshots.add(number)
        self._updated_at = int(snapshot["timestamp-ms"])

    def _set_ref(self, update: Json) -> None:
        name = update["ref-name"]
        ref = {key: each for key, each in update.items() if key not in ("action", "ref-name") and each is not None}
        forms.check_reference(name, ref)
        if ref.get("type") not in ("branch", "tag") or (name == MAIN and ref["type"] != "branch"):
            raise bad_request(f"{name[:100]!r} can't be a reference of type {str(ref.get('type'))[:40]!r}")
        if self._value["refs"].get(name) == ref:
            return
        snapshot = next((e for e in self._value["snapshots"] if e["snapshot-id"] == ref["snapshot-id"]), None)
        if snapshot is None:
            raise bad_request(f"Cannot set {name} to unknown snapshot: {ref['snapshot-id']}")
        self._value["refs"][name] = ref
        if name != MAIN:
            return
        number = ref["snapshot-id"]
        at = int(snapshot["timestamp-ms"]) if number in self._new_snapshots else now_ms()
        self._updated_at = at
        self._value["current-snapshot-id"] = number
        log = self._value["snapshot-log"]
        # A writer's clock may be behind that of another one.
        log.append({"timestamp-ms": max(at, log[-1]["timestamp-ms"] if log else at), "snapshot-id": number})
        self._passed.add(number)

    def _remove_ref(self, update: Json) -> None:
        if self._value["refs"].pop(update["ref-name"], None) is not None and update["ref-name"] == MAIN:
            self._value["current-snapshot-id"] = -1

    def _remove_snapshots(self, update: Json) -> None:
        gone = set(update["snapshot-ids"])
        value = self._value
        value["snapshots"] = [each for each in value["snapshots"] if each["snapshot-id"] not in gone]
        self._snapshots -= gone
        for key in ("statistics", "partition-statistics"):
            value[key] = [each for each in value[key] if each["snapshot-id"] not in gone]
        for name in [name for name, ref in value["refs"].items() if ref["snapshot-id"] in gone]:
            self._remove_ref({"ref-name": name})

    def _set_location(self, update: Json) -> None:
        self._value["location"] = update["location"].rstrip("/") or "/"

    def _set_properties(self, update: Json) -> None:
        updates = update.get("updates", update.get("updated")) or {}
        if not all(isinstance(key, str) and isinstance(value, str) for key, value in updates.items()):
            raise bad_request("properties are texts")
        self._value["properties"] = {**self._value["properties"], **updates}

    def _remove_properties(self, update: Json) -> None:
        gone = set(update.get("removals", update.get("removed")) or ())
        self._value["properties"] = {k: v for k, v in self._value["properties"].items() if k not in gone}

    def _set_statistics(self, update: Json) -> None:
        self._replace_statistics("statistics", update["statistics"])

    def _set_partition_statistics(self, update: Json) -> None:
        self._replace_statistics("partition-statistics", update["partition-statistics"])

    def _replace_statistics(self, key: str, file: Json) -> None:
        self._drop_statistics(key, file["snapshot-id"])
        self._value[key].append(file)

    def _remove_statistics(self, update: Json) -> None:
        self._drop_statistics("statistics", update["snapshot-id"])

    def _remove_partition_statistics(self, update: Json) -> None:
        self._drop_statistics("partition-statistics", update["snapshot-id"])

    def _drop_statistics(self, key: str, snapshot: int) -> None:
        self._value[key] = [each for each in self._value[key] if each["snapshot-id"] != snapshot]

    def _add_key(self, update: Json) -> None:
        key = update["encryption-key"]
        self._remove_key({"key-id": key["key-id"]})
        self._value["encryption-keys"] = [*(self._value.get("encryption-keys") or ()), key]

    def _remove_key(self, update: Json) -> None:
        keys = self._value.get("encryption-keys")
        if keys is not None:
            self._value["encryption-keys"] = [each for each in keys if each["key-id"] != update["key-id"]]

    # helpers

    def _next(self, key: str, name: str, first: int) -> int:
        return max((each[name] + 1 for each in self._value[key]), default=first) if self._value[key] else first

    def _chosen(self, kind: str, key: str, name: str, wanted: int) -> int:
        if wanted == _LAST_ADDED:
            if kind not in self._added:
                raise bad_request(f"Cannot set last added {kind}: no {kind} has been added")
            return self._added[kind]
        if all(each[name] != wanted for each in self._value[key]):
            raise bad_request(f"Cannot set {kind} to unknown {kind}: {wanted}")
        return wanted

    def _field_ids(self) -> set[int]:
        number = self._value.get("current-schema-id")
        if number is None:
            number = self._added.get("schema")  # some clients choose the current schema only later
        if number is None:
            raise bad_request("add a schema before partition specs and sort orders")
        return set(_ids(_find(self._value["schemas"], "schema-id", number)))

    def _forget_intermediate(self) -> None:
        """The log has the snapshots that were current: not those of a moment within this commit, nor removed ones."""
        value = self._value
        current = value.get("current-snapshot-id")
        passing = {each for each in self._passed if each != current}
        present = {each["snapshot-id"] for each in value["snapshots"]}
        kept: list[Json] = []
        for entry in value["snapshot-log"]:
            number = entry["snapshot-id"]
            if number not in present:
                kept.clear()  # what was before a gap can't be told from what was after it
            elif number not in passing or entry in self._before["snapshot-log"]:
                kept.append(entry)
        value["snapshot-log"] = kept


_ACTIONS: dict[str, Callable[[Builder, Json], None]] = {
    "assign-uuid": Builder._assign_uuid,
    "upgrade-format-version": Builder._upgrade,
    "add-schema": Builder._add_schema,
    "set-current-schema": Builder._set_schema,
    "remove-schemas": Builder._remove_schemas,
    "add-spec": Builder._add_spec,
    "set-default-spec": Builder._set_spec,
    "remove-partition-specs": Builder._remove_specs,
    "add-sort-order": Builder._add_order,
    "set-default-sort-order": Builder._set_order,
    "add-snapshot": Builder._add_snapshot,
    "set-snapshot-ref": Builder._set_ref,
    "remove-snapshot-ref": Builder._remove_ref,
    "remove-snapshots": Builder._remove_snapshots,
    "set-location": Builder._set_location,
    "set-properties": Builder._set_properties,
    "remove-properties": Builder._remove_properties,
    "set-statistics": Builder._set_statistics,
    "remove-statistics": Builder._remove_statistics,
    "set-partition-statistics": Builder._set_partition_statistics,
    "remove-partition-statistics": Builder._remove_partition_statistics,
    "add-encryption-key": Builder._add_key,
    "remove-encryption-key": Builder._remove_key,
}


def apply(base: Json | None, updates: Sequence[Json], location: str | None) -> Json | None:
    """The metadata after updates; None if they change nothing. `base`: None for a new table, `location`: its file.

    Raises RestError: 400, 409.
    """
    with well_formed("an update"):
        builder = Builder(base)
        for each in updates:
            builder.apply(each)
        return builder.build(location) if builder.changed else None


@contextmanager
def well_formed(what: str) -> Iterator[None]:
    """Answers what a client sent in another form than the specification's with 400."""
    try:
        yield
    except RestError:
        raise
    except (LookupError, TypeError, ValueError, AttributeError, RecursionError, OverflowError, StopIteration) as error:
        reason = f"{type(error).__name__} {error}"[:200]
        raise bad_request(f"{what} is not in the form of Iceberg's REST specification: {reason}") from error


def with_refs_only(metadata: Json) -> Json:
    """Metadata without the snapshots that no branch or tag refers to."""
    wanted = {ref["snapshot-id"] for ref in (metadata.get("refs") or {}).values()}
    wanted.add(metadata.get("current-snapshot-id"))
    return {**metadata, "snapshots": [e for e in metadata.get("snapshots") or () if e["snapshot-id"] in wanted]}


def removed_files(base: Json, new: Json) -> list[str]:
    """The metadata files that a commit forgot, if the table's properties say that they are deleted."""
    if str(new["properties"].get("write.metadata.delete-after-commit.enabled", "")).lower() != "true":
        return []
    kept = {each["metadata-file"] for each in new.get("metadata-log") or ()}
    return [each["metadata-file"] for each in base.get("metadata-log") or () if each["metadata-file"] not in kept]


def _empty() -> Json:
    return {
        "format-version": _DEFAULT_VERSION,
        "table-uuid": None,
        "location": None,
        "last-sequence-number": 0,
        "last-updated-ms": 0,
        "last-column-id": 0,
        "current-schema-id": None,
        "schemas": [],
        "default-spec-id": None,
        "partition-specs": [],
        "last-partition-id": _FIRST_PARTITION_ID,
        "default-sort-order-id": None,
        "sort-orders": [],
        "properties": {},
        "current-snapshot-id": -1,
        "refs": {},
        "snapshots": [],
        "statistics": [],
        "partition-statistics": [],
        "snapshot-log": [],
        "metadata-log": [],
    }


def _previous_files(properties: Mapping[str, str]) -> int:
    text = properties.get(_PREVIOUS_FILES, "")
    number = int(text) if text.isascii() and text.isdecimal() and len(text) < 10 else _DEFAULT_PREVIOUS_FILES
    return min(max(number, 1), _MOST_COUNTED)


def _ids(value: Any) -> list[int]:
    """The ids of all fields in a schema or a type."""
    if not isinstance(value, dict):
        return []
    found = [value[key] for key in ("element-id", "key-id", "value-id") if key in value]
    for each in value.get("fields") or ():
        found += [each["id"], *_ids(each["type"])]
    for key in ("element", "key", "value"):
        found += _ids(value.get(key))
    return found


def _highest_id(schema: Json) -> int:
    return max(_ids(schema), default=0)


def _find(items: Sequence[Json], key: str, wanted: Any) -> Json:
    return next(each for each in items if each[key] == wanted)


def _same(items: Sequence[Json], new: Json, form: Callable[[Json], Any]) -> Json | None:
    wanted = form(new)
    return next((each for each in items if form(each) == wanted), None)


def _form_of_schema(schema: Json) -> Any:
    return schema["fields"], sorted(schema.get("identifier-field-ids") or ())


def _form_of_spec(spec: Json) -> Any:
    return [(each.get("source-id"), each["transform"], each["name"]) for each in spec["fields"]]
