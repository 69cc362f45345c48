"""The client library for subscribers: follow events from another program.

    from lake.subscriptions import subscribe

    with subscribe("thrift://metastore:9083", tables="ods.*", types=["COMMIT_PARTITIONS"], group="jobs") as events:
        for event in events:
            start_job(event.table, event.payload["partitions"])
            events.acknowledge(event)

Each event arrives at least once, in the order of commits. The members of a group share the events by table. Events that
a member has not acknowledged arrive again, even after a crash.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from lake.protocol.events.types import Event, EventType
from lake.subscriptions.base import SourceUnavailable, Start, Subscription

if TYPE_CHECKING:
    from lake.protocol.connection.login import Login

__all__ = ["Event", "EventType", "SourceUnavailable", "Start", "Subscription", "subscribe"]


def subscribe(
    uri: str | Sequence[str],
    *,
    tables: str | Sequence[str] = (),
    types: Sequence[str] = (),
    group: str | None = None,
    start: Start = "latest",
    login: "Login | None" = None,
) -> Subscription:
    """Subscribes to events of some tables and types. Connects on first use.

    `uri`: one or several metastore servers, `thrift://host:port`; or Redis, `redis://host:port/database`.
    `tables`: patterns `database.table` with `*`; empty: everything. Events about a database match patterns whose table
    is `*`.
    `types`: names of EventType; empty: all.
    `group`: stores acknowledged positions under this name; its members share the events by table.
    `start`: where a new group, or a subscription without a group, begins: after the `latest` event, at the `earliest`
    event in the log, after an event's number or a `bookmark`, or at a time.
    `login`: who the client is, by default what the environment says
    (`lake.protocol.connection.login.Login`); for Redis it is in the URL.

    Raises BadFilter, and ValueError for an invalid `start`.
    """
    uris = uri.split(",") if isinstance(uri, str) else list(uri)
    patterns = [tables] if isinstance(tables, str) else tables
    if uris[0].startswith(("redis://", "rediss://", "unix://")):
        from lake.subscriptions.redis import StreamSubscription

        return StreamSubscription(uris[0], patterns, types, group, start)
    if group is not None:
        from lake.subscriptions.thrift_group import ThriftMember

        return ThriftMember(uris, patterns, types, group, start, login)
    from lake.subscriptions.thrift import ThriftSubscription

    return ThriftSubscription(uris, patterns, types, start, login)
