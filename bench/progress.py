"""Lines that say how far a benchmark has come, on stderr."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

import click


def say(line: str) -> None:
    click.echo(line, err=True)


@contextmanager
def noted(doing: str) -> Iterator[None]:
    """Says what is being done, and afterwards how long it took."""
    say(f"{doing} …")
    began = time.monotonic()
    yield
    say(f"{doing}: {time.monotonic() - began:.0f} s")
