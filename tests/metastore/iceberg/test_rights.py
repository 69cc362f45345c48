"""The REST catalog under an authorizer: what a second user sees, and which places may be named."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.catalog.rest import RestCatalog

from lake.protocol.connection.login import Login
from lake.protocol.connection.thrift_client import ThriftClient
from lake.protocol.hive import MetaException, NoSuchObjectException
from lake.protocol.lake import CancelTokensRequest, ListTokensRequest
from lake.tables.lake import LakeClient
from metastore.server.credentials import password_file
from tests.metastore.iceberg.conftest import Catalog
from tests.rights.world import grant, revoke
from tests.support import builders
from tests.support.server import MetastoreServer
from tests.support.waiting import wait_until

SCHEMA = {"type": "struct", "fields": [{"id": 1, "name": "id", "type": "long", "required": False}]}
USERS = {"root": "rootpass", "ann": "annspass", "bob": "bobspass", "eve": "evespass"}


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Catalog]]:
    """The catalog by user. ann and eve may create in the database `shop`; bob may not see it."""
    directory = tmp_path_factory.mktemp("guarded")
    users = directory / "users"
    for name, password in USERS.items():
        password_file.add(users, name, password, (), allow_weak=True)
    options = (
        *("--authentication", "plain,token", "--password-file", str(users), "--credentials-without-tls"),
        *("--authorization", "sql-standard", "--admins", "root", "--http-port", "0", "--workers", "1"),
    )
    with MetastoreServer(directory / "data", *options) as server:
        found = {name: Catalog(server, (name, password)) for name, password in USERS.items()}
        found["root"].ask("POST", "hive/namespaces", {"namespace": ["shop"]})
        with as_user(server, "root") as root:
            grant(root, "ann", "CREATE", "shop")
            grant(root, "eve", "CREATE", "shop")
        yield found
        assert "internal error" not in server.log.read_text()


def as_user(server: MetastoreServer, name: str) -> ThriftClient:
    return ThriftClient(server.host, server.port, login=Login(user=name, password=USERS[name]))


def create(rest: Catalog, name: str, **named: Any) -> Any:
    return rest.ask("POST", "hive/namespaces/shop/tables", {"name": name, "schema": SCHEMA, **named})


def test_logins(guarded: dict[str, Catalog]) -> None:
    unknown = Catalog(guarded["root"].server)
    assert unknown.refused("GET", "config")[:2] == (401, "NotAuthorizedException")
    wrong = Catalog(guarded["root"].server, ("ann", "wrong"))
    assert wrong.refused("GET", "hive/namespaces")[0] == 401


def test_a_password_for_a_token(guarded: dict[str, Catalog]) -> None:
    """As OAuth2's client credentials, which PyIceberg exchanges by itself."""
    rest = guarded["ann"]
    create(rest, "by_token")
    place = {"uri": rest.uri, "oauth2-server-uri": f"{rest.uri}/v1/oauth/tokens"}
    catalog = RestCatalog("ours", credential=f"ann:{USERS['ann']}", **place)
    assert catalog.load_table(("shop", "by_token")).name() == ("shop", "by_token")
    unknown = Catalog(rest.server)
    form = {"grant_type": "client_credentials", "client_id": "ann", "client_secret": USERS["ann"]}
    for wrong, status, error in (
        ({**form, "client_secret": "wrong"}, 401, "invalid_client"),
        ({**form, "client_secret": ""}, 401, "invalid_client"),
        ({**form, "grant_type": "password"}, 400, "unsupported_grant_type"),
        ({}, 400, "unsupported_grant_type"),
    ):
        answer = unknown.session.post(f"{rest.uri}/v1/oauth/tokens", data=wrong, timeout=60)
        assert (answer.status_code, answer.json()["error"]) == (status, error), answer.text
    answer = unknown.session.post(f"{rest.uri}/v1/oauth/tokens", data=form, timeout=60)
    bearer = {"Authorization": f"Bearer {answer.json()['access_token']}"}
    assert unknown.ask("GET", "hive/namespaces/shop/tables/by_token", headers=bearer)
    hidden = guarded["bob"].session.post(
        f"{rest.uri}/v1/oauth/tokens",
        data={"grant_type": "client_credentials", "client_id": "bob", "client_secret": USERS["bob"]},
        timeout=60,
    )
    bearer = {"Authorization": f"Bearer {hidden.json()['access_token']}"}
    assert unknown.refused("GET", "hive/namespaces/shop/tables/by_token", headers=bearer)[0] == 404


