"""`metastore tokens`: delegation tokens that the metastore has issued."""

import click

from lake.cli.connection import uri_option
from lake.cli.group import Group
from lake.cli.lake import lake
from lake.cli.moments import iso, shown
from lake.cli.output import json_option, print_json, print_list
from lake.protocol.errors import UsageError, UserError

_OWNER = click.option("--owner", metavar="NAME", help="Those of this user; for administrators.")
_EVERYBODY = click.option("--all", "everybody", is_flag=True, help="Those of all users; for administrators.")


@click.group(cls=Group)
def tokens() -> None:
    """List and cancel delegation tokens.

    Your own tokens. Administrators see all tokens.
    """


@tokens.command("list")
@_OWNER
@_EVERYBODY
@uri_option
@json_option
def list_tokens(owner: str | None, everybody: bool, uri: str, as_json: bool) -> None:
    """List tokens that were not cancelled.

    They are your own, unless --owner or --all says otherwise.

    \b
    Example:
      metastore tokens list --owner ann
    """
    from lake.protocol.lake import ListTokensRequest

    _check_whose(owner, everybody)
    with lake(uri) as client:
        found = client.call("lake_list_tokens", ListTokensRequest(owner=owner, everybody=everybody))
    if as_json:
        print_json(
            [
                {
                    "id": each.id,
                    "owner": each.owner,
                    "renewer": each.renewer,
                    "real_user": each.realUser,
                    "issued": iso(each.issuedAt),
                    "valid_until": iso(each.validUntil),
                    "renewable_until": iso(each.renewableUntil),
                    "valid": each.valid,
                }
                for each in found
            ]
        )
        return
    print_list(
        "token",
        ("id", "owner", "renewer", "fetched by", "issued", "valid until", "valid"),
        [
            (
                str(each.id),
                each.owner,
                each.renewer or "",
                each.realUser or each.owner,
                shown(each.issuedAt) or "",
                shown(each.validUntil) or "",
                "yes" if each.valid else "no",
            )
            for each in found
        ],
    )


@tokens.command()
@click.argument("ids", nargs=-1, type=click.IntRange(min=1), metavar="[ID]...")
@_OWNER
@_EVERYBODY
@uri_option
def cancel(ids: tuple[int, ...], owner: str | None, everybody: bool, uri: str) -> None:
    """Cancel delegation tokens.

    Name their ids, or with --owner and without ids all tokens of that user.

    Connections that logged in with them end within seconds. Administrators can cancel all tokens.

    \b
    Examples:
      metastore tokens cancel 17
      metastore tokens cancel --owner ann
    """
    from lake.protocol.lake import CancelTokensRequest

    _check_whose(owner, everybody)
    if not ids and owner is None:
        raise UsageError("say which tokens: by their ids, or all of a user by --owner")
    with lake(uri) as client:
        wanted = list(ids) or None
        request = CancelTokensRequest(tokens=wanted, owner=owner, everybody=everybody)
        ended = client.call("lake_cancel_tokens", request)
        missing = [each for each in ids if each not in ended]
        if missing and owner is None and not everybody:  # only administrators may omit the owner
            ended += client.call("lake_cancel_tokens", CancelTokensRequest(tokens=missing, everybody=True))
            missing = [each for each in ids if each not in ended]
    if ended or not ids:
        click.echo(f"{len(ended)} cancelled" + (f": {', '.join(map(str, ended))}" if ended else ""))
    if missing:
        raise UserError(f"there is no token {', '.join(map(str, missing))}")


def _check_whose(owner: str | None, everybody: bool) -> None:
    if owner is not None and everybody:
        raise UsageError("--owner and --all exclude one another")
