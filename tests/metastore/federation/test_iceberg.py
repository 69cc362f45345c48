"""Iceberg's REST catalog over the tables of a Hive and of a lake metastore, behind one front."""

import itertools
import json
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.catalog.hive import HiveCatalog
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.exceptions import CommitFailedException, NamespaceAlreadyExistsError, NoSuchTableError

from lake.protocol.connection.thrift_client import ThriftClient
from lake.protocol.hive import (
    GetTableResult,
    LockComponent,
    LockLevel,
    LockRequest,
    LockResponse,
    LockState,
    LockType,
    MetaException,
    NoSuchObjectException,
    Table,
    UnlockRequest,
)
from metastore.server.credentials import password_file
from tests.metastore.federation.stand_in import HangUp, StandIn
from tests.metastore.federation.test_failures import answers
from tests.metastore.iceberg.conftest import Catalog
from tests.support import builders
from tests.support.front import FrontServer
from tests.support.reference import HiveReference
from tests.support.server import MetastoreServer

NUMBERS = itertools.count(1)
SCHEMA = pa.schema([("id", pa.int64())])
WAITS = {"lock-check-min-wait-time": "0.02", "lock-check-max-wait-time": "0.1", "lock-check-retries": "50"}
BACKENDS = {"hive": "h_", "ours": ""}
"""The prefixes of the databases' names."""


