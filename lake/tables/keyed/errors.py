"""What is wrong with rows that somebody wants to write."""

from lake.protocol.errors import UserError


class UnfitRows(UserError):
    """The rows don't fit the table; the message says in what."""
