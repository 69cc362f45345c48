"""A snapshot as a page: partitions, their file groups and slices, as bars that are as long as they are large."""

from collections.abc import Sequence
from itertools import groupby
from typing import TYPE_CHECKING

from lake.cli.moments import shown
from lake.cli.output import counted
from lake.cli.pages.html import page

if TYPE_CHECKING:
    from lake.protocol.lake import DataFile

MAX_FILES = 2000
"""Files that a page shows; its totals are those of all."""

_UNITS = ("KiB", "MiB", "GiB", "TiB", "PiB", "EiB")

_COLUMNS = ("file", "kind", "size", "rows", "event times (UTC)")
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
        "snapshot",
        f"{table}: snapshot",
        table=table,
        words=words,
        facts=facts,
        cut=cut if len(drawn) < len(files) else None,
        kinds=sorted({_kind(each, position) for each in files}, key=lambda kind: ("superseded" in kind, kind)),
        columns=_COLUMNS,
        unfolded=_OPEN,
        partitions=[_partition(name or "the whole table", members, position, widest) for name, members in partitions],
    )


def in_bytes(size: int) -> str:
    """A size in its largest binary unit: `1.5 MiB`."""
    if size < 1024:
        return f"{size:,} B"
    power = min(len(_UNITS), (size.bit_length() - 1) // 10)
    return f"{size / 1024**power:,.1f} {_UNITS[power - 1]}"


def _partition(name: str, files: list["DataFile"], position: int, widest: int) -> dict[str, object]:
    groups = [(key, list(members)) for key, members in groupby(files, key=lambda each: each.fileGroup)]
    slices = [
        (group, [(key, list(members)) for key, members in groupby(of_group, key=lambda each: each.slice)])
        for group, of_group in groups
    ]
    largest = max(_size(members) for _, of_group in slices for _, members in of_group)
    shown_groups = [
        {
            "name": group,
            "slices": [
                _part(key, members, position, largest, counted(len(members), "file"))
                | {"files": [_file(each, position) for each in members]}
                for key, members in of_group
            ],
        }
        for group, of_group in slices
    ]
    return _part(name, files, position, widest, counted(len(groups), "file group")) | {"groups": shown_groups}


def _part(name: str, files: list["DataFile"], position: int, largest: int, count: str) -> dict[str, object]:
    """A line with a bar as long as the files are large, in pieces: a kind each, in the order base, log, superseded."""
    live = [each for each in files if not _superseded(each, position)]
    sizes: dict[str, int] = {}
    for each in sorted(files, key=lambda each: (_superseded(each, position), each.kind == "log")):
        sizes[_kind(each, position)] = sizes.get(_kind(each, position), 0) + max(0, each.size or 0)
    return {
        "name": name,
        "percent": 100 * _size(files) / max(1, largest),
        "pieces": [(kind, size, in_bytes(size)) for kind, size in sizes.items() if size],
        "said": ", ".join(f"{kind} {in_bytes(size)}" for kind, size in sizes.items()),
        "size": in_bytes(_size(live)) if live else "superseded",
        "rows": f"{_rows(live):,} rows" if live else "-",
        "count": count,
    }


def _file(file: "DataFile", position: int) -> dict[str, object]:
    times = (shown(file.minEventTime), shown(file.maxEventTime))
    return {
        "path": file.path,
        "kind": _kind(file, position),
        "superseded": _superseded(file, position),
        "size": in_bytes(file.size or 0),
        "rows": "-" if file.rows is None else f"{file.rows:,}",
        "times": " – ".join(each for each in times if each) or "-",
    }


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
