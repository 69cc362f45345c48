"""Pages that commands write: elements whose text is escaped, the frame around them, and the file."""

import html
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import click

from lake.protocol.errors import UserError

Command = TypeVar("Command", bound=Callable[..., Any])

_NOT_IN_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_STYLE = Path(__file__).with_name("page.css")


class Html(str):
    """Text that is markup already."""

    __slots__ = ()


def html_option(command: Command) -> Command:
    """Give a command `--html FILE`; it gets `page_file`, None without the option."""
    kind = click.Path(path_type=Path, dir_okay=False)
    return click.option("--html", "page_file", type=kind, metavar="FILE", help="Write a page to FILE instead.")(command)


def check_form(page_file: Path | None, as_json: bool) -> None:
    """Raises click.UsageError for both a page and JSON."""
    if page_file is not None and as_json:
        raise click.UsageError("give either --html or --json: the page takes the place of what is printed")


def element(name: str, *content: object, **attributes: object) -> Html:
    """An element of HTML or SVG, well-formed as XML, too.

    Content is escaped unless it is an Html; None and attributes that are None are left out. An attribute's
    underscores stand for hyphens (`aria_label`), and a trailing one keeps it apart from a keyword (`class_`).
    """
    given = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{_escaped(value)}"'
        for key, value in attributes.items()
        if value is not None
    )
    return Html(f"<{name}{given}>{joined(*content)}</{name}>")


def joined(*content: object) -> Html:
    """Pieces of a page one after the other: what isn't an Html is escaped, None is left out."""
    return Html("".join(each if isinstance(each, Html) else _escaped(each) for each in content if each is not None))


def figures(facts: Mapping[str, object]) -> Html:
    """What a page says first: names and short values."""
    return element("dl", *(element("div", element("dt", key), element("dd", value)) for key, value in facts.items()))


def page(title: str, *body: object) -> str:
    """A whole document that loads nothing and runs nothing."""
    head = joined(
        Html('<meta charset="utf-8"/><meta name="viewport" content="width=device-width, initial-scale=1"/>'),
        # Were a value ever taken for markup, a browser would still neither run nor load it.
        Html(
            "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\"/>"
        ),
        Html('<meta name="color-scheme" content="light dark"/>'),
        element("title", title),
        element("style", Html(_STYLE.read_text(encoding="utf-8"))),
    )
    document = element("html", element("head", head), "\n", element("body", element("main", *body)), lang="en")
    return f"<!doctype html>\n{document}\n"


def write(path: Path, document: str) -> None:
    """Write a page and say where it is. Raises UserError if the file can't be written."""
    try:
        path.write_text(document, encoding="utf-8")
    except OSError as error:
        raise UserError(f"can't write the page to {path}: {error.strerror}") from None
    click.echo(f"the page is {path.resolve().as_uri()}")


def _escaped(value: object) -> str:
    return html.escape(_NOT_IN_XML.sub("\ufffd", str(value)))
