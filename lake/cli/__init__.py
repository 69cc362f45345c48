"""The `metastore` command.

Each subcommand is a module of its own, imported when it is run. `metastore --help` imports none of them. The server's
commands are in the server's package, which announces them as entry points.
"""

import importlib
from typing import NamedTuple

import click

from lake import __version__
from lake.cli.group import Group, ServerCommands


class _Subcommand(NamedTuple):
    summary: str
    module: str | None = None  # in lake.cli.commands; None for a command in the server's package


_SUBCOMMANDS = {
    "serve": _Subcommand("Run the metastore server."),
    "federate": _Subcommand("Run one interface over several metastores."),
    "migrate": _Subcommand("Come over from another metastore."),
    "status": _Subcommand("Show the state of a running server.", "status"),
    "tables": _Subcommand("List tables, or show one.", "tables"),
    "partitions": _Subcommand("List, commit, reopen and check partitions.", "partitions"),
    "check": _Subcommand("List tables with rows past their timelines."),
    "watermark": _Subcommand("Show how far a table has come in event time.", "watermark"),
    "timeline": _Subcommand("Show a lake table's instants, undo them, clean up.", "timeline"),
    "snapshot": _Subcommand("Show which files make up a lake table.", "snapshot"),
    "events": _Subcommand("Follow changes; manage groups and dead letters.", "events"),
    "outlets": _Subcommand("Deliver events to streams, webhooks and listeners."),
    "capture": _Subcommand("Capture the changes of a database into a raw table.", "capture"),
    "schema-changes": _Subcommand("List how captured tables have changed, and what is held.", "schema_changes"),
    "pipeline": _Subcommand("Compute layers of tables from what has changed.", "pipeline"),
    "grants": _Subcommand("Show, give and take privileges.", "grants"),
    "roles": _Subcommand("List, create and drop roles and their members.", "roles"),
    "tokens": _Subcommand("List and cancel delegation tokens.", "tokens"),
    "table-services": _Subcommand("Compact, cluster and clean tables; see why and when.", "table_services"),
    "hudi": _Subcommand("Import Hudi tables."),
    "spark-conf": _Subcommand("Print Spark's settings as in spark-defaults.conf.", "spark"),
    "users": _Subcommand("Add, remove and list users with passwords."),
    "tls": _Subcommand("Make a certificate for a first try of TLS."),
    "db": _Subcommand("Upgrade the database's schema; declare a restore."),
    "settings": _Subcommand("Show the settings, and where each comes from."),
    "completion": _Subcommand("Print the completion script for a shell.", "completion"),
}
"""The subcommands in the order of `metastore --help`."""

_SERVER = ServerCommands({name: each.summary for name, each in _SUBCOMMANDS.items() if each.module is None})


class _LazyGroup(Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_SUBCOMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        subcommand = _SUBCOMMANDS.get(cmd_name)
        if subcommand is None or subcommand.module is None:
            return super().get_command(ctx, cmd_name)
        module = importlib.import_module(f"lake.cli.commands.{subcommand.module}")
        command = getattr(module, cmd_name.replace("-", "_"))
        if not isinstance(command, click.Command):
            raise TypeError(f"{cmd_name} in {module.__name__} is no command")
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, each.summary) for name, each in _SUBCOMMANDS.items()])


@click.command(cls=_LazyGroup, server=_SERVER, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="metastore")
def main() -> None:
    """A Hive-Metastore-compatible metastore for lake tables.

    \b
    Examples:
      metastore serve                                  on port 9083, with a database of its own
      METASTORE_DATABASE_URL=$URL metastore serve      on a Postgres that you run
      metastore status --uri thrift://metastore.example:9083
    """
