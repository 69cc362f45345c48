"""Which backend a request is for, and which requests are for none."""

from typing import NoReturn

from lake.protocol.generated import fb303_service, hive_metastore_service
from lake.protocol.hive import (
    MetaException,
    NoSuchLockException,
    NoSuchObjectException,
    NoSuchTxnException,
    UnknownDBException,
)
from lake.protocol.method import Method
from lake.protocol.services import OWN_METHODS
from lake.protocol.struct import ExceptionStruct
from metastore.federation.mapping import Mapping, Place
from metastore.federation.names import Name
from metastore.federation.translation import Asked

SELECTED = "federation.backend"
"""What a client sets (in Hive: `set metaconf:federation.backend=eu`) so that requests which name nothing go there."""

ONLY = "federation.only"
"""What the REST catalog sets: for the connection nothing else is there than what this backend gives its names."""

CATALOG = "federation.catalog"
"""What the REST catalog reads: the catalog of that backend's databases here."""

OF_PRIMARY = frozenset({
    "open_txns", "get_open_txns", "get_open_txns_info", "get_open_txns_req", "get_config_value", "getMetaConf",
    "add_partitions", "add_partitions_pspec", "partition_name_has_valid_characters", "partition_name_to_spec",
    "partition_name_to_vals",
})  # fmt: skip
"""Requests that name nothing, and go to the primary backend unless the connection has selected another."""

ONE_OBJECT = frozenset({
    "get_database", "get_fields", "get_partition", "get_partition_by_name", "get_partition_with_auth", "get_table",
    "get_table_req",
})  # fmt: skip
"""Reads whose answers are about the object alone that the request names."""

LOG = frozenset({"get_next_notification", "get_current_notificationEventId", "get_notification_events_count"})
"""Requests for a backend's notification log. Its messages are texts that name databases."""

OF_WRITERS = frozenset({
    "get_valid_write_ids", "get_max_allocated_table_write_id", "get_all_write_event_info",
    "get_latest_committed_compaction_info", "get_lock_materialization_rebuild", "show_locks", "show_compact",
})  # fmt: skip
"""Reads of what transactions depend on: a copy of the metastore that is behind would mislead them."""

EVENTS = frozenset({
    "lake_read_events", "lake_read_group_events", "lake_acknowledge_shards", "lake_leave_group",
    "lake_event_positions", "lake_event_groups", "lake_acknowledge_events", "lake_delete_event_group",
})  # fmt: skip
"""Calls for the event bus of one lake metastore: numbers, groups and positions are that one's."""

REFUSED = {
    **dict.fromkeys(
        ("get_delegation_token", "renew_delegation_token", "cancel_delegation_token", "add_token", "remove_token",
         "get_token", "get_all_token_identifiers", "add_master_key", "update_master_key", "remove_master_key",
         "get_master_keys"),
        "a token of one metastore is not one of another: clients log in to the front by password, Kerberos, certificate"
        " or JSON Web Token",
    ),
    **dict.fromkeys(
        ("create_catalog", "alter_catalog", "drop_catalog"),
        "the catalogs of a front are those of its file",
    ),
    "get_metastore_db_uuid": "a front has no database: ask the backend itself",
}  # fmt: skip
"""Methods that the front never answers, and why."""

OF_READERS = frozenset({
    "open_txns", "lock", "check_lock", "heartbeat", "heartbeat_txn_range", "unlock", "commit_txn", "abort_txn",
    "abort_txns", "lake_lease_snapshot", "lake_release_lease",
})  # fmt: skip
"""Changes that readers make, too: what is read-only takes them."""


Places = dict[Name, str]
"""Databases, and the backends that a request about them is for."""

_PASSED_ON = frozenset(method.name for service in (hive_metastore_service, fb303_service) for method in service.METHODS)


_OF_CONNECTION = frozenset({"lake_begin_request", "lake_end_request", "lake_take_followed"})
_ASK_ITSELF = "send it to the lake metastore itself; `metastore federate explain` says which it is"


class Refused(Exception):
    """The front doesn't do that. The text says what to do instead."""