def test_a_hidden_table_looks_like_a_missing_one(guarded: dict[str, Catalog]) -> None:
    ann, bob = guarded["ann"], guarded["bob"]
    create(ann, "secret")
    with as_user(ann.server, "root") as root:
        assert root.get_table("shop", "secret").owner == "ann"
    change = {"requirements": [], "updates": [{"action": "set-properties", "updates": {"a": "1"}}]}
    for method, path, body in (
        ("GET", "tables/{}", None),
        ("POST", "tables/{}", change),
        ("DELETE", "tables/{}", None),
        ("GET", "tables/{}/credentials", None),
        ("POST", "tables/{}/metrics", {}),
        ("POST", "register", {"name": "NAME", "metadata-location": "file:/etc/NAME"}),
    ):
        answers = set()
        for name in ("secret", "absent"):
            sent = json.loads(json.dumps(body).replace("NAME", name))
            status, kind, text = bob.refused(method, f"hive/namespaces/shop/{path}".replace("{}", name), sent)
            answers.add((status, kind, text.replace(name, "x")))
        assert len(answers) == 1, answers
        assert answers.pop()[0] == 404
    assert bob.refused("GET", "hive/namespaces/shop/tables")[0] == 404
    assert ["shop"] not in bob.ask("GET", "hive/namespaces")["namespaces"]


def test_a_reader_may_not_write(guarded: dict[str, Catalog]) -> None:
    ann, bob = guarded["ann"], guarded["bob"]
    created = create(ann, "read")
    with as_user(ann.server, "root") as root:
        grant(root, "bob", "SELECT", "shop", "read")
    path = "hive/namespaces/shop/tables/read"
    assert bob.ask("GET", path) == created
    change = {"requirements": [], "updates": [{"action": "set-properties", "updates": {"a": "1"}}]}
    assert bob.refused("POST", path, change)[:2] == (403, "ForbiddenException")
    identifier = {"identifier": {"namespace": ["shop"], "name": "read"}}
    assert bob.refused("POST", "hive/transactions/commit", {"table-changes": [identifier | change]})[0] == 403
    assert bob.refused("DELETE", path)[0] == 403
    assert bob.refused("DELETE", f"{path}?purgeRequested=true")[0] == 403
    assert bob.refused("POST", "hive/namespaces/shop/tables", {"name": "own", "schema": SCHEMA})[0] == 403
    files = sorted(each.name for each in (ann.server.data_dir / "warehouse/shop.db/read/metadata").iterdir())
    assert files == [created["metadata-location"].rpartition("/")[2]], "nothing was written for bob"
    ann.ask("POST", path, change)


def test_places_of_others(guarded: dict[str, Catalog], tmp_path: Path) -> None:
    """Neither a location nor a metadata file outside of the usual places, by whatever way it is named."""
    ann = guarded["ann"]
    elsewhere = f"file:{tmp_path}/elsewhere"
    body = {"name": "far", "schema": SCHEMA, "location": elsewhere}
    assert ann.refused("POST", "hive/namespaces/shop/tables", body)[0] == 403
    assert ann.refused("POST", "hive/namespaces/shop/tables", {**body, "stage-create": True})[0] == 403
    assert not (tmp_path / "elsewhere").exists()
    metadata = tmp_path / "m.metadata.json"
    metadata.write_text(json.dumps({"format-version": 2, "table-uuid": "u", "location": elsewhere, "secret": "s3cr3t"}))
    for place in (f"file:{metadata}", f"file:{tmp_path}/missing"):
        status, _, text = ann.refused(
            "POST", "hive/namespaces/shop/register", {"name": "far", "metadata-location": place}
        )
        assert status == 403
        assert "s3cr3t" not in text
    near = builders.external_table("shop", "near", parameters={"table_type": "ICEBERG"})
    with as_user(ann.server, "ann") as client:
        pointed = near.replace(parameters={**near.parameters, "metadata_location": f"file:{metadata}"})
        with pytest.raises(MetaException, match="Permission denied"):
            client.create_table(pointed)
        create(ann, "mine")
        stored = client.get_table("shop", "mine")
        stored.parameters["metadata_location"] = f"file:{metadata}"
        stored.parameters.pop("previous_metadata_location", None)
        with pytest.raises(MetaException):
            client.alter_table("shop", "mine", stored)
    path = "hive/namespaces/shop/tables/mine"
    update = {"action": "set-properties", "updates": {"write.metadata.path": elsewhere}}
    assert ann.refused("POST", path, {"requirements": [], "updates": [update]})[0] == 403
    assert not (tmp_path / "elsewhere").exists()


