"""The error that commands show to their user."""


class UserError(Exception):
    """Something the user can mend: a setting, a file, a server that isn't there.

    Its message is one line that says what is wrong with what. Commands print it without a stack trace and
    exit with 1.
    """
