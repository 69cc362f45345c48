"""Requests with an `Idempotency-Key` that are sent again: no second effect, and the answer of the first time."""

import secrets
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
import requests
from sqlalchemy import NullPool, create_engine, text

from lake.protocol.connection.thrift_client import ThriftClient
from lake.protocol.hive import CreateDatabaseRequest, MetaException
from lake.protocol.lake import RequestKey
from metastore.iceberg.errors import RestError, unknown_outcome
from metastore.iceberg.repeats import Once
from metastore.services.access import repeated_requests
from metastore.services.access.caller import Caller
from metastore.services.access.repeated_requests import RepeatedRequests
from metastore.store import Database
from metastore.store.access import request_keys
from tests.metastore.iceberg.conftest import Catalog
from tests.metastore.iceberg.test_http import SCHEMA, create, set_property
from tests.support.server import MetastoreServer


def new_key() -> str:
    """Of version 7."""
    number = int(time.time() * 1000) << 80 | 7 << 76 | secrets.randbits(12) << 64 | 2 << 62 | secrets.randbits(62)
    return str(UUID(int=number))


def send(rest: Catalog, key: str, method: str, path: str, body: Any = None) -> requests.Response:
    return rest.send(method, path, body, headers={"Idempotency-Key": key})


def log_of(rest: Catalog, path: str) -> int:
    """How often a table was committed to."""
    return len(rest.ask("GET", path)["metadata"].get("metadata-log", ()))


def test_config_says_how_long(rest: Catalog) -> None:
    assert rest.ask("GET", "config")["idempotency-key-lifetime"] == "PT30M"


def test_a_commit(rest: Catalog) -> None:
    namespace, key = rest.namespace(), new_key()
    create(rest, namespace)
    path = f"hive/namespaces/{namespace}/tables/t"
    body = {"requirements": [], "updates": [set_property("1")]}
    first = send(rest, key, "POST", path, body)
    again = send(rest, key.upper(), "POST", path, body)
    assert (again.status_code, again.json(), again.headers["ETag"]) == (200, first.json(), first.headers["ETag"])
    assert log_of(rest, path) == 1
    rest.ask("POST", path, {"requirements": [], "updates": [set_property("2")]})
    late = send(rest, key, "POST", path, body)  # it shows the table as it is now
    assert (late.status_code, late.json()["metadata"]["properties"]["p"]) == (200, "2")
    assert send(rest, new_key(), "POST", path, body).json()["metadata"]["properties"]["p"] == "1"
    assert log_of(rest, path) == 3


def test_another_request_with_the_key(rest: Catalog) -> None:
    namespace, key = rest.namespace(), new_key()
    for name in ("t", "u"):
        create(rest, namespace, name)
    path = f"hive/namespaces/{namespace}/tables"
    body = {"requirements": [], "updates": [set_property("1")]}
    assert send(rest, key, "POST", f"{path}/t", body).ok
    others: list[tuple[str, str, Any]] = [
        ("POST", f"{path}/t", {"requirements": [], "updates": [set_property("2")]}),
        ("POST", f"{path}/u", body),
        ("DELETE", f"{path}/t", None),
        ("DELETE", f"{path}/t?purgeRequested=true", None),
    ]
    for each in others:
        response = send(rest, key, *each)
        assert (response.status_code, response.json()["error"]["type"]) == (422, "UnprocessableEntityException")
    assert rest.ask("GET", f"{path}/t")["metadata"]["properties"]["p"] == "1"
    assert "p" not in rest.ask("GET", f"{path}/u")["metadata"]["properties"]


