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


class BadQuery(UserError):
    """A query that no refresh can compute, with the reason. Whoever knows its place makes it a BadDefinition."""


class RefreshLost(UserError):
    """Another runner has refreshed the same layers meanwhile. Nothing was written; the next attempt looks again."""


def first_line(error: Exception) -> str:
    """What an engine says, without the plan that follows."""
    return str(error).strip().split("\n", 1)[0]
