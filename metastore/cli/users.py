"""`metastore users`: the file of users with hashed passwords."""

import os
from pathlib import Path

import click

from lake.cli.group import Group
from lake.cli.output import json_option, print_json, print_list
from lake.protocol.errors import UsageError, UserError

_FILE = click.argument("file", type=click.Path(path_type=Path, dir_okay=False))


@click.group(cls=Group)
def users() -> None:
    """Add, remove and list users with passwords.

    The file is the server's setting `password_file`. It holds hashes of passwords, and the groups of the users. Servers
    take changes at once; copy the file to each of them.
    """


@users.command()
@_FILE
@click.argument("name")
@click.option("--group", "groups", multiple=True, metavar="NAME", help="A group of the user; may be given repeatedly.")
@click.option("--password-file", type=click.Path(path_type=Path), help="Read the password from this file.")
@click.option("--allow-weak", is_flag=True, help="Take a password that is easy to guess: for tests and demos.")
def add(file: Path, name: str, groups: tuple[str, ...], password_file: Path | None, allow_weak: bool) -> None:
    """Add a user, or change password and groups.

    Another password ends the user's open connections and delegation tokens.

    The password comes from --password-file, from METASTORE_PASSWORD, or from a prompt. It needs 12 characters, 5
    different ones, and more than a common word, the user's name or a row of characters.

    \b
    Example:
      metastore users add users.txt ann --group analysts
    """
    from metastore.server.credentials import password_file as passwords

    password = _password(password_file)
    try:
        new = passwords.add(file, name, password, groups, allow_weak=allow_weak)
    except ValueError as error:
        raise UsageError(str(error)) from None
    click.echo(f"{name} {'added to' if new else 'changed in'} {file}")


@users.command()
@_FILE
@click.argument("name")
def remove(file: Path, name: str) -> None:
    """Remove a user, and end the user's tokens and connections.

    New logins and delegation tokens are refused at once. Open connections end within seconds.

    \b
    Example:
      metastore users remove users.txt ann
    """
    from metastore.server.credentials import password_file as passwords

    if not file.exists() or not passwords.remove(file, name):
        raise UserError(f"{file} has no user {name}")
    click.echo(f"{name} removed from {file}")


@users.command("list")
@_FILE
@json_option
def list_users(file: Path, as_json: bool) -> None:
    """List the users and their groups.

    \b
    Example:
      metastore users list users.txt
    """
    from metastore.server.credentials import password_file as passwords

    found = sorted(passwords.read(file).values(), key=lambda user: user.name)
    if as_json:
        print_json([{"name": user.name, "groups": user.groups} for user in found])
    else:
        print_list("users", ("user", "groups"), [(user.name, ", ".join(user.groups)) for user in found])


def _password(file: Path | None) -> str:
    if file is not None:
        try:
            return file.read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise UserError(f"can't read {file}: {error}") from None
    if given := os.environ.get("METASTORE_PASSWORD"):
        return given
    return str(click.prompt("Password", hide_input=True, confirmation_prompt=True))
