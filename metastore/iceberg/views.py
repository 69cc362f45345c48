"""View metadata: how it is created, and what updates make of it. As `metadata`, for views."""

import copy
import uuid
from collections.abc import Callable, Sequence
from typing import Any

from metastore.iceberg.errors import RestError, bad_request
from metastore.iceberg.metadata import Json, now_ms, well_formed

_LAST_ADDED = -1
_KEPT_VERSIONS = "version.history.num-entries"
_DEFAULT_KEPT_VERSIONS = 10
_DROPS_DIALECTS = "replace.drop-dialect.allowed"


def new_view(schema: Json, version: Json, location: str, properties: dict[str, str]) -> Json:
    """The metadata of a new view. Raises RestError (400)."""
    builder = _Builder(None)
    builder.apply({"action": "assign-uuid", "uuid": str(uuid.uuid4())})
    builder.apply({"action": "set-location", "location": location})
    builder.apply({"action": "set-properties", "updates": properties})
    builder.apply({"action": "add-schema", "schema": schema})
    builder.apply({"action": "add-view-version", "view-version": {**version, "schema-id": _LAST_ADDED}})
    builder.apply({"action": "set-current-view-version", "view-version-id": _LAST_ADDED})
    return builder.build()


def apply(base: Json, updates: Sequence[Json]) -> Json | None:
    """The metadata after updates; None if they change nothing. Raises RestError (400)."""
    with well_formed("an update"):
        builder = _Builder(base)
        for each in updates:
            builder.apply(each)
        return builder.build() if builder.changed else None