@pytest.mark.parametrize("kind", ["keyed", "plain"])
def test_tables_are_shown_to_who_may_select(guarded: dict[str, Catalog], kind: str) -> None:
    ann, bob, name = guarded["ann"], guarded["bob"], f"{kind}_orders"
    path = f"hive/namespaces/shop/tables/{name}"
    made = builders.table("shop", name, keys=("part",), sd=builders.parquet("id:bigint"), owner="ann")
    key = {"primary-key": "id,part"} if kind == "keyed" else {}
    made = made.replace(parameters={**key, "iceberg.expose": "true"})
    rows = pa.table({"id": pa.array([1], pa.int64()), "part": ["a"]})
    with as_user(ann.server, "root") as root:
        root.create_table(made)
        if kind == "keyed":
            with LakeClient(ann.server.uri, login=Login(user="root", password=USERS["root"])) as lake:
                lake.table(f"shop.{name}").upsert(rows)
        with as_user(ann.server, "bob") as thrift:
            assert bob.refused("GET", path)[:2] == (404, "NoSuchTableException")
            with pytest.raises(NoSuchObjectException):
                thrift.get_table("shop", f"{name}@iceberg")
            grant(root, "bob", "INSERT", "shop", name)
            assert bob.refused("GET", path)[:2] == (403, "ForbiddenException")
            with pytest.raises(MetaException, match="Permission denied"):
                thrift.get_table("shop", f"{name}@iceberg")
            revoke(root, "bob", "INSERT", "shop", name)
            grant(root, "bob", "SELECT", "shop", name)
            assert thrift.get_table("shop", f"{name}@iceberg").parameters["table_type"] == "ICEBERG"
    assert sorted(bob.ask("GET", path)["metadata"]["refs"]) == ["main"]
    assert sorted(ann.ask("GET", path)["metadata"]["refs"]) == ["main", "uncommitted"]
    change = {"requirements": [], "updates": [{"action": "set-properties", "updates": {"a": "1"}}]}
    for each in (ann, bob):
        assert each.refused("POST", path, change)[:2] == (403, "ForbiddenException")
        assert each.refused("DELETE", path)[:2] == (403, "ForbiddenException")
    with as_user(ann.server, "root") as root:
        revoke(root, "bob", "SELECT", "shop", name)
    assert bob.refused("GET", path)[0] == 404
    with as_user(ann.server, "bob") as thrift, pytest.raises(NoSuchObjectException):
        thrift.get_table("shop", f"{name}@iceberg")


@pytest.mark.parametrize("how", ["climbs", "beside", "below"])
def test_metadata_files_of_others_stay(guarded: dict[str, Catalog], how: str) -> None:
    """The log of a registered file may name files of another table, which its readers know."""
    ann, eve, name = guarded["ann"], guarded["eve"], f"kept_{how}"
    path = f"hive/namespaces/shop/tables/{name}"
    create(ann, name)
    for number in range(3):
        ann.ask("POST", path, changed(a=str(number)))
    with as_user(ann.server, "root") as root:
        grant(root, "eve", "SELECT", "shop", name)
    seen = eve.ask("GET", path)["metadata"]
    others = [each["metadata-file"] for each in seen["metadata-log"]]
    own = f"reader_{how}"
    new = create(eve, own)["metadata"]
    directory = new["location"]
    named = {"climbs": [each.replace(f"/{name}/", f"/{own}/../{name}/") for each in others]}.get(how, others)
    if how != "climbs":
        new["location"] = seen["location"] if how == "beside" else seen["location"].rpartition("/")[0]
    mine = [f"{directory}/metadata/{number}.metadata.json" for number in range(2)]
    new["metadata-log"] = [{"timestamp-ms": 1, "metadata-file": each} for each in (*named, *mine)]
    new["properties"] |= DELETES
    for each in (*mine, f"{directory}/metadata/crafted.metadata.json"):
        local(each).write_text(json.dumps(new))
    body = {"name": own, "metadata-location": f"{directory}/metadata/crafted.metadata.json", "overwrite": True}
    eve.ask("POST", "hive/namespaces/shop/register", body)
    eve.ask("POST", f"hive/namespaces/shop/tables/{own}", changed(b="1"))
    settled(ann.server)
    assert all(local(each).exists() for each in others)
    assert not any(local(each).exists() for each in mine) or how == "beside"


