"""`metastore schema-changes`: how captured tables have changed, and what is held."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lake.cli.connection import connect, uri_option
from lake.cli.group import Group
from lake.cli.lake import table_parts
from lake.cli.output import json_option, print_json, print_list
from lake.protocol.errors import UserError

if TYPE_CHECKING:
    from lake.capture.schema_changes.agreed import Decided
    from lake.capture.schema_changes.model import SchemaChange
    from lake.capture.schema_changes.policy import Policy
    from lake.tables.lake import LakeClient


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


def changes_of_tables(uri: str, into: str, tables: tuple[str, ...], policy: "Policy") -> "tuple[list[Decided], Policy]":
    """The changes of some tables in a raw table, none for all, and what a policy says of them, with what was decided.

    Raises UserError.
    """
    from lake.capture.schema_changes.agreed import decided
    from lake.capture.schema_changes.decisions import with_decisions
    from lake.capture.schema_changes.history import changes_of
    from lake.tables.lake import LakeClient

    with connect(uri), LakeClient(uri) as client:
        named = _tables(client, into, tables)
        lake = client.table(into)
        known = with_decisions(policy, lake)
        return [one for each in named for one in decided(changes_of(lake, each), known)], known


def _tables(client: "LakeClient", into: str, tables: tuple[str, ...]) -> list[str]:
    """The tables in a raw table, or those that are named of them. Raises UserError."""
    from lake.capture.any_state import any_state
    from lake.capture.raw_table import RawTable
    from lake.protocol.hive import NoSuchObjectException

    try:
        state = RawTable(client, into).latest(any_state)
    except NoSuchObjectException:
        state = None
    if state is None:
        raise UserError(f"nothing was captured into {into}")
    if unknown := [each for each in tables if each not in state.tables]:
        raise UserError(f"{into} has no table {unknown[0]}")
    return [*tables] or sorted(state.tables)


@schema_changes.command("list")
@click.option("--into", required=True, metavar="DATABASE.TABLE", help="The raw table.")
@uri_option
@click.option("--table", "tables", multiple=True, metavar="SCHEMA.TABLE", help="These only. [default: all]")
@policy_option
@click.option(
    "--project",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    metavar="DIR",
    help="Say which layers of this project have the column. [default: none]",
)
@click.option("--all", "shows_all", is_flag=True, help="Also those that are applied or ignored.")
@json_option
def list_changes(
    into: str,
    uri: str,
    tables: tuple[str, ...],
    policy: Path | None,
    project: Path | None,
    shows_all: bool,
    as_json: bool,
) -> None:
    """List changes that are held, and rows that may be stale.

    They are those of captured tables. With --project, the layers that name the column, or take it by `*`: their
    queries change together with the approval, or they are rewritten by --full-refresh.

    \b
    Examples:
      metastore schema-changes list --into raw.shop
      metastore schema-changes list --into raw.shop --project shop
      metastore schema-changes list --into raw.shop --policy shop/schema-changes.yml --all --json
    """
    rules = policy_of(policy)
    name = ".".join(table_parts(into))
    layers = None if project is None else _layers_concerned(project, name)
    found, known = changes_of_tables(uri, name, tables, rules)
    shown = [
        each for each in found if shows_all or each.decision.action == "hold" or each.change.difference.kind == "stale"
    ]
    _print(shown, known, layers, as_json=as_json)


def _layers_concerned(project: Path, into: str) -> "Callable[[SchemaChange], list[str]]":
    """As of `layers_concerned`. Raises UserError if the packages for layers are missing."""
    from lake.cli.captured_tables import layers_concerned

    try:
        return layers_concerned(project, into)
    except ModuleNotFoundError as error:
        raise UserError(f"{error.name} is missing: pip install 'lake-metastore-client[pipeline]'") from None


def _print(
    found: "list[Decided]",
    policy: "Policy",
    layers: "Callable[[SchemaChange], list[str]] | None" = None,
    *,
    as_json: bool,
) -> None:
    listed: list[dict[str, Any]] = [
        {
            "table": change.table,
            "at": str(change.at),
            "since": change.since.isoformat(),
            "kind": change.difference.kind.value,
            "change": change.difference.said,
            "amended": "; ".join(map(str, policy.amendments(change))) or None,
            "action": decision.action.value,
            "why": decision.why,
            "statement": change.statement,
            **({} if layers is None else {"layers": layers(change)}),
        }
        for change, decision in found
    ]
    if as_json:
        print_json({"changes": listed})
        return
    columns = ("table", "at", "since", "kind", "change", "action", "why", "amended")
    shown = [name for name in columns if name != "amended" or any(each["amended"] for each in listed)]
    if layers is not None:
        shown.append("layers")
    rows = [[", ".join(each[name]) if name == "layers" else each[name] for name in shown] for each in listed]
    print_list("change", shown, rows)


@schema_changes.command()
@click.option("--into", required=True, metavar="DATABASE.TABLE", help="The raw table.")
@uri_option
@click.option("--table", required=True, metavar="SCHEMA.TABLE", help="The table that has changed.")
@click.option("--at", required=True, metavar="POSITION", help="The position of the change, as `list` prints it.")
@policy_option
@json_option
def approve(into: str, uri: str, table: str, at: str, policy: Path | None, as_json: bool) -> None:
    """Let typed tables get a change.

    Who may alter the raw table may decide. Of several held changes of a table the first one is decided first.

    \b
    Example:
      metastore schema-changes approve --into raw.shop --table public.orders --at 1.28190544.1
    """
    _decide(into, uri, table, at, policy, "apply", as_json=as_json)


@schema_changes.command()
@click.option("--into", required=True, metavar="DATABASE.TABLE", help="The raw table.")
@uri_option
@click.option("--table", required=True, metavar="SCHEMA.TABLE", help="The table that has changed.")
@click.option("--at", required=True, metavar="POSITION", help="The position of the change, as `list` prints it.")
@policy_option
@json_option
def reject(into: str, uri: str, table: str, at: str, policy: Path | None, as_json: bool) -> None:
    """Let typed tables go without new columns.

    Who may alter the raw table may decide. Of several held changes of a table the first one is decided first.

    \b
    Example:
      metastore schema-changes reject --into raw.shop --table public.orders --at 1.28190544.1
    """
    _decide(into, uri, table, at, policy, "ignore", as_json=as_json)


@schema_changes.command()
@click.option("--into", required=True, metavar="DATABASE.TABLE", help="The raw table.")
@uri_option
@click.option("--table", required=True, metavar="SCHEMA.TABLE", help="The table that has changed.")
@click.option("--at", required=True, metavar="POSITION", help="The position of the change, as `list` prints it.")
@click.option("--as", "said", multiple=True, metavar="TEXT", help="'rename x=y', 'drop+add x' or 'cast x'.")
@policy_option
@json_option
def amend(into: str, uri: str, table: str, at: str, said: tuple[str, ...], policy: Path | None, as_json: bool) -> None:
    """Say which column is which, where a source doesn't tell.

    The change stays held. By what is said, the columns before it go on, or wait. `rename x=y`: y has the values of x.
    `drop+add x`: no column has them. `cast x`: x has them, in another type. Without --as what was said is taken back.

    \b
    Example:
      metastore schema-changes amend --into raw.shop --table public.orders --at 1.28190544.1 --as 'rename amount=total'
    """
    rules = policy_of(policy)
    from lake.capture.schema_changes.amendments import Amendment
    from lake.capture.schema_changes.decisions import amend, with_decisions
    from lake.tables.lake import LakeClient

    amendments = [*map(Amendment.parse, said)]
    name = ".".join(table_parts(into))
    with connect(uri), LakeClient(uri) as client:
        _tables(client, name, (table,))
        found = amend(client.table(name), rules, table, at, amendments)
        known = with_decisions(rules, client.table(name))
    _print(found, known, as_json=as_json)


def _decide(into: str, uri: str, table: str, at: str, policy: Path | None, action: str, *, as_json: bool) -> None:
    rules = policy_of(policy)
    from lake.capture.schema_changes.decisions import decide, with_decisions
    from lake.capture.schema_changes.model import Action
    from lake.tables.lake import LakeClient

    name = ".".join(table_parts(into))
    with connect(uri), LakeClient(uri) as client:
        _tables(client, name, (table,))
        found = decide(client.table(name), rules, table, at, Action(action))
        known = with_decisions(rules, client.table(name))
    _print(found, known, as_json=as_json)