def refusal(name: str) -> str | None:
    """Why the front never answers a method; None if it may."""
    if name in _OF_CONNECTION:
        return f"{name} is about a connection, and a front has others to its backends: {_ASK_ITSELF}"
    if name not in _PASSED_ON and not name.startswith(OWN_METHODS):
        return f"{name} is not passed on by a front: Hudi's own calls go to the metastore itself"
    return REFUSED.get(name)


def backend_of(mapping: Mapping, method: Method, asked: Asked, selected: str | None, places: Places) -> str:
    """The backend that all of a request is about. `places`: where what it names of a database is, if that isn't where
    the database's name leads.

    Calls of lake metastores alone have to name it, but for those of the event bus.

    Raises Refused, and the exception of the method for a database that no backend has.
    """
    found: dict[str, str] = {}  # the backends, and what of the request leads there
    for name in asked.names:
        found.setdefault(places.get(name) or _place(mapping, method, name).backend, f"database {name}")
    if not asked.names:
        for catalog in asked.catalogs:
            found |= dict.fromkeys(_of_catalog(mapping, method, catalog, selected), f"catalog {catalog}")
    for number in asked.numbers:
        found.setdefault(
            _of_number(mapping, method, number), f"an id with number {number}" if number else "an id of its own"
        )
    if len(found) > 1:
        parts = " and ".join(f"{what} of backend {backend}" for backend, what in found.items())
        raise Refused(
            f"{method.name} is about {parts}: a request, a transaction and a lock are about one backend. Transactions"
            f" begin at the primary one unless the connection says otherwise (set metaconf:{SELECTED}=…)"
        )
    if found:
        return next(iter(found))
    if method.name in EVENTS:
        return _of_events(mapping, method.name, selected)
    if method.name.startswith(OWN_METHODS):
        raise Refused(f"{method.name} names no table, so a front doesn't pass it on: {_ASK_ITSELF}")
    return nameless(mapping, method.name, selected)


def selection(mapping: Mapping, selected: str | None) -> str | None:
    """The backend that a connection has selected, if it has. Raises Refused for one that the file has no more.

    Another one would answer for it otherwise.
    """
    if selected is not None and selected not in mapping.backends:
        raise Refused(
            f"this connection has selected backend {selected}, and the front's file has it no more: select another one"
            f" by set metaconf:{SELECTED}=… (one of {', '.join(mapping.backends)}), or none by an empty name"
        )
    return selected


def nameless(mapping: Mapping, method: str, selected: str | None) -> str:
    """The backend of a request that names nothing. Raises Refused."""
    if selection(mapping, selected) is not None:
        assert selected is not None
        return selected
    if len(mapping.backends) == 1 or (method in OF_PRIMARY and mapping.primary is not None):
        assert mapping.primary is not None
        return mapping.primary
    known = ", ".join(mapping.backends)
    more = ", or mark one as primary in the front's file" if method in OF_PRIMARY else ""
    raise Refused(
        f"{method} names no database, so a front of several metastores can't tell which one it is for: select one first"
        f" by set metaconf:{SELECTED}=… (one of {known}), ask the backend itself{more}"
    )


def _of_events(mapping: Mapping, method: str, selected: str | None) -> str:
    """The backend whose event bus a call is for. Raises Refused.

    What events say is JSON, with names and ids as that backend has them, so these must be the front's, too.
    """
    backend = selection(mapping, selected) or mapping.primary
    if backend is None or mapping.number(backend) != 0:
        raise Refused(
            f"{method}: a front passes on the events of its primary backend, since others have other ids: {_ASK_ITSELF}"
        )
    return backend


def may_be_behind(method: str, asked: Asked) -> bool:
    """Whether a read may be answered by a copy of the metastore that is behind by some seconds."""
    return bool(asked.names) and not asked.numbers and method not in OF_WRITERS and not method.startswith(OWN_METHODS)