def settled(server: MetastoreServer) -> None:
    """Waits until the server has done the deletions that were scheduled."""
    with as_user(server, "root") as root:
        wait_until(lambda: root.getCounters()["files_to_delete"] == 0)


def changed(**properties: str) -> Any:
    return {"requirements": [], "updates": [{"action": "set-properties", "updates": properties}]}


def local(location: str) -> Path:
    return Path(location.removeprefix("file://"))


DELETES = {"write.metadata.delete-after-commit.enabled": "true", "write.metadata.previous-versions-max": "1"}


def test_forgotten_metadata_files_are_deleted(guarded: dict[str, Catalog]) -> None:
    ann = guarded["ann"]
    files = [create(ann, "forgets", properties=DELETES)["metadata-location"]]
    for number in range(3):
        change = changed(a=str(number))
        files.append(ann.ask("POST", "hive/namespaces/shop/tables/forgets", change)["metadata-location"])
    settled(ann.server)
    assert [local(each).exists() for each in files] == [False, False, True, True]


def test_lists_have_what_a_caller_sees(guarded: dict[str, Catalog]) -> None:
    ann, bob = guarded["ann"], guarded["bob"]
    guarded["root"].ask("POST", "hive/namespaces", {"namespace": ["lists"]})
    path = "hive/namespaces/lists/tables"
    assert bob.refused("GET", path)[:2] == (404, "NoSuchNamespaceException")
    with as_user(ann.server, "root") as root:
        grant(root, "ann", "CREATE", "lists")
        for name in ("a", "b"):
            ann.ask("POST", path, {"name": name, "schema": SCHEMA})
        grant(root, "bob", "SELECT", "lists", "b")
        names = [[each["name"] for each in who.ask("GET", path)["identifiers"]] for who in (ann, bob, ann, bob)]
        assert names == [["a", "b"], ["b"]] * 2
        revoke(root, "bob", "SELECT", "lists", "b")
    assert bob.refused("GET", path)[0] == 404


def test_an_answer_is_for_who_made_the_request(guarded: dict[str, Catalog]) -> None:
    """A key says nothing to others, and gives no rights back that were revoked."""
    ann, eve, key = guarded["ann"], guarded["eve"], {"Idempotency-Key": "01890000-0000-7000-8000-000000000001"}
    create(ann, "keyed")
    path = "hive/namespaces/shop/tables/keyed"
    assert ann.send("POST", path, changed(a="1"), headers=key).ok
    assert ann.send("POST", path, changed(a="1"), headers=key).ok
    assert eve.send("POST", path, changed(a="1"), headers=key).status_code == 404
    with as_user(ann.server, "root") as root:
        stored = root.get_table("shop", "keyed")
        root.alter_table("shop", "keyed", stored.replace(owner="root"))
    assert ann.send("POST", path, changed(a="1"), headers=key).status_code == 500, "it was made, and isn't shown"


def test_a_login_that_ends_ends_with_its_connection(guarded: dict[str, Catalog]) -> None:
    """The port keeps a connection to a worker for the next request, but nobody's login."""
    with as_user(guarded["ann"].server, "ann") as ann:
        token = ann.get_delegation_token("ann", "ann")
        identifier = ann.lake_list_tokens(ListTokensRequest())[-1].id
        mine = Catalog(guarded["ann"].server)
        headers = {"Authorization": f"Bearer {token}"}
        assert mine.send("GET", "hive/namespaces/shop", headers=headers).ok
        ann.lake_cancel_tokens(CancelTokensRequest([identifier]))
    assert mine.send("GET", "hive/namespaces/shop", headers=headers).status_code == 401
