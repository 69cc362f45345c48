"""Reads of partitions. Lists leave as bytes that are already encoded."""

from collections.abc import Iterable

from metastore.api.registry import Call, Encoded, answers
from metastore.services import objects, partition_names, partition_projection
from metastore.services.partition_reads import WHOLE, Asker, Shown, Wanted
from metastore.services.statistics_state import accurate_columns
from metastore.services.visibility import Scope
from metastore.wire import splice
from metastore.wire.hive import (
    GetPartitionNamesPsRequest,
    GetPartitionNamesPsResponse,
    GetPartitionRequest,
    GetPartitionResponse,
    GetPartitionsByFilterRequest,
    GetPartitionsByNamesRequest,
    GetPartitionsByNamesResult,
    GetPartitionsPsWithAuthRequest,
    GetPartitionsRequest,
    GetPartitionsResponse,
    GetProjectionsSpec,
    MetaException,
    NoSuchObjectException,
    Partition,
    PartitionsByExprRequest,
    PartitionsRequest,
    PartitionValuesRequest,
    PartitionValuesResponse,
    PartitionValuesRow,
)

# Field 2 of PartitionsByExprResult and PartitionsSpecByExprResult, hasUnknownPartitions: the list may hold partitions
# that the expression doesn't select, because it can't be decided here. The engine keeps it as a filter of rows then.
_UNKNOWN_PARTITIONS = {False: b"\x02\x00\x02\x00", True: b"\x02\x00\x02\x01"}

# What may say that columns, or some parameters, are of no use to the caller.
_Request = (
    PartitionsRequest
    | GetPartitionsByFilterRequest
    | GetPartitionsByNamesRequest
    | GetPartitionsPsWithAuthRequest
    | PartitionsByExprRequest
)


def _list(
    call: Call,
    database: str | None,
    table: str | None,
    wanted: Wanted,
    catalog: str | None = None,
    asker: Asker | None = None,
    shown: Shown = WHOLE,
) -> Iterable[bytes]:
    return call.metastore.partition_reads.listing(call.scope, database, table, wanted, catalog, asker, shown)


def _shown(request: _Request) -> Shown:
    include, exclude = request.includeParamKeyPattern, request.excludeParamKeyPattern
    change = None
    if include or exclude:
        change = partition_projection.Projection(GetProjectionsSpec(None, include, exclude)).partition
    return Shown(columns=not request.skipColumnSchemaForPartition, change=change)


def _asker(user: str | None, groups: list[str] | None) -> Asker | None:
    """Who asks by a partial spec, of whom Hive wants to know both."""
    return None if user is None or groups is None else Asker(user, groups)


@answers("get_partition", cached=True)
def get_partition(call: Call, database: str | None, table: str | None, values: list[str] | None) -> Partition:
    return call.metastore.partition_reads.get(call.scope, database, table, values)


@answers("get_partition_with_auth", cached=True)
def get_partition_with_auth(
    call: Call,
    database: str | None,
    table: str | None,
    values: list[str] | None,
    user: str | None,
    groups: list[str] | None,
) -> Partition:
    """The one read that finds an uncommitted partition whatever the scope: by it Hive's load path, and Spark's through
    it, looks for the partition into which it writes."""
    asker = Asker(user, groups)
    return call.metastore.partition_reads.get(Scope.UNCOMMITTED, database, table, values, asker=asker)


@answers("get_partition_req", cached=True)
def get_partition_req(call: Call, request: GetPartitionRequest) -> GetPartitionResponse:
    return GetPartitionResponse(
        call.metastore.partition_reads.get(
            call.scope, request.dbName, request.tblName, request.partVals, request.catName
        )
    )


@answers("get_partition_by_name", cached=True)
def get_partition_by_name(call: Call, database: str | None, table: str | None, name: str | None) -> Partition:
    return call.metastore.partition_reads.get_by_name(call.scope, database, table, name)


@answers("get_partitions", cached=True)
def get_partitions(call: Call, database: str | None, table: str | None, limit: int | None) -> Encoded:
    return Encoded(_list(call, database, table, Wanted(limit=limit)))


@answers("get_partitions_with_auth", cached=True)
def get_partitions_with_auth(
    call: Call,
    database: str | None,
    table: str | None,
    limit: int | None,
    user: str | None,
    groups: list[str] | None,
) -> Encoded:
    """Where there is no such table Hive answers this one read with an empty list."""
    try:
        return Encoded(_list(call, database, table, Wanted(limit=limit), asker=Asker(user, groups)))
    except NoSuchObjectException:
        return Encoded(iter([splice.list_of_structs(0)]))


