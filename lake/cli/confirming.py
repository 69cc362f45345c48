"""Options of commands that hide or delete: `--yes` and `--dry-run`."""

import sys
from collections.abc import Callable
from typing import Any, TypeVar

import click

from lake.protocol.errors import UsageError

Command = TypeVar("Command", bound=Callable[..., Any])


def confirming_options(command: Command) -> Command:
    """Give a command `--yes` and `--dry-run`; it gets `yes` and `dry_run`."""
    yes = click.option("--yes", "-y", is_flag=True, help="Don't ask.")
    dry_run = click.option("--dry-run", is_flag=True, help="Show what would be done, and do nothing.")
    return yes(dry_run(command))


def confirm(prompt: str, *, yes: bool) -> None:
    """Ask on the terminal unless `yes`. Raises click.Abort for a no, UsageError without a terminal."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise UsageError(f"{prompt} There is no terminal to ask on: give --yes, or --dry-run to see what would be done")
    click.confirm(prompt, abort=True, err=True)
