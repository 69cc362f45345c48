"""`metastore schema-changes`: how captured tables have changed, and what is held."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from lake.cli.connection import connect, uri_option
from lake.cli.group import Group
from lake.cli.lake import table_parts
from lake.cli.output import json_option, print_json, print_list
from lake.protocol.errors import UserError

if TYPE_CHECKING:
    from lake.capture.schema_changes.agreed import Decided
    from lake.capture.schema_changes.policy import Policy


@click.group(cls=Group)
def schema_changes() -> None:
    """List how captured tables have changed, and what is held.

    \b
    Example:
      metastore schema-changes list --into raw.shop --policy shop/schema-changes.yml
    """


def policy_option(command: click.decorators.FC) -> click.decorators.FC:
    """Give a command `--policy`; it gets `policy`, a path or None."""
    return click.option(
        "--policy",
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        metavar="FILE",
        help="What becomes of changes: a schema-changes.yml. [default: the policy without rules]",
    )(command)


def policy_of(path: Path | None) -> "Policy":
    """The policy in a file; the default one without. Raises UserError."""
    try:
        from lake.capture.schema_changes.policy import Policy, read_policy
    except ModuleNotFoundError as error:
        raise UserError(f"{error.name} is missing: pip install 'lake-metastore-client[capture]'") from None
    return Policy() if path is None else read_policy(path)


def changes_of_tables(uri: str, into: str, tables: tuple[str, ...], policy: "Policy") -> "list[Decided]":
    """The changes of some tables in a raw table, none for all, and what a policy says of them. Raises UserError."""
    from lake.capture.any_state import any_state
    from lake.capture.raw_table import RawTable
    from lake.capture.schema_changes.agreed import decided
    from lake.capture.schema_changes.history import changes_of
    from lake.protocol.hive import NoSuchObjectException
    from lake.tables.lake import LakeClient

    with connect(uri), LakeClient(uri) as client:
        try:
            state = RawTable(client, into).latest(any_state)
        except NoSuchObjectException:
            state = None
        if state is None:
            raise UserError(f"nothing was captured into {into}")
        if unknown := [each for each in tables if each not in state.tables]:
            raise UserError(f"{into} has no table {unknown[0]}")
        lake = client.table(into)
        return [one for each in tables or sorted(state.tables) for one in decided(changes_of(lake, each), policy)]


@schema_changes.command("list")
@click.option("--into", required=True, metavar="DATABASE.TABLE", help="The raw table.")
@uri_option
@click.option("--table", "tables", multiple=True, metavar="SCHEMA.TABLE", help="These only. [default: all]")
@policy_option
@click.option("--all", "shows_all", is_flag=True, help="Also those that are applied or ignored.")
@json_option
def list_changes(
    into: str, uri: str, tables: tuple[str, ...], policy: Path | None, shows_all: bool, as_json: bool
) -> None:
    """List the changes of captured tables that are held.

    \b
    Examples:
      metastore schema-changes list --into raw.shop
      metastore schema-changes list --into raw.shop --policy shop/schema-changes.yml --all --json
    """
    rules = policy_of(policy)
    found = changes_of_tables(uri, ".".join(table_parts(into)), tables, rules)
    listed = [
        {
            "table": change.table,
            "at": str(change.at),
            "since": change.since.isoformat(),
            "kind": change.difference.kind.value,
            "change": change.difference.said,
            "action": decision.action.value,
            "why": decision.why,
            "statement": change.statement,
        }
        for change, decision in found
        if shows_all or decision.action == "hold"
    ]
    if as_json:
        print_json({"changes": listed})
        return
    columns = ("table", "at", "since", "kind", "change", "action", "why")
    print_list("change", columns, [[each[name] for name in columns] for each in listed])
