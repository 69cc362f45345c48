"""Lake tables on an object store, as Iceberg's readers see them."""

import io
from collections.abc import Iterator

import pyarrow.parquet as pq
import pytest
import s3fs
from pyiceberg.catalog.rest import RestCatalog

from lake.protocol.connection.thrift_client import ThriftClient
from lake.tables.iceberg_overlays import write_overlays
from lake.tables.lake import LakeClient
from tests.metastore.iceberg.conftest import Catalog
from tests.metastore.iceberg.shown import COLUMNS, Duck, batch, keyed, of_pyiceberg, own
from tests.support import builders, object_store
from tests.support.server import MetastoreServer

BUCKET = "exposed"


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    with object_store.running(BUCKET) as address:
        yield address


@pytest.fixture(scope="module")
def rest(endpoint: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Catalog]:
    options = ("--warehouse-dir", f"s3a://{BUCKET}/warehouse", "--workers", "1", "--http-port", "0")
    with MetastoreServer(tmp_path_factory.mktemp("exposed_s3") / "data", *options) as server:
        yield Catalog(server)


@pytest.mark.long
def test_tables_on_s3(rest: Catalog, endpoint: str) -> None:
    account = {"s3.endpoint": f"http://{endpoint}", "s3.access-key-id": "key", "s3.secret-access-key": "secret"}
    ours = RestCatalog("ours", uri=rest.uri, **account, **{"s3.region": "us-east-1"})
    duck = Duck(rest.uri)
    secret = "TYPE s3, KEY_ID 'key', SECRET 'secret', REGION 'us-east-1', USE_SSL false, URL_STYLE 'path'"
    duck.connection.execute(f"CREATE SECRET ({secret}, ENDPOINT '{endpoint}')")
    with LakeClient(rest.server.uri) as lake, duck.connection:
        table = keyed(lake, COLUMNS)
        for number in (1, 2):
            table.upsert(batch(1, number, part="10:30 ü"))
            assert of_pyiceberg(ours, table) == duck.rows(table) == own(table)
            ours.load_table(table.name)  # nothing is written twice
        assert duck.rows(table, "AT (VERSION => 1)") == own(table, 1)
        merged = keyed(lake, COLUMNS, table_type="merge-on-read")
        for number in (1, 2):
            merged.upsert(batch(1, 3, number, part="10:30 ü", value=f"{number}:"))
        assert write_overlays(merged).buckets and not write_overlays(merged).buckets
        assert of_pyiceberg(ours, merged) == duck.rows(merged) == own(merged)


def test_hive_tables_on_s3(rest: Catalog, endpoint: str) -> None:
    account = {"s3.endpoint": f"http://{endpoint}", "s3.access-key-id": "key", "s3.secret-access-key": "secret"}
    ours = RestCatalog("ours", uri=rest.uri, **account, **{"s3.region": "us-east-1"})
    storage = {"key": "key", "secret": "secret", "endpoint_url": f"http://{endpoint}"}
    store = s3fs.S3FileSystem(**storage, use_listings_cache=False)
    columns = ("id:bigint", "b:string")
    with ThriftClient(rest.server.host, rest.server.port) as client:
        client.create_database(builders.database("plain"))
        sd = builders.parquet(*columns)
        own = {"iceberg.expose": "true"}
        client.create_table(builders.table("plain", "t", keys=("part:string",), sd=sd, parameters=own))
        for number, part in enumerate(("a", "10:30 ü")):
            place = f"{BUCKET}/warehouse/plain.db/t/part={number}"
            content = io.BytesIO()
            pq.write_table(batch(number).select(["id", "b"]), content)
            for name in ("a.parquet", "_hidden.parquet", ".hidden/b.parquet"):
                store.pipe_file(f"{place}/{name}", content.getvalue())
            located = builders.parquet(*columns, location=f"s3a://{place}")
            client.add_partition(builders.partition("plain", "t", part, sd=located))
            found = ours.load_table("plain.t")
            assert len(found.history()) == number + 1
            rows = sorted(found.scan().to_arrow().to_pylist(), key=lambda each: each["id"])
            assert [(each["id"], each["part"]) for each in rows] == [(0, "a"), (1, "10:30 ü")][: number + 1]
