"""A keyed table without Spark: rows are put, changed and read in Arrow, by the client's package alone.

    pip install 'lake-metastore-client[arrow]'
    python examples/arrow_table.py thrift://127.0.0.1:9083

It makes the table `arrow_example.customers`, and drops the database at the end.
"""

import argparse

import pyarrow as pa

from lake.protocol.hive import Database, FieldSchema, SerDeInfo, StorageDescriptor, Table
from lake.tables.lake import LakeClient

DATABASE = "arrow_example"
PARQUET = "org.apache.hadoop.hive.ql.io.parquet."


def customers() -> Table:
    """The table as Hive's clients describe it; the property `primary-key` makes it a keyed one."""
    return Table(
        dbName=DATABASE,
        tableName="customers",
        tableType="MANAGED_TABLE",
        partitionKeys=[],
        parameters={"primary-key": "id"},
        sd=StorageDescriptor(
            cols=[FieldSchema(name="id", type="bigint"), FieldSchema(name="name", type="string")],
            inputFormat=f"{PARQUET}MapredParquetInputFormat",
            outputFormat=f"{PARQUET}MapredParquetOutputFormat",
            serdeInfo=SerDeInfo(
                serializationLib=f"{PARQUET}serde.ParquetHiveSerDe", parameters={"serialization.format": "1"}
            ),
        ),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description="Puts, changes and reads rows of a keyed table, without Spark.")
    parser.add_argument("uri", help="the metastore: thrift://HOST:PORT")
    with LakeClient(parser.parse_args().uri) as client:
        client.call(lambda opened: opened.create_database(Database(name=DATABASE)))
        client.call(lambda opened: opened.create_table(customers()))
        table = client.table(f"{DATABASE}.customers")
        table.upsert(pa.table({"id": [7, 9], "name": ["Ada", "Grace"]}))
        before = table.position().position
        table.upsert(pa.table({"id": [7], "name": ["Ada L."]}))
        table.delete(pa.table({"id": [9]}))
        print("now:", table.scan().to_arrow().to_pylist())
        print(f"at position {before}:", table.scan(as_of=before).to_arrow().sort_by("id").to_pylist())
        client.call(lambda opened: opened.drop_database(DATABASE, deleteData=True, cascade=True))


if __name__ == "__main__":
    main()
