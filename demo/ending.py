"""How a program of the demo ends before its time."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

import click
from narrator import Narrator, in_short
from rich.panel import Panel
from rich.text import Text
from stop_sign import Stopped, StopSign


@contextmanager
def ending(narrator: Narrator, stop_sign: StopSign) -> Iterator[None]:
    """Says that the story was stopped, or what went wrong in it, and leaves with the exit code for that."""
    try:
        yield
    except Stopped:
        narrator.console.print("[yellow]Stopped.")
        sys.exit(128 + stop_sign.signal)
    except click.ClickException:
        raise
    except Exception as error:
        narrator.console.print(Panel(Text(in_short(error)), title="This went wrong", border_style="red"))
        sys.exit(1)
