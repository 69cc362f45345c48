"""A server with real workers and made-up handlers: the wire and the connections, without a metastore.

Run as a program: `python -m tests.metastore.server.stand_in_metastore SETTINGS_AS_JSON`. What the handlers do is set by
the names in their arguments.
"""

import json
import os
import socket
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from thrift.Thrift import TApplicationException

from lake.protocol import logging
from lake.protocol.codec import binary
from lake.protocol.codec.splice import list_of_structs
from lake.protocol.hive import (
    AlreadyExistsException,
    Database,
    FieldSchema,
    MetaException,
    NoSuchObjectException,
    Partition,
    StorageDescriptor,
    Table,
)
from metastore.api.methods import Call, Encoded, Handler
from metastore.api.rights.classification import Rule
from metastore.api.uncommitted import Uncommitted
from metastore.server.connection.open_connections import Connections
from metastore.server.dispatch import Dispatcher
from metastore.server.supervisor import Supervisor
from metastore.server.worker import Worker
from metastore.settings import Settings
from metastore.store import DatabaseUnavailable, Unstorable

tables: dict[str, Table] = {}


def get_version(call: Call) -> str:
    return "stand-in"


def get_database(call: Call, name: str) -> Database | None:
    """A database, or what goes wrong with it."""
    match name:
        case "missing":
            raise NoSuchObjectException(message="no such database")
        case "undeclared":
            raise AlreadyExistsException(message="is there already")
        case "exit":
            raise SystemExit("no thread of the server's may end by this")
        case "bug":
            raise RuntimeError("a secret of the server")
        case "away":
            raise DatabaseUnavailable("the database is away")
        case "nul":
            raise Unstorable("a text must not contain the NUL character")
        case "none":
            return None
        case "application":
            raise TApplicationException(TApplicationException.INVALID_TRANSFORM, "not that way")
        case "wrong":
            return Database(parameters=7)  # type: ignore[arg-type]
    return Database(name=name, description=call.session.peer)


def get_all_functions(call: Call) -> None:
    """get_all_functions declares a MetaException only."""
    raise NoSuchObjectException(message="no function")


def get_config_value(call: Call, name: str, default: str) -> str:
    """Who the caller is, as JSON."""
    caller = call.session.caller
    return json.dumps([caller.user, list(caller.groups), caller.mechanism, caller.real_user])


def get_name(call: Call) -> str:
    return str(os.getpid())


def get_status_details(call: Call) -> str:
    """Declares no exception at all."""
    raise NoSuchObjectException(message="no details")


def get_metaconf(call: Call, key: str) -> str:
    """Takes as many seconds as the key says."""
    time.sleep(float(key))
    return key


def shutdown(call: Call) -> None:
    """Hive's client calls this when it closes, and waits for no answer."""


def create_table(call: Call, table: Table) -> None:
    tables[table.tableName or ""] = table


def get_table(call: Call, database: str, name: str) -> Table:
    return tables[name]


def abort_txns(call: Call, request: Any) -> None:
    """Needs `txn_ids`."""


def add_partitions(call: Call, partitions: list[Partition]) -> int:
    return len(partitions)


def get_partition_names(call: Call, database: str, table: str, limit: int) -> list[str]:
    if table == "missing":
        raise NoSuchObjectException(message="no such table")
    if table == "broken":
        raise MetaException(message="broken table")
    if table == "away":
        raise DatabaseUnavailable("the database is away")
    return [f"ds={number}" for number in range(limit)]


def get_catalogs(call: Call) -> None:
    """A call that only clients of later Hive versions know."""
    raise NoSuchObjectException(message="no catalogs here")


PARTITION = binary.encode(
    Partition(
        values=["2024-01-01"],
        sd=StorageDescriptor(cols=[FieldSchema(name=f"column_{i}", type="string") for i in range(20)]),
    )
)


def get_partitions(call: Call, database: str, table: str, limit: int) -> Encoded:
    """Encoded partitions, many more than fit into memory comfortably. `database` says where it goes wrong."""

    def pieces() -> Iterator[bytes]:
        if database == "missing":
            raise NoSuchObjectException(message="no such table")
        yield list_of_structs(1000 * limit)
        for number in range(limit):
            if database == "broken" and number == limit // 2:
                raise RuntimeError("a secret of the server")
            yield PARTITION * 1000

    return Encoded(pieces())


def set_ugi(call: Call, user: str, groups: list[str]) -> list[str]:
    call.session.caller = replace(call.session.caller, user=user)
    return groups


_DECLARED = Rule.parse("-", changes=False), Uncommitted.NO_TABLE

HANDLERS = {
    "getVersion": Handler(get_version, *_DECLARED, stores=False),
    "get_database": Handler(get_database, *_DECLARED, stores=False),
    "get_all_functions": Handler(get_all_functions, *_DECLARED, stores=False),
    "get_config_value": Handler(get_config_value, *_DECLARED, stores=False),
    "getName": Handler(get_name, *_DECLARED, stores=False),
    "getStatusDetails": Handler(get_status_details, *_DECLARED, stores=False),
    "getMetaConf": Handler(get_metaconf, *_DECLARED, stores=False),
    "shutdown": Handler(shutdown, *_DECLARED, stores=False),
    "create_table": Handler(create_table, *_DECLARED, stores=True),
    "get_table": Handler(get_table, *_DECLARED, stores=False),
    "abort_txns": Handler(abort_txns, *_DECLARED, stores=False),
    "add_partitions": Handler(add_partitions, *_DECLARED, stores=True),
    "get_partition_names": Handler(get_partition_names, *_DECLARED, stores=False),
    "get_catalogs": Handler(get_catalogs, *_DECLARED, stores=False),
    "get_partitions": Handler(get_partitions, *_DECLARED, stores=False),
    "set_ugi": Handler(set_ugi, *_DECLARED, stores=False),
}


def run(
    listeners: list[socket.socket],
    settings: Settings,
    *,
    worker_id: int,
    parent_alive: int,
    on_ready: Callable[[], None],
) -> int:
    nothing: Any = None  # none of the handlers looks at the services
    dispatcher = Dispatcher(HANDLERS, nothing)
    Worker(listeners, settings, dispatcher, Connections(), worker_id=worker_id).run(parent_alive, on_ready)
    return 0


def main(given: str) -> None:
    settings = Settings(database_url="postgresql://nobody@127.0.0.1:1/none", **json.loads(given))
    logging.configure(settings.log_level, settings.log_format)
    sys.exit(Supervisor(settings, worker=run, migrate=lambda url: None).run())


if __name__ == "__main__":
    main(sys.argv[1])