@pytest.fixture(scope="module")
def front(
    metastore_server: MetastoreServer, hive_reference: HiveReference, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[FrontServer]:
    backends = {
        "hive": f'uris = "thrift://{hive_reference.host}:{hive_reference.port}"\nprefix = "h_"\ndeny = "secret"',
        "ours": f'uris = "{metastore_server.uri}"\nprimary = true',
    }
    roots = [str(hive_reference.warehouse), str(metastore_server.data_dir / "warehouse")]
    more = f"[federation]\niceberg_locations = {json.dumps(roots)}\n"
    directory = tmp_path_factory.mktemp("iceberg_front")
    with FrontServer(directory, backends, "--http-port", "0", more=more) as server:
        yield server


@pytest.fixture
def rest(front: FrontServer) -> Catalog:
    return Catalog(front)


def catalog(front: FrontServer, backend: str) -> RestCatalog:
    return RestCatalog(backend, uri=Catalog(front).uri, warehouse=backend)


def namespace(of: RestCatalog, backend: str) -> str:
    """A new namespace, by its name in the front."""
    name = f"{BACKENDS[backend]}ice{next(NUMBERS)}"
    of.create_namespace(name)
    return name


def ids(table: Any) -> list[int]:
    found: list[int] = table.scan().to_arrow()["id"].to_pylist()
    return sorted(found)


def rows(*numbers: int) -> pa.Table:
    return pa.table({"id": pa.array(numbers, pa.int64())})


@pytest.mark.parametrize("backend", BACKENDS)
def test_tables_of_a_backend(
    front: FrontServer, backend: str, metastore_server: MetastoreServer, hive_reference: HiveReference
) -> None:
    rest = catalog(front, backend)
    name = namespace(rest, backend)
    assert (name,) in rest.list_namespaces()
    with pytest.raises(NamespaceAlreadyExistsError):
        rest.create_namespace(name)
    rest.update_namespace_properties(name, updates={"k": "v"})
    assert rest.load_namespace_properties(name)["k"] == "v"
    table = rest.create_table((name, "t"), SCHEMA)
    table.append(rows(1, 2))
    there = {"hive": hive_reference, "ours": metastore_server}[backend]
    uri = f"thrift://{there.host}:{there.port}"
    with ThriftClient.from_uri(uri) as client:
        client.create_table(builders.table(name.removeprefix(BACKENDS[backend]), "plain"))
    theirs = HiveCatalog("theirs", uri=uri, **WAITS).load_table((name.removeprefix(BACKENDS[backend]), "t"))
    assert ids(theirs) == [1, 2]
    theirs.append(rows(3))
    table.refresh()
    table.append(rows(4))
    assert ids(rest.load_table((name, "t"))) == [1, 2, 3, 4]
    assert rest.list_tables(name) == [(name, "t")]
    rest.rename_table((name, "t"), (name, "u"))
    with pytest.raises(NoSuchTableError):
        rest.load_table((name, "t"))
    with pytest.raises(NoSuchTableError):
        rest.load_table((name, "plain"))
    assert ids(rest.load_table((name, "u"))) == [1, 2, 3, 4]
    rest.drop_table((name, "u"))
    assert rest.list_tables(name) == []


def test_a_prefix_shows_one_backend(rest: Catalog, front: FrontServer) -> None:
    hive, ours = catalog(front, "hive"), catalog(front, "ours")
    of_hive, of_ours = namespace(hive, "hive"), namespace(ours, "ours")
    assert rest.ask("GET", "config")["overrides"]["prefix"] == "ours"  # the primary one
    assert rest.refused("GET", "config?warehouse=mars")[0] == 404
    assert not any("transactions/commit" in each for each in rest.ask("GET", "config?warehouse=hive")["endpoints"])
    assert {each[0] for each in hive.list_namespaces()} & {of_hive, of_ours} == {of_hive}
    assert {each[0] for each in ours.list_namespaces()} & {of_hive, of_ours} == {of_ours}
    for path in (f"ours/namespaces/{of_hive}", f"hive/namespaces/{of_ours}", f"hive/namespaces/{of_ours}/tables"):
        assert rest.refused("GET", path)[0] == 404
    assert rest.refused("POST", "hive/namespaces", {"namespace": ["h_secret"]})[0] in (400, 404)
    assert rest.refused("POST", "hive/namespaces", {"namespace": [f"{of_ours}x"]})[0] in (400, 404)
    assert f"{of_ours}x" not in {each[0] for each in ours.list_namespaces()}


@pytest.mark.parametrize("backend", BACKENDS)
def test_no_acknowledged_commit_is_lost(
    front: FrontServer, backend: str, metastore_server: MetastoreServer, hive_reference: HiveReference
) -> None:
    """Writers through the front, and one of HiveCatalog past it, at one table."""
    rest = catalog(front, backend)
    name = namespace(rest, backend)
    rest.create_table((name, "t"), SCHEMA)
    there = {"hive": hive_reference, "ours": metastore_server}[backend]
    past = HiveCatalog("past", uri=f"thrift://{there.host}:{there.port}", **WAITS)
    done: list[str] = []
    lock = threading.Lock()

    def write(writer: int) -> None:
        own, where = (past, name.removeprefix(BACKENDS[backend])) if writer == 0 else (catalog(front, backend), name)
        for number in range(4):
            key = f"w{writer}.{number}"
            try:
                with own.load_table((where, "t")).transaction() as change:
                    change.set_properties({key: "1"})
            except CommitFailedException:
                continue
            except Exception as error:
                if "has been modified" not in str(error):
                    raise
                continue
            with lock:
                done.append(key)

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(write, range(4)))
    kept = {key for key in rest.load_table((name, "t")).properties if key.startswith("w")}
    assert set(done) <= kept
    assert len(done) >= 4


@pytest.mark.long
def test_a_lock_of_others_is_waited_for_and_then_a_conflict(front: FrontServer, hive: ThriftClient) -> None:
    rest = catalog(front, "hive")
    name = namespace(rest, "hive")
    table = rest.create_table((name, "t"), SCHEMA)
    component = LockComponent(LockType.EXCLUSIVE, LockLevel.TABLE, name.removeprefix("h_"), "t")
    held = hive.lock(LockRequest([component], user="me", hostname="here"))
    body = {"requirements": [], "updates": [{"action": "set-properties", "updates": {"k": "v"}}]}
    status, kind, text = Catalog(front).refused("POST", f"hive/namespaces/{name}/tables/t", body)
    assert (status, kind) == (409, "CommitFailedException")
    assert "locked" in text
    hive.unlock(UnlockRequest(held.lockid))
    with table.transaction() as change:
        change.set_properties({"k": "v"})
    assert rest.load_table((name, "t")).properties["k"] == "v"


