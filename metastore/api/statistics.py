"""Column statistics.

Hive 2.3 and 4 call the same methods for most of this; 4 names an engine in its requests, 2.3 knows none.
"""

from lake.protocol.hive import (
    AggrStats,
    ColumnStatistics,
    ColumnStatisticsObj,
    DeleteColumnStatisticsRequest,
    InvalidInputException,
    InvalidObjectException,
    PartitionsStatsRequest,
    SetPartitionsStatsRequest,
    SetPartitionsStatsResponse,
    TableStatsRequest,
    TableStatsResult,
)
from metastore.api.methods import Call, Encoded, answers
from metastore.services.statistics import kept_statistics
from metastore.services.statistics.column_values import as_of_2_3
from metastore.services.statistics.service import Merging


def _understood(call: Call, values: list[ColumnStatisticsObj] | None, engine: str | None) -> list[ColumnStatisticsObj]:
    """Statistics of the kinds that the client knows."""
    return list(map(as_of_2_3, values or ())) if _is_2_3(call, engine) else values or []


def _is_2_3(call: Call, engine: str | None) -> bool:
    """Whether the client may be of Hive 2.3."""
    return not call.session.hive4 and engine is None


def _answer(call: Call, value: ColumnStatistics | None) -> ColumnStatistics | None:
    return value and value.replace(statsObj=_understood(call, value.statsObj, None))


@answers(
    "update_table_column_statistics",
    changes="WRITE table stats_obj.statsDesc.dbName stats_obj.statsDesc.tableName cat=stats_obj.statsDesc.catName",
    uncommitted="named",
    stores=True,
)
def update_table_column_statistics(call: Call, statistics: ColumnStatistics | None) -> bool:
    call.metastore.statistics.update_table(_present(statistics))
    return True


@answers(
    "update_partition_column_statistics",
    changes="WRITE table stats_obj.statsDesc.dbName stats_obj.statsDesc.tableName cat=stats_obj.statsDesc.catName",
    uncommitted="named",
    stores=True,
)
def update_partition_column_statistics(call: Call, statistics: ColumnStatistics | None) -> bool:
    call.metastore.statistics.update_partitions([_present(statistics)])
    return True


def _present(statistics: ColumnStatistics | None) -> ColumnStatistics:
    if statistics is None:
        raise InvalidObjectException("Invalid column stats object: it is missing")
    return statistics


@answers(
    "update_table_column_statistics_req",
    changes=(
        "WRITE table req.colStats[].statsDesc.dbName req.colStats[].statsDesc.tableName"
        " cat=req.colStats[].statsDesc.catName"
    ),
    uncommitted="named",
    stores=True,
)
def update_table_column_statistics_req(
    call: Call, request: SetPartitionsStatsRequest | None
) -> SetPartitionsStatsResponse:
    only, engine = _only(request)
    call.metastore.statistics.update_table(only, engine=engine)
    return SetPartitionsStatsResponse(result=True)


@answers(
    "update_partition_column_statistics_req",
    changes=(
        "WRITE table req.colStats[].statsDesc.dbName req.colStats[].statsDesc.tableName"
        " cat=req.colStats[].statsDesc.catName"
    ),
    uncommitted="named",
    stores=True,
)
def update_partition_column_statistics_req(
    call: Call, request: SetPartitionsStatsRequest | None
) -> SetPartitionsStatsResponse:
    only, engine = _only(request)
    call.metastore.statistics.update_partitions([only], engine=engine)
    return SetPartitionsStatsResponse(result=True)


def _only(request: SetPartitionsStatsRequest | None) -> tuple[ColumnStatistics, str | None]:
    """The one object of a request, and the engine."""
    given = (request and request.colStats) or []
    if request is None or len(given) != 1:
        raise InvalidInputException("Only one stats object expected")
    if request.needMerge:
        raise InvalidInputException("Merge is not supported for non-aggregate stats")
    return given[0], request.engine


@answers(
    "set_aggr_stats_for",
    changes=(
        "WRITE table request.colStats[].statsDesc.dbName request.colStats[].statsDesc.tableName"
        " cat=request.colStats[].statsDesc.catName"
    ),
    uncommitted="named",
    stores=True,
)
def set_aggr_stats_for(call: Call, request: SetPartitionsStatsRequest | None) -> bool:
    if request is None:
        raise InvalidInputException("the request is missing")
    merging = Merging.NONE
    if request.needMerge:
        merging = Merging.PRESENT if request.engine is None else Merging.ACCURATE
    call.metastore.statistics.set_aggregated(request.colStats, merging, request.engine)
    return True


