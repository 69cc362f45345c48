"""Updates of metadata: what the specification says, version by version."""

from typing import Any

import pytest

from metastore.iceberg import metadata
from metastore.iceberg.errors import RestError
from metastore.iceberg.metadata import Json
from metastore.iceberg.schemas import columns

SCHEMA = {
    "type": "struct",
    "fields": [
        {"id": 7, "name": "id", "type": "long", "required": True},
        {
            "id": 3,
            "name": "tags",
            "required": False,
            "type": {"type": "list", "element-id": 9, "element": "string", "element-required": False},
        },
    ],
    "identifier-field-ids": [7],
}


def table(version: int = 2, **properties: str) -> Json:
    properties["format-version"] = str(version)
    spec = {"fields": [{"source-id": 7, "name": "p", "transform": "bucket[4]"}]}
    return metadata.new_table(SCHEMA, spec, None, "file:///t", properties)


def apply(base: Json, *updates: Json, location: str = "file:///t/metadata/0.json") -> Json:
    found = metadata.apply(base, updates, location)
    assert found is not None
    return found


def snapshot(number: int, **named: Any) -> Json:
    value = {
        "snapshot-id": number,
        "sequence-number": number,
        "timestamp-ms": number,
        "manifest-list": "m",
        "summary": {},
    }
    return {"action": "add-snapshot", "snapshot": value | {key.replace("_", "-"): each for key, each in named.items()}}


def head(number: int, name: str = "main", type: str = "branch") -> Json:
    return {"action": "set-snapshot-ref", "ref-name": name, "type": type, "snapshot-id": number}


def test_new_ids() -> None:
    found = table()
    assert [each["id"] for each in found["schemas"][0]["fields"]] == [1, 2]
    assert found["schemas"][0]["fields"][1]["type"]["element-id"] == 3
    assert found["schemas"][0]["identifier-field-ids"] == [1]
    assert (found["last-column-id"], found["last-partition-id"]) == (3, 1000)
    assert found["partition-specs"][0]["fields"] == [
        {"source-id": 1, "name": "p", "transform": "bucket[4]", "field-id": 1000}
    ]
    assert found["sort-orders"] == [{"order-id": 0, "fields": []}]
    assert "format-version" not in found["properties"]


def test_version_1_becomes_2_and_3() -> None:
    first = table(1)
    assert "last-sequence-number" not in first
    assert (first["schema"], first["partition-spec"]) == (first["schemas"][0], first["partition-specs"][0]["fields"])
    second = apply(first, {"action": "upgrade-format-version", "format-version": 2})
    assert (second["last-sequence-number"], "schema" in second) == (0, False)
    third = apply(second, {"action": "upgrade-format-version", "format-version": 3})
    assert third["next-row-id"] == 0


def test_row_lineage() -> None:
    base = table(3)
    found = apply(base, snapshot(1, first_row_id=0, added_rows=10), head(1))
    assert found["next-row-id"] == 10
    for wrong, status in (({"first_row_id": 5, "added_rows": 1}, 409), ({}, 400), ({"first_row_id": 10}, 400)):
        with pytest.raises(RestError) as error:
            apply(found, snapshot(2, parent_snapshot_id=1, **wrong))
        assert error.value.status == status


def test_unknown_fields_pass_through() -> None:
    base = {**table(3), "new-in-4": {"a": 1}}
    found = apply(base, snapshot(1, first_row_id=0, added_rows=1, key_id="k", new={"x": 1}), head(1))
    assert found["new-in-4"] == {"a": 1}
    assert found["snapshots"][0]["new"] == {"x": 1}
    key = {"key-id": "k", "encrypted-key-metadata": "x"}
    found = apply(found, {"action": "add-encryption-key", "encryption-key": key})
    assert found["encryption-keys"] == [key]
    assert apply(found, {"action": "remove-encryption-key", "key-id": "k"})["encryption-keys"] == []


def test_snapshots_that_go_take_what_refers_to_them() -> None:
    found = apply(table(), snapshot(1), head(1), snapshot(2, parent_snapshot_id=1), head(1, "old", "tag"))
    found = apply(found, head(2), {"action": "set-statistics", "statistics": {"snapshot-id": 1}})
    assert [each["snapshot-id"] for each in found["snapshot-log"]] == [1, 2]
    found = apply(found, {"action": "remove-snapshots", "snapshot-ids": [1]})
    assert list(found["refs"]) == ["main"]
    assert found["statistics"] == []
    assert [each["snapshot-id"] for each in found["snapshot-log"]] == [2]
    found = apply(found, {"action": "remove-snapshots", "snapshot-ids": [2]})
    assert (found["refs"], found["current-snapshot-id"], found["snapshot-log"]) == ({}, -1, [])


