"""A snapshot as a page: partitions, their file groups and slices, as bars that are as long as they are large."""

from collections.abc import Sequence
from itertools import groupby
from typing import TYPE_CHECKING

from lake.cli.moments import shown
from lake.cli.output import counted
from lake.cli.pages.html import Html, element, figures, joined, page

if TYPE_CHECKING:
    from lake.protocol.lake import DataFile

MAX_FILES = 2000
"""Files that a page shows; its totals are those of all."""

_UNITS = ("KiB", "MiB", "GiB", "TiB", "PiB", "EiB")

_OPEN = 3
"""Partitions that are unfolded from the start."""


def snapshot_page(
    table: str, files: Sequence["DataFile"], position: int, now: int, selection: Sequence[str] = ()
) -> str:
    """The document.

    `files` are those of the snapshot at `position`, ordered by partition, file group and slice; what was removed up to
    there is shown as superseded. `now` is in milliseconds; `selection` describes what the snapshot was narrowed to.
    """
    drawn = files[:MAX_FILES]
    live = [each for each in files if not _superseded(each, position)]
    bases = [each for each in live if each.kind != "log"]
    facts = {
        "size": in_bytes(_size(live)),
        "rows in base files": f"{_rows(live):,}",
        "partitions": f"{len({each.partition for each in live}):,}",
        "file groups": f"{len({(each.partition, each.fileGroup) for each in live}):,}",
        "base files": f"{len(bases):,}, {in_bytes(_size(bases))}",
        "log files": f"{len(live) - len(bases):,}, {in_bytes(_size(live) - _size(bases))}",
    }
    if old := [each for each in files if _superseded(each, position)]:
        facts["superseded"] = f"{len(old):,}, {in_bytes(_size(old))}"
    partitions = [(name, list(members)) for name, members in groupby(drawn, key=lambda each: each.partition)]
    widest = max((_size(members) for _, members in partitions), default=0)
    cut = f"The first {len(drawn):,} of {len(files):,} files are shown; the figures above are those of all."
    words = "; ".join((f"Snapshot at position {position:,}", *selection, f"written {shown(now)} UTC"))
    return page(
        f"{table}: snapshot",
        element("h1", table),
        element("p", f"{words}."),
        figures(facts),
        element("p", cut) if len(drawn) < len(files) else None,
        _legend(files, position) if files else element("p", "There are no files."),
        *(
            _partition(name or "the whole table", members, position, widest, unfolded=place < _OPEN)
            for place, (name, members) in enumerate(partitions)
        ),
    )


def in_bytes(size: int) -> str:
    """A size in its largest binary unit: `1.5 MiB`."""
    if size < 1024:
        return f"{size:,} B"
    power = min(len(_UNITS), (size.bit_length() - 1) // 10)
    return f"{size / 1024**power:,.1f} {_UNITS[power - 1]}"


def _partition(name: str, files: list["DataFile"], position: int, widest: int, *, unfolded: bool) -> Html:
    groups = [(key, list(members)) for key, members in groupby(files, key=lambda each: each.fileGroup)]
    slices = [
        (group, [(key, list(members)) for key, members in groupby(of_group, key=lambda each: each.slice)])
        for group, of_group in groups
    ]
    largest = max(_size(members) for _, of_group in slices for _, members in of_group)
    inner = [
        joined(
            element("div", "file group ", element("span", group, class_="name"), class_="group"),
            *(_slice(key, members, position, largest) for key, members in of_group),
        )
        for group, of_group in slices
    ]
    heading = _heading(name, files, position, widest, counted(len(groups), "file group"))
    return joined(element("details", heading, *inner, open="" if unfolded else None), "\n")


def _slice(name: str, files: list["DataFile"], position: int, largest: int) -> Html:
    columns = ("file", "kind", "size", "rows", "event times (UTC)")
    head = element("tr", *(element("th", each, scope="col") for each in columns))
    rows = (_file(each, position) for each in files)
    table = element("table", element("thead", head), element("tbody", *rows))
    return element(
        "details",
        _heading(name, files, position, largest, counted(len(files), "file")),
        element("div", table, class_="scroll"),
    )


def _heading(name: str, files: list["DataFile"], position: int, largest: int, count: str) -> Html:
    live = [each for each in files if not _superseded(each, position)]
    row = element(
        "div",
        element("span", name, class_="name"),
        element("span", _bar(files, position, largest), class_="track"),
        element("span", in_bytes(_size(live)) if live else "superseded", class_="number"),
        element("span", f"{_rows(live):,} rows" if live else "-", class_="number"),
        element("span", count, class_="number"),
        class_="row",
    )
    return element("summary", row)


def _bar(files: list["DataFile"], position: int, largest: int) -> Html:
    """A bar as long as the files are large, in pieces: one for each kind in the order base, log, superseded."""
    sizes: dict[str, int] = {}
    for each in sorted(files, key=lambda each: (_superseded(each, position), each.kind == "log")):
        sizes[_kind(each, position)] = sizes.get(_kind(each, position), 0) + max(0, each.size or 0)
    pieces = (
        element("span", class_=kind, style=f"flex-grow:{size}", title=f"{kind}: {in_bytes(size)}")
        for kind, size in sizes.items()
        if size
    )
    said = ", ".join(f"{kind} {in_bytes(size)}" for kind, size in sizes.items())
    width = f"width:{100 * _size(files) / max(1, largest):.2f}%"
    return element("span", *pieces, class_="fill", style=width, role="img", aria_label=said)


def _file(file: "DataFile", position: int) -> Html:
    times = (shown(file.minEventTime), shown(file.maxEventTime))
    superseded = _superseded(file, position)
    return element(
        "tr",
        element("td", file.path, class_="name"),
        element("td", element("b", class_=f"swatch {_kind(file, position)}"), _kind(file, position)),
        element("td", in_bytes(file.size or 0), class_="number"),
        element("td", "-" if file.rows is None else f"{file.rows:,}", class_="number"),
        element("td", " – ".join(each for each in times if each) or "-", class_="time"),
        class_="undone" if superseded else None,
    )


def _legend(files: Sequence["DataFile"], position: int) -> Html:
    known = sorted({_kind(each, position) for each in files}, key=lambda kind: ("superseded" in kind, kind))
    return element(
        "div", *(element("i", element("b", class_=f"swatch {each}"), each) for each in known), class_="legend"
    )


def _kind(file: "DataFile", position: int) -> str:
    kind = "log" if file.kind == "log" else "base"
    return f"{kind} superseded" if _superseded(file, position) else kind


def _superseded(file: "DataFile", position: int) -> bool:
    return file.removedAt is not None and file.removedAt <= position


def _size(files: Sequence["DataFile"]) -> int:
    return sum(max(0, each.size or 0) for each in files)


def _rows(files: Sequence["DataFile"]) -> int:
    """Rows of base files; a log file's may be changes of the same."""
    return sum(each.rows or 0 for each in files if each.kind != "log")
