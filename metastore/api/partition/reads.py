"""Reading calls for partitions. Lists are returned as encoded bytes."""

from collections.abc import Iterable

from lake.protocol.codec import splice
from lake.protocol.formats import partition_names
from lake.protocol.hive import (
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
    InvalidObjectException,
    MetaException,
    NoSuchObjectException,
    Partition,
    PartitionsByExprRequest,
    PartitionSpec,
    PartitionsRequest,
    PartitionValuesRequest,
    PartitionValuesResponse,
    PartitionValuesRow,
)
from metastore.api.methods import Call, Encoded, answers
from metastore.services.model import hive_objects
from metastore.services.model import names as given
from metastore.services.model.statistics_state import accurate_columns
from metastore.services.model.visibility import Scope
from metastore.services.partition import projection as partition_projection
from metastore.services.partition.reads import WHOLE, PartitionQuery, Requester, Shown

# Field 2 of PartitionsByExprResult and PartitionsSpecByExprResult, hasUnknownPartitions: the list may hold partitions
# that the expression doesn't select, because it can't be decided here. The engine keeps it as a filter of rows then.
_UNKNOWN_PARTITIONS = {False: b"\x02\x00\x02\x00", True: b"\x02\x00\x02\x01"}

# A table with this property says that its readers understand shared descriptors (HCatalog's).
_GROUPING = "hive.hcatalog.partition.spec.grouping.enabled"

# The requests in which a caller may decline the columns, or some parameters, of partitions.
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
    wanted: PartitionQuery,
    catalog: str | None = None,
    requester: Requester | None = None,
    shown: Shown = WHOLE,
) -> Iterable[bytes]:
    return call.metastore.partition_reads.listing(call.scope, database, table, wanted, catalog, requester, shown)


def _shown(request: _Request) -> Shown:
    include, exclude = request.includeParamKeyPattern, request.excludeParamKeyPattern
    change = None
    if include or exclude:
        change = partition_projection.Projection(GetProjectionsSpec(None, include, exclude)).partition
    return Shown(columns=not request.skipColumnSchemaForPartition, change=change)


def _requester(user: str | None, groups: list[str] | None) -> Requester | None:
    """The caller of a request with a partial spec, if it names both user and groups, as Hive requires."""
    return None if user is None or groups is None else Requester(user, groups)


@answers("get_partition", reads="LIST table db_name tbl_name values=part_vals", uncommitted="hidden", cached=True)
def get_partition(call: Call, database: str | None, table: str | None, values: list[str] | None) -> Partition:
    return call.metastore.partition_reads.get(call.scope, database, table, values)


@answers(
    "get_partition_with_auth",
    reads="LIST table db_name tbl_name values=part_vals",
    uncommitted="load path",
    cached=True,
)
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
    requester = Requester(user, groups)
    return call.metastore.partition_reads.get(Scope.UNCOMMITTED, database, table, values, requester=requester)


@answers(
    "get_partition_req",
    reads="LIST table req.dbName req.tblName cat=req.catName values=req.partVals",
    uncommitted="hidden",
    cached=True,
)
def get_partition_req(call: Call, request: GetPartitionRequest) -> GetPartitionResponse:
    return GetPartitionResponse(
        call.metastore.partition_reads.get(
            call.scope, request.dbName, request.tblName, request.partVals, request.catName
        )
    )


@answers("get_partition_by_name", reads="LIST table db_name tbl_name", uncommitted="hidden", cached=True)
def get_partition_by_name(call: Call, database: str | None, table: str | None, name: str | None) -> Partition:
    return call.metastore.partition_reads.get_by_name(call.scope, database, table, name)


@answers("get_partitions", reads="LIST table db_name tbl_name", uncommitted="hidden", cached=True)
def get_partitions(call: Call, database: str | None, table: str | None, limit: int | None) -> Encoded:
    return Encoded(_list(call, database, table, PartitionQuery(limit=limit, of_rows=True)))


@answers("get_partitions_with_auth", reads="LIST table db_name tbl_name", uncommitted="hidden", cached=True)
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
        wanted = PartitionQuery(limit=limit, of_rows=True)
        return Encoded(_list(call, database, table, wanted, requester=Requester(user, groups)))
    except NoSuchObjectException:
        return Encoded(iter([splice.list_of_structs(0)]))