def test_times_never_go_back() -> None:
    """Clocks of writers differ. Java's readers refuse a table whose logs aren't in order."""
    ahead = metadata.now_ms() + 3_600_000
    found = apply(table(), snapshot(1, timestamp_ms=ahead), head(1))
    behind = apply(found, snapshot(2, timestamp_ms=ahead - 300_000, parent_snapshot_id=1), head(2))
    changed = apply(behind, {"action": "set-properties", "updates": {"a": "1"}})
    back = apply(changed, head(1))
    assert [each["timestamp-ms"] for each in back["snapshot-log"]] == [ahead] * 3
    assert [each["timestamp-ms"] for each in back["metadata-log"]][1:] == [ahead] * 3
    assert back["last-updated-ms"] == ahead
    assert [each["timestamp-ms"] for each in back["snapshots"]] == [ahead, ahead - 300_000]


def field(number: Any, name: Any, type: Any = "long", **named: Any) -> Json:
    return {"id": number, "name": name, "type": type, "required": False} | named


def with_fields(*fields: Json, **named: Any) -> Json:
    return {"action": "add-schema", "schema": {"type": "struct", "fields": [*fields], **named}}


def spec_of(*fields: tuple[Any, Any]) -> Json:
    found = [{"source-id": 1, "name": name, "transform": transform} for name, transform in fields]
    return {"action": "add-spec", "spec": {"fields": found}}


@pytest.mark.parametrize(
    "update",
    [
        with_fields(field(1, "a"), field(1, "b")),
        with_fields(field(1, "a"), field(2, "a")),
        with_fields(field(1.5, "a")),
        with_fields(field(-1, "a")),
        with_fields(field(True, "a")),
        with_fields(field(1 << 31, "a")),
        with_fields(field(1, 5)),
        with_fields(field(1, "")),
        with_fields(field(1, "a", required=None)),
        with_fields(field(1, "a", "nothing")),
        with_fields(field(1, "a", {"type": "list", "element-id": 1, "element": "long", "element-required": False})),
        with_fields(field(1, "a", {"type": "list", "element-id": 2, "element": "long"})),
        with_fields(field(1, "a"), **{"identifier-field-ids": [9]}),
        spec_of(("p", "identity"), ("p", "bucket[3]")),
        spec_of((5, "identity")),
        spec_of(("q", 5)),
        {
            "action": "add-sort-order",
            "sort-order": {"order-id": 1, "fields": [{"source-id": 1, "transform": "identity"}]},
        },
        snapshot(1, summary=5),
        snapshot(1, summary={"n": 5}),
        snapshot(1, manifest_list=None),
        snapshot(1, sequence_number=1 << 70),
        snapshot(1, parent_snapshot_id="x"),
        snapshot(1, timestamp_ms=True),
        head(1, ""),
        head(1, "b") | {"max-ref-age-ms": -5},
        head(1, "b") | {"min-snapshots-to-keep": "1"},
    ],
    ids=str,
)
def test_what_readers_would_refuse(update: Json) -> None:
    """Java's readers would not load the table any more."""
    base = table() if update["action"] == "add-snapshot" else apply(table(), snapshot(1))
    with pytest.raises(RestError) as refused:
        apply(base, update)
    assert refused.value.status == 400


def test_the_log_of_files_is_bounded() -> None:
    found = table(**{"write.metadata.previous-versions-max": "2", "write.metadata.delete-after-commit.enabled": "true"})
    for number in range(4):
        before = found
        found = apply(found, {"action": "set-properties", "updates": {"n": str(number)}}, location=f"m{number}")
    assert [each["metadata-file"] for each in found["metadata-log"]] == ["m2", "m3"]
    assert metadata.removed_files(before, found) == ["m1"]


def test_the_same_schema_and_spec_keep_their_ids() -> None:
    base = table()
    other = {"type": "struct", "fields": [{"id": 1, "name": "id", "type": "long", "required": True}]}
    chosen = {"action": "set-current-schema", "schema-id": -1}
    second = apply(base, {"action": "add-schema", "schema": other}, chosen)
    assert (second["current-schema-id"], second["last-column-id"]) == (1, 3)
    third = apply(second, {"action": "add-schema", "schema": base["schemas"][0]}, chosen)
    assert (third["current-schema-id"], len(third["schemas"])) == (0, 2)
    spec = {"spec-id": 9, "fields": [{"source-id": 1, "name": "p", "transform": "bucket[4]"}]}
    assert metadata.apply(third, [{"action": "add-spec", "spec": spec}], None) is None
    assert base["schemas"] == table()["schemas"], "what an update begins with doesn't change"


def test_hive_types() -> None:
    types = {
        "long": "bigint",
        "decimal(9, 2)": "decimal(9,2)",
        "fixed[16]": "binary",
        "timestamptz_ns": "timestamp with local time zone",
        "variant": "binary",
        "geometry(srid:4326)": "binary",
    }
    fields = [{"id": number, "name": f"c{number}", "type": each} for number, each in enumerate(types)]
    assert [each.type for each in columns({"fields": fields})] == list(types.values())
    deep: Any = "long"
    for _ in range(200):
        deep = {"type": "list", "element": deep}
    for wrong in ("decimal", "varchar(3)", {"type": "union"}, 5, deep):
        with pytest.raises(RestError):
            columns({"fields": [{"id": 1, "name": "c", "type": wrong}]})
