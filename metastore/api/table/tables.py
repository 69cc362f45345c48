"""Tables, their fields and schema."""

from collections.abc import Mapping

from lake.protocol.hive import (
    AlterTableRequest,
    AlterTableResponse,
    ColumnStatistics,
    CreateTableRequest,
    DropTableRequest,
    EnvironmentContext,
    ExtendedTableInfo,
    FieldSchema,
    GetFieldsRequest,
    GetFieldsResponse,
    GetSchemaRequest,
    GetSchemaResponse,
    GetTableRequest,
    GetTableResult,
    GetTablesExtRequest,
    GetTablesRequest,
    GetTablesResult,
    MetaException,
    NoSuchObjectException,
    Table,
    TableMeta,
    TruncateTableRequest,
    TruncateTableResponse,
)
from metastore.api.methods import Call, answers
from metastore.services.maintenance.server_info import INCOMPATIBLE_TYPES
from metastore.services.model import hive_objects
from metastore.services.model import names as given
from metastore.services.model.patterns import matcher
from metastore.services.model.statistics_state import accurate_columns
from metastore.services.table.projection import TableProjection
from metastore.services.table.service import EXPECTED_KEY, EXPECTED_VALUE, PURGE_EXTERNAL, TableService
from metastore.store.engine.read_set import mark_uncacheable
from metastore.store.table.tables import TableRow

_MATERIALIZED_VIEW = "MATERIALIZED_VIEW"
_TABLE_TYPES = (hive_objects.MANAGED, hive_objects.EXTERNAL, hive_objects.VIEW, _MATERIALIZED_VIEW, "INDEX_TABLE")


@answers(
    "create_table",
    changes="CREATE database tbl.dbName cat=tbl.catName | new_table tbl",
    uncommitted="named",
    stores=True,
    differs="nothing is translated into external tables",
)
def create_table(call: Call, table: Table | None) -> None:
    create_table_with_environment_context(call, table, None)


@answers(
    "create_table_with_environment_context",
    changes="CREATE database tbl.dbName cat=tbl.catName | new_table tbl",
    uncommitted="named",
    stores=True,
)
def create_table_with_environment_context(call: Call, table: Table | None, context: EnvironmentContext | None) -> None:
    if table is None:
        raise MetaException("the table is missing")
    call.metastore.tables.create(table, hive_objects.properties(context))
    keep_statistics(call, table)


def keep_statistics(call: Call, table: Table) -> None:
    """A client of Hive 4 may bring a new table's column statistics along; as in Hive the table is there before them."""
    if table.colStats is not None:
        call.metastore.statistics.update_table(about(table.colStats, table.dbName, table.tableName, table.catName))


def about(
    statistics: ColumnStatistics, database: str | None, table: str | None, catalog: str | None
) -> ColumnStatistics:
    """Statistics that come along with a new object: they are about its table, whatever they name."""
    described = statistics.statsDesc
    if described is None:
        return statistics
    return statistics.replace(statsDesc=described.replace(dbName=database, tableName=table, catName=catalog))


@answers(
    "translate_table_dryrun",
    reads="SEE database request.table.dbName cat=request.table.catName",
    uncommitted="no table",
    stores=True,
    differs="nothing is translated",
)
def translate_table_dryrun(call: Call, request: CreateTableRequest) -> Table:
    """What a table would be made of: the table that was sent, since nothing is translated here."""
    if request.table is None:
        raise MetaException("the table is missing")
    return request.table.replace(catName=request.table.catName or given.DEFAULT_CATALOG)


def _as_asked(row: TableRow, database: str | None, table: str | None, catalog: str | None = None) -> Table | None:
    if given.shown_as_iceberg(table) is not None:
        return None
    return TableService.as_asked(row, database, table, catalog)


def _result_of_table(row: TableRow, request: GetTableRequest) -> GetTableResult | None:
    if request.getColumnStats or given.shown_as_iceberg(request.tblName) is not None:
        return None
    found = TableService.as_asked(row, request.dbName, request.tblName, request.catName)
    return None if found is None else GetTableResult(found)


