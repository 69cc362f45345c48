"""Policies: what table services do to a table and when, as its properties say.

A property is looked for among the table's, then its database's, then the defaults of the service. Properties of Hudi's
that mean the same are understood at each of these places, too; our own name wins there.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from lake.maintenance.decisions.windows import Windows
from lake.protocol.errors import UserError
from lake.protocol.formats.durations import parse_duration
from lake.tables.clustering import MIB, Curve

Value = TypeVar("Value")

SMALL = 0.75
"""A file is small below this part of the size that a clustering aims at."""

_UNITS = {"": 1, "b": 1, "kb": 1 << 10, "mb": 1 << 20, "gb": 1 << 30, "tb": 1 << 40}
_SIZE = re.compile(r"\s*([0-9]{1,18})\s*([a-z]*)\s*")
MAX_POOL = 100
"""Characters of the name of a pool."""

USUAL_ORPHAN_HOURS = 72
"""How old an orphan file is at least, unless a property says something else."""

_MOST = 1 << 30
_HOUR = 3_600_000  # milliseconds
_LARGEST = 1 << 50

_HUDIS = {
    "compaction.delta-commits": ("hoodie.compact.inline.max.delta.commits",),
    "clustering.target-file-size": ("hoodie.clustering.plan.strategy.target.file.max.bytes",),
    "clustering.small-file-size": ("hoodie.clustering.plan.strategy.small.file.limit",),
    "clustering.order-by": ("hoodie.clustering.plan.strategy.sort.columns",),
    "clean.commits-retained": ("hoodie.clean.commits.retained", "hoodie.cleaner.commits.retained"),
    "clean.hours-retained": ("hoodie.clean.hours.retained", "hoodie.cleaner.hours.retained"),
    "clean.versions-retained": ("hoodie.clean.fileversions.retained", "hoodie.cleaner.fileversions.retained"),
}
"""Hudi's names for what ours mean."""


class BadPolicy(UserError):
    """A property has a value that means nothing."""


@dataclass(frozen=True)
class CompactionPolicy:
    """When log files are merged: as soon as one of these is reached. Sizes in bytes, times in milliseconds."""

    enabled: bool
    delta_commits: int
    log_bytes: int
    log_ratio: float
    log_age: int


@dataclass(frozen=True)
class ClusteringPolicy:
    """When small files become few, and rows are sorted anew. Sizes in bytes.

    `fewer_files`: by so many files the table must become smaller. `unordered_ratio`: the part of its bytes that isn't
    in order.
    """

    enabled: bool
    fewer_files: int
    target_file_bytes: int
    small_file_bytes: int
    order_by: Sequence[str]
    curve: Curve
    unordered_ratio: float


@dataclass(frozen=True)
class CleaningPolicy:
    """What a clean keeps, one of the three, and how many files it must delete to be worth it."""

    enabled: bool
    commits: int | None
    hours: int | None
    versions: int | None
    files: int


@dataclass(frozen=True)
class PublishingPolicy:
    """After how many commits Hive gets the rows of a keyed table; None: the service doesn't publish."""

    commits: int | None


@dataclass(frozen=True)
class IcebergPolicy:
    """How often Iceberg's readers get the rows of log files, in milliseconds; None: they see what is compacted."""

    every: int | None


@dataclass(frozen=True)
class OrphansPolicy:
    """Whether orphan files are removed, how many hours old they are at least, and how often, in milliseconds."""

    enabled: bool
    hours: int
    every: int


@dataclass(frozen=True)
class Policy:
    """What is done to a table. `windows`: by action, the text of when it may be done; None for always.

    `pool`: by whose quota its jobs are bounded; None for no pool's.
    """

    enabled: bool
    priority: int
    windows: Mapping[str, str | None]
    compaction: CompactionPolicy
    clustering: ClusteringPolicy
    cleaning: CleaningPolicy
    publishing: PublishingPolicy = PublishingPolicy(None)
    iceberg: IcebergPolicy = IcebergPolicy(None)
    orphans: OrphansPolicy = OrphansPolicy(False, USUAL_ORPHAN_HOURS, 7 * 24 * _HOUR)
    pool: str | None = None


def policy_of(*places: Mapping[str, str]) -> Policy:
    """The policy that properties say: the table's, its database's, the service's defaults. Raises BadPolicy."""
    given = _Given(places)
    shared = given.windows("table-services.windows", None)
    return Policy(
        enabled=given.flag("table-services.enabled", True),
        priority=given.whole("table-services.priority", 0, least=-1_000_000, most=1_000_000),
        windows={
            action: given.windows(f"{action}.windows", shared)
            for action in ("compaction", "clustering", "clean", "publish", "orphans", "iceberg")
        },
        compaction=CompactionPolicy(
            enabled=given.flag("compaction.enabled", True),
            delta_commits=given.whole("compaction.delta-commits", 5),
            log_bytes=given.size("compaction.log-size", 1 << 30),
            log_ratio=given.number("compaction.log-ratio", 0.5),
            log_age=given.duration("compaction.log-age", 86_400_000),
        ),
        clustering=_clustering(given),
        cleaning=_cleaning(given),
        publishing=PublishingPolicy(given.whole("publish.commits", 0) or None),
        iceberg=IcebergPolicy(given.duration_or("iceberg.when", "ask")),
        orphans=OrphansPolicy(
            enabled=given.flag("orphans.enabled", False),
            hours=given.whole("orphans.hours", USUAL_ORPHAN_HOURS, least=24, most=100_000),
            every=given.duration("orphans.every", 7 * 24 * _HOUR),
        ),
        pool=given.name("table-services.pool"),
    )


