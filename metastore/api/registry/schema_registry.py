"""The schema registry."""

from lake.protocol.hive import (
    AlterISchemaRequest,
    FindSchemasByColsResp,
    FindSchemasByColsRqst,
    GetSerdeRequest,
    ISchema,
    ISchemaName,
    MapSchemaVersionToSerdeRequest,
    MetaException,
    SchemaVersion,
    SchemaVersionDescriptor,
    SerDeInfo,
    SetSchemaVersionStateRequest,
)
from metastore.api.methods import Call, answers


@answers(
    "create_ischema", changes="CREATE database schema.dbName cat=schema.catName", uncommitted="no table", stores=True
)
def create_ischema(call: Call, schema: ISchema) -> None:
    call.metastore.schema_registry.create(schema)


@answers("get_ischema", reads="SEE database name.dbName cat=name.catName", uncommitted="no table")
def get_ischema(call: Call, name: ISchemaName) -> ISchema:
    return call.metastore.schema_registry.get(name)


@answers(
    "alter_ischema",
    changes=(
        "ALTER database rqst.name.dbName cat=rqst.name.catName;"
        " CREATE database rqst.newSchema.dbName? cat=rqst.newSchema.catName"
    ),
    uncommitted="no table",
    stores=True,
)
def alter_ischema(call: Call, request: AlterISchemaRequest) -> None:
    if request.name is None or request.newSchema is None:
        raise MetaException("the schema or its name is missing")
    call.metastore.schema_registry.alter(request.name, request.newSchema)


@answers(
    "drop_ischema",
    changes="DROP database name.dbName cat=name.catName",
    uncommitted="no table",
    differs="one with versions is InvalidOperationException",
)
def drop_ischema(call: Call, name: ISchemaName) -> None:
    call.metastore.schema_registry.drop(name)


@answers(
    "add_schema_version",
    changes="ALTER database schemaVersion.schema.dbName cat=schemaVersion.schema.catName",
    uncommitted="no table",
    stores=True,
)
def add_schema_version(call: Call, version: SchemaVersion) -> None:
    call.metastore.schema_registry.add_version(version)


@answers(
    "get_schema_version",
    reads="SEE database schemaVersion.schema.dbName cat=schemaVersion.schema.catName",
    uncommitted="no table",
)
def get_schema_version(call: Call, wanted: SchemaVersionDescriptor) -> SchemaVersion:
    return call.metastore.schema_registry.version(wanted)


@answers(
    "get_schema_latest_version", reads="SEE database schemaName.dbName cat=schemaName.catName", uncommitted="no table"
)
def get_schema_latest_version(call: Call, name: ISchemaName) -> SchemaVersion:
    return call.metastore.schema_registry.versions(name)[0]


@answers(
    "get_schema_all_versions", reads="SEE database schemaName.dbName cat=schemaName.catName", uncommitted="no table"
)
def get_schema_all_versions(call: Call, name: ISchemaName) -> list[SchemaVersion]:
    return call.metastore.schema_registry.versions(name)


@answers(
    "drop_schema_version",
    changes="ALTER database schemaVersion.schema.dbName cat=schemaVersion.schema.catName",
    uncommitted="no table",
)
def drop_schema_version(call: Call, wanted: SchemaVersionDescriptor) -> None:
    call.metastore.schema_registry.drop_version(wanted)


@answers("get_schemas_by_cols", reads="- | schema_versions", uncommitted="no table")
def get_schemas_by_cols(call: Call, request: FindSchemasByColsRqst) -> FindSchemasByColsResp:
    return FindSchemasByColsResp(
        call.metastore.schema_registry.with_column(request.colName, request.colNamespace, request.type)
    )


@answers(
    "map_schema_version_to_serde",
    changes="ALTER database rqst.schemaVersion.schema.dbName cat=rqst.schemaVersion.schema.catName",
    uncommitted="no table",
)
def map_schema_version_to_serde(call: Call, request: MapSchemaVersionToSerdeRequest) -> None:
    call.metastore.schema_registry.map_to_serde(_wanted(request.schemaVersion), request.serdeName)


@answers(
    "set_schema_version_state",
    changes="ALTER database rqst.schemaVersion.schema.dbName cat=rqst.schemaVersion.schema.catName",
    uncommitted="no table",
)
def set_schema_version_state(call: Call, request: SetSchemaVersionStateRequest) -> None:
    call.metastore.schema_registry.set_state(_wanted(request.schemaVersion), request.state)


@answers("add_serde", changes="ADMIN everything", uncommitted="no table", stores=True)
def add_serde(call: Call, serde: SerDeInfo) -> None:
    call.metastore.schema_registry.add_serde(serde)


@answers("get_serde", reads="-", uncommitted="no table")
def get_serde(call: Call, request: GetSerdeRequest) -> SerDeInfo:
    return call.metastore.schema_registry.serde(request.serdeName)


def _wanted(version: SchemaVersionDescriptor | None) -> SchemaVersionDescriptor:
    if version is None:
        raise MetaException("the schema version is missing")
    return version
