"""Hive's objects in the form in which Hive gives them back, and between that form and rows of the store."""

from collections.abc import Mapping

from metastore.store.databases import DatabaseRow
from metastore.store.tables import TableRow, TableValues
from metastore.wire import binary, splice
from metastore.wire.hive import (
    Database,
    EnvironmentContext,
    FieldSchema,
    Partition,
    PrincipalType,
    SerDeInfo,
    SkewedInfo,
    StorageDescriptor,
    Table,
)

VIEW = "VIRTUAL_VIEW"
MANAGED = "MANAGED_TABLE"
EXTERNAL = "EXTERNAL_TABLE"

NO_WRITE_ID = -1


def columns(fields: list[FieldSchema] | None) -> list[FieldSchema]:
    """Columns with lower-cased names, as Hive stores them."""
    return [
        field if field.name and field.name == field.name.lower() else field.replace(name=(field.name or "").lower())
        for field in fields or ()
    ]


def descriptor(sd: StorageDescriptor) -> StorageDescriptor:
    """A descriptor as Hive reads it back: lists and maps are never unset, numbers and flags have values."""
    serde = sd.serdeInfo or SerDeInfo()
    skewed = sd.skewedInfo or SkewedInfo()
    return sd.replace(
        cols=None if sd.cols is None else columns(sd.cols),
        compressed=bool(sd.compressed),
        numBuckets=sd.numBuckets or 0,
        serdeInfo=serde.replace(parameters=serde.parameters or {}),
        bucketCols=sd.bucketCols or [],
        sortCols=[order.replace(col=(order.col or "").lower()) for order in sd.sortCols or ()],
        parameters=sd.parameters or {},
        skewedInfo=skewed.replace(
            skewedColNames=skewed.skewedColNames or [],
            skewedColValues=skewed.skewedColValues or [],
            skewedColValueLocationMaps=skewed.skewedColValueLocationMaps or {},
        ),
        storedAsSubDirectories=bool(sd.storedAsSubDirectories),
    )


class SharedDescriptors:
    """Storage descriptors as Hive reads them back. Those that differ in their location alone share their parts, which
    must not be changed.
    """

    def __init__(self) -> None:
        self._by_body: dict[bytes, StorageDescriptor] = {}
        # Most are given with one and the same list of columns: the rest is soon encoded.
        self._by_columns: dict[tuple[int, bytes], StorageDescriptor] = {}
        self._columns: list[list[FieldSchema] | None] = []  # so that no other list gets the identity of one of these

    def descriptor(self, sd: StorageDescriptor) -> StorageDescriptor:
        key = id(sd.cols), splice.descriptor_body(sd.replace(cols=None))
        known = self._by_columns.get(key)
        if known is None:
            known = self._by_columns[key] = self._by_body.setdefault(splice.descriptor_body(sd), descriptor(sd))
            self._columns.append(sd.cols)
        return known.replace(location=sd.location)


def table(given: Table) -> Table:
    """A table as Hive reads it back."""
    return given.replace(
        tableName=(given.tableName or "").lower(),
        dbName=(given.dbName or "").lower(),
        createTime=given.createTime or 0,
        lastAccessTime=given.lastAccessTime or 0,
        retention=given.retention or 0,
        sd=descriptor((given.sd or StorageDescriptor()).replace(cols=(given.sd and given.sd.cols) or [])),
        partitionKeys=columns(given.partitionKeys),
        parameters=dict(given.parameters or {}),
        rewriteEnabled=bool(given.rewriteEnabled),
        ownerType=given.ownerType or PrincipalType.USER,
        privileges=None,
        temporary=None,
        colStats=None,
    )


def partition(given: Partition, shared: SharedDescriptors) -> Partition:
    """A partition as Hive reads it back; it shares the parts of its descriptor."""
    return given.replace(
        createTime=given.createTime or 0,
        lastAccessTime=given.lastAccessTime or 0,
        sd=given.sd and shared.descriptor(given.sd),
        parameters=dict(given.parameters or {}),
        privileges=None,
        colStats=None,
    )


def key_names(value: Table) -> list[str]:
    """The names of a table's partition keys."""
    return [field.name or "" for field in value.partitionKeys or ()]


def location(value: Table | Partition) -> str | None:
    """Where a table or partition lies."""
    return value.sd.location if value.sd is not None else None


def table_of(row: TableRow) -> Table:
    """A stored table as Hive gives it."""
    value = binary.decode_preserving(Table, row.body)
    value.tableName, value.dbName, value.catName = row.name.table, row.name.database, row.name.catalog
    value.sd = splice.descriptor(row.descriptor, row.location)
    value.parameters = dict(row.parameters)
    value.owner, value.tableType, value.lastAccessTime = row.owner, row.type, row.last_access_time
    value.id = row.id
    return value


def table_values(value: Table, descriptor_id: int) -> TableValues:
    """What the store keeps of a table in Hive's form; the descriptor is kept apart."""
    assert value.tableName is not None and value.sd is not None
    return TableValues(
        name=value.tableName,
        type=MANAGED if value.tableType is None else value.tableType,
        owner=value.owner,
        last_access_time=value.lastAccessTime or 0,
        location=value.sd.location,
        descriptor_id=descriptor_id,
        parameters=value.parameters or {},
        body=splice.table_body(value),
    )


def database_of(row: DatabaseRow) -> Database:
    """A stored database as Hive gives it."""
    value = binary.decode_preserving(Database, row.body)
    value.name, value.catalogName = row.name.database, row.name.catalog
    value.locationUri, value.ownerName = row.location, row.owner
    return value


def database_body(value: Database) -> bytes:
    """What the store keeps of a database beside the columns of its row."""
    return binary.encode(value.replace(name=None, catalogName=None, locationUri=None, ownerName=None, privileges=None))


def is_view(value: Table) -> bool:
    return value.tableType == VIEW


def is_external(value: Table) -> bool:
    """Whether dropping the table leaves its files alone (Hive's MetaStoreUtils.isExternalTable)."""
    return is_true((value.parameters or {}).get("EXTERNAL"))


def is_true(text: str | None) -> bool:
    """Java's Boolean.parseBoolean."""
    return text is not None and text.lower() == "true"


def properties(context: EnvironmentContext | None) -> Mapping[str, str]:
    """The properties of an environment context, empty if there is none."""
    return (context and context.properties) or {}
