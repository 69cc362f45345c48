"""`metastore migrate cut-over` and `roll-back`: where a database lives."""

import functools
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lake.cli.output import print_json
from lake.protocol.errors import UsageError

if TYPE_CHECKING:
    from metastore.migration.followed import Followed
    from metastore.migration.objects import DatabaseKey
    from metastore.migration.switching.cutting_over import Moved
    from metastore.migration.switching.gate import Gate
    from metastore.migration.thrift_source import ThriftSource


class Way:
    """How clients reach a database: what the options about it say."""

    def __init__(
        self,
        front: Path | None,
        front_uri: tuple[str, ...],
        old_backend: str | None,
        new_backend: str | None,
        frozen_by_hand: bool,
    ) -> None:
        """Raises UsageError for options that don't go together."""
        if (front is None) == (not frozen_by_hand):
            raise UsageError("give either --front, with --front-uri, or --frozen-by-hand")
        if front is not None and not front_uri:
            raise UsageError("--front needs --front-uri: the address of each front that has this file")
        self._front = front
        self._front_uri = front_uri
        self._old_backend = old_backend
        self._new_backend = new_backend

    def address(self, here: "ThriftSource") -> str:
        """Where clients find the databases that live here."""
        return self._front_uri[0] if self._front_uri else here.uri

    def gates(self, source: str, here: "ThriftSource", followed: "Followed", key: "DatabaseKey") -> "tuple[Gate, Gate]":
        """The way over, and the way back. Raises UserError."""
        from lake.protocol.connection.login import Login
        from metastore.migration.switching.front_file import FrontFile, Site
        from metastore.migration.switching.gate import FrontGate, HandGate

        own = followed.state.renaming.database_key(key)
        if self._front is None:
            return HandGate(str(own), here.uri), HandGate(str(key), source)
        file = FrontFile(self._front)
        old = Site(self._old_backend or file.backend_at(source), key)
        new = Site(self._new_backend or file.backend_at(here.uri), own)
        front = file.common_name(key, old, new)
        login = Login.from_environment()
        return (
            FrontGate(file, front, old, new, self._front_uri, login),
            FrontGate(file, front, new, old, self._front_uri, login),
        )


def way_options(command: Callable[..., None]) -> Callable[..., None]:
    """Gives a command the options of `Way`, as its argument `way`, and `--databases`."""

    @functools.wraps(command)
    def with_way(
        front: Path | None,
        front_uri: tuple[str, ...],
        old_backend: str | None,
        new_backend: str | None,
        frozen_by_hand: bool,
        **others: Any,
    ) -> None:
        command(way=Way(front, front_uri, old_backend, new_backend, frozen_by_hand), **others)

    options = (
        click.option("--databases", metavar="PATTERNS", help="As for the import, if several have brought it."),
        click.option(
            "--front", type=click.Path(path_type=Path, dir_okay=False), help="The file of the front before both."
        ),
        click.option("--front-uri", multiple=True, metavar="URI", help="The address of a front that has this file."),
        click.option("--old-backend", metavar="NAME", help="SOURCE in the front's file; by default by its address."),
        click.option("--new-backend", metavar="NAME", help="The new one in it; by default by its address."),
        click.option("--frozen-by-hand", is_flag=True, help="You have stopped all writers, and send clients yourself."),
    )
    for option in reversed(options):
        with_way = option(with_way)
    return with_way


def say(line: str) -> None:
    """To the operator."""
    click.echo(line, err=True)


def show(moved: "list[Moved]", to: str, *, as_json: bool) -> bool:
    """Prints what was moved. Returns whether all is well."""
    left = "there" if to == "here" else "here"
    if as_json:
        print_json([each.plain() for each in moved])
    for each in moved:
        if not as_json:
            click.echo(
                f"{each.database} lives {to}: {each.compared:,} objects are the same; frozen for {each.frozen:.1f} s"
            )
            for note in each.notes[:20]:
                click.echo(f"note: {note.kind} {note.name}: {note.text}")
        if each.late:
            say(
                f"{each.database}: {each.late:,} entries in the log {left} have come since: somebody has written it"
                f" {left} past the front, or a request was under way for long. Compare: metastore migrate verify"
            )
    return not any(each.late for each in moved)
