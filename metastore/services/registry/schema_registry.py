"""The schema registry: schemas of a database, their versions, and serdes by name."""

from collections.abc import Iterator
from contextlib import contextmanager

from lake.protocol.codec import binary
from lake.protocol.hive import (
    AlreadyExistsException,
    FieldSchema,
    InvalidOperationException,
    ISchema,
    ISchemaName,
    MetaException,
    NoSuchObjectException,
    SchemaVersion,
    SchemaVersionDescriptor,
    SerDeInfo,
)
from metastore.services.model import hive_objects
from metastore.services.model import names as given
from metastore.services.model.validation import check_length
from metastore.store import Conflict, Database
from metastore.store.catalog import databases
from metastore.store.catalog.databases import RowLock
from metastore.store.engine.database import Transaction
from metastore.store.engine.names import DatabaseName
from metastore.store.registry import named_objects, schema_versions
from metastore.store.registry.named_objects import Kind, NamedRow
from metastore.store.registry.schema_versions import VersionRow


class SchemaRegistry:
    """Hive's calls for schemas, their versions and serdes."""

    def __init__(self, database: Database) -> None:
        self._database = database

    # --- schemas ----------------------------------------------------------------------------------------------

    def create(self, schema: ISchema) -> None:
        """Adds a schema. Raises NoSuchObjectException if there's no such database, AlreadyExistsException."""
        home, name = _schema_name(ISchemaName(schema.catName, schema.dbName, schema.name))
        check_length(name, "schema")
        for field in ("schemaType", "compatibility", "validationLevel"):
            if getattr(schema, field) is None:
                raise MetaException(f"the schema's {field} is missing")
        kept = schema.replace(canEvolve=bool(schema.canEvolve))
        try:
            with self._database.write() as tx:
                row = databases.find(tx, home, RowLock.SHARED)
                if row is None:
                    raise NoSuchObjectException(f"There is no database {home}")
                named_objects.add(tx, Kind.SCHEMA, name, _schema_body(kept), row.id)
        except Conflict:
            raise AlreadyExistsException(f"Schema with name {schema.dbName}.{schema.name} already exists") from None

    def get(self, name: ISchemaName) -> ISchema:
        """One schema. Raises NoSuchObjectException."""
        with self._database.read() as tx:
            row = _find_schema(tx, name)
        if row is None:
            raise NoSuchObjectException(f"No schema named {_shown(name)} exists")
        return _schema(row)

    def alter(self, name: ISchemaName, new: ISchema) -> None:
        """Changes compatibility, validation and whether it may evolve; group and description if they are given.

        Raises NoSuchObjectException, MetaException.
        """
        if new.compatibility is None or new.validationLevel is None:
            raise MetaException("a schema needs a compatibility and a validation level")
        with self._database.write() as tx:
            row = _find_schema(tx, name, lock=True)
            if row is None:
                raise NoSuchObjectException(f"Could not find schema {_shown(name)}")
            old = _schema(row)
            changed = old.replace(
                compatibility=new.compatibility,
                validationLevel=new.validationLevel,
                canEvolve=bool(new.canEvolve),
                schemaGroup=old.schemaGroup if new.schemaGroup is None else new.schemaGroup,
                description=old.description if new.description is None else new.description,
            )
            named_objects.change(tx, row.id, _schema_body(changed))

    def drop(self, name: ISchemaName) -> None:
        """Removes a schema. Raises NoSuchObjectException, InvalidOperationException for one that has versions."""
        home, own = _schema_name(name)
        with self._database.write() as tx:
            row = _find_schema(tx, name, lock=True)
            if row is None:
                raise NoSuchObjectException(f"Schema {_shown(name)} does not exist")
            if schema_versions.of_schema(tx, home, own):
                raise InvalidOperationException(
                    f"Schema {_shown(name)} cannot be dropped, it has at least one valid version"
                )
            named_objects.remove(tx, row.id)

    # --- versions ---------------------------------------------------------------------------------------------

    def add_version(self, version: SchemaVersion) -> None:
        """Adds a version of a schema. Raises NoSuchObjectException for an unknown schema, AlreadyExistsException."""
        name = _given_name(version.schema)
        if version.version is None:
            raise MetaException("the version's number is missing")
        kept = version.replace(
            cols=hive_objects.columns(version.cols), serDe=version.serDe and _serde_form(version.serDe)
        )
        columns = [_searched(column) for column in kept.cols or ()]
        try:
            with self._database.write() as tx:
                row = _find_schema(tx, name, lock=True)
                if row is None:
                    raise NoSuchObjectException(f"No schema named {_shown(name)}")
                schema_versions.add(tx, row.id, version.version, columns, _version_body(kept))
        except Conflict:
            raise AlreadyExistsException(
                f"Schema name {_shown(name)} version {version.version} already exists"
            ) from None

    def version(self, wanted: SchemaVersionDescriptor) -> SchemaVersion:
        """One version. Raises NoSuchObjectException."""
        with self._database.read() as tx:
            return _version(_existing_version(tx, wanted))

    def versions(self, name: ISchemaName) -> list[SchemaVersion]:
        """A schema's versions, the newest first. Raises NoSuchObjectException if there are none."""
        home, own = _schema_name(name)
        with self._database.read() as tx:
            rows = schema_versions.of_schema(tx, home, own)
        if not rows:
            raise NoSuchObjectException(f"No versions of schema {_shown(name)} exist")
        return [_version(row) for row in rows]

    def drop_version(self, wanted: SchemaVersionDescriptor) -> None:
        """Removes a version. Raises NoSuchObjectException."""
        with self._database.write() as tx:
            schema_versions.remove(tx, _existing_version(tx, wanted).id)

    def with_column(self, name: str | None, namespace: str | None, kind: str | None) -> list[SchemaVersionDescriptor]:
        """Versions with a column of that name, namespace (its comment) and type, as far as they are given.

        Raises MetaException unless name or namespace is.
        """
        if name is None and namespace is None:
            raise MetaException("You must specify column name or column namespace, else your query may be too large")
        wanted = {"name": name and given.normalized(name), "type": kind and given.normalized(kind)}
        column = {key: value for key, value in (wanted | {"comment": namespace}).items() if value is not None}
        with self._database.read() as tx:
            rows = schema_versions.with_column(tx, column)
        return [SchemaVersionDescriptor(_name_of(row), row.version) for row in rows]

    def map_to_serde(self, wanted: SchemaVersionDescriptor, serde: str | None) -> None:
        """A version is read with the serde of that name. Raises NoSuchObjectException."""
        with self._changed(wanted) as (tx, version):
            version.serDe = _serde(_existing_serde(tx, serde))

    def set_state(self, wanted: SchemaVersionDescriptor, state: int | None) -> None:
        """Puts a version into a state; which may follow which is for clients to say. Raises NoSuchObjectException."""
        with self._changed(wanted) as (_, version):
            if state is not None:
                version.state = state

    @contextmanager
    def _changed(self, wanted: SchemaVersionDescriptor) -> Iterator[tuple[Transaction, SchemaVersion]]:
        with self._database.write() as tx:
            _find_schema(tx, _given_name(wanted.schema), lock=True)
            row = _existing_version(tx, wanted)
            version = _version(row)
            yield tx, version
            schema_versions.change(tx, row.id, _version_body(version))

    # --- serdes -----------------------------------------------------------------------------------------------

    def add_serde(self, serde: SerDeInfo) -> None:
        """Adds a serde. Raises AlreadyExistsException, MetaException without a name."""
        if serde.name is None:
            raise MetaException("the serde's name is missing")
        try:
            with self._database.write() as tx:
                named_objects.add(tx, Kind.SERDE, serde.name, binary.encode(_serde_form(serde).replace(name=None)))
        except Conflict:
            raise AlreadyExistsException(f"Serde with name {serde.name} already exists") from None

    def serde(self, name: str | None) -> SerDeInfo:
        """One serde. Raises NoSuchObjectException."""
        with self._database.read() as tx:
            return _serde(_existing_serde(tx, name))