def _clustering(given: "_Given") -> ClusteringPolicy:
    target = given.size("clustering.target-file-size", 256 * MIB)
    small = given.size("clustering.small-file-size", max(1, int(target * SMALL)))
    if small > target:
        raise BadPolicy(
            f"clustering.small-file-size, {small} bytes, is more than clustering.target-file-size, {target}"
        )
    curves: tuple[Curve, ...] = ("linear", "z-order")
    return ClusteringPolicy(
        enabled=given.flag("clustering.enabled", True),
        fewer_files=given.whole("clustering.fewer-files", 10),
        target_file_bytes=target,
        small_file_bytes=small,
        order_by=given.names("clustering.order-by"),
        curve=given.choice("clustering.curve", curves, "linear"),
        unordered_ratio=given.number("clustering.unordered-ratio", 0.2),
    )


def _cleaning(given: "_Given") -> CleaningPolicy:
    keeps: dict[str, int | None] = {"commits": None, "hours": None, "versions": None}
    place, wanted = given.first_of(tuple(f"clean.{name}-retained" for name in keeps))
    if len(wanted) > 1:
        raise BadPolicy(f"{' and '.join(wanted)} are both given in {place}: a clean keeps by one of them")
    for name in keeps:
        if f"clean.{name}-retained" in wanted:
            keeps[name] = given.whole(f"clean.{name}-retained", 1)
    if not wanted:  # the server keeps what the property says to the millisecond, whatever a clean asks for
        keeps["hours"] = -(-given.duration("snapshot.time-retained", 7 * 24 * _HOUR) // _HOUR) or 1
    return CleaningPolicy(
        enabled=given.flag("clean.enabled", True),
        commits=keeps["commits"],
        hours=keeps["hours"],
        versions=keeps["versions"],
        files=given.whole("clean.files", 20),
    )


class _Given:
    """Properties of several places, the first of which wins."""

    _NAMES = ("the table's properties", "its database's", "the service's defaults")

    def __init__(self, places: Sequence[Mapping[str, str]]) -> None:
        self._places = places

    def find(self, name: str) -> tuple[str, str] | None:
        """A property's own name, or Hudi's, and its value."""
        for place in self._places:
            if (found := _in(place, name)) is not None:
                return found
        return None

    def first_of(self, names: Sequence[str]) -> tuple[str, list[str]]:
        """The first place that has one of several properties, in words, and those that it has."""
        for number, place in enumerate(self._places):
            if found := [name for name in names if _in(place, name) is not None]:
                return self._NAMES[min(number, 2)], found
        return "", []

    def names(self, name: str) -> tuple[str, ...]:
        found = self.find(name)
        return tuple(each.strip().lower() for each in (found[1] if found else "").split(",") if each.strip())

    def name(self, name: str) -> str | None:
        def checked(text: str) -> str | None:
            if len(text) > MAX_POOL:
                raise ValueError
            return text.strip().lower() or None

        return self._parsed(name, None, checked, f"a name of at most {MAX_POOL} characters")

    def flag(self, name: str, default: bool) -> bool:
        known = {"true": True, "false": False}
        return self._parsed(name, default, lambda text: known[text.strip().lower()], "true or false")

    def whole(self, name: str, default: int, *, least: int = 1, most: int = _MOST) -> int:
        return self._parsed(name, default, lambda text: _within(int(text), least, most), f"{least} to {most}")

    def number(self, name: str, default: float) -> float:
        return self._parsed(name, default, lambda text: _within(float(text), 0.0, 1e9), "a number from 0 on")

    def size(self, name: str, default: int) -> int:
        return self._parsed(name, default, _bytes, "a size such as 256 mb")

    def duration(self, name: str, default: int) -> int:
        return self._parsed(name, default, parse_duration, "a duration such as 12 h")

    def duration_or(self, name: str, word: str) -> int | None:
        """A duration; None for a word, which is the default."""
        read: Callable[[str], int | None] = lambda text: None if text.strip().lower() == word else parse_duration(text)  # noqa: E731
        return self._parsed(name, None, read, f"{word}, or a duration such as 5 min")

    def choice(self, name: str, choices: Sequence[Value], default: Value) -> Value:
        by_name = {str(each): each for each in choices}
        return self._parsed(name, default, lambda text: by_name[text.strip().lower()], " or ".join(by_name))

    def windows(self, name: str, default: str | None) -> str | None:
        def checked(text: str) -> str:
            Windows.parse(text)
            return text

        return self._parsed(name, default, checked, "windows such as 01:00-06:00 Asia/Shanghai")

    def _parsed(self, name: str, default: Value, parse: Callable[[str], Value], expected: str) -> Value:
        found = self.find(name)
        if found is None:
            return default
        try:
            return parse(found[1])
        except (ValueError, KeyError, OverflowError) as error:
            said = f": {error}" if isinstance(error, ValueError) and "window" in expected else ""
            raise BadPolicy(f"{found[0]} is {found[1][:100]!r}: expected {expected}{said}") from None


def _in(place: Mapping[str, str], name: str) -> tuple[str, str] | None:
    for each in (name, *_HUDIS.get(name, ())):
        if each in place:
            return each, place[each]
    return None


def _within(value: Value, least: Value, most: Value) -> Value:
    if not least <= value <= most:  # type: ignore[operator]
        raise ValueError
    return value


def _bytes(text: str) -> int:
    match = _SIZE.fullmatch(text.lower())
    if match is None or match[2] not in _UNITS:
        raise ValueError
    return _within(int(match[1]) * _UNITS[match[2]], 1, _LARGEST)