@answers(
    "get_table",
    reads="SEE table dbname tbl_name",
    uncommitted="table itself",
    cached=True,
    of_table=_as_asked,
)
def get_table(call: Call, database: str | None, table: str | None) -> Table:
    return _one(call, database, table)


def _one(call: Call, database: str | None, table: str | None, catalog: str | None = None) -> Table:
    """One table, also by the name under which it is shown as Iceberg's."""
    own = given.shown_as_iceberg(table)
    if own is not None and given.plain_table(own) != own:  # what is shown is written once, for all readers
        raise NoSuchObjectException(f"{given.plain(database)}.{table} table not found")
    found = call.metastore.tables.get(database, table if own is None else own, catalog)
    if own is None:
        return found
    if call.as_iceberg is None:
        raise NoSuchObjectException(f"{given.plain(database)}.{table} table not found")
    mark_uncacheable()  # files of the table may change without any call
    return call.as_iceberg(found)


@answers(
    "get_table_req",
    reads=(
        "SEE table req.dbName req.tblName cat=req.catName;"
        " SELECT table req.dbName req.tblName cat=req.catName if=req.getColumnStats"
    ),
    uncommitted="table itself",
    cached=True,
    of_table=_result_of_table,
)
def get_table_req(call: Call, request: GetTableRequest) -> GetTableResult:
    value = _one(call, request.dbName, request.tblName, request.catName)
    if request.getColumnStats:
        columns = sorted(accurate_columns(value.parameters or {}))
        value.colStats = call.metastore.statistics.of_table(
            request.dbName, request.tblName, columns, request.engine, request.catName
        )
    return GetTableResult(value)


@answers(
    "get_table_objects_by_name",
    reads="~SEE database dbname | named_tables dbname tbl_names",
    uncommitted="table itself",
    cached=True,
)
def get_table_objects_by_name(call: Call, database: str | None, names: list[str] | None) -> list[Table]:
    return call.metastore.tables.get_many(database, names)


@answers(
    "get_table_objects_by_name_req",
    reads="~SEE databases req.dbName cat=req.catName | requested_tables req",
    uncommitted="table itself",
    cached=True,
)
def get_table_objects_by_name_req(call: Call, request: GetTablesRequest) -> GetTablesResult:
    """The named tables of a database. With a pattern of names, the database is one too, as in Hive."""
    projection = TableProjection(request.projectionSpec)
    if request.tablesPattern is None:
        found = call.metastore.tables.get_many(request.dbName, request.tblNames, request.catName)
    else:
        wanted = request.dbName, request.tablesPattern, request.tblNames
        found = call.metastore.tables.matching(*wanted, request.catName)
    return GetTablesResult(list(map(projection.table, found)))


@answers("get_tables", reads="~SEE database db_name | tables db_name", uncommitted="table itself", cached=True)
def get_tables(call: Call, database: str | None, pattern: str | None) -> list[str]:
    return call.metastore.tables.names(database, pattern)


@answers("get_all_tables", reads="~SEE database db_name | tables db_name", uncommitted="table itself", cached=True)
def get_all_tables(call: Call, database: str | None) -> list[str]:
    return call.metastore.tables.names(database, None)


@answers("get_tables_by_type", reads="~SEE database db_name | tables db_name", uncommitted="table itself", cached=True)
def get_tables_by_type(call: Call, database: str | None, pattern: str | None, table_type: str | None) -> list[str]:
    if table_type is not None and table_type not in _TABLE_TYPES:
        raise MetaException(f"{table_type} is no table type; they are {', '.join(_TABLE_TYPES)}")
    return call.metastore.tables.names(database, pattern, table_type)


@answers(
    "get_materialized_views_for_rewriting", reads="~SEE database db_name | tables db_name", uncommitted="table itself"
)
def get_materialized_views_for_rewriting(call: Call, database: str | None) -> list[str]:
    names = call.metastore.tables.names(database, None, _MATERIALIZED_VIEW)
    return [t.tableName or "" for t in call.metastore.tables.get_many(database, names) if t.rewriteEnabled]


