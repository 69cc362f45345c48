"""Groups of subcommands: a name that is none gets a suggestion."""

import difflib
from typing import Any

import click

from lake.protocol.errors import UsageError, UserError


class Group(click.Group):
    """A group that suggests the nearest command.

    What its commands refuse is one line and an exit code: 1, or 2 where the command line itself is wrong.
    """

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
