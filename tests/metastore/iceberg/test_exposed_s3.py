"""Lake tables on an object store, as Iceberg's readers see them."""

from collections.abc import Iterator

import pytest
from pyiceberg.catalog.rest import RestCatalog

from lake.tables.lake import LakeClient
from tests.metastore.iceberg.conftest import Catalog
from tests.metastore.iceberg.shown import COLUMNS, Duck, batch, keyed, of_pyiceberg, own
from tests.support import object_store
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