@answers("get_partitions_req", cached=True)
def get_partitions_req(call: Call, request: PartitionsRequest) -> Encoded:
    wanted = Wanted(limit=request.maxParts)
    pieces = _list(call, request.dbName, request.tblName, wanted, request.catName, shown=_shown(request))
    return Encoded(splice.in_struct(1, pieces))


@answers("get_partitions_ps", cached=True)
def get_partitions_ps(
    call: Call, database: str | None, table: str | None, values: list[str] | None, limit: int | None
) -> Encoded:
    return Encoded(_list(call, database, table, Wanted(values=values or [], limit=limit)))


@answers("get_partitions_ps_with_auth", cached=True)
def get_partitions_ps_with_auth(
    call: Call,
    database: str | None,
    table: str | None,
    values: list[str] | None,
    limit: int | None,
    user: str | None,
    groups: list[str] | None,
) -> Encoded:
    wanted = Wanted(values=values or [], limit=limit)
    return Encoded(_list(call, database, table, wanted, asker=_asker(user, groups)))


@answers("get_partitions_ps_with_auth_req", cached=True)
def get_partitions_ps_with_auth_req(call: Call, request: GetPartitionsPsWithAuthRequest) -> Encoded:
    if request.partNames is None:
        wanted = Wanted(values=request.partVals or [], limit=request.maxParts)
    else:
        wanted = Wanted(names=request.partNames)
    asker = _asker(request.userName, request.groupNames)
    pieces = _list(call, request.dbName, request.tblName, wanted, request.catName, asker, _shown(request))
    return Encoded(splice.in_struct(1, pieces))


@answers("get_partitions_by_filter", cached=True)
def get_partitions_by_filter(
    call: Call, database: str | None, table: str | None, text: str | None, limit: int | None
) -> Encoded:
    return Encoded(_list(call, database, table, Wanted(filter=text, limit=limit)))


@answers("get_partitions_by_filter_req", cached=True)
def get_partitions_by_filter_req(call: Call, request: GetPartitionsByFilterRequest) -> Encoded:
    wanted = Wanted(filter=request.filter, limit=request.maxParts)
    return Encoded(_list(call, request.dbName, request.tblName, wanted, request.catName, shown=_shown(request)))


@answers("get_partitions_by_names", cached=True)
def get_partitions_by_names(call: Call, database: str | None, table: str | None, names: list[str] | None) -> Encoded:
    if names is None:
        call.metastore.tables.get(database, table)
        raise MetaException("the names of the partitions are missing")
    return Encoded(_list(call, database, table, Wanted(names=names)))


@answers("get_partitions_by_names_req", cached=True)
def get_partitions_by_names_req(
    call: Call, request: GetPartitionsByNamesRequest
) -> Encoded | GetPartitionsByNamesResult:
    wanted = Wanted(names=request.names or [])
    if request.get_col_stats:
        return GetPartitionsByNamesResult(_with_statistics(call, request, wanted))
    pieces = _list(call, request.db_name, request.tbl_name, wanted, shown=_shown(request))
    return Encoded(splice.in_struct(1, pieces))


def _with_statistics(call: Call, request: GetPartitionsByNamesRequest, wanted: Wanted) -> list[Partition]:
    """Partitions with the accurate ones among their column statistics."""
    columns_only = _shown(request)._replace(change=None)
    row, found = call.metastore.partition_reads.read(
        call.scope, request.db_name, request.tbl_name, wanted, shown=columns_only
    )
    keys = objects.key_names(objects.table_of(row))
    by_name = {partition_names.make_name(keys, partition.values or []): partition for partition in found}
    columns = {column for partition in found for column in accurate_columns(partition.parameters or {})}
    statistics = call.metastore.statistics.of_partitions(
        call.scope, request.db_name, request.tbl_name, list(by_name), sorted(columns), request.engine
    )
    for name, of_partition in statistics.items():
        if name in by_name:
            by_name[name].colStats = of_partition
    change = _shown(request).change
    return found if change is None else [change(partition) for partition in found]


@answers("get_partitions_by_expr", cached=True)
def get_partitions_by_expr(call: Call, request: PartitionsByExprRequest) -> Encoded:
    wanted, unclear = _by_expression(call, request)
    pieces = _list(call, request.dbName, request.tblName, wanted, request.catName, shown=_shown(request))
    return Encoded(splice.in_struct(1, pieces, _UNKNOWN_PARTITIONS[unclear is not None]))


