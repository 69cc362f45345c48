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
    place: str  # module:attribute
    summary: str


_SERVER = ServerCommands(
    {
        "serve": "Run the metastore server.",
        "outlets": "Deliver events to streams, webhooks and listeners.",
        "hudi": "Import Hudi tables.",
        "users": "Add, remove and list users with passwords.",
        "tls": "Make a certificate for a first try of TLS.",
        "db": "Upgrade the database's schema; declare a restore.",
        "settings": "Show the settings, and where each comes from.",
    }
)

_SUBCOMMANDS = {
    "status": _Subcommand("lake.cli.commands.status:status", "Show the state of a running server."),
    "tables": _Subcommand("lake.cli.commands.tables:tables", "List tables, or show one."),
    "partitions": _Subcommand("lake.cli.commands.partitions:partitions", "List, commit, reopen and check partitions."),
    "watermark": _Subcommand("lake.cli.commands.watermark:watermark", "Show how far a table has come in event time."),
    "timeline": _Subcommand(
        "lake.cli.commands.timeline:timeline", "Show a lake table's instants, undo them, clean up."
    ),
    "snapshot": _Subcommand("lake.cli.commands.snapshot:snapshot", "Show which files make up a lake table."),
    "events": _Subcommand("lake.cli.commands.events:events", "Follow changes; manage groups and dead letters."),
    "capture": _Subcommand("lake.cli.commands.capture:capture", "Capture the changes of a database into a raw table."),
    "pipeline": _Subcommand("lake.cli.commands.pipeline:pipeline", "Compute layers of tables from what has changed."),
    "grants": _Subcommand("lake.cli.commands.grants:grants", "Show, give and take privileges."),
    "tokens": _Subcommand("lake.cli.commands.tokens:tokens", "List and cancel delegation tokens."),
    "roles": _Subcommand("lake.cli.commands.roles:roles", "List, create and drop roles and their members."),
    "table-services": _Subcommand(
        "lake.cli.commands.table_services:table_services", "Compact, cluster and clean tables; see why and when."
    ),
    "spark-conf": _Subcommand(
        "lake.cli.commands.spark:spark_conf", "Print Spark's settings as in spark-defaults.conf."
    ),
    "completion": _Subcommand("lake.cli.commands.completion:completion", "Print the completion script for a shell."),
}


_ORDER = (
    "serve",
    "status",
    "tables",
    "partitions",
    "watermark",
    "timeline",
    "snapshot",
    "events",
    "outlets",
    "capture",
    "pipeline",
    "grants",
    "roles",
    "tokens",
    "table-services",
    "hudi",
    "spark-conf",
    "users",
    "tls",
    "db",
    "settings",
    "completion",
)


class _LazyGroup(Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_ORDER)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _SUBCOMMANDS:
            return _SERVER.command(cmd_name)
        module, attribute = _SUBCOMMANDS[cmd_name].place.split(":")
        command = getattr(importlib.import_module(module), attribute)
        if not isinstance(command, click.Command):
            raise TypeError(f"{_SUBCOMMANDS[cmd_name].place} is no command")
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        summaries = {name: subcommand.summary for name, subcommand in _SUBCOMMANDS.items()} | _SERVER.summaries
        with formatter.section("Commands"):
            formatter.write_dl([(name, summaries[name]) for name in _ORDER])


@click.command(cls=_LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="metastore")
def main() -> None:
    """A Hive-Metastore-compatible metastore for lake tables.

    \b
    Examples:
      metastore serve                                  on port 9083, with a database of its own
      METASTORE_DATABASE_URL=$URL metastore serve      on a Postgres that you run
      metastore status --uri thrift://metastore.example:9083
    """
