"""The queue of compactions."""

from lake.protocol.hive import (
    AbortCompactionRequest,
    AbortCompactResponse,
    CompactionInfoStruct,
    CompactionMetricsDataRequest,
    CompactionMetricsDataStruct,
    CompactionRequest,
    CompactionResponse,
    FindNextCompactRequest,
    GetLatestCommittedCompactionInfoRequest,
    GetLatestCommittedCompactionInfoResponse,
    OptionalCompactionInfoStruct,
    ShowCompactRequest,
    ShowCompactResponse,
)
from metastore.api.methods import Call, answers


@answers(
    "compact",
    changes="TABLE_SERVICE table rqst.dbname rqst.tablename",
    uncommitted="compactions",
    differs="it waits for workers that run elsewhere",
)
def compact(call: Call, request: CompactionRequest) -> None:
    call.metastore.compactions.ask(request)


@answers(
    "compact2",
    changes="TABLE_SERVICE table rqst.dbname rqst.tablename",
    uncommitted="compactions",
    differs="it waits for workers that run elsewhere",
)
def compact2(call: Call, request: CompactionRequest) -> CompactionResponse:
    return call.metastore.compactions.ask(request, hive4=call.session.hive4 or request.initiatorId is not None)


@answers("submit_for_cleanup", changes="ADMIN everything", uncommitted="compactions")
def submit_for_cleanup(
    call: Call, request: CompactionRequest, highest_write_id: int | None, transaction_id: int | None
) -> bool:
    call.metastore.compactions.ask_for_cleanup(request, highest_write_id or 0, transaction_id or 0)
    return True


@answers("abort_Compactions", changes="ADMIN everything", uncommitted="compactions")
def abort_compactions(call: Call, request: AbortCompactionRequest) -> AbortCompactResponse:
    return AbortCompactResponse(call.metastore.compactions.abort(request.compactionIds or ()))


@answers(
    "show_compact",
    reads="- | compactions",
    uncommitted="compactions",
    differs="what happened last comes first, whatever the order asked for",
)
def show_compact(call: Call, request: ShowCompactRequest) -> ShowCompactResponse:
    limit = request.limit if request.limit and request.limit > 0 else None
    if call.shown is None:
        return ShowCompactResponse(call.metastore.compactions.show(request, limit, hive4=call.session.hive4))
    found = call.metastore.compactions.show(request, None, hive4=call.session.hive4)
    return ShowCompactResponse(call.visible(found)[:limit])


@answers(
    "find_next_compact",
    changes="ADMIN everything",
    uncommitted="compactions",
    differs="tells state, worker and times, too",
)
def find_next_compact(call: Call, worker_id: str | None) -> OptionalCompactionInfoStruct:
    return OptionalCompactionInfoStruct(call.metastore.compactions.next(FindNextCompactRequest(worker_id)))


@answers("find_next_compact2", changes="ADMIN everything", uncommitted="compactions")
def find_next_compact2(call: Call, request: FindNextCompactRequest) -> OptionalCompactionInfoStruct:
    return OptionalCompactionInfoStruct(call.metastore.compactions.next(request))


@answers("update_compactor_state", changes="ADMIN everything", uncommitted="compactions")
def update_compactor_state(call: Call, compaction: CompactionInfoStruct, transaction_id: int | None) -> None:
    call.metastore.compactions.begin(compaction, transaction_id or 0)


@answers("mark_compacted", changes="ADMIN everything", uncommitted="compactions")
def mark_compacted(call: Call, compaction: CompactionInfoStruct) -> None:
    call.metastore.compactions.compacted(compaction)


@answers("mark_cleaned", changes="ADMIN everything", uncommitted="compactions")
def mark_cleaned(call: Call, compaction: CompactionInfoStruct) -> None:
    call.metastore.compactions.cleaned(compaction)


@answers("mark_failed", changes="ADMIN everything", uncommitted="compactions")
def mark_failed(call: Call, compaction: CompactionInfoStruct) -> None:
    call.metastore.compactions.failed(compaction)


@answers("mark_refused", changes="ADMIN everything", uncommitted="compactions")
def mark_refused(call: Call, compaction: CompactionInfoStruct) -> None:
    call.metastore.compactions.refused(compaction)


@answers("set_hadoop_jobid", changes="ADMIN everything", uncommitted="compactions")
def set_hadoop_jobid(call: Call, job: str | None, compaction_id: int | None) -> None:
    call.metastore.compactions.set_job(compaction_id or 0, job)


@answers("find_columns_with_stats", reads="SEE table cr.dbname cr.tablename", uncommitted="compactions")
def find_columns_with_stats(call: Call, compaction: CompactionInfoStruct) -> list[str]:
    return call.metastore.compactions.columns_with_statistics(compaction)


@answers(
    "get_latest_committed_compaction_info", reads="SEE table rqst.dbname rqst.tablename", uncommitted="compactions"
)
def get_latest_committed_compaction_info(
    call: Call, request: GetLatestCommittedCompactionInfoRequest
) -> GetLatestCommittedCompactionInfoResponse:
    return GetLatestCommittedCompactionInfoResponse(call.metastore.compactions.latest(request))


@answers("update_compaction_metrics_data", changes="ADMIN everything", uncommitted="compactions")
def update_compaction_metrics_data(call: Call, data: CompactionMetricsDataStruct) -> bool:
    call.metastore.compactions.put_metric(data)
    return True


@answers("remove_compaction_metrics_data", changes="ADMIN everything", uncommitted="compactions")
def remove_compaction_metrics_data(call: Call, request: CompactionMetricsDataRequest) -> None:
    call.metastore.compactions.remove_metric(request)
