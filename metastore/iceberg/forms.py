"""What schemas, specs, sort orders, snapshots and references need so that other readers can load the table.

A reader refuses the whole metadata for one field in another form, so these are refused when they come. Every function
raises RestError (400).
"""

from collections.abc import Iterator
from typing import Any

from metastore.iceberg.errors import bad_request
from metastore.iceberg.schemas import columns

_HIGHEST_FIELD = (1 << 31) - 202
"""Ids above are those of metadata columns."""

_LONG = 1 << 63


def check_schema(schema: dict[str, Any]) -> None:
    if not isinstance(schema.get("fields"), list):
        raise bad_request("a schema needs a list of fields")
    columns(schema)  # the types
    found = list(_ids(schema))
    _need(all(_is_whole(each, 1, _HIGHEST_FIELD) for each in found), "ids of fields are positive numbers of 32 bits")
    _need(len(set(found)) == len(found), "a schema has two fields with the same id")
    identifiers = schema.get("identifier-field-ids") or []
    _need(set(identifiers) <= set(found), "identifier-field-ids are ids of the schema's fields")


def _ids(type: Any) -> Iterator[Any]:
    if not isinstance(type, dict):
        return
    if "fields" in type:
        names = [each["name"] for each in type["fields"]]
        _need(all(isinstance(each, str) and each for each in names), "names of fields are texts")
        _need(len(set(names)) == len(names), "a struct has two fields with the same name")
        for each in type["fields"]:
            _need(isinstance(each.get("required"), bool), f"the field {each['name'][:100]!r} doesn't say `required`")
            yield each["id"]
            yield from _ids(each["type"])
        return
    for part, says in {"element": "element-required", "key": None, "value": "value-required"}.items():
        if part in type:
            _need(says is None or isinstance(type.get(says), bool), f"a {type['type']} doesn't say `{says}`")
            yield type[f"{part}-id"]
            yield from _ids(type[part])


def check_spec(fields: list[dict[str, Any]]) -> None:
    names, ids = [each["name"] for each in fields], [each["field-id"] for each in fields]
    _need(all(isinstance(each, str) and each for each in names), "names of partition fields are texts")
    _need(len(set(names)) == len(names), "a spec has two partition fields with the same name")
    _need(all(_is_whole(each, 0, _HIGHEST_FIELD) for each in ids), "ids of partition fields are numbers of 32 bits")
    _need(len(set(ids)) == len(ids), "a spec has two partition fields with the same id")
    _need(all(isinstance(each["transform"], str) for each in fields), "transforms are texts")


def check_order(order: dict[str, Any]) -> None:
    for each in order["fields"]:
        _need(isinstance(each["transform"], str), "transforms are texts")
        _need(str(each.get("direction")).lower() in ("asc", "desc"), "a sort field's direction is asc or desc")
        _need(
            str(each.get("null-order")).lower() in ("nulls-first", "nulls-last"),
            "a sort field's null-order is nulls-first or nulls-last",
        )


def check_snapshot(snapshot: dict[str, Any]) -> None:
    for key in ("snapshot-id", "timestamp-ms"):
        _need(_is_whole(snapshot.get(key), -_LONG), f"a snapshot needs a whole number of 64 bits as {key}")
    for key in ("sequence-number", "parent-snapshot-id", "schema-id", "first-row-id", "added-rows"):
        value = snapshot.get(key)
        _need(value is None or _is_whole(value, -_LONG), f"a snapshot's {key} is a whole number of 64 bits")
    _need(
        isinstance(snapshot.get("manifest-list"), str) or isinstance(snapshot.get("manifests"), list),
        "a snapshot needs a manifest-list",
    )
    summary = snapshot.get("summary")
    texts = isinstance(summary, dict) and all(isinstance(each, str) for each in summary.values())
    _need(summary is None or texts, "a snapshot's summary is an object of texts")


def check_reference(name: Any, reference: dict[str, Any]) -> None:
    _need(isinstance(name, str) and bool(name), "names of references are texts")
    _need(_is_whole(reference.get("snapshot-id"), -_LONG), "a reference needs a snapshot-id")
    for key in ("min-snapshots-to-keep", "max-snapshot-age-ms", "max-ref-age-ms"):
        _need(key not in reference or _is_whole(reference[key], 1), f"{key} is a positive number")


def _is_whole(value: Any, least: int, most: int = _LONG - 1) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= most


def _need(holds: bool, text: str) -> None:
    if not holds:
        raise bad_request(text)
