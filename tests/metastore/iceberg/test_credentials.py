"""Credentials that the server gives to clients: for one table's directory, and for what the caller may do there."""

import json
import threading
import urllib.request
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import pyarrow as pa
import pytest
from pyiceberg.catalog.rest import RestCatalog

from lake.protocol.connection.login import Login
from lake.tables.lake import LakeClient
from metastore.iceberg import credentials
from metastore.iceberg.credentials import Place, Sts, Vending
from metastore.iceberg.errors import RestError
from metastore.server.credentials import password_file
from tests.metastore.iceberg.conftest import Catalog
from tests.metastore.iceberg.test_repeats import new_key
from tests.metastore.iceberg.test_rights import SCHEMA, USERS, as_user
from tests.rights.world import grant
from tests.support import builders, object_store
from tests.support.server import MetastoreServer

BUCKET = "vended"
ROLE = "arn:aws:iam::123456789012:role/lake"
WANTS = {"X-Iceberg-Access-Delegation": "vended-credentials,remote-signing"}
PLACE = Place("s3a", "b", "x/t")


@pytest.mark.parametrize(
    "location",
    [
        *("s3://b", "s3://b/", "s3://b//t", "s3://b/x*", "s3://b/x?", "s3://b/${aws:username}", "s3://b/a/../c"),
        *("file:/t", "gs://b/t", "s3://b/x\n", ""),
    ],
)
def test_places_that_a_policy_cannot_say(location: str) -> None:
    assert Place.of(location) is None


def test_a_policy() -> None:
    assert Place.of("s3a://b/x/t/") == PLACE
    reads, names, _ = credentials.policy(PLACE, "aws-cn", write=False)["Statement"]
    assert reads["Resource"] == ["arn:aws-cn:s3:::b/x/t/*"]
    assert reads["Action"] == ["s3:GetObject", "s3:GetObjectVersion"]
    assert names["Condition"] == {"StringLike": {"s3:prefix": ["x/t/*"]}}
    writes = credentials.policy(PLACE, "aws", write=True)["Statement"][0]
    assert {"s3:PutObject", "s3:DeleteObject"} < {*writes["Action"]}
    assert writes["Resource"] == ["arn:aws:s3:::b/x/t/*"]


class Assumed:
    """STS's answers, and what it was sent."""

    def __init__(self) -> None:
        self.sent: list[dict[str, Any]] = []

    def __call__(self, **sent: Any) -> dict[str, Any]:
        self.sent.append(sent)
        given = dict.fromkeys(("AccessKeyId", "SecretAccessKey", "SessionToken"), str(len(self.sent)))
        return {"Credentials": given | {"Expiration": datetime.now(UTC) + timedelta(hours=1)}}


def test_they_are_given_again_to_the_same_user_alone() -> None:
    assumed = Assumed()
    vending = Vending(Sts(ROLE), assumed)
    first = vending.credentials(PLACE, "ann/lee", write=True)
    assert vending.credentials(PLACE, "ann/lee", write=True) == first
    vending.credentials(PLACE, "ann/lee", write=False)
    vending.credentials(PLACE, "bob", write=True)
    vending.credentials(PLACE._replace(key="x/u"), "bob", write=True)
    assert [each["RoleSessionName"] for each in assumed.sent] == [
        *["metastore-ann-lee"] * 2,
        *["metastore-bob"] * 2,
    ]
    assert len({each["Policy"] for each in assumed.sent}) == 3


def test_sts_that_fails() -> None:
    def fails(**_: Any) -> Any:
        raise OSError("no route")

    with pytest.raises(RestError) as refused:
        Vending(Sts(ROLE), fails).credentials(PLACE, "", write=False)
    assert refused.value.status == 503


# -- with a store ------------------------------------------------------------------------------------------------


class Recorder(ThreadingHTTPServer):
    """Passes requests on to the store's STS, and keeps the policies."""

    def __init__(self, store: str) -> None:
        self.policies: list[Any] = []
        recorder = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                recorder.policies.append(json.loads(parse_qs(body.decode())["Policy"][0]))
                headers = {key: each for key, each in self.headers.items() if key.lower() != "host"}
                request = urllib.request.Request(f"http://{store}/", body, headers)
                with urllib.request.urlopen(request, timeout=30) as response:
                    content = response.read()
                self.send_response(response.status)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *_: Any) -> None:
                """Nothing."""

        super().__init__(("127.0.0.1", 0), Handler)

    @property
    def last(self) -> tuple[str, bool]:
        """The object names of the last policy, and whether they may be written."""
        objects = self.policies[-1]["Statement"][0]
        return objects["Resource"][0], "s3:PutObject" in objects["Action"]


