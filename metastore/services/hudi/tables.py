"""The calls of Hudi's metaserver for tables. They are the same tables that Hive's clients see.

Hudi sends a table's name, type and location. It stores everything else in a file beside the data,
`.hoodie/hoodie.properties`, which is read where it has more.
"""

from collections.abc import Mapping
from contextlib import suppress

from lake.protocol import hive, hudi
from lake.protocol.formats.spark_schema import PROVIDER
from lake.protocol.hive import AlreadyExistsException, NoSuchObjectException, SerDeInfo, StorageDescriptor
from metastore.services.catalog.databases import DatabaseService
from metastore.services.instant_rules import schema_evolution
from metastore.services.model import hive_objects
from metastore.services.table.service import TableService
from metastore.warehouse import Warehouse
from metastore.warehouse.hudi_files import timeline as hudi_timeline

COPY_ON_WRITE, MERGE_ON_READ = "COPY_ON_WRITE", "MERGE_ON_READ"

TYPE = "hoodie.table.type"
PARTITION_FIELDS = "hoodie.table.partition.fields"

_KEPT = (
    "hoodie.populate.meta.fields",
    "hoodie.datasource.write.hive_style_partitioning",
    "hoodie.datasource.write.partitionpath.urlencode",
)
"""The properties of Hudi's file that become the table's. They are needed to read the table's commits."""

MAX_PROPERTIES = 1 << 20
"""The most bytes that are read of Hudi's file."""

# How Spark SQL writes the type among a table's properties.
_SHORT_TYPES = {"cow": COPY_ON_WRITE, "mor": MERGE_ON_READ}
# What Hudi's own sync to Hive gives tables, so that Hive reads them with Hudi's classes.
_INPUT_FORMATS = {
    COPY_ON_WRITE: "org.apache.hudi.hadoop.HoodieParquetInputFormat",
    MERGE_ON_READ: "org.apache.hudi.hadoop.realtime.HoodieParquetRealtimeInputFormat",
}
_OUTPUT_FORMAT = "org.apache.hadoop.hive.ql.io.parquet.MapredParquetOutputFormat"
_SERDE = "org.apache.hadoop.hive.ql.io.parquet.serde.ParquetHiveSerDe"


class HudiTables:
    """Hudi's calls for databases and tables."""

    def __init__(self, warehouse: Warehouse, databases: DatabaseService, tables: TableService) -> None:
        self._warehouse = warehouse
        self._databases = databases
        self._tables = tables

    def create_database(self, name: str | None, owner: str | None = None) -> None:
        """Adds a database in its default place, which belongs to a user `owner`, or to nobody.

        Raises AlreadyExistsException and what `DatabaseService` does.
        """
        kind = None if owner is None else hive.PrincipalType.USER
        self._databases.create(hive.Database(name=name, ownerName=owner, ownerType=kind))

    def create(self, table: hudi.Table, owner: str | None = None) -> None:
        """Adds a table, and its database if there is none, as Hudi's own server does.

        Its columns come with its first commit. Its partition keys, unless Hudi names them, are those of Hudi's file.
        Raises AlreadyExistsException and what `TableService` does.
        """
        try:
            self._databases.get(table.dbName)
        except NoSuchObjectException:
            with suppress(AlreadyExistsException):  # by somebody else at the same time
                self.create_database(table.dbName, owner)
        properties = self._properties(table.location)
        kind = _type_of({**properties, **({TYPE: table.tableType} if table.tableType else {})})
        keys = [
            hive.FieldSchema(name=key.name, type=key.type or "string", comment=key.comments)
            for key in table.partitionKeys or ()
        ] or [hive.FieldSchema(name=name, type="string") for name in _partition_fields(properties)]
        parameters = {
            **{name: properties[name] for name in _KEPT if name in properties},
            **(table.parameters or {}),
            **{"EXTERNAL": "TRUE", PROVIDER: "hudi", TYPE: kind, schema_evolution.PROPERTY: schema_evolution.ANY},
        }
        self._tables.create(
            hive.Table(
                tableName=table.tableName,
                dbName=table.dbName,
                owner=table.owner,
                tableType=hive_objects.EXTERNAL,
                partitionKeys=keys,
                parameters=parameters,
                sd=StorageDescriptor(
                    cols=[],
                    location=table.location,
                    inputFormat=_INPUT_FORMATS[kind],
                    outputFormat=_OUTPUT_FORMAT,
                    serdeInfo=SerDeInfo(
                        serializationLib=_SERDE,
                        parameters={"path": table.location or "", "hoodie.query.as.ro.table": "false"},
                    ),
                ),
            ),
            {},
        )

    def get(self, database: str | None, name: str | None) -> hudi.Table:
        """Any table that has a location, registered by Hudi or by others. Raises NoSuchObjectException."""
        found = self._tables.get(database, name)
        if found.sd is None or not found.sd.location or hive_objects.is_view(found):
            raise NoSuchObjectException(f"{found.dbName}.{found.tableName} is a view")
        return hudi.Table(
            tableName=found.tableName,
            dbName=found.dbName,
            owner=found.owner,
            createTime=found.createTime,
            location=found.sd.location,
            tableType=self._type(found, found.sd.location),
            partitionKeys=[
                hudi.FieldSchema(name=key.name, type=key.type, comments=key.comment)
                for key in found.partitionKeys or ()
            ],
            parameters=found.parameters,
        )

    def _type(self, table: hive.Table, location: str) -> str:
        """The table's type: from its properties or input format, or else from Hudi's file."""
        parameters = table.parameters or {}
        if TYPE in parameters or parameters.get("type") in _SHORT_TYPES:
            return _type_of(parameters)
        assert table.sd is not None
        if table.sd.inputFormat in _INPUT_FORMATS.values():
            return next(kind for kind, form in _INPUT_FORMATS.items() if form == table.sd.inputFormat)
        return _type_of(self._properties(location))

    def _properties(self, location: str | None) -> Mapping[str, str]:
        """The properties in Hudi's file; none if there is no file. Raises WarehouseError."""
        if not location:
            return {}
        content = self._warehouse.read_file(
            self._warehouse.join(self._warehouse.qualify(location), ".hoodie/hoodie.properties"), MAX_PROPERTIES
        )
        return hudi_timeline.properties(content or b"")


def _type_of(properties: Mapping[str, str]) -> str:
    """Hudi's name of a table's type; copy on write unless another one is named."""
    named = properties.get(TYPE) or _SHORT_TYPES.get(properties.get("type", ""), COPY_ON_WRITE)
    return named if named in _INPUT_FORMATS else COPY_ON_WRITE


def _partition_fields(properties: Mapping[str, str]) -> list[str]:
    """The names of partition keys; those of a custom key generator say what kind they are, after a colon."""
    fields = properties.get(PARTITION_FIELDS, "").split(",")
    return [field.partition(":")[0].strip() for field in fields if field.strip()]