@answers("get_table_meta", reads="- | table_structs", uncommitted="table itself")
def get_table_meta(
    call: Call, database_patterns: str | None, table_patterns: str | None, types: list[str] | None
) -> list[TableMeta]:
    return call.metastore.tables.summaries(database_patterns, table_patterns, types)


@answers(
    "get_tables_ext",
    reads="~SEE database req.database cat=req.catalog | limited_tables req.database req.catalog",
    uncommitted="table itself",
)
def get_tables_ext(call: Call, request: GetTablesExtRequest) -> list[ExtendedTableInfo]:
    names = call.metastore.tables.names(f"@{request.catalog}#{request.database}", None)
    found = call.visible(list(filter(matcher(request.tableNamePattern), names)))
    some = found if request.limit is None or request.limit < 0 else found[: request.limit]
    tables = call.metastore.tables.get_many(request.database, some, request.catalog)
    return [
        ExtendedTableInfo(t.tableName, t.accessType, t.requiredReadCapabilities, t.requiredWriteCapabilities)
        for t in tables
    ]


@answers("get_table_names_by_filter", reads="~SEE database dbname | limited_tables dbname", uncommitted="table itself")
def get_table_names_by_filter(call: Call, database: str | None, text: str | None, limit: int | None) -> list[str]:
    most = None if limit is None or limit < 0 else limit
    if call.shown is None:
        return call.metastore.tables.names_by_filter(database, text, most)
    return call.visible(call.metastore.tables.names_by_filter(database, text, None))[:most]


@answers("alter_table", changes="table_change dbname tbl_name new=new_tbl", uncommitted="named", stores=True)
def alter_table(call: Call, database: str | None, table: str | None, new: Table | None) -> None:
    _alter(call, database, table, new, {})


@answers(
    "alter_table_with_environment_context",
    changes="table_change dbname tbl_name new=new_tbl",
    uncommitted="named",
    stores=True,
)
def alter_table_with_environment_context(
    call: Call, database: str | None, table: str | None, new: Table | None, context: EnvironmentContext | None
) -> None:
    _alter(call, database, table, new, hive_objects.properties(context))


@answers(
    "alter_table_with_cascade", changes="table_change dbname tbl_name new=new_tbl", uncommitted="named", stores=True
)
def alter_table_with_cascade(
    call: Call, database: str | None, table: str | None, new: Table | None, cascade: bool | None
) -> None:
    _alter(call, database, table, new, {}, cascade=bool(cascade))


@answers(
    "alter_table_req",
    changes="table_change req.dbName req.tableName cat=req.catName new=req.table",
    uncommitted="named",
    stores=True,
)
def alter_table_req(call: Call, request: AlterTableRequest) -> AlterTableResponse:
    context = dict(hive_objects.properties(request.environmentContext))
    if request.expectedParameterKey is not None:
        context[EXPECTED_KEY] = request.expectedParameterKey
    if request.expectedParameterValue is not None:
        context[EXPECTED_VALUE] = request.expectedParameterValue
    _alter(call, request.dbName, request.tableName, request.table, context, catalog=request.catName)
    return AlterTableResponse()


def _alter(
    call: Call,
    database: str | None,
    table: str | None,
    new: Table | None,
    context: Mapping[str, str],
    *,
    cascade: bool = False,
    catalog: str | None = None,
) -> None:
    with call.once():
        call.metastore.tables.alter(
            database,
            table,
            new,
            context,
            cascade=cascade,
            catalog=catalog,
            incompatible_types_allowed=call.session.metaconf.get(INCOMPATIBLE_TYPES, "").lower() == "false",
        )


@answers(
    "drop_table",
    changes="DROP table dbname name",
    uncommitted="named",
    differs="directories of others are left alone, external tables keep their files",
)
def drop_table(call: Call, database: str | None, table: str | None, delete_data: bool | None) -> None:
    call.metastore.tables.drop(database, table, delete_data=bool(delete_data), shown=call.shown)