# --- names ----------------------------------------------------------------------------------------------------


def _given_name(name: ISchemaName | None) -> ISchemaName:
    if name is None:
        raise MetaException("the schema's name is missing")
    return name


def _schema_name(name: ISchemaName) -> tuple[DatabaseName, str]:
    """A schema's database and own name, as they are kept."""
    if name.schemaName is None:
        raise MetaException("the schema's name is missing")
    return given.database_name(name.dbName, name.catName), given.normalized(name.schemaName)


def _shown(name: ISchemaName) -> str:
    return ".".join(part for part in (name.catName, name.dbName, name.schemaName) if part)


def _name_of(row: VersionRow) -> ISchemaName:
    return ISchemaName(row.database.catalog, row.database.database, row.schema)


# --- rows -----------------------------------------------------------------------------------------------------


def _find_schema(tx: Transaction, name: ISchemaName, *, lock: bool = False) -> NamedRow | None:
    home, own = _schema_name(name)
    return named_objects.find(tx, Kind.SCHEMA, own, home, lock=lock)


def _schema_body(schema: ISchema) -> bytes:
    return binary.encode(schema.replace(name=None, catName=None, dbName=None))


def _schema(row: NamedRow) -> ISchema:
    assert row.database is not None
    value = binary.decode_preserving(ISchema, row.body)
    value.name, value.catName, value.dbName = row.name, row.database.catalog, row.database.database
    return value


def _existing_version(tx: Transaction, wanted: SchemaVersionDescriptor) -> VersionRow:
    name = _given_name(wanted.schema)
    home, own = _schema_name(name)
    if wanted.version is None:
        raise MetaException("the version's number is missing")
    rows = schema_versions.of_schema(tx, home, own, wanted.version)
    if not rows:
        raise NoSuchObjectException(f"No schema version {wanted.version} of {_shown(name)} exists")
    return rows[0]


def _version_body(version: SchemaVersion) -> bytes:
    return binary.encode(version.replace(schema=None, version=None))


def _version(row: VersionRow) -> SchemaVersion:
    value = binary.decode_preserving(SchemaVersion, row.body)
    value.schema, value.version = _name_of(row), row.version
    return value


def _searched(column: FieldSchema) -> dict[str, str]:
    fields = {"name": column.name, "type": column.type, "comment": column.comment}
    return {key: value for key, value in fields.items() if value is not None}


def _existing_serde(tx: Transaction, name: str | None) -> NamedRow:
    row = named_objects.find(tx, Kind.SERDE, name or "")
    if row is None:
        raise NoSuchObjectException(f"No SerDe named {name}")
    return row


def _serde(row: NamedRow) -> SerDeInfo:
    value = binary.decode_preserving(SerDeInfo, row.body)
    value.name = row.name
    return value


def _serde_form(serde: SerDeInfo) -> SerDeInfo:
    """A serde as Hive reads it back: it always has a map of parameters."""
    return serde.replace(parameters=serde.parameters or {})
