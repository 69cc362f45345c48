"""Who may act as whom, and from where, as Hadoop's proxy users (`hadoop.proxyuser.*`).

Each proxy user has a list. `NAME` and `*` are users it may be (Hadoop's `.users`), `group:NAME` stands for all of a
group (`.groups`), and `host:ADDRESS` or `host:NETWORK` says from where alone (`.hosts`); without such an entry from
anywhere.
"""

import ipaddress
from collections.abc import Callable, Mapping, Sequence

ANYBODY = "*"
_GROUP, _HOST = "group:", "host:"


def check_entries(entries: Sequence[str]) -> None:
    """Raises ValueError for a list that allows nothing, or a host that is no address and no network."""
    for entry in entries:
        if entry.startswith(_HOST):
            _network(entry)
        elif not entry.removeprefix(_GROUP):
            raise ValueError(f"{entry!r} names nobody")
    if all(entry.startswith(_HOST) for entry in entries):
        raise ValueError("it names hosts and no user: add the users, `group:NAME` or `*`")


def may_act_as(
    proxies: Mapping[str, Sequence[str]],
    user: str,
    other: str,
    peer: str,
    groups: Callable[[], Sequence[str]],
) -> bool:
    """Whether `user` may act as `other`.

    `proxies`: the list of each proxy user. `peer`: the client's address, `host:port`. `groups` looks up the other's.
    """
    if other == user:
        return True
    entries = proxies.get(user, ())
    hosts = [entry for entry in entries if entry.startswith(_HOST)]
    if hosts and not _is_at(peer, hosts):
        return False
    if ANYBODY in entries or (other in entries and not other.startswith((_GROUP, _HOST))):
        return True
    allowed = {entry.removeprefix(_GROUP) for entry in entries if entry.startswith(_GROUP)}
    return bool(allowed) and not allowed.isdisjoint(groups())


def _is_at(peer: str, hosts: Sequence[str]) -> bool:
    try:
        address = ipaddress.ip_address(peer.rpartition(":")[0].strip("[]"))
    except ValueError:
        return False
    mapped = getattr(address, "ipv4_mapped", None)
    return any((mapped or address) in _network(entry) for entry in hosts)


def _network(entry: str) -> ipaddress.IPv4Network | ipaddress.IPv6Network:
    try:
        return ipaddress.ip_network(entry.removeprefix(_HOST), strict=False)
    except ValueError:
        raise ValueError(f"{entry!r} is no address or network, such as host:10.0.0.5 or host:10.0.0.0/8") from None
