"""The errors that commands show to their user, and how a server refuses what a caller has no right to."""

PERMISSION_DENIED = "Permission denied: "
"""How the text of such a refusal begins, as Hive's."""

DATABASE_UNREACHABLE = "the metastore's database can't be reached"
INTERNAL_ERROR = "internal error, reference "
"""How failures of a server begin after which nobody knows whether a change was made."""

DATABASE_READ_ONLY = "the metastore's database accepts no changes now"
DATABASE_FULL = "the metastore's database has no space left on its disk"
TAKES_NO_CHANGES = (DATABASE_UNREACHABLE, DATABASE_READ_ONLY, DATABASE_FULL)
"""How failures of a server begin that end when its database is mended, whatever is asked for."""

POOL_BUSY = "all connections to the database are busy"
TIME_LIMIT = "the request took longer than its time limit"
LOCKED = "another change of the same object takes too long"
TAKEN_OVER = "somebody else follows this metastore by now"
"""How the refusal of a change begins, if its source was taken by others."""

CHANGED_BETWEEN = "another change came between"
DATABASE_BUSY = (POOL_BUSY, TIME_LIMIT, LOCKED, CHANGED_BETWEEN)
"""How failures of a server begin after which nothing was done, and the same request may succeed later."""

NOTHING_DONE = "Nothing was done; try again"
OUTCOME_UNKNOWN = "nobody knows whether the change was made"
"""What the errors of a front say whose backend doesn't answer."""


class UserError(Exception):
    """Something the user can mend: a file, a server that isn't there, a table that has another name.

    Its message is one line that says what is wrong with what. Commands print it without a stack trace and exit with 1.
    """


class UsageError(UserError):
    """What was asked for can't be asked for: a setting or an argument has a value that means nothing. Commands exit
    with 2, as for an option that doesn't exist."""
