"""Our own calls: partitions' flags, watermarks and routes of late rows."""

from lake.protocol.lake import (
    CommitPartitionsRequest,
    CommitPartitionsResponse,
    CommitTablesRequest,
    IcebergNames,
    ListPartitionsRequest,
    ListPartitionsResponse,
    ReopenPartitionsRequest,
    ReopenPartitionsResponse,
    RoutePartitionsRequest,
    RoutePartitionsResponse,
    TableReference,
    Watermark,
)
from metastore.api.methods import Call, answers
from metastore.services.model.visibility import Scope


@answers(
    "lake_list_partitions", reads="LIST lake request.table uncommitted=request.includeUncommitted", uncommitted="hidden"
)
def lake_list_partitions(call: Call, request: ListPartitionsRequest) -> ListPartitionsResponse:
    scope = call.scope
    if request.includeUncommitted is not None:  # narrower than what the connection says
        scope = Scope.UNCOMMITTED if request.includeUncommitted else Scope.READY
    return ListPartitionsResponse(
        call.metastore.partition_states.listing(
            scope, _named(request.table), request.filter, request.limit, request.after
        )
    )


@answers("lake_commit_partitions", changes="COMMIT lake request.table", uncommitted="named")
def lake_commit_partitions(call: Call, request: CommitPartitionsRequest) -> CommitPartitionsResponse:
    return CommitPartitionsResponse(
        *call.metastore.partition_states.commit(
            _named(request.table), request.names, request.filter, request.committedBy
        )
    )


@answers("lake_reopen_partitions", changes="COMMIT lake request.table", uncommitted="named")
def lake_reopen_partitions(call: Call, request: ReopenPartitionsRequest) -> ReopenPartitionsResponse:
    return ReopenPartitionsResponse(
        *call.metastore.partition_states.reopen(_named(request.table), request.names, request.filter)
    )


@answers("lake_get_watermark", reads="SEE lake table", uncommitted="streaming")
def lake_get_watermark(call: Call, table: TableReference) -> Watermark:
    return call.metastore.readiness.watermark(table)


@answers("lake_route_partitions", changes="INSERT lake request.table", uncommitted="streaming")
def lake_route_partitions(call: Call, request: RoutePartitionsRequest) -> RoutePartitionsResponse:
    return RoutePartitionsResponse(call.metastore.routes.route(_named(request.table), request.names or []))


def _named(table: TableReference | None) -> TableReference:
    return table or TableReference()


@answers(
    "lake_commit_tables",
    changes=(
        "committed_tables request.commits[].table.dbName request.commits[].table.tableName"
        " cat=request.commits[].table.catName new=request.commits[].table"
        " expected=request.commits[].expectedMetadataLocation places=request.places"
    ),
    uncommitted="named",
    stores=True,
)
def lake_commit_tables(call: Call, request: CommitTablesRequest) -> None:
    with call.once():
        call.metastore.tables.commit(
            request.commits or [], check_only=bool(request.checkOnly), alone=bool(request.alone)
        )


@answers(
    "lake_list_iceberg", reads="SEE database database | iceberg_names database", uncommitted="table itself", cached=True
)
def lake_list_iceberg(call: Call, database: str | None) -> IcebergNames:
    return call.metastore.tables.iceberg_names(database)


@answers(
    "lake_data_place",
    changes="SELECT lake table uncommitted=uncommitted; ALTER lake table if=write",
    uncommitted="table itself",
)
def lake_data_place(call: Call, table: TableReference, write: bool | None, uncommitted: bool | None) -> str:
    """It changes nothing. But the server gives credentials after it, which is for the audit log like a change."""
    return call.metastore.tables.data_place(table)
