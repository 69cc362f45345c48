"""`metastore snapshot`: which files make up a lake table."""

import time
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

import click

from lake.cli.connection import uri_option
from lake.cli.group import Group
from lake.cli.lake import lake, reference, table_argument
from lake.cli.output import counted, json_option, print_json, print_table, with_progress
from lake.cli.pages.html import check_form, html_option, write
from lake.cli.pages.snapshot_page import snapshot_page

if TYPE_CHECKING:
    from lake.protocol.connection.thrift_client import ThriftClient
    from lake.protocol.lake import DataFile, SnapshotRequest, SnapshotResponse

PAGE = 10_000
"""Files in one request."""


@click.group(cls=Group)
def snapshot() -> None:
    """Show which files make up a lake table, now or earlier."""


@snapshot.command()
@table_argument
@click.option("--as-of", metavar="TIMESTAMP", help="As of the completion of that instant.")
@click.option("--filter", metavar="TEXT", help="Only partitions that a filter of Hive selects: \"dt >= '2026-01-31'\".")
@click.option("--uncommitted", is_flag=True, help="Files of uncommitted partitions, too.")
@click.option("--all", "everything", is_flag=True, help="Superseded files that aren't cleaned yet, too.")
@uri_option
@json_option
@html_option
def show(
    table: tuple[str, ...],
    as_of: str | None,
    filter: str | None,
    uncommitted: bool,
    everything: bool,
    uri: str,
    as_json: bool,
    page_file: Path | None,
) -> None:
    """List file groups and their slices.

    \b
    Examples:
      metastore snapshot show shop.orders
      metastore snapshot show shop.orders --as-of 20260131120000000 --filter "dt = '2026-01-31'" --json
      metastore snapshot show shop.orders --all --html orders.html
    """
    from lake.protocol.lake import SnapshotRequest

    check_form(page_file, as_json)
    request = SnapshotRequest(
        reference(table),
        asOf=as_of,
        filter=filter,
        includeUncommitted=uncommitted,
        limit=PAGE,
        allVersions=everything,
    )
    with lake(uri) as client:
        pages = list(with_progress(_pages(client, request), "reading files"))
    found = [each for page in pages for each in page.files or ()]
    if page_file is not None:
        selection = [f"as of the completion of {as_of}"] if as_of is not None else []
        selection += [f"partitions where {filter}"] if filter is not None else []
        selection += ["uncommitted partitions, too"] if uncommitted else []
        now = time.time_ns() // 1_000_000
        write(page_file, snapshot_page(".".join(table), found, pages[0].position or 0, now, selection))
        return
    if as_json:
        print_json(
            [
                {
                    "partition": each.partition,
                    "file_group": each.fileGroup,
                    "slice": each.slice,
                    "kind": each.kind,
                    "path": each.path,
                    "size": each.size,
                    "rows": each.rows,
                    "columns": each.columns,
                    "added_at": each.addedAt,
                    "removed_at": each.removedAt,
                }
                for each in found
            ]
        )
        return
    slices = groupby(found, key=lambda each: (each.partition, each.fileGroup, each.slice))
    rows = [(*key, *_summed(list(files))) for key, files in slices]
    if rows:
        print_table(("partition", "file group", "slice", "base files", "log files", "bytes", "rows"), rows)
    click.echo(f"{counted(len(found), 'file')}, {sum(each.size or 0 for each in found):,} bytes", err=True)


def _pages(client: "ThriftClient", request: "SnapshotRequest") -> "Iterator[SnapshotResponse]":
    while True:
        page = client.call("lake_get_snapshot", request)
        yield page
        if page.nextPage is None:
            return
        request = request.replace(after=page.nextPage)


def _summed(files: "list[DataFile]") -> tuple[int, int, int, int]:
    bases = [each for each in files if each.kind == "base"]
    sizes, rows = sum(each.size or 0 for each in files), sum(each.rows or 0 for each in bases)
    return len(bases), len(files) - len(bases), sizes, rows
