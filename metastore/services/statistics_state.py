"""The parameter COLUMN_STATS_ACCURATE: which statistics of a table or partition still describe its data.

Its value is JSON, `{"BASIC_STATS":"true","COLUMN_STATS":{"a":"true"}}`, the columns in order; what isn't true is left
out (Hive's StatsSetupConst, the same in 2.3 and 4).
"""

import json
from collections.abc import Iterable, Mapping

from metastore.services.objects import is_true

ACCURATE = "COLUMN_STATS_ACCURATE"
_BASIC, _COLUMNS = "BASIC_STATS", "COLUMN_STATS"


def accurate_columns(parameters: Mapping[str, str]) -> set[str]:
    """The columns whose statistics are accurate. One that is listed counts, whatever its value, as in Hive."""
    return set(_parse(parameters)[1])


def mark_columns(parameters: dict[str, str], columns: Iterable[str]) -> None:
    """Says that the statistics of these columns are accurate, too."""
    basic, listed = _parse(parameters)
    parameters[ACCURATE] = _format(basic, {**dict.fromkeys(columns, "true"), **listed})


def unmark_columns(parameters: dict[str, str], columns: Iterable[str]) -> None:
    """Says that there are no accurate statistics of these columns any more."""
    if ACCURATE not in parameters:
        return
    basic, listed = _parse(parameters)
    gone = set(columns)
    parameters[ACCURATE] = _format(basic, {name: value for name, value in listed.items() if name not in gone})


def mark_basic(parameters: dict[str, str]) -> None:
    """Says that what is counted (files, bytes, rows) is accurate."""
    parameters[ACCURATE] = _format(True, _parse(parameters)[1])


def unmark_all(parameters: dict[str, str]) -> None:
    """Says that no statistics are known to be accurate any more."""
    parameters.pop(ACCURATE, None)


def _parse(parameters: Mapping[str, str]) -> tuple[bool, dict[str, str]]:
    """Whether basic statistics are accurate, and the columns listed; before Hive 2 the value was a plain `true`."""
    text = parameters.get(ACCURATE, "{}")
    try:
        state = json.loads(text)
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
