"""Our own calls: what Hudi's files say of a table."""

from lake.protocol.lake import ImportHudiRequest, ImportHudiResponse
from metastore.api.methods import Call, answers
from metastore.api.rights import audited


@answers("lake_import_hudi", changes="hudi_import request.table location=request.location", uncommitted="hudi")
def lake_import_hudi(call: Call, request: ImportHudiRequest) -> ImportHudiResponse:
    return call.metastore.hudi_import.import_instants(request, call.owner)


@answers("lake_refresh_hudi", changes="hudi_refresh location name", uncommitted="hudi", audit=audited.location)
def lake_refresh_hudi(call: Call, location: str | None, name: str | None) -> ImportHudiResponse:
    return call.metastore.hudi_import.refresh(location, name)
