"""The warehouse: where databases, tables and partitions lie, and what is done to their directories."""

import secrets
import unicodedata
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

import structlog

from metastore.warehouse.directories import Directories, FileStatus, VisibleFile
from metastore.warehouse.errors import FileGone, StorageFailed, WarehouseError
from metastore.warehouse.local import true_path
from metastore.warehouse.locations import Location
from metastore.warehouse.schemes import DEFAULT_SCHEMES, SCHEMES, canonical, check, open_directories

log = structlog.get_logger(__name__)

_DEFAULT_DATABASE = "default"
_DATABASE_SUFFIX = ".db"
# Concurrent operations on directories of a storage that is reached over a network.
_AT_ONCE = 16
_ASIDE = ".metastore-deleted-"
_CLOCK = ".metastore-clock-"

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Summary:
    """The files of a table or partition, as Hive's quick statistics count them: numFiles and totalSize.

    `bytes`: their total size. `erasure_coded_files`: Hive 4's numFilesErasureCoded. No fsspec driver reports it, so it
    is always 0, as it is in Hive on any storage but HDFS.
    """

    files: int = 0
    bytes: int = 0
    erasure_coded_files: int = 0


_NOTHING = Summary()


class Warehouse:
    """Directories of databases, tables and partitions, on every storage that locations name.

    Locations go in and come out as Hadoop writes qualified paths: `file:/a/b`, `s3a://bucket/a/b`, nothing
    encoded. Safe to share between threads; keeps no connections of its own. Every method raises
    WarehouseError for a location that can't be used, and when the storage fails.
    """

    def __init__(
        self,
        root: str,
        external_root: str | None = None,
        options: Mapping[str, Mapping[str, Any]] | None = None,
        schemes: Collection[str] = DEFAULT_SCHEMES,
        *,
        delete_roots: Collection[str] = (),
    ) -> None:
        """Takes the directory of managed tables, and that of external ones if it is another.

        Both are URIs or paths of the file system, and so are `delete_roots`, which are more roots for `outside_roots`.
        `options` are fsspec's storage options by scheme (`s3a`) or by fsspec's name for it (`s3`); timeouts are among
        them. `schemes` are those that locations may have.
        """
        self._schemes = frozenset(schemes)
        self._options = options or {}
        for scheme in [*self._schemes, *self._options]:
            if scheme not in SCHEMES:
                raise WarehouseError(f"{scheme!r} is no storage of a warehouse: use {', '.join(SCHEMES)}")
        self._root = self._root_of(root)
        self._external_root = self._root if external_root is None else self._root_of(external_root)
        self._all_roots = {self._root, self._external_root, *map(self._root_of, delete_roots)}

    # Where things lie

    def qualify(self, location: str) -> str:
        """The location as Hive's metastore keeps it: with scheme and authority, normalised.

        Missing parts come from the warehouse's root. Raises WarehouseError for a scheme that isn't the warehouse's.
        """
        return str(self._qualified(location))

    def place(self, location: str) -> Location:
        """As `qualify`, in its parts."""
        return self._qualified(location)

    def database_location(self, name: str) -> str:
        """Where a database's managed tables go: `<root>/<name>.db`, for `default` the root itself."""
        return str(_of_database(self._root, name))

    def external_database_location(self, name: str) -> str:
        """Where a database's external tables go: as `database_location`, below the external root."""
        return str(_of_database(self._external_root, name))

    def table_location(self, database_location: str, table: str) -> str:
        """A table's default location. What is no letter, digit or `_` becomes `-<code>-`, as in Hive."""
        return str(self._qualified(database_location).join(_encoded(table.lower())))

    def partition_location(self, table_location: str, partition_name: str) -> str:
        """A partition's default location. The name is Hive's, its values escaped: `ds=2024-01-01/hr=0`."""
        return self.partition_locations(table_location, [partition_name])[0]

    def partition_locations(self, table_location: str, partition_names: Iterable[str]) -> list[str]:
        """The default locations of many partitions of a table."""
        base = self._qualified(table_location)
        return [str(base.join(name)) for name in partition_names]

    def relative_to(self, location: str, base: str) -> str | None:
        """The path from `base` to `location`, None unless it lies strictly below, name by name."""
        return self._completed(location).relative_to(self._completed(base))

    def join(self, base: str, relative: str) -> str:
        """The inverse of `relative_to`. Refuses an absolute `relative` and one with `..`."""
        return str(self._completed(base).join(relative))

    def parent(self, location: str) -> str | None:
        """The directory a location lies in, None for the root of its storage."""
        parent = self._completed(location).parent
        return None if parent is None else str(parent)

    def same_storage(self, location: str, other: str) -> bool:
        """Whether both are in one bucket, or on one file system: only then `move_directory` moves data."""
        return _same_storage(self._qualified(location), self._qualified(other))

    # What a place is, whatever it is called

    def true_locations(self, locations: Iterable[str], *, follow_last: bool = True) -> dict[str, str]:
        """Where locations are, links followed, under one name for all that lead there.

        `follow_last`: whether a link at the last name is followed, too. A delete or a move affects the link itself, so
        these pass False. On storages without links the result is the location with its driver's own scheme.
        """
        known: dict[str, str] = {}
        found = {}
        for location in locations:
            place = canonical(self._qualified(location))
            if place.scheme == "file":
                with self._opened(place, f"look at {place}"):
                    place = place._replace(path=true_path(place.path, known, follow_last=follow_last))
            found[location] = str(place)
        return found

    def outside_roots(self, true_locations: Collection[str]) -> set[str]:
        """Those of some `true_locations` that don't lie strictly below a root that was configured."""
        # Looked at each time: somebody may have moved a root and left a link.
        roots = self.true_locations(map(str, self._all_roots)).values()
        begins = tuple(f"{root.rstrip('/')}/" for root in roots)
        return {each for each in true_locations if not each.startswith(begins)}

    def spellings(self, location: str) -> list[str]:
        """All forms in which `qualify` may have given a location: by each of its driver's schemes."""
        if location.startswith("file:"):
            return [location]
        place = self._qualified(location)
        driver = SCHEMES[place.scheme].driver
        return [str(place._replace(scheme=scheme)) for scheme, each in SCHEMES.items() if each.driver == driver]

    def is_unused(self, location: str) -> bool:
        """Whether an empty directory is there that nothing is mounted on."""
        with self._at(location, "look at") as (directories, path):
            return directories.is_empty(path) and not directories.is_mount(path)

    # What is there

    def exists(self, location: str) -> bool:
        """Whether anything is there. On object stores a directory exists while something is in it."""
        with self._at(location, "look at") as (directories, path):
            return directories.kind(path) is not None

    def is_gone(self, location: str) -> bool:
        """Whether nothing is there any more where a directory was made.

        False on an object store that doesn't keep empty directories: one may be there, and empty.
        """
        with self._at(location, "look at") as (directories, path):
            return directories.is_gone(path)

    def is_directory(self, location: str) -> bool:
        """Whether a directory is there, links followed."""
        with self._at(location, "look at") as (directories, path):
            return directories.kind(path) == "directory"

    def is_empty(self, location: str) -> bool:
        """Whether a directory is there with nothing at all in it, hidden files included."""
        with self._at(location, "look at") as (directories, path):
            return directories.is_empty(path)

    def content_summary(self, location: str) -> Summary:
        """Counts files and bytes as Hive does for its quick statistics.

        All files below count, at any depth, except those whose name or whose directory's name below the
        location begins with `_` or `.`; a file at the location itself is one. Directories don't count. As in
        Hive, nothing is found where nothing is, and nothing, rather than an error or half the truth, where
        something can't be listed; a warning is logged then.
        """
        place = self._qualified(location)
        directories, path = self._open(place, f"count the files of {location}")
        files = size = 0
        try:
            for bytes_of_file in directories.visible_sizes(path):
                files += 1
                size += bytes_of_file
        except directories.errors as error:
            log.warning("files can't be counted", location=location, error=str(error))
            return _NOTHING
        return Summary(files, size) if files else _NOTHING

    def content_summaries(self, locations: Collection[str]) -> dict[str, Summary]:
        """As `content_summary`, for many."""
        return dict(self._each(lambda location: (location, self.content_summary(location)), locations))

    def existing(self, locations: Collection[str]) -> set[str]:
        """Those of some locations where anything is, see `exists`."""
        return {each for each in self._each(lambda each: each if self.exists(each) else None, locations) if each}

    def files(self, location: str, within: str) -> set[str]:
        """The paths from a directory to the files at any depth below it; none where nothing is.

        Links are neither followed nor files. Raises WarehouseError if the directory does not truly lie below `within`,
        links on the way followed.
        """
        place, base = self._qualified(location), self._qualified(within)
        action = f"list {place}"
        with self._opened(place, action) as (directories, path):
            # Of a path itself the last name isn't followed, so look at what would be in it.
            if not self._is_below(place.join("any"), base, directories):
                raise WarehouseError(f"cannot {action}: it does not lie within {base}")
            return directories.files(path)

    def names(self, location: str) -> set[str]:
        """The names of the files that lie directly in a directory; none where nothing is."""
        with self._at(location, "list") as (directories, path):
            return directories.names(path)

    def sizes(self, location: str) -> dict[str, int]:
        """The files at any depth below a directory, by their path from it, and their sizes in bytes."""
        with self._at(location, "list") as (directories, path):
            return directories.sizes(path)

    def statuses(self, location: str, within: str) -> dict[str, FileStatus]:
        """As `files`, with size and time of each."""
        place, base = self._qualified(location), self._qualified(within)
        action = f"list {place}"
        with self._opened(place, action) as (directories, path):
            if not self._is_below(place.join("any"), base, directories):
                raise WarehouseError(f"cannot {action}: it does not lie within {base}")
            return directories.statuses(path)

    def visible_files(self, location: str, at_most: int) -> list[VisibleFile]:
        """The files below a directory that Hive's readers see: hidden names and all below them are left out.

        They are in no order; one more than `at_most`, if there are more.
        """
        with self._at(location, "list") as (directories, path):
            return [*islice(directories.visible_files(path), at_most + 1)]

    def children(self, location: str) -> set[str]:
        """The names of the directories that lie directly in a directory; none where nothing is."""
        with self._at(location, "list") as (directories, path):
            return directories.children(path)

    def time_at(self, location: str) -> int:
        """The time by a storage's clock, in milliseconds since 1970: that of a file which is made in a directory."""
        name = f"{_CLOCK}{secrets.token_hex(8)}"
        file = f"{location}/{name}"
        with self._at(file, "make") as (directories, path):
            directories.write_empty_file(path)
            try:
                status = directories.statuses(path.rpartition("/")[0]).get(name)
            finally:
                directories.delete_file(path)
        if status is None or status.modified_at is None:
            raise WarehouseError(f"cannot say how old files are in {location}: the storage doesn't give their times")
        return status.modified_at

    # What is done to it

    def make_directory(self, location: str) -> bool:
        """Makes a directory and those above it. Returns whether this call made it.

        Of several callers at once exactly one gets True on a local file system, elsewhere it may be more. To
        undo it use `delete_empty_directory`, which spares what others have put there. On S3 and Google a
        placeholder is written as Hadoop's connectors do. On Azure nothing is: a directory comes into being
        with its first file. Buckets are never made.
        """
        try:
            with self._at(location, "make the directory") as (directories, path):
                return directories.make(path)
        except WarehouseError as error:
            # Hive's words, which its clients look for.
            raise type(error)(f"{location} is not a directory or unable to create one: {error}") from error

    def make_directories(self, locations: Collection[str], made: set[str]) -> None:
        """As `make_directory`, for many. `made` gets those that this call made, also if it raises."""

        def make(location: str) -> None:
            if self.make_directory(location):
                made.add(location)

        self._each(make, locations)

    def delete_directory(self, location: str, within: str | None = None) -> None:
        """Deletes what is at a location and all below it. Nothing there is fine.

        Links are deleted, never followed. With `within`, a location is refused unless it is `within` or truly
        lies below it, links on the way followed. The warehouse's roots and what contains them are refused
        always. Not atomic: after a failure call it again. There is no trash, as in Hive by default.
        """
        place = self._qualified(location)
        action = f"delete {place}"
        with self._opened(place, action) as (directories, path):
            if within is not None:
                base = self._qualified(within)
                if canonical(place) != canonical(base) and not self._is_below(place, base, directories):
                    raise WarehouseError(f"cannot {action}: it does not lie within {base}")
            self._refuse_roots(place, directories, action)
            directories.delete(path)

    def delete_directories(self, locations: Collection[str]) -> list[WarehouseError]:
        """As `delete_directory`, for many. Returns the errors of those that could not be deleted."""

        def delete(location: str) -> WarehouseError | None:
            try:
                self.delete_directory(location)
            except WarehouseError as error:
                return error
            return None

        return [error for error in self._each(delete, locations) if error is not None]

    def _each(self, act: Callable[[str], T], locations: Collection[str]) -> list[T]:
        """Calls `act` with each location. On storages over a network, several calls run concurrently."""
        if len(locations) < 2 or all(each.startswith("file:") for each in locations):
            return [act(location) for location in locations]
        with ThreadPoolExecutor(_AT_ONCE) as threads:
            return list(threads.map(act, locations))

    def beside(self, location: str) -> str | None:
        """A new, hidden place in the same directory, to which `move_directory` moves what lies at a location in one
        step, however much that is; None on storages where moving copies.
        """
        place = self._qualified(location)
        if place.scheme != "file" or place.parent is None:
            return None
        return str(place.parent.join(f"{_ASIDE}{secrets.token_hex(8)}"))

    @staticmethod
    def is_aside(location: str) -> bool:
        """Whether a location is one that `beside` gave."""
        return location.rpartition("/")[2].startswith(_ASIDE)

    def delete_empty_directory(self, location: str) -> bool:
        """Deletes a directory if nothing at all is in it, hidden files included. Returns whether this call did.

        On HDFS a file that is written in the same moment may be lost, elsewhere not. The warehouse's roots
        and what contains them are refused.
        """
        place = self._qualified(location)
        action = f"delete {place}"
        with self._opened(place, action) as (directories, path):
            self._refuse_roots(place, directories, action)
            return directories.delete_empty(path)

    def delete_empty_tree(self, location: str) -> None:
        """Deletes a directory and those below it as far as there is nothing else in them. Roots are refused.

        On object stores, which have no empty directories, it deletes placeholders at the location itself alone.
        """
        place = self._qualified(location)
        action = f"delete {place}"
        with self._opened(place, action) as (directories, path):
            self._refuse_roots(place, directories, action)
            directories.delete_empty_tree(path)

    def move_directory(self, source: str, target: str) -> bool:
        """Moves a directory to where nothing is yet. After a failure or a crash, call it again.

        True: this call moved something, or finished what an earlier one began. False: there is no source, so
        an earlier call had done it all, or there never was anything to move.

        On local file systems and HDFS it is one rename, all or nothing. Where there is no rename (object
        stores; two devices of one machine), files are copied, compared by size, and only then deleted at the
        source. Until the last one is gone a hidden file in the target, `.metastore-move`, names the source
        and says whether all has arrived. It is how a later call knows the target for its own unfinished copy and
        where to go on: with copying what is not there yet, or, once all had arrived, with deleting. A target
        without that file, or with another source's, is refused.

        The caller sees to it that one call at a time moves a given pair, and that nobody writes to either
        place before it is done: a file that appears at the source meanwhile may be deleted with it.

        Raises WarehouseError: the target is taken, the source is a file, the two are on different storages,
        one contains the other, or the source is or contains a root of the warehouse.
        """
        origin, goal = self._qualified(source), self._qualified(target)
        action = f"move {origin} to {goal}"
        if not _same_storage(origin, goal):
            raise WarehouseError(f"cannot {action}: they are on different storages. Copy the data instead")
        one, other = canonical(origin), canonical(goal)
        if one == other or one.relative_to(other) or other.relative_to(one):
            raise WarehouseError(f"cannot {action}: one contains the other")
        with self._opened(origin, action) as (directories, path):
            self._refuse_roots(origin, directories, action)
            _, goal_path = open_directories(goal, self._options)
            return directories.move(path, goal_path)

    def check_move(self, source: str, target: str) -> None:
        """Raises WarehouseError if `move_directory` is sure to fail because something may not be written.

        Checks local file systems only; on other storages only the move itself shows it.
        """
        origin, goal = self._qualified(source), self._qualified(target)
        action = f"move {origin} to {goal}"
        if not _same_storage(origin, goal):
            raise WarehouseError(f"cannot {action}: they are on different storages. Copy the data instead")
        with self._opened(origin, action) as (directories, path):
            directories.check_move(path, open_directories(goal, self._options)[1])

    def write_empty_file(self, location: str) -> None:
        """Makes an empty file, the directories above it too; an existing one stays as it is."""
        with self._at(location, "write") as (directories, path):
            directories.write_empty_file(path)

    def write_empty_files(self, locations: Collection[str]) -> None:
        """As `write_empty_file`, for many."""
        self._each(self.write_empty_file, locations)

    def delete_empty_files(self, locations: Collection[str]) -> None:
        """Deletes files with nothing in them. Nothing there is fine, and what isn't empty stays."""

        def delete(location: str) -> None:
            if self.read_file(location, 1) == b"":
                self.delete_file(location)

        self._each(delete, locations)

    def write_file(self, location: str, content: bytes) -> None:
        """Writes a new file, as a whole or not at all, and the directories above it. Refuses to replace one."""
        with self._at(location, "write") as (directories, path):
            directories.write_file(path, content)

    def read_file(self, location: str, at_most: int) -> bytes | None:
        """The first `at_most` bytes of a file; None if there is no file."""
        with self._at(location, "read") as (directories, path):
            return directories.read_file(path, at_most)

    def read_range(self, location: str, start: int, length: int) -> bytes:
        """At most `length` bytes of a file, from the byte `start` on."""
        with self._at(location, "read") as (directories, path):
            return directories.read_range(path, start, length)

    def delete_file(self, location: str) -> None:
        """Deletes a file. Nothing there is fine."""
        with self._at(location, "delete") as (directories, path):
            directories.delete_file(path)

    def delete_files(self, paths: Collection[str], base: str) -> dict[str, WarehouseError]:
        """Deletes files, given by their paths below a directory. Returns the errors of failed deletions, by path.

        A file that does not truly lie below `base` is refused, links on the way followed. Nothing there is fine. Many
        go in one request where the storage can.
        """
        place = self._qualified(base)
        failed: dict[str, WarehouseError] = {}
        found: dict[str, str] = {}
        with self._opened(place, f"delete files below {place}") as (directories, own):
            for path in paths:
                try:
                    check(place.join(path))
                except WarehouseError as error:
                    failed[path] = error
                    continue
                file = f"{own}/{path}"
                if directories.is_below(file, own):
                    found[file] = path
                else:
                    failed[path] = WarehouseError(f"cannot delete {place}/{path}: it does not lie within {place}")
            for file, problem in directories.delete_files(list(found)).items():
                failed[found[file]] = WarehouseError(
                    f"cannot delete {place}/{found[file]}: {_reason(problem)}. {_advice(problem, place)}"
                )
        return failed

    def move_file(self, source: str, target: str) -> bool:
        """Moves a file, over one that is there. After a failure or a crash, call it again.

        False: an earlier call had done it. Raises FileGone if the file is at neither place, and WarehouseError.
        """
        origin, goal = self._qualified(source), self._qualified(target)
        action = f"move {origin} to {goal}"
        if not _same_storage(origin, goal):
            raise WarehouseError(f"cannot {action}: they are on different storages")
        with self._opened(origin, action) as (directories, path):
            _, goal_path = open_directories(goal, self._options)
            try:
                return directories.move_file(path, goal_path)
            except FileNotFoundError as error:
                raise FileGone(f"cannot {action}: the file is at neither place") from error

    def move_files(self, pairs: Sequence[tuple[str, str]]) -> list[WarehouseError | None]:
        """As `move_file`, for many, given as (source, target). Returns for each its error, or None if it was moved."""

        def move(pair: tuple[str, str]) -> WarehouseError | None:
            try:
                self.move_file(*pair)
            except WarehouseError as error:
                return error
            return None

        if all(source.startswith("file:") for source, _ in pairs):
            return [move(pair) for pair in pairs]
        with ThreadPoolExecutor(_AT_ONCE) as threads:
            return list(threads.map(move, pairs))

    def _refuse_roots(self, place: Location, directories: Directories, action: str) -> None:
        if place.parent is None:
            raise WarehouseError(f"cannot {action}: it is the root of a storage")
        _, path = open_directories(place, self._options)
        for root in {self._root, self._external_root}:
            if not _same_storage(place, root):
                continue
            _, root_path = open_directories(root, self._options)
            if path == root_path or directories.holds(path, root_path):
                raise WarehouseError(f"cannot {action}: the warehouse {root} is there")

    def _is_below(self, place: Location, base: Location, directories: Directories) -> bool:
        """Whether a place truly lies below another; `directories` is the storage of one of them."""
        if not _same_storage(place, base):
            return False
        _, path = open_directories(place, self._options)
        _, base_path = open_directories(base, self._options)
        return directories.is_below(path, base_path)

    def _root_of(self, root: str) -> Location:
        scheme, colon, _ = root.partition(":")
        if not colon or "/" in scheme:
            root = f"file:{Path(root).absolute()}" if root else root
        location = Location.parse(root)
        self._check(location)
        return location

    def _completed(self, location: str) -> Location:
        place = Location.parse(location)
        if place.scheme == "hdfs":
            place = place._replace(authority=place.authority.lower())  # a host's name, which has no case
        root = self._root
        if place.authority or place.scheme not in ("", root.scheme) or (place.scheme and not root.authority):
            return place  # it lacks nothing
        return Location(root.scheme, root.authority, place.path)

    def _qualified(self, location: str) -> Location:
        place = self._completed(location)
        self._check(place)
        return place

    def _check(self, place: Location) -> None:
        if place.scheme not in self._schemes:
            allowed = ", ".join(sorted(self._schemes))
            raise WarehouseError(f"cannot use {place}: its scheme is not one of those in use, {allowed}")
        check(place)

    @contextmanager
    def _at(self, location: str, verb: str) -> Iterator[tuple[Directories, str]]:
        place = self._qualified(location)
        with self._opened(place, f"{verb} {place}") as opened:
            yield opened

    @contextmanager
    def _opened(self, place: Location, action: str) -> Iterator[tuple[Directories, str]]:
        """The storage and path of a location. Translates what the storage raises meanwhile."""
        directories, path = self._open(place, action)
        try:
            yield directories, path
        except WarehouseError:
            raise
        except directories.errors as error:
            raise _failed(action, place, error) from error

    def _open(self, place: Location, action: str) -> tuple[Directories, str]:
        """The storage and path of a location. Translates what is raised until they are known."""
        try:
            return open_directories(place, self._options)
        except WarehouseError:
            raise
        except Exception as error:  # of drivers that connect when they are made
            raise _failed(action, place, error) from error


