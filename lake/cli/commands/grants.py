"""`metastore grants`: who has which privileges."""

from typing import TYPE_CHECKING

import click

from lake.cli.connection import uri_option
from lake.cli.group import Group
from lake.cli.lake import lake
from lake.cli.output import json_option, print_json, print_list
from lake.cli.principals import principal_named, shown_principal
from lake.protocol.errors import UsageError

if TYPE_CHECKING:
    from lake.protocol.hive import HiveObjectPrivilege, HiveObjectRef

EVERYTHING = "everything"

_OBJECT = "DATABASE, DATABASE.TABLE, or everything"


@click.group(cls=Group)
def grants() -> None:
    """Show, give and take privileges."""


@grants.command("list")
@click.option("--on", "place", metavar="OBJECT", help=f"Only those on an object: {_OBJECT}.")
@click.option("--of", "principal", metavar="PRINCIPAL", help="Only those of user:NAME, group:NAME or role:NAME.")
@uri_option
@json_option
def list_grants(place: str | None, principal: str | None, uri: str, as_json: bool) -> None:
    """List privileges.

    \b
    Examples:
      metastore grants list --on shop.orders
      metastore grants list --of role:analysts --json
    """
    from lake.protocol.hive import HiveObjectRef

    name, kind = (None, None) if principal is None else principal_named(principal)
    ref = HiveObjectRef() if place is None else _object(place)
    with lake(uri) as client:
        found = client.call("list_privileges", name, kind, ref)
    rows = [_row(each) for each in found]
    if as_json:
        keys = ("object", "principal", "privilege", "grant_option", "grantor")
        print_json([dict(zip(keys, row, strict=True)) for row in rows])
        return
    columns = ("object", "principal", "privilege", "grant option", "granted by")
    print_list(
        "privilege", columns, [(*row[:3], "yes" if row[3] else "", "" if row[4] is None else row[4]) for row in rows]
    )


@grants.command()
@click.argument("privileges")
@click.option("--on", "place", metavar="OBJECT", required=True, help=f"{_OBJECT}.")
@click.option("--to", "principal", metavar="PRINCIPAL", required=True, help="user:NAME, group:NAME or role:NAME.")
@click.option("--grant-option", is_flag=True, help="They may give the privileges to others.")
@uri_option
def grant(privileges: str, place: str, principal: str, grant_option: bool, uri: str) -> None:
    """Give PRIVILEGES, several with commas between.

    \b
    Examples:
      metastore grants grant SELECT --on shop --to role:analysts
      metastore grants grant INSERT,COMMIT --on shop.orders --to user:loader
    """
    bag = _bag(privileges, place, principal, grant_option=grant_option)
    with lake(uri) as client:
        client.call("grant_privileges", bag)


@grants.command()
@click.argument("privileges")
@click.option("--on", "place", metavar="OBJECT", required=True, help=f"{_OBJECT}.")
@click.option("--from", "principal", metavar="PRINCIPAL", required=True, help="user:NAME, group:NAME or role:NAME.")
@uri_option
def revoke(privileges: str, place: str, principal: str, uri: str) -> None:
    """Take PRIVILEGES back, several with commas between.

    \b
    Example:
      metastore grants revoke SELECT --on shop --from role:analysts
    """
    bag = _bag(privileges, place, principal)
    with lake(uri) as client:
        client.call("revoke_privileges", bag)


def _bag(privileges: str, place: str, principal: str, *, grant_option: bool = False) -> object:
    from lake.protocol.hive import HiveObjectPrivilege, PrincipalType, PrivilegeBag, PrivilegeGrantInfo
    from lake.protocol.privileges import privilege_of

    name, kind = principal_named(principal)
    wanted = [each.strip().upper().replace(" ", "_") for each in privileges.split(",") if each.strip()]
    for each in wanted:
        if not privilege_of(each):
            raise UsageError(f"{each} is no privilege; docs/rights.md lists them")
    infos = [PrivilegeGrantInfo(each, 0, None, PrincipalType.USER, grant_option) for each in wanted]
    return PrivilegeBag([HiveObjectPrivilege(_object(place), name, kind, info) for info in infos])


def _object(place: str) -> "HiveObjectRef":
    from lake.protocol.hive import HiveObjectRef, HiveObjectType

    if place == EVERYTHING:
        return HiveObjectRef(HiveObjectType.GLOBAL)
    database, dot, table = place.partition(".")
    if not database or (dot and not table):
        raise UsageError(f"{place!r} is no object: expected {_OBJECT}")
    if not table:
        return HiveObjectRef(HiveObjectType.DATABASE, database)
    return HiveObjectRef(HiveObjectType.TABLE, database, table)


def _row(privilege: "HiveObjectPrivilege") -> tuple[str, str, str | None, bool, str | None]:
    ref, info = privilege.hiveObject, privilege.grantInfo
    assert ref is not None and info is not None
    parts = [ref.dbName, ref.objectName, "/".join(ref.partValues or ()), ref.columnName]
    place = ".".join(part for part in parts if part) or EVERYTHING
    who = shown_principal(privilege.principalName, privilege.principalType)
    return place, who, info.privilege, bool(info.grantOption), info.grantor
