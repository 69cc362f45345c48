"""The names of Hudi's files, and the timelines that they tell of."""

import itertools

from hypothesis import given, settings
from hypothesis import strategies as st

from metastore.warehouse.hudi_files import names as hudi_names
from metastore.warehouse.hudi_files import timeline as hudi_timeline
from metastore.warehouse.hudi_files.names import BaseName, LogName

FILE_IDS = st.one_of(st.uuids().map(lambda each: f"{each}-0"), st.from_regex(r"[A-Za-z0-9-]{1,40}", fullmatch=True))
TOKENS = st.tuples(*[st.integers(0, 9_999)] * 3).map(lambda each: "-".join(map(str, each)))
TIMESTAMPS = st.from_regex(r"[0-9]{14}([0-9]{3})?", fullmatch=True)
NAMES = st.text(st.characters(blacklist_categories=("Cs",)), max_size=60)


@settings(deadline=None)
@given(FILE_IDS, TOKENS, TIMESTAMPS, st.sampled_from(["parquet", "orc", "hfile"]))
def test_base_files(file_id: str, token: str, instant: str, extension: str) -> None:
    assert hudi_names.parse(f"{file_id}_{token}_{instant}.{extension}") == BaseName(file_id, token, instant)


@settings(deadline=None)
@given(FILE_IDS, TIMESTAMPS, st.integers(1, 10_000), st.none() | TOKENS)
def test_log_files(file_id: str, instant: str, version: int, token: str | None) -> None:
    name = f".{file_id}_{instant}.log.{version}" + (f"_{token}" if token else "")
    assert hudi_names.parse(name) == LogName(file_id, instant, version, token)
    assert hudi_names.parse(f"{name}.cdc") is None


@settings(deadline=None)
@given(NAMES)
def test_any_other_name_is_none(name: str) -> None:
    parsed = hudi_names.parse(name)
    assert parsed is None or (parsed.file_id in name and parsed.instant in name)


def test_marks_and_strangers_are_no_data() -> None:
    for name in ("", ".hoodie_partition_metadata", "_SUCCESS", "part-0.parquet", ".a_1.log", "a/b_1_2.parquet"):
        assert hudi_names.parse(name) is None


def test_timelines_of_both_layouts() -> None:
    flat = [
        *("1.commit.requested", "1.inflight", "1.commit"),
        *("2.deltacommit.requested", "2.deltacommit.inflight"),
        *("3.compaction.requested", "3.compaction.inflight", "3.commit"),
        *("1.savepoint.inflight", "1.savepoint", "hoodie.properties", ".temp", "archived"),
    ]
    found = hudi_timeline.instants(flat)
    assert [(each.timestamp, each.action, each.completed_as) for each in found] == [
        ("1", "commit", "commit"),
        ("1", "savepoint", "savepoint"),
        ("2", "deltacommit", None),
        ("3", "compaction", "commit"),
    ]
    assert found[0].inflight == "1.inflight" and found[2].inflight == "2.deltacommit.inflight"
    assert steps(found) == ["1 commit", "1 savepoint", "2 deltacommit?", "3 compaction?", "3 compaction"]

    deep = [
        *(
            "1.deltacommit.requested",
            "1_5.deltacommit",
            "2.compaction.requested",
            "2.compaction.inflight",
            "2_6.commit",
        ),
        *("3.clustering.requested", "3.clustering.inflight", "3_4.replacecommit"),
    ]
    # In the order in which they were completed; the compaction's slices were open before.
    assert steps(hudi_timeline.instants(deep)) == ["2 compaction?", "3 clustering", "1 deltacommit", "2 compaction"]


def steps(found: list[hudi_timeline.FolderInstant]) -> list[str]:
    """What happened; with a question mark where something began."""
    return [
        f"{each.instant.timestamp} {each.instant.action}{'' if each.completed else '?'}"
        for each in hudi_timeline.history(found)
    ]


@settings(deadline=None)
@given(st.lists(st.tuples(TIMESTAMPS, st.sampled_from(["commit", "clean", "rollback"])), unique=True, max_size=6))
def test_the_order_of_names_does_not_matter(given: list[tuple[str, str]]) -> None:
    names = [f"{timestamp}.{action}" for timestamp, action in given]
    answer = [hudi_timeline.instants(some) for some in itertools.islice(itertools.permutations(names), 10)]
    assert all(each == answer[0] for each in answer) and len(answer[0]) == len(given)


def test_properties_of_java() -> None:
    content = b"#Updated\n!x\nhoodie.table.name=orders\na.b = file\\:/x\\=y \n\nbroken\n\xff\xfe=\xff\n"
    found = hudi_timeline.properties(content)
    assert (found["hoodie.table.name"], found["a.b"], found["broken"]) == ("orders", "file:/x=y", "")


def test_where_timelines_are() -> None:
    assert hudi_timeline.timeline_folder({}) == ".hoodie"
    assert hudi_timeline.archive_folder({"hoodie.table.version": "6"}) == ".hoodie/archived"
    assert hudi_timeline.timeline_folder({"hoodie.table.version": "8"}) == ".hoodie/timeline"
    assert hudi_timeline.archive_folder({"hoodie.table.version": "9"}) == ".hoodie/timeline/history"
