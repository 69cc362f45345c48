"""`metastore roles`: which roles there are, and who has them."""

import click

from lake.cli.connection import uri_option
from lake.cli.group import Group
from lake.cli.lake import lake
from lake.cli.output import json_option, print_json, print_list
from lake.cli.principals import principal_named, shown_principal


@click.group(cls=Group)
def roles() -> None:
    """List, create and drop roles and their members."""


@roles.command("list")
@uri_option
@json_option
def list_roles(uri: str, as_json: bool) -> None:
    """List roles.

    With an authorization, those that you have; administrators see all.

    \b
    Example:
      metastore roles list --json
    """
    with lake(uri) as client:
        found = client.call("get_role_names")
    if as_json:
        print_json(found)
        return
    print_list("role", ("role",), [(name,) for name in found])


@roles.command()
@click.argument("name")
@uri_option
@json_option
def members(name: str, uri: str, as_json: bool) -> None:
    """List the members of the role NAME.

    \b
    Example:
      metastore roles members analysts
    """
    from lake.protocol.hive import GetPrincipalsInRoleRequest

    with lake(uri) as client:
        found = client.call("get_principals_in_role", GetPrincipalsInRoleRequest(name)).principalGrants
    rows = [(shown_principal(each.principalName, each.principalType), bool(each.grantOption)) for each in found]
    if as_json:
        print_json([{"principal": who, "grant_option": option} for who, option in rows])
        return
    print_list("member", ("member", "grant option"), [(who, "yes" if option else "") for who, option in rows])


@roles.command()
@click.argument("name")
@uri_option
def create(name: str, uri: str) -> None:
    """Make a role.

    Only administrators may.

    \b
    Example:
      metastore roles create analysts
    """
    from lake.protocol.hive import Role

    with lake(uri) as client:
        client.call("create_role", Role(name))


@roles.command()
@click.argument("name")
@uri_option
def drop(name: str, uri: str) -> None:
    """Remove a role with its privileges and members.

    \b
    Example:
      metastore roles drop analysts
    """
    with lake(uri) as client:
        client.call("drop_role", name)


@roles.command()
@click.argument("name")
@click.option("--to", "principal", metavar="PRINCIPAL", required=True, help="user:NAME, group:NAME or role:NAME.")
@click.option("--grant-option", is_flag=True, help="They may give the role to others.")
@uri_option
def grant(name: str, principal: str, grant_option: bool, uri: str) -> None:
    """Give the role NAME to a user, a group or another role.

    \b
    Examples:
      metastore roles grant analysts --to user:alice
      metastore roles grant admin --to group:platform
    """
    who, kind = principal_named(principal)
    with lake(uri) as client:
        client.call("grant_role", name, who, kind, None, None, grant_option)


@roles.command()
@click.argument("name")
@click.option("--from", "principal", metavar="PRINCIPAL", required=True, help="user:NAME, group:NAME or role:NAME.")
@uri_option
def revoke(name: str, principal: str, uri: str) -> None:
    """Take the role NAME from a user, a group or another role.

    \b
    Example:
      metastore roles revoke analysts --from user:alice
    """
    who, kind = principal_named(principal)
    with lake(uri) as client:
        client.call("revoke_role", name, who, kind)
