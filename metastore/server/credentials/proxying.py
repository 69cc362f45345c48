"""Who may act as whom, as Hadoop's proxy users."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from metastore.server.credentials.identity import Denied, Identity
from metastore.services.access.proxy_users import may_act_as


def acting_as(
    identity: Identity, user: str, proxies: Mapping[str, Sequence[str]], groups: tuple[str, ...] = ()
) -> Identity:
    """The identity of `user`, for whom somebody logged in; `groups` are the user's own.

    `proxies`: whom each proxy user may be. Raises Denied.
    """
    if user in ("", identity.user):
        return identity
    if not may_act_as(proxies, identity.user, user):
        raise Denied(
            f"user {identity.user} may not act as {user[:60]!r}: the server's proxy_users doesn't say so",
        )
    return replace(identity, user=user, groups=groups, real_user=identity.user)
