"""Plans clusterings of tables without a primary key: many small files of a partition become few, sorted if wanted.

A plan is apart from its run, and both are apart from writers. `plan_clustering` leaves a requested instant that names
the file groups to rewrite and says how; `clustering_runs` rewrites them, whenever and wherever that is. A clustering
changes no row, and never makes a writer fail who adds rows or replaces partitions.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

from lake.client.lake_types import DataFile, FileGroup, Instant, Schema
from lake.protocol.errors import UserError
from lake.protocol.formats.spark_schema import PROVIDER
from lake.tables.lake import LakeTable

CLUSTERING = "clustering"

MIB = 1 << 20

MOST_FILES = 40_000
"""File groups that one plan names at most. The rest is for the next plan."""

MOST_CURVED = 4
"""Columns by which a z-order may sort: with more, none of them sorts much any more."""

Curve: TypeAlias = Literal["linear", "z-order"]
"""How rows are sorted by several columns: by the first, then the next; or by all of them alike."""

_NUMBERS = ("tinyint", "smallint", "int", "bigint", "float", "double", "decimal")
_CURVED = (*_NUMBERS, "date", "timestamp", "timestamp_ntz", "string", "varchar", "char")
_SORTED = (*_CURVED, "boolean", "binary")


class NotClusterable(UserError):
    """The table's files can't be clustered, because others than we say where its rows are."""


class Planned(NamedTuple):
    """A plan that was made: its instant, and how many files of how many partitions it names.

    Without an instant, `reason` says why not; with one, what else was left out.
    """

    instant: Instant | None
    files: int
    partitions: int
    reason: str


@dataclass(frozen=True)
class Order:
    """How rows are to be sorted: by no column at all, or by some along a curve."""

    order_by: Sequence[str] = ()
    curve: Curve = "linear"

    def mark(self) -> bytes | None:
        """What a file's statistics say that was written so; None without an order."""
        text = json.dumps({"sorted_by": list(self.order_by), "curve": self.curve})
        return text.encode() if self.order_by else None

    def has(self, file: DataFile) -> bool:
        """Whether a file was written in this order."""
        return not self.order_by or file.statistics == self.mark()


@dataclass(frozen=True)
class Settings:
    """What a plan's instant says of it, in its metadata."""

    order: Order
    small_file_bytes: int
    target_file_bytes: int

    def outputs(self, files: Iterable[DataFile]) -> int:
        """How many files some files become."""
        return max(1, round(sum(each.size for each in files) / self.target_file_bytes))

    def sent(self, **counts: int) -> bytes:
        return json.dumps({"operation": CLUSTERING, **asdict(self), **counts}).encode()

    @classmethod
    def received(cls, metadata: bytes) -> "Settings":
        """The settings that a plan's metadata says. Raises ValueError for those of another program's plan."""
        try:
            found: Mapping[str, Any] = json.loads(metadata)
            order = Order(tuple(found["order"]["order_by"]), found["order"]["curve"])
            return cls(order, found["small_file_bytes"], found["target_file_bytes"])
        except (ValueError, KeyError, TypeError):
            raise ValueError("the plan isn't one of plan_clustering: run it by what made it") from None


def plan_clustering(
    lake: LakeTable,
    *,
    filter: str | None = None,
    small_file_bytes: int = 64 * MIB,
    target_file_bytes: int = 256 * MIB,
    order_by: Sequence[str] | None = None,
    curve: Curve = "linear",
) -> Planned:
    """Plans to rewrite the files of each partition that are smaller than `small_file_bytes`, if they become fewer.

    With `order_by` also all files that aren't sorted so yet: `linear` sorts by the first column, then the next;
    `z-order` by 1 to 4 columns alike. `filter` is on partition keys, in Hive's grammar. Partitions that another plan
    names are left out, and those with files that others must merge. Raises NotClusterable, ValueError for arguments
    that mean nothing.
    """
    snapshot = lake.snapshot(filter=filter, include_uncommitted=True)
    schema = lake.schema(snapshot.table_version)
    check_clusterable(lake.name, schema)
    order = checked_order(schema, order_by, curve)
    if not 0 < small_file_bytes <= target_file_bytes:
        raise ValueError(
            f"files are small below {small_file_bytes} bytes and become {target_file_bytes}: give positive numbers, the"
            " second not less than the first"
        )
    settings = Settings(order, small_file_bytes, target_file_bytes)
    chosen, left_out = _chosen(lake, by_partition(snapshot), settings)
    if not chosen:
        what = f"no partition has two files below {small_file_bytes} bytes that would become one"
        if order.order_by:
            what += f", or files that aren't sorted by {', '.join(order.order_by)} ({curve})"
        return Planned(None, 0, 0, "; ".join([what, *left_out]))
    groups = [FileGroup(name, each.file_group) for name, some in sorted(chosen.items()) for each in some]
    begun = lake.begin(
        CLUSTERING,
        state="requested",
        metadata=settings.sent(files=len(groups), partitions=len(chosen)),
        read_position=snapshot.position,
        plan=groups,
    )
    what = f"{len(groups)} files of {len(chosen)} partitions are to be rewritten"
    return Planned(begun.instant, len(groups), len(chosen), "; ".join([what, *left_out]))


