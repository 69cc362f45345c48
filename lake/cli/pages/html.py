"""Pages that commands write: rendered from the templates beside this module, and written to a file."""

import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from lake.protocol.errors import UserError

if TYPE_CHECKING:
    from jinja2 import Environment

Command = TypeVar("Command", bound=Callable[..., Any])

_NOT_IN_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def html_option(command: Command) -> Command:
    """Give a command `--html FILE`; it gets `page_file`, None without the option."""
    kind = click.Path(path_type=Path, dir_okay=False)
    return click.option("--html", "page_file", type=kind, metavar="FILE", help="Write a page to FILE instead.")(command)


def check_form(page_file: Path | None, as_json: bool) -> None:
    """Raises click.UsageError for both a page and JSON."""
    if page_file is not None and as_json:
        raise click.UsageError("give either --html or --json: the page takes the place of what is printed")


def page(template: str, title: str, **values: object) -> str:
    """A whole document that loads nothing and runs nothing: `templates/<template>.html` with these values, escaped.

    It is well-formed as XML, too.
    """
    return _environment().get_template(f"{template}.html").render(title=title, **values)


def write(path: Path, document: str) -> None:
    """Write a page and say where it is. Raises UserError if the file can't be written."""
    try:
        path.write_text(document, encoding="utf-8")
    except OSError as error:
        raise UserError(f"can't write the page to {path}: {error.strerror}") from None
    click.echo(f"the page is {path.resolve().as_uri()}")


@cache
def _environment() -> "Environment":
    from jinja2 import Environment, FileSystemLoader, StrictUndefined  # only pages need it

    environment = Environment(
        loader=FileSystemLoader(Path(__file__).with_name("templates")),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_in_xml,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["at"] = "{:.1f}".format
    return environment


def _in_xml(value: object) -> object:
    """Text without the characters that XML has no form for."""
    return type(value)(_NOT_IN_XML.sub("\ufffd", value)) if isinstance(value, str) else value
