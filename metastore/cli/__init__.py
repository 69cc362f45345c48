"""The `metastore` command.

Each subcommand is a module of its own, imported when it is asked for: `metastore --help` needs none of them.
"""

import importlib
from typing import Any, NamedTuple

import click

from metastore import __version__
from metastore.errors import UserError


class _Subcommand(NamedTuple):
    place: str  # module:attribute
    summary: str


_SUBCOMMANDS = {
    "serve": _Subcommand("metastore.cli.serve:serve", "Run the metastore server."),
    "status": _Subcommand("metastore.cli.status:status", "Show what a running server says about itself."),
    "partitions": _Subcommand(
        "metastore.cli.partitions:partitions", "See which partitions are ready, commit and reopen them."
    ),
    "watermark": _Subcommand("metastore.cli.watermark:watermark", "See how far a table has come in event time."),
    "timeline": _Subcommand("metastore.cli.timeline:timeline", "See what has happened to a lake table."),
    "snapshot": _Subcommand("metastore.cli.snapshot:snapshot", "See which files make up a lake table."),
    "events": _Subcommand("metastore.cli.events:events", "Follow changes as they are committed."),
    "spark-conf": _Subcommand("metastore.cli.spark:spark_conf", "Print the settings that Spark needs for a metastore."),
    "dispatch": _Subcommand("metastore.cli.dispatch:dispatch", "Deliver events to streams, webhooks and listeners."),
    "check": _Subcommand("metastore.cli.check:check", "Find partitions whose files are gone."),
    "db": _Subcommand("metastore.cli.db:db", "Look after the database's schema."),
    "settings": _Subcommand("metastore.cli.settings:settings", "Show the settings and where they come from."),
}


class _LazyGroup(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_SUBCOMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _SUBCOMMANDS:
            return None
        module, attribute = _SUBCOMMANDS[cmd_name].place.split(":")
        command = getattr(importlib.import_module(module), attribute)
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, subcommand.summary) for name, subcommand in _SUBCOMMANDS.items()])

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except UserError as error:
            raise click.ClickException(str(error)) from None


@click.command(cls=_LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="metastore")
def main() -> None:
    """A Hive-Metastore-compatible metastore for lake tables.

    \b
    Examples:
      metastore serve                       on port 9083, with a database of its own
      metastore serve --database-url postgresql://user:secret@db/metastore
      metastore status --uri thrift://metastore.example:9083
    """
