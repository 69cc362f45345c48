"""The statistics that Hive reads off a directory: numFiles and totalSize, kept among the parameters.

Rules as in Hive's MetaStoreUtils (requireCalStats, updateTableStatsFast, updatePartitionStatsFast) and StatsSetupConst.
"""

from collections.abc import Mapping

from metastore.services import statistics_state
from metastore.services.objects import is_true
from metastore.warehouse import Warehouse
from metastore.wire.hive import Partition

NUM_FILES = "numFiles"
TOTAL_SIZE = "totalSize"
DO_NOT_UPDATE = "DO_NOT_UPDATE_STATS"
GENERATED_BY = "STATS_GENERATED"
TASK, USER = "TASK", "USER"
FAST = (NUM_FILES, TOTAL_SIZE)
ROW_COUNT, RAW_SIZE = "numRows", "rawDataSize"


def complete(parameters: Mapping[str, str]) -> bool:
    """Whether both quick statistics are there."""
    return all(key in parameters for key in FAST)


def refresh(
    parameters: dict[str, str],
    warehouse: Warehouse,
    location: str | None,
    context: Mapping[str, str],
    *,
    made_directory: bool,
    force: bool,
) -> None:
    """Brings the quick statistics among `parameters` up to date with the directory, where Hive would.

    A directory that was just made is empty and not looked at. A table may ask to be left alone with the parameter
    DO_NOT_UPDATE_STATS, which is used up by that.
    """
    if is_true(parameters.pop(DO_NOT_UPDATE, None)):
        return
    if not force and complete(parameters):
        return
    if made_directory or location is None:
        return
    summary = warehouse.content_summary(location)
    parameters[NUM_FILES], parameters[TOTAL_SIZE] = str(summary.files), str(summary.bytes)
    if context.get(GENERATED_BY) == TASK:
        statistics_state.mark_basic(parameters)
    else:
        statistics_state.unmark_all(parameters)


def needed(old: Partition | None, new: Partition | None, context: Mapping[str, str], *, view: bool) -> bool:
    """Whether an alteration calls for a look at the directory (Hive's requireCalStats)."""
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
    """An emptied table or partition: everything counted is zero, and accurately so; columns have no statistics."""
    for key in (NUM_FILES, TOTAL_SIZE, ROW_COUNT, RAW_SIZE):
        if key in parameters:
            parameters[key] = "0"
    statistics_state.unmark_all(parameters)
    statistics_state.mark_basic(parameters)
