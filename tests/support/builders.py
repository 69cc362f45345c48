"""Builders for the objects that tests send: minimal, with what a test is about given by name."""

from typing import Any

from lake.protocol.hive import Database, FieldSchema, Partition, SerDeInfo, StorageDescriptor, Table

SERDE = "org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe"
PARQUET_SERDE = "org.apache.hadoop.hive.ql.io.parquet.serde.ParquetHiveSerDe"
PARQUET_INPUT = "org.apache.hadoop.hive.ql.io.parquet.MapredParquetInputFormat"


def columns(*specs: str) -> list[FieldSchema]:
    """Columns from `name`, `name:type` or `name:type#comment`; the type is string when left out."""
    fields = []
    for spec in specs:
        name, _, rest = spec.partition(":")
        kind, _, comment = rest.partition("#")
        fields.append(FieldSchema(name=name, type=kind or "string", comment=comment or None))
    return fields


def storage(*column_specs: str, location: str | None = None, **fields: Any) -> StorageDescriptor:
    """A storage descriptor; without column specs its columns are `id bigint, name string`."""
    fields.setdefault("cols", columns(*(column_specs or ("id:bigint", "name:string"))))
    fields.setdefault("serdeInfo", SerDeInfo(serializationLib=SERDE))
    return StorageDescriptor(location=location, **fields)


def parquet(*column_specs: str, **fields: Any) -> StorageDescriptor:
    """A storage descriptor of Parquet files."""
    return storage(
        *column_specs,
        inputFormat=PARQUET_INPUT,
        outputFormat="org.apache.hadoop.hive.ql.io.parquet.MapredParquetOutputFormat",
        serdeInfo=SerDeInfo(serializationLib=PARQUET_SERDE),
        **fields,
    )


def database(name: str, **fields: Any) -> Database:
    return Database(name=name, **fields)


def table(db: str, name: str = "t", *, keys: tuple[str, ...] = (), **fields: Any) -> Table:
    """A managed table; `keys` are the specs of its partition keys."""
    fields.setdefault("sd", storage())
    fields.setdefault("tableType", "MANAGED_TABLE")
    return Table(dbName=db, tableName=name, partitionKeys=columns(*keys), **fields)


def external_table(db: str, name: str = "t", *, keys: tuple[str, ...] = (), **fields: Any) -> Table:
    parameters = {"EXTERNAL": "TRUE", **fields.pop("parameters", {})}
    return table(db, name, keys=keys, tableType="EXTERNAL_TABLE", parameters=parameters, **fields)


def view(db: str, name: str = "v", *, keys: tuple[str, ...] = (), **fields: Any) -> Table:
    fields.setdefault("sd", storage("id:bigint", serdeInfo=SerDeInfo()))
    fields.setdefault("viewOriginalText", "select id from t")
    fields.setdefault("viewExpandedText", "select `t`.`id` from `d`.`t`")
    return table(db, name, keys=keys, tableType="VIRTUAL_VIEW", **fields)


def partition(db: str, name: str, *values: str, **fields: Any) -> Partition:
    """A partition of table `db`.`name` with the columns that `table` gives it."""
    fields.setdefault("sd", storage(location=fields.pop("location", None)))
    return Partition(dbName=db, tableName=name, values=list(values), **fields)