def test_each_kind_of_change(rest: Catalog) -> None:
    """Sent again after its effect was undone, each answers as at first and does nothing."""
    namespace = rest.namespace()
    tables = f"hive/namespaces/{namespace}/tables"
    views = f"hive/namespaces/{namespace}/views"
    here = {"namespace": [namespace]}

    def repeated(method: str, path: str, body: Any, undo: Callable[[], Any]) -> Any:
        key = new_key()
        first = send(rest, key, method, path, body)
        assert first.ok, first.text
        undo()
        again = send(rest, key, method, path, body)
        assert (again.status_code, again.content) == (first.status_code, first.content)

    view = {"version-id": 1, "schema-id": 0, "timestamp-ms": 1, "summary": {}, "default-namespace": [namespace]}
    view["representations"] = [{"type": "sql", "sql": "select 1", "dialect": "spark"}]
    made = {"name": "t", "schema": SCHEMA}
    repeated("POST", tables, made, lambda: None)
    repeated("POST", views, {"name": "v", "schema": SCHEMA, "view-version": view, "properties": {}}, lambda: None)
    repeated("POST", f"{views}/v", {"updates": [{"action": "set-properties", "updates": {"a": "1"}}]}, lambda: None)
    location = rest.ask("GET", f"{tables}/t")["metadata-location"]
    repeated(
        "POST", f"hive/namespaces/{namespace}/register", {"name": "r", "metadata-location": location}, lambda: None
    )
    change = {"identifier": here | {"name": "t"}, "requirements": [], "updates": [set_property("1")]}
    other = change | {"identifier": here | {"name": "r"}}
    back = {"requirements": [], "updates": [set_property("2")]}
    repeated(
        "POST",
        "hive/transactions/commit",
        {"table-changes": [change, other]},
        lambda: rest.ask("POST", f"{tables}/r", back),
    )
    assert rest.ask("GET", f"{tables}/r")["metadata"]["properties"]["p"] == "2"
    repeated(
        "POST", "hive/transactions/commit", {"table-changes": [other]}, lambda: rest.ask("POST", f"{tables}/r", back)
    )
    assert rest.ask("GET", f"{tables}/r")["metadata"]["properties"]["p"] == "2"
    for words, name in (("tables", "t"), ("views", "v")):
        forth = {"source": here | {"name": name}, "destination": here | {"name": "x"}}
        turned = {"source": forth["destination"], "destination": forth["source"]}
        repeated(
            "POST", f"hive/{words}/rename", forth, lambda w=words, b=turned: rest.ask("POST", f"hive/{w}/rename", b)
        )
        rest.ask("GET", f"hive/namespaces/{namespace}/{words}/{name}")
    repeated("DELETE", f"{tables}/t?purgeRequested=true", None, lambda: create(rest, namespace, "t"))
    repeated("DELETE", f"{tables}/r", None, lambda: create(rest, namespace, "r"))
    assert rest.ask("GET", tables)["identifiers"] == [here | {"name": each} for each in ("r", "t")]
    repeated("DELETE", f"{views}/v", None, lambda: None)


def test_namespaces(rest: Catalog) -> None:
    name, keys = f"{rest.namespace()}_own", [new_key() for _ in range(3)]
    path = f"hive/namespaces/{name}"
    body = {"namespace": [name], "properties": {"a": "1"}}
    first = send(rest, keys[0], "POST", "hive/namespaces", body)
    again = send(rest, keys[0], "POST", "hive/namespaces", body)
    assert (again.status_code, again.json()["namespace"], again.json()["properties"]["a"]) == (200, [name], "1")
    assert first.json()["properties"].items() >= again.json()["properties"].items()
    change = {"removals": ["a", "missing"], "updates": {"b": "1"}}
    first = send(rest, keys[1], "POST", f"{path}/properties", change)
    rest.ask("POST", f"{path}/properties", {"removals": [], "updates": {"b": "2"}})
    again = send(rest, keys[1], "POST", f"{path}/properties", change)
    assert (again.status_code, again.json()) == (200, first.json())
    assert rest.ask("GET", path)["properties"]["b"] == "2"
    assert send(rest, keys[2], "DELETE", path).status_code == 204
    rest.ask("POST", "hive/namespaces", {"namespace": [name]})
    assert send(rest, keys[2], "DELETE", path).status_code == 204
    rest.ask("GET", path)


def test_answers_that_are_too_long_to_be_kept(rest: Catalog) -> None:
    many = {f"p{number}": "x" * 100 for number in range(1_000)}
    name, key = f"{rest.namespace()}_many", new_key()
    body = {"namespace": [name], "properties": many}
    assert send(rest, key, "POST", "hive/namespaces", body).json()["properties"].items() > many.items()
    assert send(rest, key, "POST", "hive/namespaces", body).json() == {"namespace": [name], "properties": {}}
    change = {"removals": [], "updates": {f"{each}{'y' * 60}": "1" for each in many}}
    assert send(rest, new_key(), "POST", f"hive/namespaces/{name}/properties", change).status_code == 400
    rest.ask("POST", f"hive/namespaces/{name}/properties", change)


def test_a_refusal(rest: Catalog) -> None:
    """It is final, also once its cause is gone; a request with another key is decided again."""
    namespace, key = rest.namespace(), new_key()
    create(rest, namespace)
    path, body = f"hive/namespaces/{namespace}/tables", {"name": "t", "schema": SCHEMA}
    first = send(rest, key, "POST", path, body)
    assert first.status_code == 409
    rest.ask("DELETE", f"{path}/t")
    again = send(rest, key, "POST", path, body)
    assert (again.status_code, again.json()) == (409, first.json())
    assert rest.send("HEAD", f"{path}/t").status_code == 404
    assert send(rest, new_key(), "POST", path, body).status_code == 200


def test_a_table_that_is_another_one_since(rest: Catalog) -> None:
    """It isn't shown as the answer. Nor is the commit said to be refused: what it wrote counted, and may still."""
    namespace, key = rest.namespace(), new_key()
    create(rest, namespace)
    path = f"hive/namespaces/{namespace}/tables/t"
    body = {"requirements": [], "updates": [set_property("1")]}
    assert send(rest, key, "POST", path, body).ok
    rest.ask("DELETE", path)
    assert send(rest, key, "POST", path, body).status_code == 500
    create(rest, namespace)
    response = send(rest, key, "POST", path, body)
    assert (response.status_code, response.json()["error"]["type"]) == (500, "CommitStateUnknownException")
    assert "p" not in rest.ask("GET", path)["metadata"]["properties"]


