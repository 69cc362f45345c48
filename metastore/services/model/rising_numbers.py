"""Limits for ids that clients set, such as a transaction's, and from which the server goes on counting."""

from lake.protocol.hive import MetaException

HIGHEST_BROUGHT = 1 << 53
"""The highest id that a client may set. It leaves enough of the 64 bits for all later ids."""


def check_brought(what: str, number: int, *, lowest: int) -> int:
    """Checks an id that a client sets, and returns it. Raises MetaException for one outside of the limits."""
    if not lowest <= number <= HIGHEST_BROUGHT:
        raise MetaException(f"{what} can't be {number}: give a number from {lowest} to {HIGHEST_BROUGHT}")
    return number