ABOUT_TABLES = frozenset({
    "lake_list_partitions", "lake_commit_partitions", "lake_reopen_partitions", "lake_get_watermark",
    "lake_route_partitions", "lake_begin_instant", "lake_transition_instant", "lake_complete_instants",
    "lake_heartbeat_instant", "lake_delete_instant", "lake_list_instants", "lake_get_instant",
    "lake_list_rejected_commits", "lake_timeline_position", "lake_get_snapshot", "lake_read_changes",
    "lake_lease_snapshot", "lake_release_lease", "lake_list_leases", "lake_plan_clean", "lake_find_orphans",
    "lake_remove_orphans",
})  # fmt: skip
"""Calls of lake metastores alone whose names of databases are all in fields that are known."""


def check_own(mapping: Mapping, method: str, backend: str) -> None:
    """Raises Refused for a call of lake metastores alone to a backend that has other names than the front.

    Texts in its answer may have the backend's.
    """
    if method in ABOUT_TABLES:
        if mapping.number(backend) is None:
            raise Refused(
                f"{method} names tables by ids, and a front of several metastores can't tell whose they are: give"
                f" backends.{backend} a number in the front's file"
            )
        return
    if method.startswith(OWN_METHODS) and not mapping.is_identity(backend):
        raise Refused(
            f"a front passes {method} on only where databases have the names of their own metastore, and those of"
            f" backend {backend} have others: {_ASK_ITSELF}"
        )


def check_replays(mapping: Mapping, method: str, backend: str, selected: str | None) -> None:
    """Raises Refused for a request that repeats a transaction of another metastore, unless it is for the primary one.

    That transaction's id has no backend's number, and its policy names a database where it isn't translated.
    """
    if mapping.number(backend) != 0 or not mapping.is_identity(backend) or selected not in (None, backend):
        raise Refused(
            f"{method} repeats a transaction of another metastore (replPolicy), and a front can't tell for which"
            f" backend: replicate to backend {selected or backend} itself"
        )


def check_writable(mapping: Mapping, method: str, asked: Asked, backend: str) -> None:
    """Raises Refused if the request would change what the front may only read, or doesn't show."""
    settings = mapping.backends[backend]
    if asked.nameless_ids and (settings.read_only is not False or settings.deny or settings.allow != ("*",)):
        raise Refused(
            f"{method} changes a table that it names by its id alone, so it isn't known whether this front shows it,"
            f" and lets it be changed: use backend {backend} itself"
        )
    if method in OF_READERS:
        return
    for name in asked.names:
        place = mapping.place(name)
        if place is not None and not settings.writable(place.name.database):
            raise Refused(
                f"database {name} is read-only here (backends.{backend}.read_only). If it is moving to another"
                f" metastore, try again here in a minute; if it stays so, backend {backend} itself may take the change"
            )
    if not asked.names and settings.read_only is True:
        raise Refused(f"backend {backend} is read-only here (backends.{backend}.read_only)")


def _place(mapping: Mapping, method: Method, name: Name) -> Place:
    place = mapping.place(name)
    if place is None:
        missing(method, f"no metastore behind this front has a database {name}")
    return place


def missing(method: Method, text: str) -> NoReturn:
    """Raises the exception of a method for a database that isn't there."""
    for cls in (NoSuchObjectException, UnknownDBException, MetaException):
        if cls in method.exceptions:
            error: ExceptionStruct = cls(message=text)
            raise error
    raise Refused(text)


def _of_catalog(mapping: Mapping, method: Method, catalog: str, selected: str | None) -> list[str]:
    """The backend that a catalog's name leads to; none for the default catalog of several."""
    there = [
        backend
        for backend, settings in mapping.backends.items()
        if settings.catalog == catalog and settings.beside is None
    ]
    if len(there) == 1:
        return there
    if not there:
        raise Refused(f"this front has no catalog {catalog}: it has {', '.join(mapping.catalogs)}")
    return [selected] if selected in there else []


def _of_number(mapping: Mapping, method: Method, number: int) -> str:
    for backend in mapping.backends:
        if mapping.number(backend) == number:
            return backend
    text = (
        "an id of a transaction or lock is from no backend of this front. If it was once, the primary backend, or a"
        " backend's number, has changed"
    )
    for cls in (NoSuchTxnException, NoSuchLockException):
        if cls in method.exceptions:
            error: ExceptionStruct = cls(message=text)
            raise error
    raise Refused(text)