@answers(
    "get_table_column_statistics",
    reads="SELECT table db_name tbl_name col=col_name",
    uncommitted="table itself",
    cached=True,
)
def get_table_column_statistics(
    call: Call, database: str | None, table: str | None, column: str | None
) -> ColumnStatistics | None:
    columns = [] if column is None else [column]
    return _answer(call, call.metastore.statistics.of_table(database, table, columns))


@answers(
    "get_partition_column_statistics",
    reads="SELECT table db_name tbl_name col=col_name",
    uncommitted="hidden",
    cached=True,
)
def get_partition_column_statistics(
    call: Call, database: str | None, table: str | None, partition: str | None, column: str | None
) -> ColumnStatistics | None:
    columns = [] if column is None else [column]
    found = call.metastore.statistics.of_partitions(call.scope, database, table, [partition or ""], columns)
    return _answer(call, next(iter(found.values()), None))


@answers(
    "get_table_statistics_req",
    reads="SELECT table request.dbName request.tblName cat=request.catName cols=request.colNames",
    uncommitted="table itself",
    cached=True,
)
def get_table_statistics_req(call: Call, request: TableStatsRequest) -> TableStatsResult:
    found = call.metastore.statistics.of_table(
        request.dbName, request.tblName, request.colNames, request.engine, request.catName
    )
    return TableStatsResult(tableStats=_understood(call, found.statsObj if found else None, request.engine))


@answers(
    "get_partitions_statistics_req",
    reads="SELECT table request.dbName request.tblName cat=request.catName",
    uncommitted="hidden",
    cached=True,
)
def get_partitions_statistics_req(call: Call, request: PartitionsStatsRequest) -> Encoded:
    found = call.metastore.statistics.encoded_of_partitions(
        call.scope,
        request.dbName,
        request.tblName,
        request.partNames,
        request.colNames,
        request.engine,
        request.catName,
        of_2_3=_is_2_3(call, request.engine),
    )
    return Encoded(kept_statistics.of_partitions(found))


@answers(
    "get_aggr_stats_for",
    reads="SELECT table request.dbName request.tblName cat=request.catName",
    uncommitted="hidden",
    cached=True,
)
def get_aggr_stats_for(call: Call, request: PartitionsStatsRequest) -> AggrStats:
    found = call.metastore.statistics.aggregated(
        call.scope,
        request.dbName,
        request.tblName,
        request.partNames,
        request.colNames,
        request.engine,
        request.catName,
    )
    return found.replace(colStats=_understood(call, found.colStats, request.engine))


@answers(
    "delete_table_column_statistics",
    changes="WRITE table db_name tbl_name",
    uncommitted="named",
    differs="what is deleted counts as accurate no more",
)
def delete_table_column_statistics(
    call: Call, database: str | None, table: str | None, column: str | None, engine: str | None
) -> bool:
    call.metastore.statistics.delete_of_table(database, table, column, engine)
    return True


@answers(
    "delete_column_statistics_req",
    changes="WRITE table req.db_name req.tbl_name cat=req.cat_name",
    uncommitted="named",
    differs="what is deleted counts as accurate no more; partitions that are named must exist",
)
def delete_column_statistics_req(call: Call, request: DeleteColumnStatisticsRequest) -> bool:
    call.metastore.statistics.delete(
        request.db_name,
        request.tbl_name,
        names=request.part_names or (),
        columns=request.col_names or (),
        of_table=bool(request.tableLevel),
        engine=request.engine,
        catalog=request.cat_name,
    )
    return True


@answers(
    "delete_partition_column_statistics",
    changes="WRITE table db_name tbl_name",
    uncommitted="named",
    differs="what is deleted counts as accurate no more",
)
def delete_partition_column_statistics(
    call: Call,
    database: str | None,
    table: str | None,
    partition: str | None,
    column: str | None,
    engine: str | None,
) -> bool:
    call.metastore.statistics.delete_of_partition(database, table, partition, column, engine)
    return True
