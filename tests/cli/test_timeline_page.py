"""The pages of `metastore timeline show --html` and `metastore snapshot show --html`."""

import re
from html.parser import HTMLParser
from itertools import pairwise
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lake.cli.pages.snapshot_page import MAX_FILES, in_bytes, snapshot_page
from lake.cli.pages.time_axis import TimeAxis
from lake.cli.pages.timeline_drawing import WIDTH
from lake.cli.pages.timeline_page import timeline_page
from lake.protocol.lake import DataFile, Instant, RejectedCommit, TimelinePosition

NOW = 1_769_860_000_000
MINUTE, DAY = 60_000, 86_400_000
HOSTILE = "<script>alert('x')</script>\" onload=\"&amp;"


def instant(timestamp: str, begin: int = NOW - MINUTE, took: int = 1000, **fields: Any) -> Instant:
    usual: dict[str, Any] = {"action": "commit", "state": "completed", "position": 1}
    return Instant(timestamp=timestamp, requestedAt=begin, changedAt=begin + took, **usual | fields)


def drawn(
    *instants: Instant, rejected: tuple[RejectedCommit, ...] = (), cut: bool = False, table: str = "shop.orders"
) -> str:
    return timeline_page(table, instants, rejected, TimelinePosition(7, None, 1), NOW, cut=cut, archived=True)


def file(partition: str, group: str, slice: str, size: int = 100, **fields: Any) -> DataFile:
    return DataFile(partition=partition, fileGroup=group, slice=slice, path=f"{group}_{slice}", size=size, **fields)


def parsed(document: str) -> ElementTree.Element:
    """The document as XML, which every page is, without its doctype."""
    return ElementTree.fromstring(document.removeprefix("<!doctype html>\n"))


def texts(root: ElementTree.Element) -> str:
    return " ".join(root.itertext())


def bars(root: ElementTree.Element) -> list[tuple[float, float]]:
    """Where each rectangle of an instant begins and ends."""
    found = root.iter("{http://www.w3.org/2000/svg}rect")
    rects = [each for each in found if each.get("class") == "bar"]
    return [(float(each.get("x", "")), float(each.get("x", "")) + float(each.get("width", ""))) for each in rects]


def tags(document: str) -> set[str]:
    """The elements that an HTML parser finds."""
    found: set[str] = set()

    class Tags(HTMLParser):
        def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
            found.add(tag)
            assert not [name for name, _ in attrs if name.startswith("on")]

    Tags().feed(document)
    return found


def test_a_page_without_instants_says_so() -> None:
    root = parsed(drawn())
    assert "There are no instants." in texts(root)
    assert bars(root) == []


def test_a_single_instant_is_drawn() -> None:
    for only in (instant("1"), instant("1", took=0), instant("1", state="inflight", position=None)):
        [(begin, end)] = bars(parsed(drawn(only)))
        assert 0 < begin < end < WIDTH


def test_each_instant_has_a_bar_that_leads_to_its_row() -> None:
    root = parsed(drawn(*(instant(f"{each:04}", NOW - each * MINUTE) for each in range(1000)), cut=True))
    assert len(bars(root)) == 1000
    links = {each.get("href") for each in root.iter("{http://www.w3.org/2000/svg}a")}
    assert links == {f"#{each.get('id')}" for each in root.iter("tr") if each.get("id")}
    assert "The latest 1,000 instants; 7 were completed in all" in texts(root)


def test_what_was_refused_ends_then_and_says_why_also_when_its_instant_is_gone() -> None:
    there = instant("2", NOW - 8 * MINUTE, state="inflight", position=None, conflict="lost to 1")
    rejected = (
        RejectedCommit("2", "commit", NOW - 8 * MINUTE, NOW - 7 * MINUTE, [1], "lost to 1"),
        RejectedCommit("3", "clustering", NOW - 6 * MINUTE, NOW - 4 * MINUTE, [1], "lost to 1, too"),
    )
    root = parsed(drawn(instant("1", NOW - 10 * MINUTE), there, rejected=rejected))
    rows = [[texts(cell) for cell in row] for row in root.iter("tr") if row.get("class") == "refused"]
    assert [(row[0], row[5], row[6]) for row in rows] == [
        ("3", "2 min", "refused: lost to 1, too"),
        ("2", "1 min", "refused: lost to 1"),
    ]
    assert len(bars(root)) == 3


def test_refusals_before_what_is_listed_are_left_out() -> None:
    early = RejectedCommit("1", "commit", NOW - 9 * MINUTE, NOW - 8 * MINUTE, [1], "lost")
    assert "lost" in drawn(instant("2"), rejected=(early,))
    assert "lost" not in drawn(instant("2"), rejected=(early,), cut=True)