def test_places_are_bounded(
    rest: Catalog, front: FrontServer, hive: ThriftClient, hive_reference: HiveReference, tmp_path: Path
) -> None:
    catalog_of_hive = catalog(front, "hive")
    name = namespace(catalog_of_hive, "hive")
    made = catalog_of_hive.create_table((name, "t"), SCHEMA)
    there = name.removeprefix("h_")
    outside = tmp_path / "outside"
    body = {"name": "x", "location": f"file://{outside}", "schema": {"type": "struct", "fields": []}}
    status, _, text = rest.refused("POST", f"hive/namespaces/{name}/tables", body)
    assert (status, "federation.iceberg_locations" in text) == (403, True)
    assert not outside.exists()
    secret = tmp_path / "secret.metadata.json"
    secret.write_bytes(Path(made.metadata_location.removeprefix("file://")).read_bytes())
    link = Path(str(hive_reference.warehouse)) / f"{there}.db" / "t" / "metadata" / "link.metadata.json"
    link.symlink_to(secret)
    stored = hive.get_table(there, "t")
    other = catalog_of_hive.create_table((name, "other"), SCHEMA).metadata_location
    for location in (f"file://{secret}", f"file://{link}", f"file://{tmp_path}/../{secret.name}", other):
        parameters = {**stored.parameters, "metadata_location": location}
        hive.alter_table(there, "t", stored.replace(parameters=parameters))
        assert rest.refused("GET", f"hive/namespaces/{name}/tables/t")[0] in (400, 403)
        body = {"name": "y", "metadata-location": location}
        if location != other:
            assert rest.refused("POST", f"hive/namespaces/{name}/register", body)[0] in (400, 403)


@pytest.mark.long
def test_an_answer_that_is_lost(tmp_path: Path) -> None:
    """Nobody knows then: the client removes nothing, and neither does the front."""
    stored: dict[str, Table] = {}
    state = {"alter": "hang up"}

    def create(table: Table) -> None:
        stored[table.tableName or ""] = table

    def get(request: Any) -> Any:
        if request.tblName not in stored:
            return NoSuchObjectException("no table")
        return GetTableResult(stored[request.tblName])

    def alter(database: str, name: str, new: Table, context: Any) -> Any:
        assert context.properties["expected_parameter_key"] == "metadata_location"
        match state["alter"]:
            case "hang up":
                raise HangUp
            case "after":
                stored[name] = new
                return MetaException("a listener failed")
        return MetaException("no")

    def lock(request: Any) -> Any:
        return LockResponse(7, LockState.ACQUIRED)

    calls = {
        "create_table": create, "get_table_req": get, "alter_table_with_environment_context": alter, "lock": lock,
        "unlock": lambda request: None,
    }  # fmt: skip
    place = tmp_path / "wh"
    with StandIn(answers("d", **calls)) as backend:
        given = {"it": f'uris = "{backend.uri}"'}
        more = f'[federation]\niceberg_locations = "{place}"\n'
        with FrontServer(tmp_path / "front", given, "--http-port", "0", more=more) as front:
            rest = Catalog(front)
            body = {
                "name": "t",
                "location": f"file://{place}/t",
                "schema": {"type": "struct", "schema-id": 0, "fields": []},
            }
            rest.ask("POST", "it/namespaces/d/tables", body)
            change = {"updates": [{"action": "set-properties", "updates": {"k": "v"}}]}
            files = lambda: len(list((place / "t" / "metadata").iterdir()))  # noqa: E731
            assert rest.refused("POST", "it/namespaces/d/tables/t", change)[:2] == (500, "CommitStateUnknownException")
            assert files() == 2
            assert "unlock" not in backend.names()
            state["alter"] = "refuse"
            assert rest.refused("POST", "it/namespaces/d/tables/t", change)[0] == 400
            assert files() == 2
            assert backend.names()[-1] == "unlock"
            state["alter"] = "after"
            rest.ask("POST", "it/namespaces/d/tables/t", change)
            assert files() == 3
        away = {"it": 'uris = "thrift://127.0.0.1:1"'}
        with FrontServer(tmp_path / "other", away, "--http-port", "0", more=more) as front:
            assert Catalog(front).refused("GET", "it/namespaces/d/tables/t")[0] == 503


