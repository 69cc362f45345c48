"""Who has logged in, and what is said to those who have not."""

from dataclasses import dataclass
from typing import ClassVar, Literal

from lake.protocol.hive import MetaException
from metastore.services.access.caller import Mechanism
from metastore.services.model.client_texts import check_identity

Outcome = Literal["denied", "unavailable", "refused"]


@dataclass(frozen=True, slots=True)
class Identity:
    """A user whose name was proven, and how. `real_user` is who logged in to act as `user`, else None.

    `token`: the number of the delegation token that proved it. `passwords`: users whose passwords the login depends on,
    with the versions that these have in the server's file.
    """

    user: str
    mechanism: Mechanism
    groups: tuple[str, ...] = ()
    real_user: str | None = None
    token: int | None = None
    passwords: tuple[tuple[str, str], ...] = ()


class Denied(Exception):
    """A login is refused. The text is for the client; `cause` is for the server's log alone."""

    outcome: ClassVar[Outcome] = "denied"
    """The word for it in metrics and in the audit log."""

    def __init__(self, text: str, cause: str | None = None) -> None:
        super().__init__(text)
        self.cause = cause or text


class Unavailable(Denied):
    """What a login is checked with doesn't answer: it isn't the client's fault."""

    outcome: ClassVar[Outcome] = "unavailable"


class TooMany(Unavailable):
    """A login isn't checked, because too many others wait. The client may try again."""

    outcome: ClassVar[Outcome] = "refused"


def checked(identity: Identity) -> Identity:
    """The identity, unless its names can't be stored with what it does. Raises Denied."""
    try:
        check_identity(identity.user, identity.groups)
    except MetaException as error:
        raise Denied("the name can't be used here", error.message) from None
    names = (identity.user, *identity.groups)
    if not all(name and name.isprintable() for name in names):
        raise Denied("the name can't be used here", f"empty or unprintable: {names!r}"[:500])
    return identity
