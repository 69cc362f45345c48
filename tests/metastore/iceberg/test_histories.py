"""Writers of both catalogs on the same tables: nothing acknowledged is lost, and transactions are whole.

Each write adds a property of its own name to one table, or to both in one transaction.
"""

import random
import socket
import threading
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import requests
from pyiceberg.catalog.hive import HiveCatalog
from pyiceberg.exceptions import CommitFailedException
from thrift.Thrift import TException

from lake.protocol.connection.thrift_client import ThriftClient
from lake.protocol.hive import AlterTableRequest, MetaException
from metastore.iceberg import hive_parameters, metadata
from metastore.iceberg.catalog import TABLE
from metastore.iceberg.files import MetadataFiles, next_location
from metastore.warehouse import Warehouse
from tests.metastore.iceberg.conftest import Catalog
from tests.metastore.iceberg.test_http import create
from tests.support.server import MetastoreServer

TABLES = ("a", "b")
Write = Callable[[str, str], bool]
"""Adds the property of a name to a table; whether it was acknowledged. Raises what leaves the outcome open."""


def update(name: str) -> dict[str, Any]:
    return {"action": "set-properties", "updates": {name: "1"}}


class Writers:
    def __init__(self, rest: Catalog, namespace: str) -> None:
        self._rest = rest
        self._namespace = namespace
        self._files = MetadataFiles(Warehouse(str(rest.server.data_dir / "warehouse")))

    def rest(self, name: str, table: str) -> bool:
        """As REST's clients: 409 is tried again, by what is stored then."""
        path = f"hive/namespaces/{self._namespace}/tables/{table}"
        return self._acknowledged("POST", path, {"requirements": [], "updates": [update(name)]})

    def transaction(self, name: str, table: str) -> bool:
        changes = [
            {"identifier": {"namespace": [self._namespace], "name": each}, "updates": [update(name)]} for each in TABLES
        ]
        return self._acknowledged("POST", "hive/transactions/commit", {"table-changes": changes})

    def _acknowledged(self, method: str, path: str, body: Any) -> bool:
        with requests.Session() as session:
            response = Catalog(self._rest.server, session=session).send(method, path, body)
        if response.ok:
            return True
        assert response.status_code == 409 or response.status_code >= 500, response.text
        if response.status_code >= 500:
            raise ConnectionError(response.text)
        return False

    def locked(self, name: str, table: str) -> bool:
        """PyIceberg's HiveCatalog: under a lock, and without an expectation."""
        waits = {"lock-check-min-wait-time": "0.02", "lock-check-max-wait-time": "0.1", "lock-check-retries": "50"}
        catalog = HiveCatalog("hive", uri=self._rest.server.uri, **waits)
        try:
            with catalog.load_table((self._namespace, table)).transaction() as change:
                change.set_properties({name: "1"})
        except CommitFailedException:
            return False
        except Exception as error:
            if "has been modified" in str(error):
                return False
            raise
        return True

    def unlocked(self, name: str, table: str) -> bool:
        """As HiveCatalog without locks: the metadata that it began with is what it expects."""
        with ThriftClient(self._rest.server.host, self._rest.server.port) as client:
            before = client.get_table(self._namespace, table)
            location = before.parameters["metadata_location"]
            new = metadata.apply(self._files.parsed(location, TABLE.uuid_key), [update(name)], location)
            assert new is not None
            place = next_location(location, new, str(uuid.uuid4()))
            self._files.write(place, new, TABLE.uuid_key)
            changed = hive_parameters.table(before, ("hive", self._namespace, table), new, place, set())
            request = AlterTableRequest(
                catName="hive",
                dbName=self._namespace,
                tableName=table,
                table=changed,
                expectedParameterKey="metadata_location",
                expectedParameterValue=location,
            )
            try:
                client.alter_table_req(request)
            except MetaException as error:
                assert "has been modified" in str(error.message), error
                return False
        return True


def run(rest: Catalog, writes: int, seed: int, between: Callable[[], None] = lambda: None) -> None:
    print(f"seed {seed}")
    namespace = rest.namespace()
    for table in TABLES:
        create(rest, namespace, table)
    writers = Writers(rest, namespace)
    kinds: dict[str, Write] = {
        "rest1": writers.rest,
        "rest2": writers.rest,
        "transaction1": writers.transaction,
        "transaction2": writers.transaction,
        "locked": writers.locked,
        "unlocked": writers.unlocked,
    }
    done: dict[str, str] = {}
    failures: list[BaseException] = []

    def work(kind: str, write: Write) -> None:
        chosen = random.Random(f"{seed} {kind}")
        try:
            for number in range(writes):
                name, table = f"{kind}-{number}", chosen.choice(TABLES)
                while True:
                    try:
                        if write(name, table):
                            done[name] = table
                            break
                    except (OSError, TException):  # the outcome is open: the next write is another one
                        time.sleep(0.2)
                        break
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=each, name=each[0]) for each in kinds.items()]
    for each in threads:
        each.start()
    between()
    for each in threads:
        each.join(120)
    assert not failures, failures
    found = {
        table: rest.ask("GET", f"hive/namespaces/{namespace}/tables/{table}")["metadata"]["properties"]
        for table in TABLES
    }
    for name, table in done.items():
        for each in TABLES if name.startswith("transaction") else (table,):
            assert name in found[each], f"{name} was acknowledged, and isn't in {each}"
    for name in {*found["a"], *found["b"]}:
        if name.startswith("transaction"):
            assert name in found["a"] and name in found["b"], f"{name} is in one table alone"


def test_nothing_is_lost(rest: Catalog) -> None:
    run(rest, writes=5, seed=random.randrange(10**6))


@pytest.mark.long
def test_nothing_is_lost_when_the_server_is_killed(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    options = ("--http-port", str(port), "--workers", "2")
    with MetastoreServer(tmp_path / "data", *options) as server:

        def kill() -> None:
            for _ in range(3):
                time.sleep(2)
                server.kill()
                server.start()

        run(Catalog(server), writes=60, seed=random.randrange(10**6), between=kill)
