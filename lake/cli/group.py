"""Groups of subcommands: a name that is none gets a suggestion. Commands that are in the server's package."""

import difflib
from collections.abc import Mapping
from importlib.metadata import entry_points
from typing import Any

import click

from lake import __version__
from lake.protocol.errors import UsageError, UserError

SERVER_PACKAGE = "lake-metastore"
"""The distribution that has the server and its commands."""

ENTRY_POINTS = "metastore.commands"
"""The entry points by which the server's package announces its commands, by their full names: `partitions check`."""


class ServerCommands:
    """Commands that the server's package has: they are imported when they are run."""

    def __init__(self, summaries: Mapping[str, str], group: str = "") -> None:
        """`summaries`: what each command does, in a line. `group`: the group that they belong to, if any."""
        self.summaries = dict(summaries)
        self._group = group

    def command(self, name: str) -> click.Command | None:
        """The command of this name; None if it is none of the server's.

        Without the server's package it is a command that says which package to install.
        """
        if name not in self.summaries:
            return None
        full = f"{self._group} {name}".strip()
        for found in entry_points(group=ENTRY_POINTS, name=full):
            command = found.load()
            if not isinstance(command, click.Command):
                raise TypeError(f"the entry point {full} is no command")
            return command
        return _missing(name, full, self.summaries[name])


def _missing(name: str, full: str, summary: str) -> click.Command:
    @click.command(name, help=summary, context_settings={"ignore_unknown_options": True, "allow_extra_args": True})
    def missing() -> None:
        raise click.ClickException(
            f"`metastore {full}` needs the server's package: pip install {SERVER_PACKAGE}=={__version__}"
        )

    return missing


class Group(click.Group):
    """A group that suggests the nearest command.

    What its commands refuse is one line and an exit code: 1, or 2 where the command line itself is wrong.
    """

    def __init__(self, *args: Any, server: ServerCommands | None = None, **kwargs: Any) -> None:
        """`server`: those of its commands that the server's package has."""
        super().__init__(*args, **kwargs)
        self._server = server or ServerCommands({})

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted([*super().list_commands(ctx), *self._server.summaries])

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        return super().get_command(ctx, cmd_name) or self._server.command(cmd_name)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if self.get_command(ctx, name) is None and not name.startswith("-"):
            near = difflib.get_close_matches(name, self.list_commands(ctx), n=1, cutoff=0.5)
            suggestion = f" Did you mean {near[0]!r}?" if near else ""
            raise click.UsageError(f"there is no command {name!r}.{suggestion}", ctx)
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except UsageError as error:
            raise click.UsageError(str(error)) from None
        except UserError as error:
            raise click.ClickException(str(error)) from None
