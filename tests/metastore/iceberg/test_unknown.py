"""What is answered, and what becomes of files, when the outcome of a commit isn't known, or is known."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg2
import pytest
from thrift.transport.TTransport import TTransportException

from lake.protocol.connection.thrift_client import ThriftClient
from lake.protocol.hive import MetaException
from lake.protocol.lake import CommitTablesRequest, TableCommit, TablesNotCommitted
from metastore.iceberg.catalog import Catalog as Operations
from metastore.iceberg.catalog import Name
from metastore.iceberg.errors import RestError
from metastore.iceberg.files import MetadataFiles
from metastore.store.engine.database import _translate
from metastore.warehouse import Warehouse
from tests.metastore.iceberg.conftest import Catalog
from tests.metastore.iceberg.test_http import create, set_property
from tests.support import builders


class Interrupted(ThriftClient):
    """Calls `before` and `after` around the call by which tables are committed."""

    before: Callable[["Interrupted"], None] = staticmethod(lambda client: None)
    after: Callable[["Interrupted"], None] = staticmethod(lambda client: None)

    def call(self, name: str, *args: Any, **named: Any) -> Any:
        commits = name == "lake_commit_tables" and not args[0].checkOnly
        if commits:
            self.before(self)
        value = super().call(name, *args, **named)
        if commits:
            self.after(self)
        return value


def broken(client: Interrupted) -> None:
    client.close()
    raise TTransportException(TTransportException.END_OF_FILE, "the connection broke")


def fails(text: str) -> Callable[[Interrupted], None]:
    def fail(client: Interrupted) -> None:
        raise MetaException(text)

    return fail


def lost(client: Interrupted) -> None:
    """As a worker whose database went away while it committed."""
    error = psycopg2.OperationalError("server closed the connection unexpectedly")
    fails(str(_translate(error, error)))(client)


def operations(rest: Catalog, client: ThriftClient) -> Operations:
    warehouse = Warehouse(str(rest.server.data_dir / "warehouse"))
    return Operations(client, "hive", MetadataFiles(warehouse), warehouse)


def files(location: str) -> set[str]:
    return {each.name for each in Path(location.removeprefix("file://")).parent.iterdir()}


@pytest.mark.parametrize("how", [broken, lost, fails("internal error, reference 1; see the server's log")])
@pytest.mark.parametrize("when", ["before", "after"])
def test_a_connection_that_breaks(rest: Catalog, when: str, how: Callable[[Interrupted], None]) -> None:
    """Whether the commit was done isn't known here: its file stays, since the table may need it."""
    namespace = rest.namespace()
    location = create(rest, namespace)["metadata-location"]
    with Interrupted(rest.server.host, rest.server.port) as client:
        setattr(client, when, how)
        with pytest.raises(RestError) as error:
            operations(rest, client).commit([(Name.of(namespace, "t"), [], [set_property("1")])])
    assert (error.value.status, error.value.type) == (500, "CommitStateUnknownException")
    assert len(files(location)) == 2
    found = rest.ask("GET", f"hive/namespaces/{namespace}/tables/t")
    assert (found["metadata"]["properties"].get("p") == "1") == (when == "after")


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_new_table_whose_connection_breaks(rest: Catalog, when: str) -> None:
    namespace = rest.namespace()
    body = {"name": "t", "schema": {"type": "struct", "fields": []}}
    with Interrupted(rest.server.host, rest.server.port) as client:
        setattr(client, when, broken)
        with pytest.raises(RestError) as error:
            operations(rest, client).create_table(namespace, body)
    assert error.value.status == 500
    assert rest.send("HEAD", f"hive/namespaces/{namespace}/tables/t").status_code == (204 if when == "after" else 404)


