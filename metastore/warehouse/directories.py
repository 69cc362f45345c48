"""The interface to a storage, and what all storages share: hidden names and the mark of a move."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, Protocol, Self

Kind = Literal["file", "directory"]

MOVE_MARK = ".metastore-move"
"""File in the target of a copying move until its source is gone. Hidden: readers of tables skip it."""


class FileStatus(NamedTuple):
    """`size`: in bytes. `modified_at`: by the storage's clock, in milliseconds since 1970; None if it doesn't say."""

    size: int
    modified_at: int | None


class VisibleFile(NamedTuple):
    """`path`: from the directory that was looked at. `is_link`: it, or a directory of this path, is a link."""

    path: str
    size: int
    modified_at: int | None
    is_link: bool = False


class Directories(Protocol):
    """Directories of one storage. Paths are the storage's own, without scheme."""

    errors: tuple[type[Exception], ...]
    """What the methods raise when the storage fails or refuses."""

    def kind(self, path: str) -> Kind | None:
        """What is at a path, links followed; None for nothing."""

    def is_gone(self, path: str) -> bool:
        """Whether nothing is at a path where a directory was made; False where the storage has no empty directories."""

    def is_empty(self, path: str) -> bool:
        """Whether there is a directory with nothing in it."""

    def is_mount(self, path: str) -> bool:
        """Whether another storage begins at a path."""

    def is_below(self, path: str, base: str) -> bool:
        """Whether `path` truly lies strictly below `base`: links on the way count for where they lead."""

    def holds(self, path: str, other: str) -> bool:
        """Whether `other` truly is `path` or lies below it, links followed; not if nothing is at `path`."""

    def files(self, path: str) -> set[str]:
        """The paths from a directory to the files at any depth below it; links are neither followed nor files."""

    def names(self, path: str) -> set[str]:
        """The names of the files that lie directly in a directory, links left out; none where nothing is."""

    def sizes(self, path: str) -> dict[str, int]:
        """As `files`, with the size of each in bytes."""

    def statuses(self, path: str) -> dict[str, FileStatus]:
        """As `files`, with size and time of each."""

    def children(self, path: str) -> set[str]:
        """The names of the directories that lie directly in a directory, links left out; none where nothing is."""

    def visible_sizes(self, path: str) -> Iterator[int]:
        """The size in bytes of every file below, hidden names and all below them left out; none where nothing is."""

    def visible_files(self, path: str) -> Iterator[VisibleFile]:
        """The same files with their paths. Links aren't followed: each is given by itself, whatever it leads to."""

    def make(self, path: str) -> bool:
        """Makes a directory and its parents; whether this call did."""

    def delete(self, path: str) -> None:
        """Removes what is at a path and all below it. Links are removed, not followed."""

    def delete_empty(self, path: str) -> bool:
        """Removes a directory unless something is in it; whether this call did."""

    def delete_empty_tree(self, path: str) -> None:
        """Removes the directories at and below a path that hold nothing but such directories, as far as it can."""

    def move(self, source: str, target: str) -> bool:
        """Moves a directory, see `Warehouse.move_directory`; whether this call moved anything."""

    def check_move(self, source: str, target: str) -> None:
        """Raises OSError if a move is sure to fail because something may not be written."""

    def write_empty_file(self, path: str) -> None:
        """Makes an empty file, the directories above it too; an existing one stays as it is."""

    def write_file(self, path: str, content: bytes) -> None:
        """Writes a file that isn't there yet, as a whole or not at all; the directories above it are made too."""

    def read_file(self, path: str, at_most: int) -> bytes | None:
        """The first bytes of a file; None where there is none."""

    def read_range(self, path: str, start: int, length: int) -> bytes:
        """Some bytes of a file, fewer at its end."""

    def delete_file(self, path: str) -> None:
        """Removes a file. Nothing there is fine."""

    def delete_files(self, paths: Sequence[str]) -> dict[str, Exception]:
        """Removes files, as many at once as the storage takes. Returns the reason for each that is still there."""

    def move_file(self, source: str, target: str) -> bool:
        """Moves a file over what is there, see `Warehouse.move_file`; whether this call did."""


@dataclass(frozen=True)
class MoveMark:
    """What a move writes into its target: where the files come from, and whether all of them have arrived."""

    source: str
    copied: bool

    def encode(self) -> bytes:
        return json.dumps({"source": self.source, "copied": self.copied}).encode()

    @classmethod
    def decode(cls, data: bytes) -> Self | None:
        """None: not a mark."""
        try:
            fields = json.loads(data)
            return cls(source=str(fields["source"]), copied=bool(fields["copied"]))
        except (ValueError, TypeError, KeyError):
            return None


def is_hidden(name: str) -> bool:
    """Whether Hive passes over files and directories of this name (its HIDDEN_FILES_PATH_FILTER)."""
    return name.startswith(("_", "."))