@answers(
    "get_partitions_req", reads="LIST table req.dbName req.tblName cat=req.catName", uncommitted="hidden", cached=True
)
def get_partitions_req(call: Call, request: PartitionsRequest) -> Encoded:
    wanted = PartitionQuery(limit=request.maxParts, of_rows=True)
    pieces = _list(call, request.dbName, request.tblName, wanted, request.catName, shown=_shown(request))
    return Encoded(splice.in_struct(1, pieces))


@answers("get_partitions_ps", reads="LIST table db_name tbl_name", uncommitted="hidden", cached=True)
def get_partitions_ps(
    call: Call, database: str | None, table: str | None, values: list[str] | None, limit: int | None
) -> Encoded:
    return Encoded(_list(call, database, table, PartitionQuery(values=values or [], limit=limit)))


@answers("get_partitions_ps_with_auth", reads="LIST table db_name tbl_name", uncommitted="hidden", cached=True)
def get_partitions_ps_with_auth(
    call: Call,
    database: str | None,
    table: str | None,
    values: list[str] | None,
    limit: int | None,
    user: str | None,
    groups: list[str] | None,
) -> Encoded:
    wanted = PartitionQuery(values=values or [], limit=limit)
    return Encoded(_list(call, database, table, wanted, requester=_requester(user, groups)))


@answers(
    "get_partitions_ps_with_auth_req",
    reads="LIST table req.dbName req.tblName cat=req.catName",
    uncommitted="hidden",
    cached=True,
)
def get_partitions_ps_with_auth_req(call: Call, request: GetPartitionsPsWithAuthRequest) -> Encoded:
    """By values, by names, or all: Hive 4 has one call for what 2.3 has three for."""
    if request.partNames is None:
        wanted = PartitionQuery(values=request.partVals or None, limit=request.maxParts)
    else:
        wanted = PartitionQuery(names=request.partNames)
    requester = _requester(request.userName, request.groupNames)
    pieces = _list(call, request.dbName, request.tblName, wanted, request.catName, requester, _shown(request))
    return Encoded(splice.in_struct(1, pieces))


@answers(
    "get_partitions_by_filter",
    reads="LIST table db_name tbl_name",
    uncommitted="hidden",
    cached=True,
    differs="the filters of Hive 4",
)
def get_partitions_by_filter(
    call: Call, database: str | None, table: str | None, text: str | None, limit: int | None
) -> Encoded:
    return Encoded(_list(call, database, table, PartitionQuery(filter=text, limit=limit, of_rows=True)))


@answers(
    "get_partitions_by_filter_req",
    reads="LIST table req.dbName req.tblName cat=req.catName",
    uncommitted="hidden",
    cached=True,
    differs="a pattern with `.*` after LIKE is read as in Hive 2.3",
)
def get_partitions_by_filter_req(call: Call, request: GetPartitionsByFilterRequest) -> Encoded:
    wanted = PartitionQuery(filter=request.filter, limit=request.maxParts, of_rows=True)
    return Encoded(_list(call, request.dbName, request.tblName, wanted, request.catName, shown=_shown(request)))


@answers("get_partitions_by_names", reads="LIST table db_name tbl_name", uncommitted="hidden", cached=True)
def get_partitions_by_names(call: Call, database: str | None, table: str | None, names: list[str] | None) -> Encoded:
    return Encoded(_list(call, database, table, _named(call, database, table, names)))


@answers(
    "get_partitions_by_names_req",
    reads="LIST table req.db_name req.tbl_name; SELECT table req.db_name req.tbl_name if=req.get_col_stats",
    uncommitted="hidden",
    cached=True,
)
def get_partitions_by_names_req(
    call: Call, request: GetPartitionsByNamesRequest
) -> Encoded | GetPartitionsByNamesResult:
    """As Hive 4 does, this form alone refuses a missing table as invalid, and empty names as missing."""
    try:
        wanted = _named(call, request.db_name, request.tbl_name, request.names)
        if request.get_col_stats:
            return GetPartitionsByNamesResult(_with_statistics(call, request, wanted))
        pieces = _list(call, request.db_name, request.tbl_name, wanted, shown=_shown(request))
    except NoSuchObjectException as error:
        if not (given.plain(request.db_name) and request.tbl_name):
            raise
        raise InvalidObjectException(error.message) from None
    return Encoded(splice.in_struct(1, pieces))