def test_undone_instants_and_savepoints_are_marked() -> None:
    save = instant("1", action="savepoint", position=2)
    root = parsed(drawn(instant("1"), save, instant("2", undoneBy="4", position=3)))
    assert [each.get("class") for each in root.iter("{http://www.w3.org/2000/svg}a")] == [
        "completed",
        "undone",
        "savepoint",
    ]
    assert [each for each in root.iter("{http://www.w3.org/2000/svg}path") if each.get("class") == "saved"]
    assert "undone by 4" in texts(root)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.integers(-(10**14), 10**15),
            st.integers(-1000, 10**12),
            st.sampled_from(["commit", "clean", "savepoint"]),
            st.sampled_from(["requested", "inflight", "completed"]),
        ),
        max_size=25,
    )
)
def test_bars_lie_within_the_drawing(answer: list[tuple[int, int, str, str]]) -> None:
    instants = [
        instant(str(place), begin, took, action=action, state=state)
        for place, (begin, took, action, state) in enumerate(answer)
    ]
    found = bars(parsed(drawn(*instants)))
    assert all(0 < begin < end <= WIDTH for begin, end in found)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, 400 * DAY), min_size=1, max_size=40))
def test_an_axis_keeps_the_order_of_times_and_its_marks_apart(times: list[int]) -> None:
    axis = TimeAxis(times, 100, 1100)
    places = [axis.x(time) for time in sorted(set(times))]
    assert places == sorted(places) and len(set(places)) == len(places)
    assert places[0] >= 100 and places[-1] <= 1100.001
    ticks = axis.ticks()
    assert ticks and all(after.x - before.x > 60 for before, after in pairwise(ticks))
    assert len(ticks) < 30


def test_a_long_gap_leaves_room_for_the_rest() -> None:
    axis = TimeAxis([0, MINUTE, 30 * DAY, 30 * DAY + MINUTE], 0, 1000)
    assert [length for _, length in axis.breaks] == [30 * DAY - MINUTE]
    assert axis.x(MINUTE) - axis.x(0) > 300
    assert TimeAxis([0, DAY, 2 * DAY, 3 * DAY], 0, 1000).breaks == []


@settings(max_examples=60, deadline=None)
@given(st.text(), st.text())
def test_names_are_text_whatever_they_hold(name: str, other: str) -> None:
    known = tags(drawn(instant("1", conflict="x"), table="a")) | tags(snapshot_page("a", [file("p", "g", "1")], 1, NOW))
    for hostile in (name, HOSTILE + other):
        pages = [
            drawn(instant(hostile, conflict=hostile, undoneBy=other, action=hostile), table=hostile),
            snapshot_page(hostile, [file(hostile, hostile, other, kind=other)], 1, NOW, [hostile]),
        ]
        for document in pages:
            document.encode()
            assert tags(document) <= known
            root = parsed(document)
            assert "<script>" not in document and root.tag == "html"
    assert HOSTILE in texts(root)


def test_pages_load_and_run_nothing() -> None:
    for document in (drawn(instant("1")), snapshot_page("t", [file("p", "g", "1")], 1, NOW)):
        assert not {"script", "link", "img", "iframe"} & tags(document)
        assert not re.search(r"url\(|@import|(src|href)=\"(?!#)", document)


def test_a_snapshot_adds_up_what_is_live_and_shows_what_was_superseded() -> None:
    files = [
        file("dt=1", "g", "1", 4096, rows=10, removedAt=2),
        file("dt=1", "g", "2", 2048, rows=20),
        file("dt=1", "g", "2", 1024, rows=5, kind="log"),
        file("dt=2", "h", "3", 1024, rows=1, removedAt=9),
    ]
    root = parsed(snapshot_page("t", files, 2, NOW))
    answer = {texts(each[0]): texts(each[1]) for each in root.findall(".//dl/div")}
    assert answer == {
        "size": "4.0 KiB",
        "rows in base files": "21",
        "partitions": "2",
        "file groups": "2",
        "base files": "2, 3.0 KiB",
        "log files": "1, 1.0 KiB",
        "superseded": "1, 4.0 KiB",
    }
    fills = [each for each in root.iter("span") if each.get("class") == "fill"]
    assert [each.get("aria-label") for each in fills] == [
        "base 2.0 KiB, log 1.0 KiB, base superseded 4.0 KiB",
        "base superseded 4.0 KiB",
        "base 2.0 KiB, log 1.0 KiB",
        "base 1.0 KiB",
        "base 1.0 KiB",
    ]
    assert [each.get("style") for each in fills] == [
        "width:100.00%",
        "width:100.00%",
        "width:75.00%",
        "width:14.29%",
        "width:100.00%",
    ]


def test_a_large_snapshot_is_cut_and_says_so() -> None:
    files = [file(f"dt={each // 100:04}", f"g{each % 100:02}", "1") for each in range(MAX_FILES + 500)]
    root = parsed(snapshot_page("t", files, 1, NOW))
    assert "The first 2,000 of 2,500 files are shown" in texts(root)
    assert len(list(root.iter("tbody"))) == MAX_FILES
    assert "244.1 KiB" in texts(root)


def test_an_empty_snapshot_says_so() -> None:
    assert "There are no files." in texts(parsed(snapshot_page("t", [], 0, NOW)))


@pytest.mark.parametrize(
    ("size", "words"),
    [(0, "0 B"), (1023, "1,023 B"), (1024, "1.0 KiB"), (1536, "1.5 KiB"), (5 << 30, "5.0 GiB"), (2**63, "8.0 EiB")],
)
def test_sizes_are_in_binary_units(size: int, words: str) -> None:
    assert in_bytes(size) == words
