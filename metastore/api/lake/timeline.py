"""Our own calls: the timelines of lake tables, and the snapshots of their files."""

from lake.protocol.lake import (
    BeginInstantRequest,
    CompletedInstant,
    CompleteInstantRequest,
    DataFile,
    FindOrphansRequest,
    FindOrphansResponse,
    Instant,
    InstantDetails,
    ListInstantsRequest,
    PlanCleanRequest,
    ReadChangesRequest,
    ReadChangesResponse,
    RejectedCommit,
    RemoveOrphansRequest,
    SnapshotRequest,
    SnapshotResponse,
    TableReference,
    TimelinePosition,
    TransitionInstantRequest,
)
from metastore.api.methods import Call, answers
from metastore.services.model.visibility import Scope


@answers("lake_begin_instant", changes="instant request.table action=request.action", uncommitted="timeline")
def lake_begin_instant(call: Call, request: BeginInstantRequest) -> Instant:
    return call.metastore.timeline.begin(request)


@answers("lake_transition_instant", changes="instant request.table action=request.action", uncommitted="timeline")
def lake_transition_instant(call: Call, request: TransitionInstantRequest) -> Instant:
    return call.metastore.timeline.transition(
        request.table,
        request.timestamp,
        request.action,
        request.toState,
        request.metadata,
        runner=request.runner,
        attempt=request.attempt,
        heartbeat=bool(request.heartbeat),
    )


@answers(
    "lake_complete_instants",
    changes=(
        "instant requests[].table action=requests[].action cleaned=requests[].cleanedPaths"
        " undone=requests[].rolledBack columns=requests[].columns properties=requests[].schemaProperties"
    ),
    uncommitted="named",
)
def lake_complete_instants(call: Call, requests: list[CompleteInstantRequest] | None) -> list[CompletedInstant]:
    return call.metastore.instant_completion.complete(requests or [])


@answers("lake_heartbeat_instant", changes="instant table action=action", uncommitted="timeline")
def lake_heartbeat_instant(
    call: Call, table: TableReference, timestamp: str | None, action: str | None, attempt: int | None
) -> None:
    call.metastore.timeline.heartbeat(table, timestamp, action, attempt)


@answers("lake_delete_instant", changes="instant table action=action", uncommitted="timeline")
def lake_delete_instant(call: Call, table: TableReference, timestamp: str | None, action: str | None) -> None:
    call.metastore.timeline.delete(table, timestamp, action)


@answers("lake_list_instants", reads="LIST lake request.table", uncommitted="timeline", cached=True)
def lake_list_instants(call: Call, request: ListInstantsRequest) -> list[Instant]:
    return call.metastore.timeline_queries.listing(request)


@answers("lake_get_instant", reads="LIST lake table", uncommitted="timeline")
def lake_get_instant(call: Call, table: TableReference, timestamp: str | None, action: str | None) -> InstantDetails:
    return call.metastore.timeline_queries.details(table, timestamp, action)


@answers("lake_list_rejected_commits", reads="LIST lake table", uncommitted="timeline")
def lake_list_rejected_commits(call: Call, table: TableReference) -> list[RejectedCommit]:
    return call.metastore.timeline_queries.rejected_commits(table)


@answers("lake_timeline_position", reads="LIST lake table", uncommitted="timeline", cached=True)
def lake_timeline_position(call: Call, table: TableReference) -> TimelinePosition:
    return call.metastore.timeline_queries.position(table)


@answers(
    "lake_get_snapshot",
    reads="SELECT lake request.table uncommitted=request.includeUncommitted",
    uncommitted="hidden",
    cached=True,
)
def lake_get_snapshot(call: Call, request: SnapshotRequest) -> SnapshotResponse:
    return call.metastore.file_snapshots.read(_scope(call, request.includeUncommitted), request)


@answers(
    "lake_read_changes",
    reads="SELECT lake request.table uncommitted=request.includeUncommitted",
    uncommitted="hidden",
    cached=True,
)
def lake_read_changes(call: Call, request: ReadChangesRequest) -> ReadChangesResponse:
    return call.metastore.file_snapshots.changes(_scope(call, request.includeUncommitted), request)


@answers("lake_plan_clean", reads="CLEAN lake request.table", uncommitted="cleaners")
def lake_plan_clean(call: Call, request: PlanCleanRequest) -> list[DataFile]:
    return call.metastore.file_snapshots.plan_clean(request)


@answers("lake_find_orphans", reads="CLEAN lake request.table", uncommitted="cleaners")
def lake_find_orphans(call: Call, request: FindOrphansRequest) -> FindOrphansResponse:
    return call.metastore.orphan_files.find(request)


@answers("lake_remove_orphans", changes="CLEAN lake request.table", uncommitted="cleaners")
def lake_remove_orphans(call: Call, request: RemoveOrphansRequest) -> int:
    return call.metastore.orphan_files.remove(request)


def _scope(call: Call, include_uncommitted: bool | None) -> Scope:
    """What a request says is narrower than what its connection says."""
    if include_uncommitted is None:
        return call.scope
    return Scope.UNCOMMITTED if include_uncommitted else Scope.READY
