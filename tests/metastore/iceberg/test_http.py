"""The REST catalog as bytes: answers, errors, pages, tags."""

import json
from pathlib import Path
from typing import Any

import pytest
import requests

from lake.protocol import hive
from lake.protocol.connection.thrift_client import ThriftClient
from lake.protocol.hive import LockComponent, LockLevel, LockRequest, LockType, UnlockRequest
from metastore.iceberg import routes
from tests.metastore.iceberg.conftest import Catalog
from tests.support import builders
from tests.support.exposition import http_address
from tests.support.server import MetastoreServer
from tests.support.waiting import wait_until

SCHEMA = {"type": "struct", "fields": [{"id": 1, "name": "id", "type": "long", "required": False}]}


def create(rest: Catalog, namespace: str, name: str = "t", **named: Any) -> Any:
    return rest.ask("POST", f"hive/namespaces/{namespace}/tables", {"name": name, "schema": SCHEMA, **named})


def set_property(value: str) -> dict[str, Any]:
    return {"action": "set-properties", "updates": {"p": value}}


def test_config_lists_every_route(rest: Catalog) -> None:
    config = rest.ask("GET", "config")
    assert config["overrides"] == {"prefix": "hive"}
    assert config["endpoints"] == [f"{method} {path}" for method, path, _ in routes.ENDPOINTS]
    assert rest.refused("GET", "config?warehouse=nothing")[:2] == (404, "NotFoundException")
    for warehouse in ("nothing", "@x", "hive%23a"):
        assert rest.refused("GET", f"{warehouse}/namespaces")[0] == 404


def test_other_endpoints(rest: Catalog) -> None:
    status, _, text = rest.refused("POST", "hive/namespaces/n/tables/t/plan", {})
    assert (status, "config" in text) == (404, True)
    assert rest.refused("PUT", "hive/namespaces", {})[0] == 404


def test_another_catalog_is_another_warehouse(rest: Catalog, client: ThriftClient) -> None:
    place = f"file:{rest.server.data_dir}/other_catalog"
    client.create_catalog(hive.CreateCatalogRequest(hive.Catalog("rest_other", None, place)))
    assert rest.ask("GET", "config?warehouse=rest_other")["overrides"] == {"prefix": "rest_other"}
    rest.ask("POST", "rest_other/namespaces", {"namespace": ["n"]})
    created = rest.ask("POST", "rest_other/namespaces/n/tables", {"name": "t", "schema": SCHEMA})
    assert rest.ask("GET", "rest_other/namespaces/n/tables/t")["metadata"] == created["metadata"]
    assert rest.ask("GET", "rest_other/namespaces/n/tables")["identifiers"] == [{"namespace": ["n"], "name": "t"}]
    assert rest.refused("GET", "hive/namespaces/n")[0] == 404
    assert rest.refused("GET", "hive/namespaces/@rest_other%23n/tables/t")[0] == 404


def test_namespaces(rest: Catalog) -> None:
    name = rest.namespace()
    assert rest.ask("GET", f"hive/namespaces?parent={name}")["namespaces"] == []
    assert rest.refused("GET", "hive/namespaces?parent=nothing")[:2] == (404, "NoSuchNamespaceException")
    assert [name] in rest.ask("GET", "hive/namespaces")["namespaces"]
    assert rest.send("HEAD", f"hive/namespaces/{name}").status_code == 204
    assert rest.send("HEAD", "hive/namespaces/nothing").status_code == 404
    assert rest.refused("POST", "hive/namespaces", {"namespace": [name]})[:2] == (409, "AlreadyExistsException")
    assert rest.refused("POST", "hive/namespaces", {"namespace": ["a", "b"]})[0] == 400
    assert rest.refused("GET", "hive/namespaces/a%1Fb")[0] == 404
    changed = rest.ask(
        "POST", f"hive/namespaces/{name}/properties", {"removals": ["x"], "updates": {"a": "1", "comment": "words"}}
    )
    assert changed == {"updated": ["a", "comment"], "removed": [], "missing": ["x"]}
    found = rest.ask("GET", f"hive/namespaces/{name}")["properties"]
    assert found["a"] == "1"
    assert found["comment"] == "words"
    both = {"removals": ["a"], "updates": {"a": "2"}}
    assert rest.refused("POST", f"hive/namespaces/{name}/properties", both)[0] == 422
    create(rest, name)
    assert rest.refused("DELETE", f"hive/namespaces/{name}")[:2] == (409, "NamespaceNotEmptyException")
    rest.ask("DELETE", f"hive/namespaces/{name}/tables/t")
    rest.ask("DELETE", f"hive/namespaces/{name}")
    assert rest.refused("DELETE", f"hive/namespaces/{name}")[0] == 404


