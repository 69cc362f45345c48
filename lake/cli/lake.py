"""What commands about a table share: its name as an argument, connections, the server's refusals as messages."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import click

from lake.cli.connection import connect
from lake.protocol.errors import UserError

if TYPE_CHECKING:
    from lake.protocol.connection.thrift_client import ThriftClient
    from lake.protocol.lake import PartitionState, TableReference
    from lake.tables.lake import LakeTable

Command = TypeVar("Command", bound=Callable[..., Any])

RETRY_SECONDS = 10.0
"""How long a call is repeated after its answer was lost."""

PAGE = 1000
"""Partitions in one request."""


def table_argument(command: Command) -> Command:
    """Give a command the argument DATABASE.TABLE; it gets `table`, its parts."""
    return click.argument("table", metavar="DATABASE.TABLE", callback=_parts)(command)


def _parts(ctx: click.Context, parameter: click.Parameter, value: str) -> tuple[str, ...]:
    return table_parts(value)


def table_parts(value: str) -> tuple[str, ...]:
    """The parts of a table's name. Raises click.BadParameter unless there are two or three."""
    parts = tuple(value.split("."))
    if len(parts) not in (2, 3) or not all(part.strip() for part in parts):
        raise click.BadParameter(f"{value!r} is not of the form DATABASE.TABLE or CATALOG.DATABASE.TABLE")
    return parts


def reference(table: tuple[str, ...]) -> "TableReference":
    """The parts of a table's name as calls take them."""
    from lake.protocol.lake import TableReference

    *catalog, database, name = table
    return TableReference(catalog=catalog[0] if catalog else None, database=database, table=name)


@contextmanager
def lake(uri: str) -> "Iterator[ThriftClient]":
    """A connection to the server at `uri`. What it refuses in the block is a UserError with its own words."""
    with connect(uri) as client, _as_user_errors():
        yield client


@contextmanager
def lake_table(uri: str, table: tuple[str, ...]) -> "Iterator[LakeTable]":
    """The typed client of one table, at the server at `uri`. Raises as `lake`."""
    from thrift.Thrift import TException

    from lake.protocol.struct import ExceptionStruct
    from lake.tables.lake import LakeClient

    with connect(uri):  # says at once if nobody answers
        pass

    with LakeClient(uri, retry_seconds=RETRY_SECONDS) as client, _as_user_errors():
        try:
            yield client.table(reference(table))
        except (TException, OSError) as error:
            if isinstance(error, ExceptionStruct):
                raise
            raise UserError(f"{uri}: {error}") from None


@contextmanager
def _as_user_errors() -> Iterator[None]:
    from lake.protocol.hive import InvalidOperationException, MetaException, NoSuchObjectException
    from lake.protocol.lake import InstantConflict, SnapshotGone, TableReplaced

    refused = (NoSuchObjectException, InvalidOperationException, MetaException)
    try:
        yield
    except (*refused, InstantConflict, SnapshotGone, TableReplaced) as error:
        raise UserError(" ".join(str(error).split())) from None


def partition_states(
    client: "ThriftClient",
    table: tuple[str, ...],
    filter: str | None = None,
    after: str | None = None,
    wanted: int | None = None,
) -> "Iterator[PartitionState]":
    """A table's partitions by name, uncommitted ones too. Reads pages of at most `wanted` partitions."""
    from lake.protocol.lake import ListPartitionsRequest

    size = min(PAGE, wanted or PAGE)
    while True:
        request = ListPartitionsRequest(reference(table), filter, True, size, after)
        page = client.call("lake_list_partitions", request).partitions
        yield from page
        if len(page) < size:
            return
        after = page[-1].name