def test_many_at_once(rest: Catalog) -> None:
    namespace, key = rest.namespace(), new_key()
    create(rest, namespace)
    path = f"hive/namespaces/{namespace}/tables/t"
    body = {"requirements": [], "updates": [set_property("1")]}
    catalogs = [Catalog(rest.server) for _ in range(6)]
    with ThreadPoolExecutor(len(catalogs)) as pool:
        answers = list(pool.map(lambda each: send(each, key, "POST", path, body), catalogs))
    assert {each.status_code for each in answers} == {200}
    assert log_of(rest, path) == 1
    directory = Path(answers[0].json()["metadata-location"].removeprefix("file://")).parent
    assert len(list(directory.iterdir())) == 2, "files of the others are removed"


def test_a_key_that_is_none(rest: Catalog) -> None:
    namespace = rest.namespace()
    path = f"hive/namespaces/{namespace}/tables"
    assert send(rest, "7", "POST", path, {"name": "t", "schema": SCHEMA}).status_code == 400
    assert rest.send("HEAD", f"{path}/t").status_code == 404
    assert send(rest, "7", "GET", path).status_code == 200


def test_an_outcome_that_was_not_known(rest: Catalog, client: ThriftClient) -> None:
    """It is looked up, as soon as a worker answers."""
    namespace, key = rest.namespace(), RequestKey(new_key(), b"d" * 32)
    unknown = unknown_outcome("the connection broke")
    once = Once(client, key)
    assert not once.begin().done
    assert not once.refused(unknown).done
    once.begin()
    client.create_database_req(builder(namespace))
    assert once.refused(unknown).done
    once.close()
    client.create_database_req(builder(f"{namespace}_next"))  # that is nobody's
    with pytest.raises(MetaException, match="answered meanwhile"):
        once.begin()
        client.create_database_req(builder(f"{namespace}_again"))
    assert f"{namespace}_again" not in client.get_all_databases()
    client.close()
    with pytest.raises(RestError) as refused:
        once.refused(RestError(409, "CommitFailedException", "changed"))
    assert refused.value.status == 503, "a refusal would make the client remove what may have been committed"
    with pytest.raises(RestError) as refused:
        once.refused(unknown)
    assert refused.value is unknown


def builder(name: str) -> CreateDatabaseRequest:
    return CreateDatabaseRequest(databaseName=f"{name}_db")


@contextmanager
def servers(url: str, directory: Path) -> Iterator[list[Catalog]]:
    with (
        MetastoreServer.on_database(url, directory / "a", "--http-port", "0") as first,
        MetastoreServer.on_database(url, directory / "b", "--http-port", "0") as second,
    ):
        yield [Catalog(first), Catalog(second)]


@pytest.mark.long
def test_another_server_knows(upgraded_url: str, tmp_path: Path) -> None:
    for each in "ab":
        (tmp_path / each).mkdir()
    with servers(upgraded_url, tmp_path) as (first, second):
        namespace, key = first.namespace(), new_key()
        create(first, namespace)
        path = f"hive/namespaces/{namespace}/tables/t"
        body = {"requirements": [], "updates": [set_property("1")]}
        made = send(first, key, "POST", path, body)
        again = send(second, key, "POST", path, body)
        assert (again.status_code, again.json()) == (200, made.json())
        assert log_of(second, path) == 1


def test_they_are_bounded_and_forgotten(upgraded_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    database = Database(upgraded_url)
    kept = RepeatedRequests(database)
    monkeypatch.setattr(request_keys, "MOST_REFUSALS", 2)
    keys = [RequestKey(new_key(), b"d" * 32) for _ in range(3)]
    ann, bob = Caller("ann", peer="x"), Caller("bob", peer="x")
    for number, key in enumerate(keys):
        claim, before = kept.begin(ann, key)
        assert not before.done
        assert bool(kept.refuse(claim, 409, "no").done) == (number < 2)
        assert not kept.begin(bob, key)[1].done, "what becomes of a request is told to its caller alone"
    claim, _ = kept.begin(bob, keys[0])
    assert kept.refuse(claim, 409, "no").done
    for long in (keys[0].replace(answer="x" * 70_000), keys[0].replace(digest=b""), keys[0].replace(key="x")):
        with pytest.raises(MetaException):
            kept.begin(ann, long)
    engine = create_engine(upgraded_url, poolclass=NullPool)
    with engine.begin() as connection:
        old = repeated_requests.KEPT + timedelta(seconds=1)
        connection.execute(text("UPDATE request_keys SET at = now() - :age WHERE caller = 'ann'"), {"age": old})
    kept.sweep()
    assert not kept.begin(ann, keys[0])[1].done
    assert kept.begin(bob, keys[0])[1].done
    database.close()