def test_pages(rest: Catalog) -> None:
    namespace = rest.namespace()
    for name in ("a", "b", "c"):
        create(rest, namespace, name)
    path = f"hive/namespaces/{namespace}/tables"
    first = rest.ask("GET", f"{path}?pageToken=&pageSize=2")
    assert [each["name"] for each in first["identifiers"]] == ["a", "b"]
    second = rest.ask("GET", f"{path}?pageToken={first['next-page-token']}&pageSize=2")
    assert [each["name"] for each in second["identifiers"]] == ["c"]
    assert "next-page-token" not in second
    assert rest.refused("GET", f"{path}?pageSize=0")[0] == 400
    assert rest.refused("GET", f"{path}?pageToken=!&pageSize=1")[0] == 400


def test_a_loaded_table_has_a_tag(rest: Catalog) -> None:
    namespace = rest.namespace()
    create(rest, namespace)
    path = f"hive/namespaces/{namespace}/tables/t"
    loaded = rest.send("GET", path)
    tag = loaded.headers["ETag"]
    again = rest.send("GET", path, headers={"If-None-Match": tag})
    assert (again.status_code, again.content) == (304, b"")
    assert rest.send("GET", f"{path}?snapshots=refs", headers={"If-None-Match": tag}).status_code == 200
    changed = rest.send("POST", path, {"requirements": [], "updates": [set_property("1")]})
    assert rest.send("GET", path, headers={"If-None-Match": tag}).headers["ETag"] == changed.headers["ETag"] != tag
    assert rest.send("HEAD", path).status_code == 204
    assert rest.ask("GET", f"{path}/credentials") == {"storage-credentials": []}
    figures = {each: {"unit": "count", "value": 1} for each in ("result-data-files", "table", "event", "x" * 1000)}
    for metrics in (figures, {}, None, {"a": 1}):
        assert (
            rest.send("POST", f"{path}/metrics", {"report-type": "scan-report", "metrics": metrics}).status_code == 204
        )


def test_tables_of_hive_are_hidden_and_keep_their_names(rest: Catalog, client: ThriftClient) -> None:
    namespace = rest.namespace()
    client.create_table(builders.table(namespace, "h"))
    assert rest.ask("GET", f"hive/namespaces/{namespace}/tables")["identifiers"] == []
    assert rest.refused("GET", f"hive/namespaces/{namespace}/tables/h")[:2] == (404, "NoSuchTableException")
    assert rest.refused("DELETE", f"hive/namespaces/{namespace}/tables/h")[0] == 404
    body = {"name": "h", "schema": SCHEMA}
    assert rest.refused("POST", f"hive/namespaces/{namespace}/tables", body)[:2] == (409, "AlreadyExistsException")
    staged = {**body, "stage-create": True}
    assert rest.refused("POST", f"hive/namespaces/{namespace}/tables", staged)[0] == 409
    create(rest, namespace)
    rename = {
        "source": {"namespace": [namespace], "name": "t"},
        "destination": {"namespace": [namespace], "name": "h"},
    }
    assert rest.refused("POST", "hive/tables/rename", rename)[0] == 409


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"name": "x"},
        {"name": "x", "schema": 1},
        {"name": "x", "schema": {"fields": 1}},
        {"name": "x", "schema": {"type": "struct", "fields": [{"id": 1, "name": "a", "type": "nothing"}]}},
        {"name": "x", "schema": {"type": "struct", "fields": [{"id": 1, "name": "a", "type": {"type": "list"}}]}},
        {
            "name": "x",
            "schema": SCHEMA,
            "partition-spec": {"fields": [{"source-id": 7, "name": "p", "transform": "d"}]},
        },
        {"name": "x", "schema": SCHEMA, "properties": {"format-version": "9"}},
        {"name": "x", "schema": SCHEMA, "properties": {"p": 1}},
        {"name": "x", "schema": SCHEMA, "location": "nowhere"},
        {"name": "x", "schema": SCHEMA, "location": "https://example.org/t"},
        {"name": "x@includeuncommit", "schema": SCHEMA},
        {"name": 1, "schema": SCHEMA},
        [],
    ],
    ids=str,
)
def test_bad_tables(rest: Catalog, body: Any) -> None:
    namespace = rest.namespace()
    status, _, text = rest.refused("POST", f"hive/namespaces/{namespace}/tables", body)
    assert status == 400
    assert text
    assert rest.ask("GET", f"hive/namespaces/{namespace}/tables")["identifiers"] == []


