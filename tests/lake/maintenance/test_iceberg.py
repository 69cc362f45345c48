"""Iceberg's tables: what is decided from their metadata files."""

import gzip
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lake.maintenance.decisions.facts import Facts, Job
from lake.maintenance.decisions.iceberg import (
    MAX_METADATA_BYTES,
    UnreadableMetadata,
    decide,
    figures_of,
    is_iceberg,
    metadata_of,
    why_not_alone,
)
from lake.maintenance.decisions.policy import policy_of

HOUR = 3_600_000
NOW = 1_000 * HOUR
FACTS = Facts(table="shop.orders", now=NOW, position=0, parameters={"table_type": "ICEBERG"}, database_parameters={})


def snapshot(number: int, operation: str = "append", **summary: int) -> dict[str, Any]:
    """One that was committed so many hours after the first."""
    counts = {name.replace("_", "-"): str(value) for name, value in summary.items()}
    return {
        "snapshot-id": number,
        "timestamp-ms": NOW - (100 - number) * HOUR,
        "summary": {"operation": operation, **counts},
    }


def appends(count: int, *, first: int = 1, size: int = 1_000) -> list[dict[str, Any]]:
    return [
        snapshot(number, added_data_files=1, total_data_files=number, total_files_size=number * size)
        for number in range(first, first + count)
    ]


def metadata(*snapshots: dict[str, Any], **refs: int) -> dict[str, Any]:
    named = {name: {"snapshot-id": number, "type": "tag"} for name, number in refs.items()}
    last = snapshots[-1]["snapshot-id"] if snapshots else -1
    return {"snapshots": list(snapshots), "current-snapshot-id": last, "refs": named}


def decided(document: dict[str, Any], facts: Facts = FACTS, **properties: str) -> dict[str, str | None]:
    """The action of each service, or None."""
    policy = policy_of({name.replace("__", ".").replace("_", "-"): value for name, value in properties.items()})
    return {each.service: each.action for each in decide(facts, policy, figures_of(document))}


def test_small_files_are_rewritten() -> None:
    assert decided(metadata(*appends(10)))["clustering"] is None, "nine fewer, of ten"
    assert decided(metadata(*appends(11)))["clustering"] == "clustering"
    assert decided(metadata(*appends(11, size=1 << 30)))["clustering"] is None, "they are large"
    assert decided(metadata(*appends(11)), clustering__enabled="false")["clustering"] is None
    assert decided(metadata())["clustering"] is None


def test_what_came_since_the_last_rewriting_counts() -> None:
    """Else a table whose many partitions have a small file each would be rewritten again and again."""
    rewritten = snapshot(50, "replace", total_data_files=40, total_files_size=40_000)
    after = [snapshot(51 + each, added_data_files=1, total_data_files=41 + each) for each in range(10)]
    assert decided(metadata(*appends(40), rewritten))["clustering"] is None
    assert decided(metadata(*appends(40), rewritten, *after))["clustering"] == "clustering"
    job = Job(1, "clustering", "succeeded", finished_at=NOW - HOUR)
    assert decided(metadata(*appends(40)), replace(FACTS, jobs=[job]))["clustering"] is None, "it found nothing to do"


def test_old_snapshots_expire() -> None:
    assert decided(metadata(*appends(30)), clean__hours_retained="80")["clean"] is None, "19 of 20"
    assert decided(metadata(*appends(30)), clean__hours_retained="79")["clean"] == "clean"
    assert decided(metadata(*appends(30), a=5), clean__hours_retained="79")["clean"] is None, "one has a tag"
    assert decided(metadata(*appends(30)), clean__commits_retained="10")["clean"] == "clean"
    assert decided(metadata(*appends(30)), clean__commits_retained="11")["clean"] is None
    assert decided(metadata(*appends(30)), clean__versions_retained="1")["clean"] is None
    again = decide(FACTS, policy_of({"clean.hours-retained": "90"}), figures_of(metadata(*appends(30))))[1].again_at
    assert again == NOW + HOUR, "time alone makes it due"


def test_orphans_are_looked_for_if_wanted() -> None:
    document = metadata(*appends(3))
    assert "orphans" not in decided(document)
    assert decided(document, orphans__enabled="true")["orphans"] == "orphans"
    for hours, action in ((100, None), (200, "orphans")):
        facts = replace(FACTS, orphans_removed_at=NOW - hours * HOUR)
        assert decided(document, facts, orphans__enabled="true")["orphans"] == action


def test_orphans_are_left_where_another_table_may_have_put_them(tmp_path: Path) -> None:
    table = tmp_path / "orders"
    file = table / "metadata" / "00001-a.metadata.json"
    file.parent.mkdir(parents=True)
    parameters = {"metadata_location": str(file)}
    facts = replace(FACTS, parameters=parameters, location=str(table), shared=False)
    file.write_text(json.dumps({"location": f"{table}/"}))
    assert why_not_alone(facts) is None
    assert "another table" in (why_not_alone(replace(facts, shared=True)) or "")
    assert why_not_alone(replace(facts, shared=None)) is not None, "it wasn't asked for"
    file.write_text(json.dumps({"location": str(tmp_path)}))
    assert str(tmp_path) in (why_not_alone(facts) or "")


def test_a_pause_holds_here_too() -> None:
    document = metadata(*appends(30))
    assert set(decided(document, replace(FACTS, paused="a migration"), clean__commits_retained="1").values()) == {None}
    assert set(decided(document, table_services__enabled="false", clean__commits_retained="1").values()) == {None}


@pytest.mark.parametrize(
    "document",
    [
        {"snapshots": [{}]},
        {"snapshots": 1},
        {"snapshots": [{"snapshot-id": "x", "timestamp-ms": 1}]},
        {"refs": [1]},
        {"current-snapshot-id": {}},
        {"snapshots": [snapshot(1) | {"summary": 5}]},
    ],
    ids=str,
)
def test_metadata_of_another_form(document: dict[str, Any]) -> None:
    with pytest.raises(UnreadableMetadata, match="another form"):
        figures_of(document)


def test_the_file_is_read(tmp_path: Path) -> None:
    directory = tmp_path / "metadata"
    directory.mkdir()
    (directory / "1.metadata.json").write_text(json.dumps(metadata(*appends(3))))
    (directory / "2.gz.metadata.json").write_bytes(gzip.compress(json.dumps(metadata(*appends(4))).encode()))
    (directory / "bomb.gz.metadata.json").write_bytes(gzip.compress(b" " * (MAX_METADATA_BYTES + 1)))
    (directory / "3.metadata.json").write_text("[]")
    (directory / "4.metadata.json").write_text("{")
    (tmp_path / "secret.json").write_text("{}")

    def read(place: str) -> int:
        parameters = {"table_type": "iceberg", "metadata_location": f"file:{tmp_path}/{place}"}
        assert is_iceberg(parameters)
        return figures_of(metadata_of(parameters, f"file:{tmp_path}/")).snapshots

    assert read("metadata/1.metadata.json") == 3
    assert read("metadata/2.gz.metadata.json") == 4
    for place, why in {
        "metadata/bomb.gz.metadata.json": "more than",
        "metadata/3.metadata.json": "is no table's",
        "metadata/4.metadata.json": "can't be read",
        "metadata/5.metadata.json": "can't be read",
        "secret.json": "not below",
        "metadata/../secret.json": "not below",
        "metadata/x::file:///etc/hostname": "not below",
    }.items():
        with pytest.raises(UnreadableMetadata, match=why):
            read(place)
