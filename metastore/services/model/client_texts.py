"""Limits for texts by which clients describe themselves. They are stored with everything that a client does.

A user's and a group's name decide about rights: longer ones are rejected. Other texts, such as a host or a query, are
for people to read: longer ones are cut off.
"""

from collections.abc import Sequence

from lake.protocol.hive import MetaException

MAX_USER = 256
"""Characters of a user's or group's name: enough for any Kerberos principal."""
MAX_GROUPS = 4_096
"""Groups of a user. A Kerberos ticket has room for about a thousand."""
MAX_HINT = 256
"""Characters of a host, an application or a query, as shown in lists of locks, transactions and compactions."""


def check_identity(user: str | None, groups: Sequence[str]) -> None:
    """Raises MetaException for a name that is too long, or too many groups."""
    if len(groups) > MAX_GROUPS:
        raise MetaException(f"a user of {len(groups)} groups; {MAX_GROUPS} are allowed")
    for what, name in (("user", user or ""), *(("group", each) for each in groups)):
        if len(name) > MAX_USER:
            raise MetaException(f"the {what}'s name has {len(name)} characters; {MAX_USER} are allowed: {name[:40]}…")


def hint(text: str | None) -> str:
    """A text for people, cut off at MAX_HINT characters."""
    return (text or "")[:MAX_HINT]
