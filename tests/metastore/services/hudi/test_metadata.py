"""What Hudi writes of its instants, decoded; and bytes that it didn't write."""

import io
import json
import resource
from typing import Any

import fastavro
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from metastore.warehouse.hudi_files import metadata as hudi_metadata
from metastore.warehouse.hudi_files import timeline as hudi_timeline
from metastore.warehouse.hudi_files.metadata import HudiMetadataError
from tests.metastore.services.hudi.recordings import VERSIONS, Recording, recording

TABLES = ("orders", "clicks", "visits")
COMMITS = ("commit", "deltacommit", "replacecommit")
READERS = {
    "clean": hudi_metadata.clean,
    "rollback": hudi_metadata.rollback,
    "restore": hudi_metadata.restore,
    "compaction.requested": hudi_metadata.compaction_plan,
    **dict.fromkeys(COMMITS, hudi_metadata.commit),
}


@pytest.fixture(params=VERSIONS)
def version(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def found(recorded: Recording, stage: str, kind: str) -> list[Any]:
    """What the files of one kind say at a stage, by timestamp: `commit`, `clean.requested`, …"""
    files = {path.rpartition("/")[2]: data for path, data in recorded.files(stage).items()}
    return [READERS[kind](data) for name, data in sorted(files.items()) if name.partition(".")[2] == kind and data]


@pytest.mark.parametrize("table", TABLES)
def test_all_that_was_recorded_can_be_read(version: str, table: str) -> None:
    recorded = recording(version, table)
    for stage in recorded.stages:
        files = {
            path.rpartition("/")[2]: data for path, data in recorded.files(stage).items() if "/archived/" not in path
        }
        for instant in hudi_timeline.instants(name for name in files if not name.endswith(".parquet")):
            for name in (instant.requested, instant.inflight, instant.completed):
                data = files[name] if name is not None else b""
                kind = (name or "").partition(".")[2]
                if data:
                    assert hudi_metadata.decode(data)
                    if kind in READERS:
                        READERS[kind](data)


def test_a_commit(version: str) -> None:
    first, second = found(recording(version, "orders"), "written", "commit")
    assert [each.partition for each in sorted(first.written)] == ["a/7", "a/8", "b/7"]
    for each in first.written:
        assert each.path.startswith(f"{each.partition}/{each.file_id}_") and each.path.endswith(".parquet")
        assert (each.rows, each.min_event_time) == (1, None) and each.size > 1_000
    assert first.operation == "INSERT" and second.operation == "UPSERT"
    assert [field["name"] for field in json.loads(second.schema)["fields"]] == [
        "id",
        "ts",
        "dt",
        "hr",
        "amount",
        "note",
    ]
    assert not first.replaced


def test_a_delta_commit(version: str) -> None:
    first, second, third = found(recording(version, "clicks"), "logged", "deltacommit")
    assert [(each.partition, each.rows) for each in sorted(first.written)] == [("a", 2), ("b", 1)]
    for commit, partitions in ((second, ["a", "b"]), (third, ["a"])):
        assert [each.partition for each in sorted(commit.written)] == partitions
        assert all(each.path.startswith(f"{each.partition}/.{each.file_id}_") for each in commit.written)


def test_what_commits_replace(version: str) -> None:
    recorded = recording(version, "orders")
    (overwrite,) = found(recorded, "replaced", "replacecommit")
    (old,) = {each.file_id for each in found(recorded, "written", "commit")[1].written if each.partition == "b/7"}
    assert dict(overwrite.replaced) == {"b/7": [old]}
    assert [each.partition for each in overwrite.written] == ["b/7"]
    clustering = found(recorded, "clustered", "replacecommit")[-1]
    assert clustering.operation == "CLUSTER" and set(clustering.replaced) >= {"a/7", "b/7"}
    dropping = found(recorded, "end", "replacecommit")[-1]
    assert dropping.operation == "DELETE_PARTITION" and not dropping.written and list(dropping.replaced) == ["b/7"]


def test_a_clean(version: str) -> None:
    recorded = recording(version, "orders")
    (clean,) = found(recorded, "end", "clean")
    assert clean.deleted and not set(clean.deleted) & set(recorded.read_by_hudi("end"))


def test_what_is_undone(version: str) -> None:
    recorded = recording(version, "orders")
    (rollback,) = found(recorded, "rolled_back", "rollback")
    assert rollback.instants[0][1] == "commit"
    recorded = recording(version, "clicks")
    (restore,) = found(recorded, "restored", "restore")
    assert restore.instants[0][1] == "deltacommit"


def test_a_plan(version: str) -> None:
    (compaction,) = found(recording(version, "clicks"), "pending", "compaction.requested")
    assert {partition for partition, _ in compaction.groups} == {"a", "b"}


# --- what Hudi didn't write -----------------------------------------------------------------------------------


def container(schema: Any, *records: Any, **options: Any) -> bytes:
    """An Avro file."""
    file = io.BytesIO()
    # The same bytes in every process of a test run: they are in the tests' names.
    fastavro.writer(file, fastavro.parse_schema(schema), records, sync_marker=bytes(16), **options)
    return file.getvalue()


def record(*fields: dict[str, Any], name: str = "r") -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": list(fields)}


CLEAN = record({"name": "partitionMetadata", "type": {"type": "map", "values": "string"}})


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[1]",
        b"null",
        b"\xff\xfe",
        b"[" * 200_000,
        b'{"partitionToWriteStats": 1}',
        b'{"partitionToWriteStats": {"a": 1}}',
        b'{"partitionToWriteStats": {"a": [1]}}',
        b'{"partitionToWriteStats": {"a": [{"path": 7}]}}',
        b'{"partitionToWriteStats": {"a": [{"path": "p", "fileSizeInBytes": "many"}]}}',
        b'{"partitionToReplaceFileIds": {"a": [null]}}',
        b'{"extraMetadata": {"schema": 3}}',
        b"Obj\x01",
        b"Obj\x01" + b"\x02" * 100,
        container(CLEAN, {"partitionMetadata": {}})[:-20],
        container(CLEAN),
        container("int", 7),
    ],
    ids=lambda content: repr(content[:40]) if not content.startswith(b"Obj") else f"container of {len(content)} bytes",
)
def test_other_bytes_are_one_error(content: bytes) -> None:
    with pytest.raises(HudiMetadataError):
        hudi_metadata.commit(content)