def test_bad_bodies(rest: Catalog) -> None:
    namespace = rest.namespace()
    half = json.dumps({"name": "t", "schema": SCHEMA, "properties": {"p": "\ud800"}}).encode()
    not_a_number = b'{"name": "t", "schema": {"fields": []}, "properties": {}, "more": NaN}'
    too_large = not_a_number.replace(b"NaN", b"1e999")
    long = not_a_number.replace(b"NaN", b"9" * 5_000)
    strings = (b"", b"{", b"[" * 100_000, b"\xff\xfe", json.dumps("x").encode())
    for content in (*strings, half, not_a_number, too_large, long):
        response = rest.session.post(f"{rest.uri}/v1/hive/namespaces/{namespace}/tables", data=content, timeout=60)
        assert response.status_code == 400, response.text
        assert response.json()["error"]["type"] == "BadRequestException"


@pytest.mark.parametrize(
    "update",
    [
        {},
        {"action": "nothing"},
        {"action": "add-schema"},
        {"action": "set-current-schema", "schema-id": 7},
        {"action": "set-current-schema", "schema-id": -1},
        {"action": "upgrade-format-version", "format-version": 1},
        {"action": "upgrade-format-version", "format-version": 99},
        {"action": "set-snapshot-ref", "ref-name": "main", "type": "branch", "snapshot-id": 5},
        {"action": "set-snapshot-ref", "ref-name": "main", "type": "tag", "snapshot-id": 5},
        {"action": "assign-uuid", "uuid": "9c12d441-03fe-4693-9a96-a0705ddf69c1"},
        {"action": "set-properties", "updates": {"a": None}},
        {"action": "add-snapshot", "snapshot": {"snapshot-id": 1}},
        {"action": "add-snapshot", "snapshot": {"snapshot-id": 1 << 70, "sequence-number": 1, "timestamp-ms": 1}},
        {"action": "remove-schemas", "schema-ids": [0]},
    ],
    ids=str,
)
def test_bad_updates(rest: Catalog, update: Any) -> None:
    namespace = rest.namespace()
    before = create(rest, namespace)
    path = f"hive/namespaces/{namespace}/tables/t"
    body = {"requirements": [], "updates": [set_property("lost"), update]}
    assert rest.refused("POST", path, body)[0] == 400
    assert rest.ask("GET", path)["metadata-location"] == before["metadata-location"]