@answers("get_partitions_spec_by_expr", cached=True)
def get_partitions_spec_by_expr(call: Call, request: PartitionsByExprRequest) -> Encoded:
    wanted, unclear = _by_expression(call, request)
    pieces = call.metastore.partition_reads.spec_listing(
        call.scope, request.dbName, request.tblName, wanted, request.catName, _shown(request)
    )
    return Encoded(splice.in_struct(1, pieces, _UNKNOWN_PARTITIONS[unclear is not None]))


@answers("get_partition_names_req", cached=True)
def get_partition_names_req(call: Call, request: PartitionsByExprRequest) -> list[str]:
    wanted, unclear = _by_expression(call, request)
    if unclear is not None:
        raise MetaException(f"The partitions that the expression selects can't be told: {unclear}")
    return call.metastore.partition_reads.names(call.scope, request.dbName, request.tblName, wanted, request.catName)


@answers("get_partitions_pspec", cached=True)
def get_partitions_pspec(call: Call, database: str | None, table: str | None, limit: int | None) -> Encoded:
    return Encoded(call.metastore.partition_reads.spec_listing(call.scope, database, table, Wanted(limit=limit)))


@answers("get_part_specs_by_filter", cached=True)
def get_part_specs_by_filter(
    call: Call, database: str | None, table: str | None, text: str | None, limit: int | None
) -> Encoded:
    wanted = Wanted(filter=text, limit=limit)
    return Encoded(call.metastore.partition_reads.spec_listing(call.scope, database, table, wanted))


@answers("get_partitions_with_specs", cached=True)
def get_partitions_with_specs(call: Call, request: GetPartitionsRequest) -> GetPartitionsResponse:
    projection = partition_projection.Projection(request.projectionSpec)
    wanted = partition_projection.wanted(request.filterSpec)
    row, found = call.metastore.partition_reads.read(
        call.scope, request.dbName, request.tblName, wanted, request.catName
    )
    projected = [projection.partition(partition) for partition in found]
    return GetPartitionsResponse(partition_projection.grouped(row.name, row.location, projected))


@answers("get_num_partitions_by_filter", cached=True)
def get_num_partitions_by_filter(call: Call, database: str | None, table: str | None, text: str | None) -> int:
    return call.metastore.partition_reads.count(call.scope, database, table, Wanted(filter=text))


@answers("get_partition_names", cached=True)
def get_partition_names(call: Call, database: str | None, table: str | None, limit: int | None) -> Encoded:
    return Encoded(call.metastore.partition_reads.names_listing(call.scope, database, table, Wanted(limit=limit)))


@answers("fetch_partition_names_req", cached=True)
def fetch_partition_names_req(call: Call, request: PartitionsRequest) -> Encoded:
    wanted = Wanted(limit=request.maxParts)
    reads = call.metastore.partition_reads
    return Encoded(reads.names_listing(call.scope, request.dbName, request.tblName, wanted, request.catName))


@answers("get_partition_names_ps", cached=True)
def get_partition_names_ps(
    call: Call, database: str | None, table: str | None, values: list[str] | None, limit: int | None
) -> Encoded:
    wanted = Wanted(values=values or [], limit=limit)
    return Encoded(call.metastore.partition_reads.names_listing(call.scope, database, table, wanted))


@answers("get_partition_names_ps_req", cached=True)
def get_partition_names_ps_req(call: Call, request: GetPartitionNamesPsRequest) -> GetPartitionNamesPsResponse:
    wanted = Wanted(values=request.partValues or [], limit=request.maxParts)
    return GetPartitionNamesPsResponse(
        call.metastore.partition_reads.names(call.scope, request.dbName, request.tblName, wanted, request.catName)
    )


@answers("get_partition_values", cached=True)
def get_partition_values(call: Call, request: PartitionValuesRequest) -> PartitionValuesResponse:
    rows = call.metastore.partition_reads.values(
        call.scope,
        request.dbName,
        request.tblName,
        request.partitionKeys,
        Wanted(filter=request.filter, limit=request.maxParts),
        distinct=request.applyDistinct is not False,
        ascending=request.ascending is not False,
        catalog=request.catName,
    )
    return PartitionValuesResponse([PartitionValuesRow(row) for row in rows])


def _by_expression(call: Call, request: PartitionsByExprRequest) -> tuple[Wanted, str | None]:
    return call.metastore.partition_reads.expressed(
        request.dbName, request.tblName, request.expr or b"", request.maxParts, request.catName
    )
