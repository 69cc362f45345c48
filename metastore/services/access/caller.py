"""Who makes a call: what authorisers decide about and what the audit log records."""

from dataclasses import dataclass, field
from typing import Literal

Mechanism = Literal["none", "plain", "kerberos", "token", "certificate", "jwt", "header", "server"]
"""How a user was proven. "none": not at all, the name is what the client says (`set_ugi`). "server": a process of the
server itself, such as the one that answers probes."""


@dataclass(frozen=True, slots=True)
class Caller:
    """`user` is who acts; `real_user` who logged in to act as `user` (a proxy user), else None.

    `groups` are those that the server knows or, with the mechanism "none", those that the client claims.
    `peer` is the client's address. `passwords`: users whose passwords the login depends on, with the versions of then.
    """

    user: str | None
    groups: tuple[str, ...] = ()
    mechanism: Mechanism = "none"
    real_user: str | None = None
    peer: str = ""
    passwords: tuple[tuple[str, str], ...] = field(default=(), compare=False)
