"""Normalises Hive's objects to the form in which Hive returns them, and converts them to and from stored rows."""

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache

from lake.protocol.codec import binary, splice
from lake.protocol.codec.shared_list import SharedList
from lake.protocol.formats.table_identity import EXPECTED_ID
from lake.protocol.hive import (
    Database,
    EnvironmentContext,
    FieldSchema,
    MetaException,
    Partition,
    PrincipalType,
    SerDeInfo,
    SkewedInfo,
    StorageDescriptor,
    Table,
)
from metastore.store.catalog.databases import DatabaseRow
from metastore.store.table.tables import TableRow, TableValues

VIEW = "VIRTUAL_VIEW"
MANAGED = "MANAGED_TABLE"
ICEBERG_TYPES = ("ICEBERG", "ICEBERG-VIEW")
EXTERNAL = "EXTERNAL_TABLE"

#: The write id of a table that no transaction wrote: Hive 4 returns it, and doesn't leave the field out.
NO_WRITE_ID = 0

#: How metastores tell that a table or partition has none: Hive 4's server has -1 for partitions.
WITHOUT_WRITE_ID = frozenset({None, NO_WRITE_ID, -1})


def columns(fields: list[FieldSchema] | None) -> list[FieldSchema]:
    """Columns with lower-case names, as Hive stores them."""
    if type(fields) is SharedList and fields.of(_are_lower_case):
        return fields
    return [
        field if field.name and field.name == field.name.lower() else field.replace(name=(field.name or "").lower())
        for field in fields or ()
    ]


def _are_lower_case(fields: SharedList) -> bool:
    return all(field.name and field.name == field.name.lower() for field in fields)


def descriptor(sd: StorageDescriptor) -> StorageDescriptor:
    """A storage descriptor as Hive returns it: lists, maps, numbers and booleans are never unset."""
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
    """Normalises the storage descriptors of many partitions.

    Descriptors that differ only in the location share their parts; don't modify these.
    """

    def __init__(self) -> None:
        self._by_body: dict[bytes, StorageDescriptor] = {}
        # Most descriptors share their parts, or at least their columns, so that only the rest must be encoded.
        self._by_parts: dict[tuple[int, ...], Callable[[str | None], StorageDescriptor]] = {}  # by their location
        self._by_columns: dict[tuple[int, bytes], StorageDescriptor] = {}
        self._given: list[StorageDescriptor] = []  # keeps their parts alive, so that the ids stay unique

    def descriptor(self, sd: StorageDescriptor) -> StorageDescriptor:
        """A descriptor as Hive returns it. Raises MetaException for a column without name or type."""
        parts = splice.parts_of(sd)
        known = self._by_parts.get(parts)
        if known is None:
            known = self._by_parts[parts] = self._of_other_parts(sd).varying("location")
            self._given.append(sd)
        return known(sd.location)

    def _of_other_parts(self, sd: StorageDescriptor) -> StorageDescriptor:
        key = id(sd.cols), binary.encode(sd, without=("cols", "location"))
        known = self._by_columns.get(key)
        if known is None:
            _check_columns(sd.cols)
            known = self._by_columns[key] = self._by_body.setdefault(splice.descriptor_body(sd), descriptor(sd))
        return known

    @property
    def distinct(self) -> list[StorageDescriptor]:
        """Those that differ in more than the location."""
        return list(self._by_body.values())


def _check_columns(fields: list[FieldSchema] | None) -> None:
    for place, field in enumerate(fields or (), 1):
        if field.name is None:
            raise MetaException(f"the storage descriptor's column {place} has no name")
        if field.type is None:
            raise MetaException(f"the storage descriptor's column {place}, {field.name}, has no type")


def table(given: Table) -> Table:
    """A table as Hive returns it."""
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
    """A partition as Hive returns it. Its descriptor may share parts with others.

    Raises MetaException for a column without name or type.
    """
    value = given.replace()  # and not with these values, which would take twice as long for a thousand partitions
    value.createTime = given.createTime or 0
    value.lastAccessTime = given.lastAccessTime or 0
    value.sd = given.sd and shared.descriptor(given.sd)
    value.parameters = dict(given.parameters or {})
    value.privileges = value.colStats = None
    return value


def is_iceberg(value: Table | TableRow) -> bool:
    """Whether a table or view is one of Iceberg's, whose parameters name a file of metadata."""
    return (value.parameters or {}).get("table_type", "").upper() in ICEBERG_TYPES


def key_names(value: Table) -> list[str]:
    """The names of a table's partition keys."""
    return [field.name or "" for field in value.partitionKeys or ()]


def key_names_of(row: TableRow) -> Sequence[str]:
    """The names of a stored table's partition keys. They are read from a few bytes, without its columns."""
    return _key_names_of(row.body)


@lru_cache(maxsize=1_000)
def _key_names_of(body: bytes) -> tuple[str, ...]:
    return tuple(key_names(binary.decode_preserving(Table, body)))


def location(value: Table | Partition) -> str | None:
    """The location of a table or partition; None if it has none."""
    return value.sd.location if value.sd is not None else None


def table_of(row: TableRow) -> Table:
    """Converts a stored table."""
    value = binary.decode_preserving(Table, row.body)
    value.tableName, value.dbName, value.catName = row.name.table, row.name.database, row.name.catalog
    value.sd = splice.descriptor(row.descriptor, row.location)
    value.parameters = dict(row.parameters)
    value.owner, value.tableType, value.lastAccessTime = row.owner, row.type, row.last_access_time
    value.id = row.id
    if value.writeId is None:
        value.writeId = NO_WRITE_ID
    return value


def table_values(value: Table, descriptor_id: int) -> TableValues:
    """Converts a table to the values of its row. The descriptor is stored separately, under `descriptor_id`."""
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
    """Converts a stored database."""
    value = binary.decode_preserving(Database, row.body)
    value.name, value.catalogName = row.name.database, row.name.catalog
    value.locationUri, value.ownerName = row.location, row.owner
    value.managedLocationUri = row.managed_location
    return value


def database_body(value: Database) -> bytes:
    """Encodes the fields of a database that have no column of their own."""
    return binary.encode(
        value.replace(
            name=None,
            catalogName=None,
            locationUri=None,
            managedLocationUri=None,
            ownerName=None,
            privileges=None,
        )
    )


def is_view(value: Table) -> bool:
    return value.tableType == VIEW


def is_external(value: Table) -> bool:
    """Whether a drop keeps the table's files (Hive's MetaStoreUtils.isExternalTable)."""
    return is_true((value.parameters or {}).get("EXTERNAL"))


def is_true(text: str | None) -> bool:
    """Java's Boolean.parseBoolean."""
    return text is not None and text.lower() == "true"


def check_identity(row: TableRow, context: Mapping[str, str]) -> None:
    """Raises MetaException if an environment context has the id of another table than this one."""
    if (expected := context.get(EXPECTED_ID)) is not None and expected != str(row.id):
        raise MetaException(
            f"{row.name} is another table (id {row.id}) than the one that was read (id {expected}): that one was"
            " dropped or renamed. Read the table again"
        )


def properties(context: EnvironmentContext | None) -> Mapping[str, str]:
    """The properties of an environment context; empty if there is none."""
    return (context and context.properties) or {}
