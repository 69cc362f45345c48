"""The actions and states of instants, the allowed transitions, and timestamps.

The rules are Hudi's. Two actions are the metastore's own: PUBLISH gives Hive directories with a keyed table's rows,
READINESS makes partitions ready or uncommitted.
"""

import re
from datetime import UTC, datetime, timedelta

from lake.protocol.hive import InvalidOperationException

REQUESTED, INFLIGHT, COMPLETED = "requested", "inflight", "completed"
STATES = (REQUESTED, INFLIGHT, COMPLETED)

COMMIT, DELTACOMMIT, REPLACECOMMIT = "commit", "deltacommit", "replacecommit"
COMPACTION, LOGCOMPACTION, CLUSTERING = "compaction", "logcompaction", "clustering"
CLEAN, ROLLBACK, RESTORE, SAVEPOINT, INDEXING = "clean", "rollback", "restore", "savepoint", "indexing"
PUBLISH, READINESS = "publish", "readiness"
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
    PUBLISH,
    READINESS,
)

COMPLETES_AS = {COMPACTION: COMMIT, LOGCOMPACTION: DELTACOMMIT, CLUSTERING: REPLACECOMMIT}
"""Actions with another name once they are completed."""

PLANNED = frozenset({COMPACTION, LOGCOMPACTION, CLUSTERING, REPLACECOMMIT})
"""The actions of table services. They may go back from inflight to requested, so that another process can do them."""

UNDOING = frozenset({ROLLBACK, RESTORE})
"""Actions that undo other instants."""

DELETABLE = frozenset({SAVEPOINT, ROLLBACK, CLEAN, INDEXING})
"""Actions that add no files. Their completed instants may be removed."""

FINAL = frozenset({PUBLISH, READINESS})
"""Actions that add no files, and whose completed instants stay: the opposite is another instant.

Hive's files are in the directory of a publish. A change of readiness is part of what a position shows.
"""

ADDING_NOTHING = DELETABLE | FINAL
"""All actions that add no files to snapshots."""

MAX_TIMESTAMP = 64
"""Characters of a client's timestamp."""

MAX_RUNNER = 64
"""Characters of what the process calls itself that takes up a plan."""

MAX_NAME = 255
"""Characters of a savepoint's name."""

MAX_AHEAD = 86_400_000
"""How far a client's timestamp may be in the future, in milliseconds: its clock may be wrong, or show local time."""

_OWN_TIMESTAMP = re.compile(r"[0-9A-Za-z][0-9A-Za-z_.-]*")
_FORM = "%Y%m%d%H%M%S%f"
_SERVERS = re.compile(r"\d{17}", re.ASCII)
_A_TIME = re.compile(r"\d{14}(\d{3})?", re.ASCII)


def check_action(action: str | None) -> str:
    """Checks an action's name and returns it. Raises InvalidOperationException."""
    if action not in ACTIONS:
        raise InvalidOperationException(f"{action!r} is no action of an instant: they are {', '.join(ACTIONS)}")
    return action


def check_begun_action(action: str | None) -> str:
    """Checks the action of an instant that a client begins, and returns it. Raises InvalidOperationException."""
    if action == READINESS:
        raise InvalidOperationException("nobody begins a readiness: commit or reopen partitions, then there is one")
    return check_action(action)


def check_removable(action: str, described: str) -> None:
    """Raises InvalidOperationException for a completed instant that stays: nothing undoes or deletes it."""
    if action == PUBLISH:
        raise InvalidOperationException(f"{described}: it can't be undone, publish again")
    if action == READINESS:
        raise InvalidOperationException(f"{described}: it can't be undone, commit or reopen the partitions")


def check_state(state: str | None) -> str:
    """Checks a state's name and returns it. Raises InvalidOperationException."""
    if state not in STATES:
        raise InvalidOperationException(f"{state!r} is no state of an instant: they are {', '.join(STATES)}")
    return state


def check_timestamp(timestamp: str | None) -> str:
    """Checks a client's timestamp and returns it. Raises InvalidOperationException."""
    if not timestamp or len(timestamp) > MAX_TIMESTAMP or not _OWN_TIMESTAMP.fullmatch(timestamp):
        raise InvalidOperationException(
            f"{timestamp!r} is no valid timestamp: use letters, digits, _ . and -, at most {MAX_TIMESTAMP} characters"
        )
    return timestamp


def check_name(name: str, action: str) -> str:
    """Checks a savepoint's name and returns it. Raises InvalidOperationException."""
    if action != SAVEPOINT:
        raise InvalidOperationException(f"only a savepoint has a name, and {action} is none")
    if not 0 < len(name) <= MAX_NAME or not name.isprintable() or name != name.strip() or name.isdigit():
        raise InvalidOperationException(
            f"{name!r} is no name of a savepoint: use 1 to {MAX_NAME} characters that can be printed, not digits alone,"
            " without spaces around them"
        )
    return name


def check_not_ahead(timestamp: str, now: int) -> None:
    """Checks that a client's timestamp isn't far in the future. `now` in milliseconds since 1970.

    Only timestamps that look like a time, to the second or millisecond, are checked: all later timestamps of the server
    are greater than the greatest of these. Raises InvalidOperationException.
    """
    latest = timestamp_at(now + MAX_AHEAD)
    if _A_TIME.fullmatch(timestamp) and timestamp > latest:
        raise InvalidOperationException(
            f"the timestamp {timestamp} is in the future: it may be at most a day ahead of the clock, up to {latest}"
        )


def may_become(action: str, old: str, new: str) -> bool:
    """Whether an instant may go from the state `old` to `new`, other than by a completion."""
    return (old, new) == (REQUESTED, INFLIGHT) or ((old, new) == (INFLIGHT, REQUESTED) and action in PLANNED)


def completed_action(action: str, wanted: str | None) -> str:
    """The action of a completed instant. Raises InvalidOperationException for one that isn't allowed.

    A table service keeps its action, or takes the one in COMPLETES_AS if that is `wanted`.
    """
    if wanted is None or wanted == action:
        return action
    if COMPLETES_AS.get(action) != check_action(wanted):
        raise InvalidOperationException(f"a {action} can't be completed as a {wanted}")
    return wanted


def timestamp_at(milliseconds: int) -> str:
    """A time in milliseconds since 1970 as a timestamp: yyyyMMddHHmmssSSS in UTC."""
    return (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=milliseconds)).strftime(_FORM)[:17]


def next_timestamp(last: str, now: int) -> str:
    """The timestamp for `now` (milliseconds since 1970); at least one millisecond after the `last` one.

    Raises InvalidOperationException if there is no later timestamp.
    """
    wanted = timestamp_at(now)
    if wanted > last:
        return wanted
    try:
        return (_time_of(last) + timedelta(milliseconds=1)).strftime(_FORM)[:17]
    except (OverflowError, ValueError):
        raise InvalidOperationException(f"no timestamp comes after {last}") from None


def is_servers(timestamp: str) -> bool:
    """Whether a timestamp has the form of the server's own, 17 digits of a valid time."""
    if not _SERVERS.fullmatch(timestamp):
        return False
    try:
        _time_of(timestamp)
    except ValueError:
        return False
    return True


def _time_of(timestamp: str) -> datetime:
    return datetime.strptime(timestamp[:14], "%Y%m%d%H%M%S").replace(microsecond=int(timestamp[14:]) * 1000)