def _named(call: Call, database: str | None, table: str | None, names: list[str] | None) -> PartitionQuery:
    if names is None:
        call.metastore.tables.get(database, table)  # a missing table is reported first
        raise MetaException("the names of the partitions are missing")
    return PartitionQuery(names=names, of_rows=True)


def _with_statistics(call: Call, request: GetPartitionsByNamesRequest, wanted: PartitionQuery) -> list[Partition]:
    """Partitions with the accurate ones among their column statistics."""
    columns_only = _shown(request)._replace(change=None)
    row, found = call.metastore.partition_reads.read(
        call.scope, request.db_name, request.tbl_name, wanted, shown=columns_only
    )
    keys = hive_objects.key_names(hive_objects.table_of(row))
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


@answers(
    "get_partitions_by_expr",
    reads="LIST table req.dbName req.tblName cat=req.catName",
    uncommitted="hidden",
    cached=True,
)
def get_partitions_by_expr(call: Call, request: PartitionsByExprRequest) -> Encoded:
    wanted, unclear = _by_expression(call, request)
    pieces = _list(call, request.dbName, request.tblName, wanted, request.catName, shown=_shown(request))
    return Encoded(splice.in_struct(1, pieces, _UNKNOWN_PARTITIONS[unclear is not None]))


@answers(
    "get_partitions_spec_by_expr",
    reads="LIST table req.dbName req.tblName cat=req.catName",
    uncommitted="hidden",
    cached=True,
    differs="one spec with whole partitions",
)
def get_partitions_spec_by_expr(call: Call, request: PartitionsByExprRequest) -> Encoded:
    wanted, unclear = _by_expression(call, request)
    pieces = call.metastore.partition_reads.spec_listing(
        call.scope, request.dbName, request.tblName, wanted, request.catName, _shown(request)
    )
    return Encoded(splice.in_struct(1, pieces, _UNKNOWN_PARTITIONS[unclear is not None]))


@answers(
    "get_partition_names_req",
    reads="LIST table req.dbName req.tblName cat=req.catName",
    uncommitted="hidden",
    cached=True,
)
def get_partition_names_req(call: Call, request: PartitionsByExprRequest) -> list[str]:
    wanted, unclear = _by_expression(call, request)
    if unclear is not None:
        raise MetaException(f"The expression can't be evaluated: {unclear}")
    return call.metastore.partition_reads.names(call.scope, request.dbName, request.tblName, wanted, request.catName)


@answers("get_partitions_pspec", reads="LIST table db_name tbl_name", uncommitted="hidden", cached=True)
def get_partitions_pspec(
    call: Call, database: str | None, table: str | None, limit: int | None
) -> Encoded | list[PartitionSpec]:
    return _specs(call, database, table, PartitionQuery(limit=limit))


@answers(
    "get_part_specs_by_filter",
    reads="LIST table db_name tbl_name",
    uncommitted="hidden",
    cached=True,
    differs="the filters of Hive 4",
)
def get_part_specs_by_filter(
    call: Call, database: str | None, table: str | None, text: str | None, limit: int | None
) -> Encoded | list[PartitionSpec]:
    return _specs(call, database, table, PartitionQuery(filter=text, limit=limit))


def _specs(
    call: Call, database: str | None, table: str | None, wanted: PartitionQuery
) -> Encoded | list[PartitionSpec]:
    """One list of whole partitions, or those that are alike together where the table's property wants that."""
    reads = call.metastore.partition_reads
    if hive_objects.is_true((call.metastore.tables.get(database, table).parameters or {}).get(_GROUPING)):
        row, found = reads.read(call.scope, database, table, wanted)
        return partition_projection.grouped(row.name, row.location, found)
    return Encoded(reads.spec_listing(call.scope, database, table, wanted))