@pytest.mark.parametrize(
    "cause", [psycopg2.errors.QueryCanceled, psycopg2.errors.LockNotAvailable, psycopg2.errors.DeadlockDetected]
)
def test_a_busy_database(rest: Catalog, cause: type[psycopg2.Error]) -> None:
    """Nothing was done, and the same request may succeed later: 503, and no file stays."""
    namespace = rest.namespace()
    location = create(rest, namespace)["metadata-location"]
    with Interrupted(rest.server.host, rest.server.port) as client:
        client.before = fails(str(_translate(cause(), cause())))
        with pytest.raises(RestError) as error:
            operations(rest, client).commit([(Name.of(namespace, "t"), [], [set_property("1")])])
    assert error.value.status == 503
    assert len(files(location)) == 1


@pytest.mark.parametrize("reason", ["busy", "storage"])
def test_a_worker_that_could_not_commit(rest: Catalog, reason: str) -> None:
    """As with a busy database; it says so by the reason, not by words."""
    namespace = rest.namespace()
    location = create(rest, namespace)["metadata-location"]
    with Interrupted(rest.server.host, rest.server.port) as client:

        def refuse(client: Interrupted) -> None:
            raise TablesNotCommitted("something failed", reason)

        client.before = refuse
        with pytest.raises(RestError) as error:
            operations(rest, client).commit([(Name.of(namespace, "t"), [], [set_property("1")])])
    assert error.value.status == 503
    assert len(files(location)) == 1


def test_a_directory_that_the_storage_refuses(rest: Catalog, client: ThriftClient, tmp_path: Path) -> None:
    namespace = rest.namespace()
    (tmp_path / "file").touch()
    table = builders.external_table(namespace, "t", sd=builders.storage(location=f"file:{tmp_path}/file/t"))
    with pytest.raises(TablesNotCommitted) as refused:
        client.lake_commit_tables(CommitTablesRequest([TableCommit(table)]))
    assert refused.value.reason == "storage"
    assert "t" not in client.get_all_tables(namespace)


def test_a_commit_that_another_one_overtakes(rest: Catalog) -> None:
    """It is made again on the new state, and leaves no file of the first try."""
    namespace = rest.namespace()
    location = create(rest, namespace)["metadata-location"]
    path = f"hive/namespaces/{namespace}/tables/t"
    with Interrupted(rest.server.host, rest.server.port) as client:

        def overtake(client: Interrupted) -> None:
            client.before = lambda client: None
            update = {"action": "set-properties", "updates": {"q": "2"}}
            rest.ask("POST", path, {"requirements": [], "updates": [update]})

        client.before = overtake
        operations(rest, client).commit([(Name.of(namespace, "t"), [], [set_property("1")])])
    properties = rest.ask("GET", path)["metadata"]["properties"]
    assert (properties["p"], properties["q"]) == ("1", "2")
    assert len(files(location)) == 3


def test_a_commit_that_loses(rest: Catalog) -> None:
    """Its requirement doesn't hold any more: 409, and its file is removed."""
    namespace = rest.namespace()
    location = create(rest, namespace)["metadata-location"]
    path = f"hive/namespaces/{namespace}/tables/t"
    schema = {"type": "struct", "fields": [{"id": 1, "name": "other", "type": "long", "required": False}]}
    with Interrupted(rest.server.host, rest.server.port) as client:

        def overtake(client: Interrupted) -> None:
            client.before = lambda client: None
            updates = [{"action": "add-schema", "schema": schema}, {"action": "set-current-schema", "schema-id": -1}]
            rest.ask("POST", path, {"requirements": [], "updates": updates})

        client.before = overtake
        requirement = {"type": "assert-current-schema-id", "current-schema-id": 0}
        with pytest.raises(RestError) as error:
            operations(rest, client).commit([(Name.of(namespace, "t"), [requirement], [set_property("1")])])
    assert error.value.status == 409
    assert len(files(location)) == 2


def test_no_worker(rest: Catalog) -> None:
    """Nothing was sent: 503, and nothing is written."""
    namespace = rest.namespace()
    location = create(rest, namespace)["metadata-location"]
    client = ThriftClient(rest.server.host, rest.server.port)
    client.close()
    with pytest.raises(RestError) as error:
        operations(rest, client).commit([(Name.of(namespace, "t"), [], [set_property("1")])])
    assert error.value.status == 503
    assert len(files(location)) == 1
