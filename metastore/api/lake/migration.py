"""Our own calls: objects of another metastore, as they are there, and how far it is followed."""

from lake.protocol.lake import FollowedSource, ImportRequest, ImportResponse
from metastore.api.methods import Call, answers
from metastore.api.rights import audited


@answers(
    "lake_import",
    changes="ADMIN everything | imported request",
    uncommitted="named",
    stores=True,
    audit=audited.imported,
)
def lake_import(call: Call, request: ImportRequest) -> ImportResponse:
    return call.metastore.imports.bring(request)


@answers("lake_list_followed", reads="ADMIN everything", uncommitted="no table")
def lake_list_followed(call: Call) -> list[FollowedSource]:
    return call.metastore.followed_sources.all()


@answers("lake_take_followed", changes="ADMIN everything", uncommitted="no table")
def lake_take_followed(call: Call, source: str | None, databases: str | None, holder: int | None) -> FollowedSource:
    call.session.held, taken = call.metastore.followed_sources.take(source, databases, holder)
    return taken


@answers("lake_keep_followed", changes="ADMIN everything", uncommitted="no table")
def lake_keep_followed(call: Call, followed: FollowedSource) -> None:
    call.metastore.followed_sources.keep(followed)