@answers(
    "get_partitions_with_specs",
    reads="LIST table request.dbName request.tblName cat=request.catName",
    uncommitted="hidden",
    cached=True,
    differs="answers without a filter or projection, too; values stand for themselves",
)
def get_partitions_with_specs(call: Call, request: GetPartitionsRequest) -> GetPartitionsResponse:
    projection = partition_projection.Projection(request.projectionSpec)
    wanted = partition_projection.wanted(request.filterSpec)
    row, found = call.metastore.partition_reads.read(
        call.scope, request.dbName, request.tblName, wanted, request.catName
    )
    projected = [projection.partition(partition) for partition in found]
    return GetPartitionsResponse(partition_projection.grouped(row.name, row.location, projected))


@answers(
    "get_num_partitions_by_filter",
    reads="LIST table db_name tbl_name",
    uncommitted="hidden",
    cached=True,
    differs="the filters of Hive 4",
)
def get_num_partitions_by_filter(call: Call, database: str | None, table: str | None, text: str | None) -> int:
    return call.metastore.partition_reads.count(call.scope, database, table, PartitionQuery(filter=text))


@answers("get_partition_names", reads="LIST table db_name tbl_name", uncommitted="hidden", cached=True)
def get_partition_names(call: Call, database: str | None, table: str | None, limit: int | None) -> Encoded:
    return Encoded(
        call.metastore.partition_reads.names_listing(call.scope, database, table, PartitionQuery(limit=limit))
    )


@answers(
    "fetch_partition_names_req",
    reads="LIST table partitionReq.dbName partitionReq.tblName cat=partitionReq.catName",
    uncommitted="hidden",
    cached=True,
)
def fetch_partition_names_req(call: Call, request: PartitionsRequest) -> Encoded:
    """As in Hive 4, which alone has this call, a missing table has no partitions. Empty names are refused."""
    wanted = PartitionQuery(limit=request.maxParts, of_rows=True)
    reads = call.metastore.partition_reads
    try:
        return Encoded(reads.names_listing(call.scope, request.dbName, request.tblName, wanted, request.catName))
    except NoSuchObjectException:
        if not request.dbName or not request.tblName:
            raise
        return Encoded(iter([splice.list_of_strings(0)]))


@answers("get_partition_names_ps", reads="LIST table db_name tbl_name", uncommitted="hidden", cached=True)
def get_partition_names_ps(
    call: Call, database: str | None, table: str | None, values: list[str] | None, limit: int | None
) -> Encoded:
    wanted = PartitionQuery(values=values or [], limit=limit)
    return Encoded(call.metastore.partition_reads.names_listing(call.scope, database, table, wanted))


@answers(
    "get_partition_names_ps_req",
    reads="LIST table req.dbName req.tblName cat=req.catName",
    uncommitted="hidden",
    cached=True,
)
def get_partition_names_ps_req(call: Call, request: GetPartitionNamesPsRequest) -> GetPartitionNamesPsResponse:
    wanted = PartitionQuery(values=request.partValues or [], limit=request.maxParts)
    return GetPartitionNamesPsResponse(
        call.metastore.partition_reads.names(call.scope, request.dbName, request.tblName, wanted, request.catName)
    )


@answers(
    "get_partition_values",
    reads="LIST table request.dbName request.tblName cat=request.catName",
    uncommitted="hidden",
    cached=True,
    differs="the filters of Hive 4",
)
def get_partition_values(call: Call, request: PartitionValuesRequest) -> PartitionValuesResponse:
    """Whatever is wrong, a missing table too, is a MetaException, as in Hive."""
    try:
        rows = call.metastore.partition_reads.values(
            call.scope,
            request.dbName,
            request.tblName,
            request.partitionKeys,
            PartitionQuery(filter=request.filter, limit=request.maxParts),
            distinct=request.applyDistinct is not False,
            ascending=request.ascending is not False,
            catalog=request.catName,
        )
    except NoSuchObjectException as error:
        raise MetaException(error.message) from None
    return PartitionValuesResponse([PartitionValuesRow(row) for row in rows])


def _by_expression(call: Call, request: PartitionsByExprRequest) -> tuple[PartitionQuery, str | None]:
    return call.metastore.partition_reads.expressed(
        request.dbName, request.tblName, request.expr or b"", request.maxParts, request.catName
    )
