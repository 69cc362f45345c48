"""Metastores of Hive 3.1 and 4 behind a front: Iceberg's REST catalog there, beside writers that take no locks."""

import itertools
import json
import threading
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.exceptions import CommitFailedException, NoSuchTableError

from bench.hive4_server import Hive4OnPostgres
from bench.postgres import LoopbackPostgres
from lake.protocol.connection.thrift_client import ThriftClient
from lake.protocol.errors import UserError
from lake.protocol.hive import EnvironmentContext, GetTableRequest, MetaException
from metastore.iceberg import hive_parameters, metadata
from metastore.iceberg.catalog import TABLE
from metastore.iceberg.files import MetadataFiles, next_location
from metastore.warehouse import Warehouse
from tests.interop import maven
from tests.metastore.iceberg.conftest import Catalog
from tests.support import builders
from tests.support.front import FrontServer
from tests.support.reference4 import HIVE3, RELEASES, Hive4Reference
from tests.support.server import MetastoreServer

pytestmark = pytest.mark.interop
NUMBERS = itertools.count(1)


@dataclass(frozen=True)
class Hive:
    host: str
    port: int
    warehouse: Path
    compares: bool
    """Whether it looks at what a writer expects of a table, or says that it can't; Hive 3.1 passes it over."""


@pytest.fixture(
    scope="module",
    params=[(HIVE3, "postgres"), *((each, on) for each in RELEASES.values() for on in ("derby", "postgres"))],
    ids=lambda given: f"{given[0].version}-{given[1]}",
)
def hive(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hive]:
    """Hive 4 on Derby can't compare what is expected of a table; on Postgres it can."""
    release, database = request.param
    directory = tmp_path_factory.mktemp("hive4_front")
    with ExitStack() as stack:
        try:
            if database == "postgres":
                postgres = LoopbackPostgres(directory / "postgres")
                stack.callback(postgres.close)
                url, warehouse = postgres.create("hive"), directory / "warehouse"
                server = Hive4OnPostgres(directory, url, warehouse, release, cached=False)
                stack.enter_context(server)
                found = Hive(server.host, server.port, warehouse, release is not HIVE3)
            else:
                kind = type("Hive", (Hive4Reference,), {"release": release})
                reference = kind(directory)
                stack.callback(reference.close)
                found = Hive(reference.host, reference.port, reference.warehouse, compares=True)
        except (maven.Unavailable, UserError) as error:
            pytest.skip(str(error))
        yield found


@pytest.fixture(scope="module")
def front(
    hive: Hive, metastore_server: MetastoreServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[FrontServer]:
    backends = {
        "hive": f'uris = "thrift://{hive.host}:{hive.port}"\nprefix = "h4_"\nnumber = 4',
        "lake": f'uris = "{metastore_server.uri}"\nbeside = "hive"\nnumber = 5',
    }
    more = f"[federation]\niceberg_locations = {json.dumps(str(hive.warehouse))}\n"
    with FrontServer(tmp_path_factory.mktemp("front4"), backends, "--http-port", "0", more=more) as server:
        yield server


@pytest.fixture
def rest(front: FrontServer) -> RestCatalog:
    return RestCatalog("hive", uri=Catalog(front).uri, warehouse="hive")


def test_tables(front: FrontServer, rest: RestCatalog, metastore_server: MetastoreServer) -> None:
    name = f"f{next(NUMBERS)}"
    rest.create_namespace(f"h4_{name}")
    table = rest.create_table((f"h4_{name}", "t"), pa.schema([("id", pa.int64())]))
    table.append(pa.table({"id": pa.array([1, 2], pa.int64())}))
    rest.rename_table((f"h4_{name}", "t"), (f"h4_{name}", "u"))
    with pytest.raises(NoSuchTableError):
        rest.load_table((f"h4_{name}", "t"))
    assert rest.load_table((f"h4_{name}", "u")).scan().to_arrow()["id"].to_pylist() == [1, 2]
    with (
        ThriftClient(front.host, front.port) as client,
        ThriftClient(metastore_server.host, metastore_server.port) as ours,
    ):
        ours.create_database(builders.database(name))
        client.create_table(
            builders.table(f"h4_{name}", "keyed", sd=builders.parquet(), parameters={"primary-key": "id"})
        )
        client.create_table(builders.external_table(f"h4_{name}", "plain", keys=("a",)))
        client.add_partition(builders.partition(f"h4_{name}", "plain", "1"))
        assert client.get_partition_names(f"h4_{name}", "plain", -1) == ["a=1"]
        assert client.get_all_tables(f"h4_{name}") == ["keyed", "plain", "u"]
        assert ours.get_all_tables(name) == ["keyed"]
        ours.drop_database(name, True, True)
    rest.drop_table((f"h4_{name}", "u"))
    assert rest.list_tables(f"h4_{name}") == []


def test_writers_without_locks(front: FrontServer, rest: RestCatalog, hive: Hive) -> None:
    """Hive 4 checks what is expected: so neither overwrites the other. On Derby nobody commits but under the lock. Hive
    3.1 checks nothing: there all writers take the lock, as the documentation says."""
    name = f"f{next(NUMBERS)}"
    rest.create_namespace(f"h4_{name}")
    rest.create_table((f"h4_{name}", "t"), pa.schema([("id", pa.int64())]))
    files = MetadataFiles(Warehouse(str(hive.warehouse)))
    done: list[str] = []
    lock = threading.Lock()

    def locked(key: str) -> bool:
        own = RestCatalog("hive", uri=Catalog(front).uri, warehouse="hive")
        try:
            with own.load_table((f"h4_{name}", "t")).transaction() as change:
                change.set_properties({key: "1"})
        except CommitFailedException:
            return False
        return True

    def unlocked(key: str) -> bool:
        with ThriftClient(hive.host, hive.port) as client:
            before = client.get_table_req(GetTableRequest(name, "t")).table
            location = before.parameters["metadata_location"]
            update = {"action": "set-properties", "updates": {key: "1"}}
            new = metadata.apply(files.parsed(location, TABLE.uuid_key), [update], location)
            assert new is not None
            place = next_location(location, new, str(uuid.uuid4()))
            files.write(place, new, TABLE.uuid_key)
            changed = hive_parameters.table(before, ("hive", name, "t"), new, place, set())
            expected = {"expected_parameter_key": "metadata_location", "expected_parameter_value": location}
            try:
                client.alter_table_with_environment_context(name, "t", changed, EnvironmentContext(expected))
            except MetaException as error:
                assert "has been modified" in str(error.message) or "Comparisons between" in str(error.message), error
                return False
        return True

    def write(writer: int) -> None:
        for number in range(6):
            key = f"w{writer}.{number}"
            if (unlocked if writer % 2 and hive.compares else locked)(key):
                with lock:
                    done.append(key)

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(write, range(4)))
    kept = set(rest.load_table((f"h4_{name}", "t")).properties)
    assert set(done) <= kept
    assert {key[:2] for key in done} & {"w0", "w2"}