class _Builder:
    def __init__(self, base: Json | None) -> None:
        self._base = base
        self._value: Json = copy.copy(base) if base is not None else {"format-version": 1, "current-version-id": None}
        for key in ("schemas", "versions", "version-log"):
            self._value[key] = list(self._value.get(key) or ())
        self._value["properties"] = dict(self._value.get("properties") or {})
        self._before = {key: copy.copy(each) for key, each in self._value.items()}
        self._schema: int | None = None
        self._version: int | None = None

    @property
    def changed(self) -> bool:
        return self._before != self._value

    def apply(self, update: Json) -> None:
        action = str(update.get("action"))
        if action not in _ACTIONS:
            raise bad_request(f"unknown update {action[:100]!r}")
        _ACTIONS[action](self, update)

    def build(self) -> Json:
        value = self._value
        for key in ("view-uuid", "location", "current-version-id"):
            if value.get(key) is None:
                raise bad_request(f"the view would have no {key}")
        self._check_dialects()
        text = str(value["properties"].get(_KEPT_VERSIONS, _DEFAULT_KEPT_VERSIONS))
        if not text.isdecimal() or int(text[:9]) == 0:
            raise bad_request(f"{_KEPT_VERSIONS} must be positive but was {text[:40]}")
        newest = sorted(each["version-id"] for each in value["versions"])[-int(text[:9]) :]
        kept = {*newest, value["current-version-id"], *([self._version] if self._version is not None else [])}
        value["versions"] = [each for each in value["versions"] if each["version-id"] in kept]
        log: list[Json] = []
        for entry in value["version-log"]:
            if entry["version-id"] in kept:
                log.append(entry)
            else:
                log.clear()
        value["version-log"] = log
        return value

    def _check_dialects(self) -> None:
        value = self._value
        if self._base is None or value["current-version-id"] == self._base["current-version-id"]:
            return
        if str(value["properties"].get(_DROPS_DIALECTS, "false")).lower() == "true":
            return
        before = _dialects(_find(self._base["versions"], self._base["current-version-id"]))
        after = _dialects(_find(value["versions"], value["current-version-id"]))
        if not before <= after:
            raise bad_request(
                f"Cannot replace view due to loss of view dialects ({_DROPS_DIALECTS}=false):\n"
                f"Previous dialects: {sorted(before)}\nNew dialects: {sorted(after)}"
            )

    def _assign_uuid(self, update: Json) -> None:
        current, wanted = self._value.get("view-uuid"), str(uuid.UUID(update["uuid"]))
        if current is not None and current.lower() != wanted:
            raise bad_request(f"Cannot reassign uuid: the view has {current}")
        self._value["view-uuid"] = current or wanted

    def _upgrade(self, update: Json) -> None:
        if update["format-version"] != 1:
            raise bad_request(f"Unsupported format version: {str(update['format-version'])[:40]}")

    def _add_schema(self, update: Json) -> None:
        schema = update["schema"]
        for each in self._value["schemas"]:
            if each["fields"] == schema["fields"]:
                self._schema = each["schema-id"]
                return
        number = max((each["schema-id"] + 1 for each in self._value["schemas"]), default=0)
        self._value["schemas"].append({**schema, "type": "struct", "schema-id": number})
        self._schema = number

    def _set_location(self, update: Json) -> None:
        self._value["location"] = update["location"].rstrip("/") or "/"

    def _set_properties(self, update: Json) -> None:
        updates = update.get("updates") or {}
        if not all(isinstance(key, str) and isinstance(value, str) for key, value in updates.items()):
            raise bad_request("properties are texts")
        self._value["properties"].update(updates)

    def _remove_properties(self, update: Json) -> None:
        for key in update.get("removals") or ():
            self._value["properties"].pop(key, None)

    def _add_version(self, update: Json) -> None:
        version = dict(update["view-version"])
        if version["schema-id"] == _LAST_ADDED:
            if self._schema is None:
                raise bad_request("Cannot set last added schema: no schema has been added")
            version["schema-id"] = self._schema
        if all(each["schema-id"] != version["schema-id"] for each in self._value["schemas"]):
            raise bad_request(f"Cannot add version with unknown schema: {version['schema-id']}")
        dialects = [str(e["dialect"]).lower() for e in version["representations"] if e["type"] == "sql"]
        for each in dialects:
            if dialects.count(each) > 1:
                text = f"Invalid view version: Cannot add multiple queries for dialect {each}"
                raise RestError(400, "IllegalArgumentException", text)
        for each in self._value["versions"]:
            if _form(each) == _form(version):
                self._version = each["version-id"]
                return
        taken = {each["version-id"] for each in self._value["versions"]}
        number = version.get("version-id", 1)
        version["version-id"] = max(taken) + 1 if number in taken else number
        version.setdefault("timestamp-ms", now_ms())
        self._value["versions"].append(version)
        self._version = version["version-id"]

    def _set_version(self, update: Json) -> None:
        number = update["view-version-id"]
        if number == _LAST_ADDED:
            if self._version is None:
                raise bad_request("Cannot set last version id: no version has been set")
            number = self._version
        if number == self._value["current-version-id"]:
            return
        version = _find(self._value["versions"], number)
        at = version["timestamp-ms"] if number == self._version else now_ms()
        self._value["current-version-id"] = number
        self._value["version-log"].append({"timestamp-ms": at, "version-id": number})


_ACTIONS: dict[str, Callable[[_Builder, Json], None]] = {
    "assign-uuid": _Builder._assign_uuid,
    "upgrade-format-version": _Builder._upgrade,
    "add-schema": _Builder._add_schema,
    "set-location": _Builder._set_location,
    "set-properties": _Builder._set_properties,
    "remove-properties": _Builder._remove_properties,
    "add-view-version": _Builder._add_version,
    "set-current-view-version": _Builder._set_version,
}


def _find(versions: Sequence[Json], number: int) -> Json:
    found = next((each for each in versions if each["version-id"] == number), None)
    if found is None:
        raise bad_request(f"Cannot set current version to unknown version: {number}")
    return found


def _form(version: Json) -> Any:
    """What tells versions apart, beside their ids and times."""
    return {key: each for key, each in version.items() if key not in ("version-id", "timestamp-ms")}


def _dialects(version: Json) -> set[str]:
    return {str(e["dialect"]).lower() for e in version["representations"] if e["type"] == "sql"}
