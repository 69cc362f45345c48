"""Basic statistics: numFiles and totalSize, which are counted in the directory and stored in the parameters.

The rules are those of Hive's MetaStoreUtils (requireCalStats, updateTableStatsFast, updatePartitionStatsFast) and
StatsSetupConst.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from lake.protocol.hive import Partition
from metastore.services.model import statistics_state
from metastore.services.model.hive_objects import is_true
from metastore.warehouse import Warehouse

NUM_FILES = "numFiles"
TOTAL_SIZE = "totalSize"
DO_NOT_UPDATE = "DO_NOT_UPDATE_STATS"
GENERATED_BY = "STATS_GENERATED"
TASK, USER = "TASK", "USER"
FAST = (NUM_FILES, TOTAL_SIZE)
ROW_COUNT, RAW_SIZE = "numRows", "rawDataSize"


def complete(parameters: Mapping[str, str]) -> bool:
    """Whether the parameters have numFiles and totalSize."""
    return NUM_FILES in parameters and TOTAL_SIZE in parameters


class ToRefresh(NamedTuple):
    """A table's or partition's parameters to refresh; the fields are the arguments of `refresh`."""

    parameters: dict[str, str]
    location: str | None
    made_directory: bool
    force: bool


def refresh(
    parameters: dict[str, str],
    warehouse: Warehouse,
    location: str | None,
    context: Mapping[str, str],
    *,
    made_directory: bool,
    force: bool,
) -> None:
    """Updates numFiles and totalSize in `parameters` from the directory, in the cases in which Hive does.

    `context`: the properties of the call's environment context. `made_directory`: the directory is new and empty, so it
    isn't listed. `force`: also if both are there. The parameter DO_NOT_UPDATE_STATS prevents the update; it is removed.
    """
    refresh_many([ToRefresh(parameters, location, made_directory, force)], warehouse, context)


def refresh_many(some: Iterable[ToRefresh], warehouse: Warehouse, context: Mapping[str, str]) -> None:
    """Like `refresh`, for many. Remote directories are listed concurrently."""
    looked_at: list[tuple[dict[str, str], str]] = []
    for parameters, location, made_directory, force in some:
        if is_true(parameters.pop(DO_NOT_UPDATE, None)):
            continue
        if (force or not complete(parameters)) and not made_directory and location is not None:
            looked_at.append((parameters, location))
    summaries = warehouse.content_summaries({location for _, location in looked_at})
    for parameters, location in looked_at:
        summary = summaries[location]
        parameters[NUM_FILES], parameters[TOTAL_SIZE] = str(summary.files), str(summary.bytes)
        if context.get(GENERATED_BY) == TASK:
            statistics_state.mark_basic(parameters)
        else:
            statistics_state.unmark_all(parameters)


def needed(old: Partition | None, new: Partition | None, context: Mapping[str, str], *, view: bool) -> bool:
    """Whether an alteration must refresh the statistics (Hive's requireCalStats)."""
    if is_true(context.get(DO_NOT_UPDATE)) or view:
        return False
    if old is None and new is None:
        return True
    if new is None or not complete(new.parameters or {}):
        return True
    if context.get(GENERATED_BY) in (TASK, USER):
        return True
    before, after = (old and old.parameters) or {}, new.parameters or {}
    return any(before.get(key) != after.get(key) for key in FAST) or old is None


def clear_after_truncate(parameters: dict[str, str]) -> None:
    """Sets all counts to zero and marks them as accurate, after a truncation. Unmarks column statistics."""
    for key in (NUM_FILES, TOTAL_SIZE, ROW_COUNT, RAW_SIZE):
        if key in parameters:
            parameters[key] = "0"
    statistics_state.unmark_all(parameters)
    statistics_state.mark_basic(parameters)