@pytest.fixture(scope="module")
def store() -> Iterator[str]:
    with object_store.running(BUCKET) as address:
        yield address


@pytest.fixture(scope="module")
def sts(store: str) -> Iterator[Recorder]:
    with Recorder(store) as recorder:
        threading.Thread(target=recorder.serve_forever, daemon=True).start()
        yield recorder
        recorder.shutdown()


@pytest.fixture(scope="module")
def guarded(sts: Recorder, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Catalog]]:
    """The catalog by user."""
    directory = tmp_path_factory.mktemp("vended")
    users = directory / "users"
    for name, password in USERS.items():
        password_file.add(users, name, password, (), allow_weak=True)
    options = (
        *("--authentication", "plain", "--password-file", str(users), "--credentials-without-tls"),
        *("--authorization", "sql-standard", "--admins", "root", "--http-port", "0", "--workers", "1"),
        *("--warehouse-dir", f"s3a://{BUCKET}/warehouse", "--iceberg-credentials-role", ROLE),
        *("--iceberg-credentials-endpoint", f"http://127.0.0.1:{sts.server_address[1]}"),
        *("--iceberg-credentials-region", "us-east-1"),
    )
    with MetastoreServer(directory / "data", *options) as server:
        found = {name: Catalog(server, (name, password)) for name, password in USERS.items()}
        found["root"].ask("POST", "hive/namespaces", {"namespace": ["shop"]})
        with as_user(server, "root") as root:
            grant(root, "ann", "CREATE", "shop")
        yield found


def made(catalog: Catalog, name: str, **named: Any) -> Any:
    body = {"name": name, "schema": SCHEMA, **named}
    return catalog.ask("POST", "hive/namespaces/shop/tables", body, headers=WANTS)


def test_who_may_write_and_who_may_read(guarded: dict[str, Catalog], sts: Recorder) -> None:
    ann, bob, path = guarded["ann"], guarded["bob"], "hive/namespaces/shop/tables/orders"
    created = made(ann, "orders")
    own = f"arn:aws:s3:::{BUCKET}/warehouse/shop.db/orders/*"
    assert sts.last == (own, True)
    assert created["config"]["s3.session-token"]
    assert created["config"]["client.region"] == "us-east-1"
    [first, second] = created["storage-credentials"]
    assert first["prefix"] == created["metadata"]["location"] + "/"
    assert second["prefix"] == f"s3://{BUCKET}/warehouse/shop.db/orders/"
    assert ann.ask("GET", path, headers=WANTS)["config"]["s3.access-key-id"] == first["config"]["s3.access-key-id"]
    plain = ann.ask("GET", path)
    assert plain["config"] == {}
    assert "storage-credentials" not in plain
    with as_user(ann.server, "root") as root:
        grant(root, "bob", "SELECT", "shop", "orders")
        grant(root, "eve", "INSERT", "shop", "orders")
    read = bob.ask("GET", path, headers=WANTS)
    assert sts.last == (own, False)
    assert read["config"]["client.refresh-credentials-endpoint"] == f"v1/{path}/credentials"
    assert bob.ask("GET", f"{path}/credentials")["storage-credentials"] == read["storage-credentials"]
    eve = guarded["eve"].ask("GET", path, headers=WANTS)
    assert eve["config"] == {}, "who may not read gets none"
    assert guarded["eve"].ask("GET", f"{path}/credentials") == {"storage-credentials": []}


def test_a_table_with_others_in_its_directory(guarded: dict[str, Catalog], sts: Recorder) -> None:
    """Its credentials would be for the others, too."""
    root, count = guarded["root"], len(sts.policies)
    outer = made(root, "outer")
    assert outer["config"]
    inner = made(root, "inner", location=f"{outer['metadata']['location']}/data/inner")
    assert inner["config"] == {}
    assert root.ask("GET", "hive/namespaces/shop/tables/outer", headers=WANTS)["config"] == {}
    staged = {"name": "s", "schema": SCHEMA, "stage-create": True, "location": f"{outer['metadata']['location']}/s"}
    assert made(root, **staged)["config"] == {}
    assert len(sts.policies) == count + 1


