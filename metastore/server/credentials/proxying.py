"""Who may act as whom, as Hadoop's proxy users."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from metastore.server.credentials.identity import Denied, Identity, checked
from metastore.services.access.proxy_users import may_act_as


def acting_as(
    identity: Identity,
    user: str,
    peer: str,
    proxies: Mapping[str, Sequence[str]],
    groups: Callable[[str], tuple[str, ...]],
) -> Identity:
    """The identity of `user`, for whom somebody logged in; empty, or one's own name: oneself.

    `peer`: the client's address. `proxies`: whom each proxy user may be. `groups` looks a user's groups up.
    Raises Denied.
    """
    if user in ("", identity.user):
        return identity
    found: list[tuple[str, ...]] = []

    def of_user() -> tuple[str, ...]:
        if not found:
            found.append(groups(user))
        return found[0]

    if not may_act_as(proxies, identity.user, user, peer, of_user):
        raise Denied(
            f"user {identity.user} may not act as {user[:60]!r} from here: the server's proxy_users doesn't say so",
        )
    return checked(replace(identity, user=user, groups=of_user(), real_user=identity.user))
