"""What an instant may be, and become. The actions, states and liberties are those of Hudi's timeline."""

import re
from datetime import UTC, datetime, timedelta

from metastore.wire.hive import InvalidOperationException

REQUESTED, INFLIGHT, COMPLETED = "requested", "inflight", "completed"
STATES = (REQUESTED, INFLIGHT, COMPLETED)

COMMIT, DELTACOMMIT, REPLACECOMMIT = "commit", "deltacommit", "replacecommit"
COMPACTION, LOGCOMPACTION, CLUSTERING = "compaction", "logcompaction", "clustering"
CLEAN, ROLLBACK, RESTORE, SAVEPOINT, INDEXING = "clean", "rollback", "restore", "savepoint", "indexing"
ACTIONS = (
    COMMIT,
    DELTACOMMIT,
    REPLACECOMMIT,
    COMPACTION,
    LOGCOMPACTION,
    CLUSTERING,
    CLEAN,
    ROLLBACK,
    RESTORE,
    SAVEPOINT,
    INDEXING,
)

COMPLETES_AS = {COMPACTION: COMMIT, LOGCOMPACTION: DELTACOMMIT, CLUSTERING: REPLACECOMMIT}
"""Actions that bear another name once they are completed."""

PLANNED = frozenset({COMPACTION, LOGCOMPACTION, CLUSTERING, REPLACECOMMIT})
"""Table services: they may be given back after they have begun, for somebody else to do."""

UNDOING = frozenset({ROLLBACK, RESTORE})

DELETABLE = frozenset({SAVEPOINT, ROLLBACK, CLEAN, INDEXING})
"""Completed instants that may be forgotten: nothing of a snapshot comes from them."""

MAX_TIMESTAMP = 64
"""Characters of a timestamp that a writer brings."""

_OWN_TIMESTAMP = re.compile(r"[0-9A-Za-z][0-9A-Za-z_.-]*")
_FORM = "%Y%m%d%H%M%S%f"
_SERVERS = re.compile(r"\d{17}")


def check_action(action: str | None) -> str:
    """An action by its name. Raises InvalidOperationException."""
    if action not in ACTIONS:
        raise InvalidOperationException(f"{action!r} is no action of an instant: they are {', '.join(ACTIONS)}")
    return action


def check_state(state: str | None) -> str:
    """A state by its name. Raises InvalidOperationException."""
    if state not in STATES:
        raise InvalidOperationException(f"{state!r} is no state of an instant: they are {', '.join(STATES)}")
    return state


def check_timestamp(timestamp: str | None) -> str:
    """A timestamp that a writer brings. Raises InvalidOperationException."""
    if not timestamp or len(timestamp) > MAX_TIMESTAMP or not _OWN_TIMESTAMP.fullmatch(timestamp):
        raise InvalidOperationException(
            f"{timestamp!r} is no timestamp: letters, digits, _ . and -, at most {MAX_TIMESTAMP}"
        )
    return timestamp


def may_become(action: str, old: str, new: str) -> bool:
    """Whether an instant of that action may go from one state to the other, short of being completed."""
    return (old, new) == (REQUESTED, INFLIGHT) or ((old, new) == (INFLIGHT, REQUESTED) and action in PLANNED)


def completed_action(action: str, wanted: str | None) -> str:
    """The action under which an instant is completed. Raises InvalidOperationException for one that it can't have.

    A table service may keep its name, or take that of what it comes down to.
    """
    if wanted is None or wanted == action:
        return action
    if COMPLETES_AS.get(action) != check_action(wanted):
        raise InvalidOperationException(f"a {action} can't be completed as a {wanted}")
    return wanted


def timestamp_at(milliseconds: int) -> str:
    """A time since 1970 as timestamps say it: yyyyMMddHHmmssSSS in UTC."""
    return (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=milliseconds)).strftime(_FORM)[:17]


def next_timestamp(last: str, now: int) -> str:
    """The timestamp for `now` (milliseconds since 1970), or the first one after the `last` that was given.

    Raises InvalidOperationException if that is the last one there can be.
    """
    wanted = timestamp_at(now)
    if wanted > last:
        return wanted
    try:
        return (_time_of(last) + timedelta(milliseconds=1)).strftime(_FORM)[:17]
    except (OverflowError, ValueError):
        raise InvalidOperationException(f"no timestamp comes after {last}") from None


def is_servers(timestamp: str) -> bool:
    """Whether a timestamp has the form of those that the server gives: those rise, others are what they are."""
    if not _SERVERS.fullmatch(timestamp):
        return False
    try:
        _time_of(timestamp)
    except ValueError:
        return False
    return True


def _time_of(timestamp: str) -> datetime:
    return datetime.strptime(timestamp[:14], "%Y%m%d%H%M%S").replace(microsecond=int(timestamp[14:]) * 1000)
