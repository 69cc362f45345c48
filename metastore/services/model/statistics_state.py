"""The parameter COLUMN_STATS_ACCURATE: which statistics of a table or partition are still accurate.

Its value is JSON, `{"BASIC_STATS":"true","COLUMN_STATS":{"a":"true"}}`, with sorted columns. False entries are left out
(Hive's StatsSetupConst, the same in 2.3 and 4).
"""

import json
from collections.abc import Iterable, Mapping

from metastore.services.model.hive_objects import is_true

ACCURATE = "COLUMN_STATS_ACCURATE"
_MAX_LENGTH = 4 << 20  # of the state, in characters; JSON may take many times its length in memory
_BASIC, _COLUMNS = "BASIC_STATS", "COLUMN_STATS"


def accurate_columns(parameters: Mapping[str, str]) -> set[str]:
    """The columns with accurate statistics. As in Hive, every listed column counts, whatever its value."""
    return set(_parse(parameters)[1])


def mark_columns(parameters: dict[str, str], columns: Iterable[str]) -> None:
    """Marks the statistics of these columns as accurate, too."""
    basic, listed = _parse(parameters)
    parameters[ACCURATE] = _format(basic, {**dict.fromkeys(columns, "true"), **listed})


def unmark_columns(parameters: dict[str, str], columns: Iterable[str]) -> None:
    """Marks the statistics of these columns as not accurate."""
    if ACCURATE not in parameters:
        return
    basic, listed = _parse(parameters)
    gone = set(columns)
    parameters[ACCURATE] = _format(basic, {name: value for name, value in listed.items() if name not in gone})


def mark_basic(parameters: dict[str, str]) -> None:
    """Marks the basic statistics (files, bytes, rows) as accurate."""
    parameters[ACCURATE] = _format(True, _parse(parameters)[1])


def unmark_all(parameters: dict[str, str]) -> None:
    """Marks all statistics as not accurate."""
    parameters.pop(ACCURATE, None)


def _parse(parameters: Mapping[str, str]) -> tuple[bool, dict[str, str]]:
    """Whether the basic statistics are accurate, and the listed columns. Before Hive 2 the value was a plain `true`."""
    text = parameters.get(ACCURATE, "{}")
    try:
        state = json.loads(text) if len(text) <= _MAX_LENGTH else None
    except (ValueError, RecursionError):
        state = None
    if not isinstance(state, dict):
        return is_true(text), {}
    columns = state.get(_COLUMNS)
    listed = columns if isinstance(columns, dict) else {}
    return is_true(str(state.get(_BASIC))), {name: str(value).lower() for name, value in listed.items()}


def _format(basic: bool, columns: Mapping[str, str]) -> str:
    state: dict[str, object] = {}
    if basic:
        state[_BASIC] = "true"
    if columns:
        state[_COLUMNS] = dict(sorted(columns.items()))
    return json.dumps(state, separators=(",", ":"), ensure_ascii=False)
