"""The commit flag of a partition, and the parameters by which clients read and set it.

A partition is ready or uncommitted. The flag is a column of its row. Clients see, and may send, these parameters:

- `commit`: `true` or `false`; absent from a partition that was born ready and never opened,
- `commit.time`: when it was last committed, in milliseconds since 1970; only while it is ready,
- `commit.by`: who committed it, if that is known; only while it is ready,
- `commit.opened`: since when it has been uncommitted, in milliseconds since 1970; only while it is,
- `commit.last`: when it was last committed, in milliseconds since 1970; only while it is open for late rows.

A client may send back parameters that it read a while ago. These must not undo later changes: the times distinguish
such an echo from a request. The times are the database's: a server whose clock is wrong would commit
partitions too early, or hold them back.
"""

from collections.abc import Callable, Mapping

from lake.protocol.hive import MetaException
from metastore.services.model.flag import Flag

COMMIT = "commit"
COMMIT_TIME = "commit.time"
COMMITTED_BY = "commit.by"
OPENED = "commit.opened"
LAST = "commit.last"
_DIGITS = 18  # of a number that fits into 64 bits
Now = Callable[[], int]
"""Tells the database's time, in milliseconds since 1970. Most flags don't need it."""

_KEYS = (COMMIT, COMMIT_TIME, COMMITTED_BY, OPENED, LAST)
_ANY = frozenset(_KEYS)


def of_new(parameters: dict[str, str], now: Now, *, born_ready: bool) -> Flag:
    """The flag of a partition that is added with these parameters, which get what belongs to it.

    Raises MetaException for a value of `commit` that is neither true nor false.
    """
    said, by = _said(parameters), parameters.get(COMMITTED_BY)
    _forget(parameters)
    if said is None and born_ready:
        return Flag(True)
    return commit(parameters, now, by) if said else Flag(_open(parameters, now))


def of_brought(parameters: dict[str, str], now: Now) -> Flag:
    """The flag of a partition that is brought from another metastore, as its parameters say it; they are kept.

    Where they don't say it the partition was to be seen there. One that wasn't gets the time since when it is open,
    unless it has one.
    """
    said = (parameters.get(COMMIT) or "").strip().lower()
    if said == "false":
        parameters.setdefault(OPENED, str(now()))
        return Flag(False)
    return Flag(True, _number(parameters.get(COMMIT_TIME)) if said == "true" else None)


def of_altered(old: Flag, before: Mapping[str, str], parameters: dict[str, str], now: Now) -> Flag:
    """The flag of a partition that had the parameters `before` and gets new ones, which get what belongs to it.

    Without `commit` among them nothing changes: Hive's load path alters with parameters of its own making.
    Raises MetaException for a value of `commit` that is neither true nor false.
    """
    if _ANY.isdisjoint(parameters) and _ANY.isdisjoint(before):  # most were born ready, and were never opened
        return old
    said = _said(parameters)
    given = {key: parameters.get(key) for key in _KEYS}
    _forget(parameters)
    parameters.update({key: before[key] for key in _KEYS if key in before})
    last = old.commit_time or _number(before.get(LAST))
    if said is True and not old.ready and not _is_old_commit(given[COMMIT_TIME], last):
        return commit(parameters, now, given[COMMITTED_BY], old.commit_time)
    if said is True and old == Flag(True):  # born ready; from now on it says so
        return commit(parameters, now, given[COMMITTED_BY])
    # A client that sends the time since which a partition was open read it before it was committed.
    if said is False and old.ready and given[OPENED] is None:
        return reopen(parameters, old, now)
    return old


def commit(parameters: dict[str, str], now: Now, by: str | None = None, last: int | None = None) -> Flag:
    """The flag of a partition that is committed now, and its parameters accordingly.

    `last`: when it was committed before; the times of its commits rise whatever the clock does.
    """
    time = max(now(), (last or _number(parameters.get(LAST)) or 0) + 1)
    _forget(parameters)
    parameters |= {COMMIT: "true", COMMIT_TIME: str(time)}
    if by:
        parameters[COMMITTED_BY] = by
    return Flag(True, time)


def reopen(parameters: dict[str, str], old: Flag, now: Now, *, for_late_rows: bool = False) -> Flag:
    """The flag of a ready partition that is uncommitted from now on, and its parameters accordingly.

    `for_late_rows`: it is to turn ready again by event time, not by somebody's hand.
    """
    last = old.commit_time or now()
    flag = Flag(_open(parameters, now), None if for_late_rows else last)
    if for_late_rows:
        parameters[LAST] = str(last)
    return flag


def truth(name: str, value: str | None) -> bool:
    """What `true` or `false`, in any case, says. Raises MetaException for anything else."""
    text = (value or "").strip().lower()
    if text not in ("true", "false"):
        raise MetaException(f"{name} must be true or false, not {value!r}")
    return text == "true"


def _said(parameters: Mapping[str, str]) -> bool | None:
    return truth(f"the parameter {COMMIT} of a partition", parameters[COMMIT]) if COMMIT in parameters else None


def _is_old_commit(given: str | None, last: int | None) -> bool:
    """Whether a client tells of a commit that is known: it read that, and the partition was opened again since."""
    echoed = _number(given)
    return echoed is not None and last is not None and echoed <= last


def _number(text: str | None) -> int | None:
    """A time in milliseconds; None for what says none."""
    return int(text) if text is not None and text.isascii() and text.isdecimal() and len(text) <= _DIGITS else None


def _open(parameters: dict[str, str], now: Now) -> bool:
    _forget(parameters)
    parameters |= {COMMIT: "false", OPENED: str(now())}
    return False


def _forget(parameters: dict[str, str]) -> None:
    for key in _KEYS:
        parameters.pop(key, None)