POLICY = """
permit(principal == User::"ann", action, resource in Database::"hive.ri_open");
permit(principal == User::"ann", action == Action::"CREATE", resource in Catalog::"hive");
forbid(principal == User::"ann", action == Action::"LOCATION", resource);
permit(principal == User::"bob", action in Action::"reading", resource in Database::"hive.ri_open");
"""


def test_the_front_decides_first(tmp_path: Path, metastore_server: MetastoreServer, ours: ThriftClient) -> None:
    policy, users = tmp_path / "policy.cedar", tmp_path / "users"
    policy.write_text(POLICY)
    for name in ("ann", "bob", "boss"):
        password_file.add(users, name, f"{name}-secret", (), allow_weak=True)
    root = metastore_server.data_dir / "warehouse"
    more = (
        f'[server]\nauthorization = "policy"\npolicy_file = "{policy}"\nadmins = ["boss"]\nauthentication = "plain"\n'
        f'password_file = "{users}"\ncredentials_without_tls = true\n[federation]\niceberg_locations = "{root}"\n'
    )
    backends = {"own": f'uris = "{metastore_server.uri}"\nprefix = "ri_"'}
    with FrontServer(tmp_path / "front", backends, "--http-port", "0", more=more) as front:
        ann, bob, boss = (Catalog(front, (name, f"{name}-secret")) for name in ("ann", "bob", "boss"))
        for name in ("open", "closed"):
            boss.ask("POST", "own/namespaces", {"namespace": [f"ri_{name}"]})
        body = {"name": "t", "schema": {"type": "struct", "schema-id": 0, "fields": []}}
        made = ann.ask("POST", "own/namespaces/ri_open/tables", body)
        change = {"updates": [{"action": "set-properties", "updates": {"k": "v"}}]}
        metadata = Path(made["metadata-location"].removeprefix("file://")).parent
        assert ours.get_table("open", "t").owner == "ann"
        before = sorted(metadata.iterdir())
        assert bob.refused("POST", "own/namespaces/ri_open/tables/t", change)[0] == 403
        assert sorted(metadata.iterdir()) == before
        assert bob.refused("DELETE", "own/namespaces/ri_open/tables/t")[0] == 403
        rename = {
            each: {"namespace": ["ri_open"], "name": name} for each, name in (("source", "t"), ("destination", "u"))
        }
        assert bob.refused("POST", "own/tables/rename", rename)[0] == 403
        assert bob.ask("GET", "own/namespaces/ri_open/tables/t")["metadata-location"] == made["metadata-location"]
        assert ann.ask("GET", "own/namespaces")["namespaces"] == [["ri_open"]]
        for path in (
            "own/namespaces/ri_closed",
            "own/namespaces/ri_closed/tables",
            "own/namespaces/ri_closed/tables/t",
        ):
            assert ann.refused("GET", path)[0] == 404
        assert ann.refused("POST", "own/namespaces/ri_closed/tables", body)[0] in (403, 404)
        elsewhere = {**body, "name": "x", "location": f"file://{root}/elsewhere"}
        assert ann.refused("POST", "own/namespaces/ri_open/tables", elsewhere)[0] == 403
        assert not (root / "elsewhere").exists()
        ann.ask("POST", "own/namespaces/ri_open/tables/t", change)
        ann.ask("POST", "own/tables/rename", rename)
        assert ours.get_all_tables("open") == ["u"]
        assert Catalog(front).send("GET", "own/namespaces").status_code == 401
        for name in ("open", "closed"):
            ours.drop_database(name, True, True)