@answers(
    "drop_table_with_environment_context",
    changes="DROP table dbname name",
    uncommitted="named",
    differs="directories of others are left alone, external tables keep their files",
)
def drop_table_with_environment_context(
    call: Call,
    database: str | None,
    table: str | None,
    delete_data: bool | None,
    context: EnvironmentContext | None,
) -> None:
    """The context may ask to bypass the trash (ifPurge); there is none here. See `PURGE_EXTERNAL`."""
    purge = hive_objects.is_true(hive_objects.properties(context).get(PURGE_EXTERNAL))
    with call.once():
        call.metastore.tables.drop(database, table, delete_data=bool(delete_data), purge=purge, shown=call.shown)


@answers(
    "drop_table_req",
    changes="DROP table dropTableReq.dbName dropTableReq.tableName cat=dropTableReq.catalogName",
    uncommitted="named",
    differs="directories of others are left alone, external tables keep their files",
)
def drop_table_req(call: Call, request: DropTableRequest) -> None:
    """The partitions go with the table, in whatever order Hive would drop them."""
    call.metastore.tables.drop(
        request.dbName,
        request.tableName,
        delete_data=bool(request.deleteData),
        catalog=request.catalogName,
        shown=call.shown,
    )


@answers(
    "truncate_table",
    changes="REMOVE_ROWS table dbName tableName",
    uncommitted="named",
    differs="refused where another table lies inside",
)
def truncate_table(call: Call, database: str | None, table: str | None, partitions: list[str] | None) -> None:
    call.metastore.tables.truncate(database, table, partitions)


@answers(
    "truncate_table_req",
    changes="REMOVE_ROWS table req.dbName req.tableName",
    uncommitted="named",
    differs="refused where another table lies inside",
)
def truncate_table_req(call: Call, request: TruncateTableRequest) -> TruncateTableResponse:
    call.metastore.tables.truncate(request.dbName, request.tableName, request.partNames)
    return TruncateTableResponse()


@answers("get_fields", reads="SEE described db_name table_name", uncommitted="table itself", cached=True)
def get_fields(call: Call, database: str | None, table: str | None) -> list[FieldSchema]:
    return call.metastore.tables.fields(database, table)


@answers(
    "get_fields_with_environment_context",
    reads="SEE described db_name table_name",
    uncommitted="table itself",
    cached=True,
)
def get_fields_with_environment_context(
    call: Call, database: str | None, table: str | None, context: EnvironmentContext | None
) -> list[FieldSchema]:
    return call.metastore.tables.fields(database, table)


@answers(
    "get_fields_req",
    reads="SEE described req.dbName req.tblName cat=req.catName",
    uncommitted="table itself",
    cached=True,
)
def get_fields_req(call: Call, request: GetFieldsRequest) -> GetFieldsResponse:
    return GetFieldsResponse(call.metastore.tables.fields(request.dbName, request.tblName, request.catName))


@answers("get_schema", reads="SEE described db_name table_name", uncommitted="table itself", cached=True)
def get_schema(call: Call, database: str | None, table: str | None) -> list[FieldSchema]:
    return call.metastore.tables.schema(database, table)


@answers(
    "get_schema_with_environment_context",
    reads="SEE described db_name table_name",
    uncommitted="table itself",
    cached=True,
)
def get_schema_with_environment_context(
    call: Call, database: str | None, table: str | None, context: EnvironmentContext | None
) -> list[FieldSchema]:
    return call.metastore.tables.schema(database, table)


@answers(
    "get_schema_req",
    reads="SEE described req.dbName req.tblName cat=req.catName",
    uncommitted="table itself",
    cached=True,
)
def get_schema_req(call: Call, request: GetSchemaRequest) -> GetSchemaResponse:
    return GetSchemaResponse(call.metastore.tables.schema(request.dbName, request.tblName, request.catName))
