"""What a pipeline's commands refuse."""

from dataclasses import dataclass
from pathlib import Path

from lake.protocol.errors import UsageError, UserError


@dataclass(frozen=True)
class Place:
    """Where a definition stands: a file, relative to the project, and a line, from 1."""

    file: Path
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


class BadDefinition(UsageError):
    """A definition that can't be run. The message begins with its file and line."""

    def __init__(self, place: Place | Path, reason: str) -> None:
        super().__init__(f"{place}: {reason}")
        self.place = place
        self.reason = reason


class BadQuery(UserError):
    """A query that no refresh can compute, with the reason. Whoever knows its place makes it a BadDefinition."""


class RefreshLost(UserError):
    """Another runner has refreshed the same layers meanwhile. Nothing was written; the next attempt looks again."""


def first_line(error: Exception) -> str:
    """What an engine says, without the plan or the trace that follows."""
    text = str(error).strip()
    # Py4J begins with the call that failed, which says nothing to anybody, and gives the exception on the next line.
    _, _, java = text.partition("\n: ") if text.startswith("An error occurred while calling ") else ("", "", text)
    return (java or text).split("\n", 1)[0]
