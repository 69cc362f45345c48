"""What is wrong with rows that somebody wants to write."""

from metastore.errors import UserError


class UnfitRows(UserError):
    """The rows don't fit the table; the message says in what."""
