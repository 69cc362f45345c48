"""The errors that commands show to their user, and how a server refuses what a caller has no right to."""

PERMISSION_DENIED = "Permission denied: "
"""How the text of such a refusal begins, as Hive's."""


class UserError(Exception):
    """Something the user can mend: a file, a server that isn't there, a table that has another name.

    Its message is one line that says what is wrong with what. Commands print it without a stack trace and exit with 1.
    """


class UsageError(UserError):
    """What was asked for can't be asked for: a setting or an argument has a value that means nothing. Commands exit
    with 2, as for an option that doesn't exist."""
