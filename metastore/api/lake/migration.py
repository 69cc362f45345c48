"""Our own calls: objects of another metastore, as they are there."""

from lake.protocol.lake import ImportRequest, ImportResponse
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
