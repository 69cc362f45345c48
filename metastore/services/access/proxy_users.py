"""Who may act as whom, as Hadoop's proxy users (`hadoop.proxyuser.*`)."""

from collections.abc import Mapping, Sequence

ANYBODY = "*"


def may_act_as(proxies: Mapping[str, Sequence[str]], user: str, other: str) -> bool:
    """Whether `user` may act as `other`. `proxies`: whom each proxy user may be."""
    allowed = proxies.get(user, ())
    return other == user or ANYBODY in allowed or other in allowed