def test_requirements(rest: Catalog) -> None:
    namespace = rest.namespace()
    table = create(rest, namespace)
    path = f"hive/namespaces/{namespace}/tables/t"
    holding = [
        {"type": "assert-table-uuid", "uuid": table["metadata"]["table-uuid"]},
        {"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": None},
        {"type": "assert-last-assigned-field-id", "last-assigned-field-id": 1},
        {"type": "assert-current-schema-id", "current-schema-id": 0},
        {"type": "assert-last-assigned-partition-id", "last-assigned-partition-id": 999},
        {"type": "assert-default-spec-id", "default-spec-id": 0},
        {"type": "assert-default-sort-order-id", "default-sort-order-id": 0},
    ]
    rest.ask("POST", path, {"requirements": holding, "updates": [set_property("1")]})
    broken = [
        {"type": "assert-create"},
        {"type": "assert-table-uuid", "uuid": "9c12d441-03fe-4693-9a96-a0705ddf69c1"},
        {"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": 3},
        {"type": "assert-last-assigned-field-id", "last-assigned-field-id": 2},
        {"type": "assert-current-schema-id", "current-schema-id": 1},
        {"type": "assert-last-assigned-partition-id", "last-assigned-partition-id": 1000},
        {"type": "assert-default-spec-id", "default-spec-id": 1},
        {"type": "assert-default-sort-order-id", "default-sort-order-id": 1},
    ]
    for each in broken:
        status, _, text = rest.refused("POST", path, {"requirements": [each], "updates": [set_property("2")]})
        assert status == 409, (each, text)
    assert rest.refused("POST", path, {"requirements": [{"type": "x"}], "updates": [set_property("2")]})[0] == 400
    unchanged = rest.ask("GET", path)
    same = rest.ask("POST", path, {"requirements": [], "updates": [set_property("1")]})
    assert same["metadata-location"] == unchanged["metadata-location"]


def test_a_transaction_is_whole(rest: Catalog) -> None:
    namespace = rest.namespace()
    tables = {name: create(rest, namespace, name) for name in ("a", "b")}

    def change(name: str, value: str, requirements: Any = ()) -> dict[str, Any]:
        identifier = {"namespace": [namespace], "name": name}
        return {"identifier": identifier, "requirements": list(requirements), "updates": [set_property(value)]}

    rest.ask(
        "POST", "hive/transactions/commit", {"table-changes": [change("a", "1"), change("b", "1"), change("a", "2")]}
    )
    for name, value in (("a", "2"), ("b", "1")):
        found = rest.ask("GET", f"hive/namespaces/{namespace}/tables/{name}")
        assert found["metadata"]["properties"]["p"] == value
        assert [each["metadata-file"] for each in found["metadata"]["metadata-log"]] == [
            tables[name]["metadata-location"]
        ]
    stale = [{"type": "assert-current-schema-id", "current-schema-id": 5}]
    body = {"table-changes": [change("a", "3"), change("b", "3", stale)]}
    assert rest.refused("POST", "hive/transactions/commit", body)[:2] == (409, "CommitFailedException")
    body = {"table-changes": [change("a", "3"), change("nothing", "3")]}
    assert rest.refused("POST", "hive/transactions/commit", body)[0] == 404
    assert rest.ask("GET", f"hive/namespaces/{namespace}/tables/a")["metadata"]["properties"]["p"] == "2"


def test_a_locked_table_waits_and_then_refuses(rest: Catalog, client: ThriftClient) -> None:
    namespace = rest.namespace()
    create(rest, namespace)
    component = LockComponent(LockType.EXCLUSIVE, LockLevel.TABLE, namespace, "t")
    held = client.lock(LockRequest([component], user="flink", hostname="host"))
    path = f"hive/namespaces/{namespace}/tables/t"
    body = {"requirements": [], "updates": [set_property("1")]}
    status, kind, text = rest.refused("POST", path, body)
    assert (status, kind) == (409, "CommitFailedException")
    assert "flink@host" in text
    client.unlock(UnlockRequest(held.lockid))
    rest.ask("POST", path, body)


def test_snapshots_that_come_too_late(rest: Catalog) -> None:
    namespace = rest.namespace()
    create(rest, namespace)
    path = f"hive/namespaces/{namespace}/tables/t"

    def snapshot(number: int, sequence: int, parent: int | None) -> dict[str, Any]:
        value = {
            "snapshot-id": number,
            "sequence-number": sequence,
            "timestamp-ms": 1,
            "manifest-list": "x",
            "summary": {},
        }
        return {
            "action": "add-snapshot",
            "snapshot": value | ({} if parent is None else {"parent-snapshot-id": parent}),
        }

    def head(number: int) -> dict[str, Any]:
        return {"action": "set-snapshot-ref", "ref-name": "main", "type": "branch", "snapshot-id": number}

    rest.ask("POST", path, {"requirements": [], "updates": [snapshot(1, 1, None), head(1)]})
    late = {"requirements": [], "updates": [snapshot(2, 1, 1), head(2)]}
    assert rest.refused("POST", path, late)[:2] == (409, "CommitFailedException")
    rest.ask("POST", path, {"requirements": [], "updates": [snapshot(2, 2, 1), snapshot(3, 3, 2), head(2), head(3)]})
    found = rest.ask("GET", path)["metadata"]
    assert [each["snapshot-id"] for each in found["snapshot-log"]] == [1, 3]
    refs = rest.ask("GET", f"{path}?snapshots=refs")["metadata"]
    assert [each["snapshot-id"] for each in refs["snapshots"]] == [3]


