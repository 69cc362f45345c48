"""get_fields and get_schema: the columns of a table, without and with its partition keys."""

import pytest

from lake.protocol.connection.thrift_client import ThriftClient
from lake.protocol.hive import EnvironmentContext, SerDeInfo, UnknownTableException
from tests.support.builders import columns, storage, table, view
from tests.support.expect import refused

SERDES = [
    "org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe",
    "org.apache.hadoop.hive.ql.io.orc.OrcSerde",
    "org.apache.hadoop.hive.ql.io.parquet.serde.ParquetHiveSerDe",
    None,
]


@pytest.mark.parametrize("serde", SERDES)
def test_columns_then_keys(client: ThriftClient, db: str, serde: str | None) -> None:
    fields = ("a:int#said", "B:map<string,int>")
    client.create_table(
        table(db, keys=("k:date#day",), sd=storage(*fields, serdeInfo=SerDeInfo(serializationLib=serde)))
    )
    expected = columns("a:int#said", "b:map<string,int>")
    assert client.get_fields(db.upper(), "T") == expected
    assert client.get_schema(db.upper(), "T") == expected + columns("k:date#day")


def test_with_environment_context(client: ThriftClient, db: str) -> None:
    client.create_table(table(db, keys=("k",), sd=storage("a:int")))
    context = EnvironmentContext(properties={})
    assert client.get_fields_with_environment_context(db, "t", context) == columns("a:int")
    assert client.get_schema_with_environment_context(db, "t", None) == columns("a:int", "k")


def test_a_view(client: ThriftClient, db: str) -> None:
    client.create_table(view(db, "v", sd=storage("a:int", serdeInfo=SerDeInfo())))
    assert client.get_fields(db, "v") == client.get_schema(db, "v") == columns("a:int")


@pytest.mark.parametrize("method", ["get_fields", "get_schema"])
def test_missing(client: ThriftClient, db: str, method: str) -> None:
    for name in (db, "no_such"):
        with refused(UnknownTableException, message=f"{name}.no_such table not found"):
            client.call(method, name, "no_such")