def test_a_table_whose_creation_is_sent_again(guarded: dict[str, Catalog]) -> None:
    ann, key = guarded["ann"], {"Idempotency-Key": new_key()}
    body = {"name": "twice", "schema": SCHEMA}
    first, again = (ann.ask("POST", "hive/namespaces/shop/tables", body, headers=WANTS | key) for _ in range(2))
    assert first["storage-credentials"]
    assert again == first


def test_a_table_that_its_owner_moved(guarded: dict[str, Catalog], sts: Recorder) -> None:
    """The role may read the whole bucket, and what lies there may be of others."""
    ann, path = guarded["ann"], "hive/namespaces/shop/tables/moved"
    assert made(ann, "moved")["config"]
    count = len(sts.policies)
    move = {"action": "set-location", "location": f"s3a://{BUCKET}/theirs"}
    ann.ask("POST", path, {"requirements": [], "updates": [move]})
    assert ann.ask("GET", path, headers=WANTS)["config"] == {}
    assert ann.ask("GET", f"{path}/credentials") == {"storage-credentials": []}
    staged = {"name": "s", "schema": SCHEMA, "stage-create": True, "location": f"s3a://{BUCKET}/theirs/s"}
    assert made(guarded["root"], **staged)["config"] == {}
    assert len(sts.policies) == count


def test_a_staged_table(guarded: dict[str, Catalog], sts: Recorder) -> None:
    staged = made(guarded["ann"], "staged", **{"stage-create": True})
    assert staged["config"]["s3.session-token"]
    assert sts.last == (f"arn:aws:s3:::{BUCKET}/warehouse/shop.db/staged/*", True)


def test_data_that_metadata_names_elsewhere(guarded: dict[str, Catalog], sts: Recorder) -> None:
    """The directory is the one that the metastore keeps, which takes a right, and not what a client's file says."""
    root = guarded["root"]
    elsewhere = {"write.data.path": f"s3://{BUCKET}/warehouse/shop.db/orders"}
    found = made(root, "far", properties=elsewhere)
    assert sts.last == (f"arn:aws:s3:::{BUCKET}/warehouse/shop.db/far/*", True)
    assert all(each["prefix"].endswith("/shop.db/far/") for each in found["storage-credentials"])


def test_a_table_that_is_only_shown(guarded: dict[str, Catalog], sts: Recorder) -> None:
    path = "hive/namespaces/shop/tables/shown"
    table = builders.table("shop", "shown", keys=("part",), sd=builders.parquet("id:bigint"), owner="ann")
    table = table.replace(parameters={"primary-key": "id,part", "iceberg.expose": "true"})
    rows = pa.table({"id": pa.array([1], pa.int64()), "part": ["a"]})
    with as_user(guarded["root"].server, "root") as root:
        root.create_table(table)
        with LakeClient(guarded["root"].server.uri, login=Login(user="root", password=USERS["root"])) as lake:
            lake.table("shop.shown").upsert(rows)
        grant(root, "bob", "SELECT", "shop", "shown")
    assert guarded["ann"].ask("GET", path, headers=WANTS)["config"]["s3.session-token"]
    assert sts.last == (f"arn:aws:s3:::{BUCKET}/warehouse/shop.db/shown/*", False)
    assert guarded["bob"].ask("GET", path, headers=WANTS)["config"] == {}, "uncommitted partitions may lie there"


def test_pyiceberg_writes_with_them(guarded: dict[str, Catalog], store: str) -> None:
    catalog = guarded["ann"]
    options = {"auth": {"type": "basic", "basic": dict(zip(("username", "password"), catalog.user or (), strict=True))}}
    ours = RestCatalog("ours", uri=catalog.uri, **options, **{"s3.endpoint": f"http://{store}"})
    rows = pa.table({"id": [1, 2]})
    table = ours.create_table("shop.written", rows.schema)
    assert table.io.properties["s3.session-token"]
    table.append(rows)
    assert ours.load_table("shop.written").scan().to_arrow() == rows


@pytest.mark.long
def test_none_without_a_role(rest: Catalog, tmp_path: Path) -> None:
    namespace = rest.namespace()
    body = {"name": "t", "schema": SCHEMA}
    assert rest.ask("POST", f"hive/namespaces/{namespace}/tables", body, headers=WANTS)["config"] == {}
    path = f"hive/namespaces/{namespace}/tables/t"
    assert rest.ask("GET", path, headers=WANTS)["config"] == {}
    assert rest.ask("GET", f"{path}/credentials") == {"storage-credentials": []}