def _same_storage(location: Location, other: Location) -> bool:
    one, two = canonical(location), canonical(other)
    return (one.scheme, one.authority) == (two.scheme, two.authority)


def _of_database(root: Location, name: str) -> Location:
    name = name.lower()
    if name == _DEFAULT_DATABASE:
        return root
    if not name or "/" in name:
        raise WarehouseError(f"cannot find a place for the database {name!r}: give a name without '/'")
    return root.join(name + _DATABASE_SUFFIX)


def _encoded(table: str) -> str:
    """A table's name as Hive's encodeTableName writes it, which goes by Java's UTF-16 units."""
    if table.isascii() and table.replace("_", "").isalnum():
        return table
    units = table.encode("utf-16-be", "surrogatepass")
    codes = [int.from_bytes(units[at : at + 2]) for at in range(0, len(units), 2)]
    return "".join(chr(code) if _is_word(chr(code)) else f"-{code}-" for code in codes)


def _is_word(character: str) -> bool:
    category = unicodedata.category(character)
    return character == "_" or category[0] == "L" or category == "Nd"


def _failed(action: str, place: Location, error: Exception) -> WarehouseError:
    return StorageFailed(f"cannot {action}: {_reason(error)}. {_advice(error, place)}")


def _reason(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        return error.strerror[0].lower() + error.strerror[1:]
    if isinstance(error, FileNotFoundError):  # some drivers give the path alone
        return f"not found: {error}"
    return str(error) or type(error).__name__


def _advice(error: Exception, place: Location) -> str:
    match error:
        case PermissionError():
            return "Check what the user that the server runs as may do there"
        case FileExistsError() | NotADirectoryError():
            return "Choose another location, or move away what is there"
        case FileNotFoundError():
            return "Check that its bucket, or the directory above it, is there"
        case _ if place.scheme == "file":
            return "Check the disk, then try again"
        case _:
            return f"Check the storage and the options given for {place.scheme}:, then try again"