def check_clusterable(name: str, schema: Schema) -> None:
    """Raises NotClusterable for a table whose rows can't be put into other files."""
    if schema.keyed_table() is not None:
        raise NotClusterable(
            f"{name} has a primary key: its rows lie in buckets, sorted by the key. Compact it (plan_compaction)"
        )
    kind = schema.properties.get(PROVIDER) or schema.input_format
    if "parquet" not in kind.lower() or "hudi" in f"{kind} {schema.input_format}".lower():
        raise NotClusterable(
            f"{name} is stored as {kind or 'nothing known'}, not as Parquet: cluster it by what wrote it"
        )


def checked_order(schema: Schema, order_by: Sequence[str] | None, curve: Curve) -> Order:
    """An order by columns of a table. Raises ValueError for columns and curves by which rows can't be sorted."""
    if curve not in get_args(Curve):
        raise ValueError(f"{curve!r} is no curve: {' or '.join(get_args(Curve))}")
    if isinstance(order_by, str):
        raise ValueError(f"order_by is a list of columns, such as [{order_by!r}]")
    names = tuple(each.lower() for each in order_by or ())
    if order_by is not None and (not names or len(set(names)) < len(names)):
        raise ValueError("order_by names at least one column, and each once")
    if curve == "z-order" and not 0 < len(names) <= MOST_CURVED:
        raise ValueError(f"a z-order is by 1 to {MOST_CURVED} columns of order_by, not by {len(names)}")
    types = {each.name.lower(): each.type.lower() for each in schema.columns}
    keys = {each.name.lower() for each in schema.keys}
    for name in names:
        if name in keys:
            raise ValueError(f"all rows of a partition have the same {name}: order by other columns")
        if name not in types:
            raise ValueError(f"the table has no column {name} to order by")
        if types[name].partition("(")[0] not in (_SORTED if curve == "linear" else _CURVED):
            raise ValueError(f"the column {name} is {types[name]}, by which rows aren't ordered ({curve})")
    return Order(names, curve)


def by_partition(files: Iterable[DataFile]) -> dict[str, list[DataFile]]:
    """The files of a snapshot by their partitions."""
    found: dict[str, list[DataFile]] = {}
    for each in files:
        found.setdefault(each.partition, []).append(each)
    return found


def is_whole(file: DataFile) -> bool:
    """Whether a file alone is the rows of its file group."""
    return file.kind == "base" and file.columns is None


def _chosen(
    lake: LakeTable, partitions: Mapping[str, Sequence[DataFile]], settings: Settings
) -> tuple[dict[str, list[DataFile]], list[str]]:
    """The files to rewrite by partition, and what was left out, in words."""
    wanted = {name: _gaining(files, settings) for name, files in partitions.items()}
    wanted = {name: some for name, some in wanted.items() if some}
    merged = {name for name in wanted if not all(map(is_whole, partitions[name]))}
    planned = {each.partition for each in lake.planned_groups()} if wanted else set()
    pending = planned & wanted.keys() - merged
    chosen: dict[str, list[DataFile]] = {}
    count = 0
    for name in sorted(wanted.keys() - merged - pending):
        if some := _gaining(wanted[name][: MOST_FILES - count], settings):
            chosen[name] = some
            count += len(some)
    later = len(wanted) - len(merged) - len(pending) - len(chosen)
    return chosen, [
        f"{len(names)} {why}"
        for names, why in (
            (merged, "partitions are left out: they have log files, or files of some columns, which others must merge"),
            (pending, "partitions are left out: pending plans name them"),
            (range(later), "partitions are left for another plan"),
        )
        if names
    ]


def _gaining(files: Sequence[DataFile], settings: Settings) -> list[DataFile]:
    """The files of a partition that are worth being rewritten."""
    small = [each for each in files if is_whole(each) and each.size < settings.small_file_bytes]
    unordered = [each for each in files if is_whole(each) and not settings.order.has(each)]
    if unordered:
        return [*unordered, *(each for each in small if settings.order.has(each))]
    return small if settings.outputs(small) < len(small) else []