def test_views(rest: Catalog, client: ThriftClient) -> None:
    namespace = rest.namespace()
    version = {
        "version-id": 1,
        "schema-id": 0,
        "timestamp-ms": 1,
        "summary": {},
        "default-namespace": [namespace],
        "representations": [{"type": "sql", "sql": "select 1", "dialect": "spark"}],
    }
    path = f"hive/namespaces/{namespace}/views"
    created = rest.ask("POST", path, {"name": "v", "schema": SCHEMA, "view-version": version, "properties": {"a": "1"}})
    assert rest.ask("GET", f"{path}/v") == created
    stored = client.get_table(namespace, "v")
    assert (stored.tableType, stored.parameters["table_type"]) == ("VIRTUAL_VIEW", "ICEBERG-VIEW")
    assert stored.viewOriginalText == "select 1"
    assert rest.ask("GET", path)["identifiers"] == [{"namespace": [namespace], "name": "v"}]
    assert rest.ask("GET", f"hive/namespaces/{namespace}/tables")["identifiers"] == []
    assert rest.refused("GET", f"hive/namespaces/{namespace}/tables/v")[0] == 404
    body = {"requirements": [], "updates": [{"action": "set-properties", "updates": {"a": "2"}}]}
    assert rest.ask("POST", f"{path}/v", body)["metadata"]["properties"] == {"a": "2"}
    rename = {"source": {"namespace": [namespace], "name": "v"}, "destination": {"namespace": [namespace], "name": "w"}}
    rest.ask("POST", "hive/views/rename", rename)
    assert rest.refused("POST", "hive/views/rename", rename)[:2] == (404, "NoSuchViewException")
    rest.ask("DELETE", f"{path}/w")
    assert rest.send("HEAD", f"{path}/w").status_code == 404


def test_purge_deletes_what_is_the_tables_own(rest: Catalog, client: ThriftClient, tmp_path: Path) -> None:
    namespace = rest.namespace()

    def place(name: str, **named: Any) -> Path:
        location = create(rest, namespace, name, **named)["metadata-location"]
        return Path(location.removeprefix("file:").replace("//", "")).parent.parent

    kept, gone, around = place("kept"), place("gone"), place("around")
    elsewhere = place("far", location=f"file://{tmp_path}/far")
    client.create_table(builders.external_table(namespace, "inner", sd=builders.storage(location=f"{around}/inner")))
    rest.ask("DELETE", f"hive/namespaces/{namespace}/tables/kept")
    for name in ("gone", "around", "far"):
        rest.ask("DELETE", f"hive/namespaces/{namespace}/tables/{name}?purgeRequested=true")
    wait_until(lambda: not gone.exists())
    assert list(kept.rglob("*.metadata.json"))
    assert (around / "inner").exists()
    assert list(elsewhere.rglob("*.metadata.json")), "the server may not delete outside of its warehouse"
    client.create_table(builders.external_table(namespace, "h"))
    place_of_h = Path(client.get_table(namespace, "h").sd.location.removeprefix("file:"))
    context = hive.EnvironmentContext({"purge_external": "true"})
    client.drop_table_with_environment_context(namespace, "h", True, context)
    assert place_of_h.exists(), "no table of Iceberg's"


def test_a_port_without_the_catalog(tmp_path: Path) -> None:
    options = ("--http-port", "0", "--workers", "1", "--no-iceberg-rest")
    with MetastoreServer(tmp_path / "data", *options) as server:
        assert requests.get(f"{Catalog(server).uri}/v1/config", timeout=30).status_code == 404
        assert requests.get(f"{http_address(server)}/health", timeout=30).ok