def test_values_of_other_types_than_hudi_writes() -> None:
    with pytest.raises(HudiMetadataError, match="where fields are expected"):
        hudi_metadata.clean(container(CLEAN, {"partitionMetadata": {"a": "text"}}))


def test_few_bytes_do_not_become_many_values() -> None:
    nulls = record({"name": "f", "type": {"type": "array", "items": "null"}})
    itself = record({"name": "f", "type": ["null", "r"]})
    empty = record({"name": "f", "type": {"type": "array", "items": record(name="e")}})
    for schema, value in ((nulls, {"f": [None] * 1000}), (itself, {"f": {"f": None}}), (empty, {"f": [{}] * 1000})):
        with pytest.raises(HudiMetadataError, match="no bytes"):
            hudi_metadata.decode(container(schema, value))
    with pytest.raises(HudiMetadataError, match="compress"):
        hudi_metadata.decode(container(CLEAN, {"partitionMetadata": {"a": "b" * 10_000}}, codec="deflate"))


def test_few_bytes_do_not_take_much_memory() -> None:
    """A byte that is a record in a record in a record …, and empty objects."""
    nested: dict[str, Any] = {"type": "record", "name": "inner", "fields": [{"name": "x", "type": "boolean"}]}
    value: Any = {"x": True}
    for level in range(hudi_metadata.MAX_DEPTH - 3):
        nested = {"type": "record", "name": f"r{level}", "fields": [{"name": "x", "type": nested}]}
        value = {"x": value}
    few = container(record({"name": "f", "type": {"type": "array", "items": nested}}), {"f": [value] * 1_000})
    assert len(hudi_metadata.decode(few)["f"]) == 1_000
    times = 100_000
    # One block that says how many there are, and as many bytes.
    many = few.replace(_long(1_000) + b"\1" * 1_000 + b"\0", _long(times) + b"\1" * times + b"\0")
    assert len(many) - len(few) >= times - 1_000
    many = many.replace(_long(len(_block(1_000))), _long(len(_block(times))), 1)
    lists = b'{"a": [' + b"[]," * 5_000_000 + b"[]]}"
    before = _memory()
    for content in (many, lists):
        with pytest.raises(HudiMetadataError, match="commit less at a time"):
            hudi_metadata.decode(content)
    assert _memory() - before < 200 << 20


def _block(times: int) -> bytes:
    return _long(times) + b"\1" * times + b"\0"


def _long(number: int) -> bytes:
    found, number = b"", number << 1
    while number > 0x7F:
        found += bytes([number & 0x7F | 0x80])
        number >>= 7
    return found + bytes([number])


def _memory() -> int:
    """The most that this process has taken so far, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10


def test_a_schema_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    wide = record(*({"name": f"f{number}", "type": "int"} for number in range(hudi_metadata.MAX_SCHEMA_TYPES + 1)))
    deep: Any = "int"
    for _ in range(hudi_metadata.MAX_DEPTH + 1):
        deep = {"type": "array", "items": deep}
    for schema in (wide, record({"name": "f", "type": deep})):
        value: dict[str, Any] = {field["name"]: 1 if schema is wide else [] for field in schema["fields"]}
        with pytest.raises(HudiMetadataError, match="nested too deeply, or too large"):
            hudi_metadata.decode(container(schema, value))
    monkeypatch.setattr(hudi_metadata, "MAX_BYTES", 10)
    with pytest.raises(HudiMetadataError, match="at most 10 are read"):
        hudi_metadata.decode(b'{"partition": {}}')


@settings(deadline=None)
@given(st.data())
def test_damaged_metadata_is_read_or_refused(data: st.DataObject) -> None:
    """Never anything but the one error, whatever byte has changed."""
    recorded = recording(data.draw(st.sampled_from(VERSIONS)), "orders")
    files = {path.rpartition("/")[2]: content for path, content in recorded.files("end").items()}
    some = sorted(name for name, content in files.items() if content and name.partition(".")[2] in READERS)
    name = data.draw(st.sampled_from(some))
    content = bytearray(files[name])
    for _ in range(data.draw(st.integers(1, 5))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    try:
        READERS[name.partition(".")[2]](bytes(content))
    except HudiMetadataError as error:
        assert str(error)
