"""Requests that clients of other protocols may send again."""

from lake.protocol.hive import MetaException
from lake.protocol.lake import RequestKey, RequestOutcome
from metastore.api.methods import Call, answers


@answers("lake_begin_request", changes="-", uncommitted="no table")
def lake_begin_request(call: Call, request: RequestKey) -> RequestOutcome:
    call.session.request = None
    call.session.request, outcome = call.metastore.repeated_requests.begin(call.session.caller, request)
    return outcome


@answers("lake_end_request", changes="-", uncommitted="no table")
def lake_end_request(call: Call, refusal: int | None, answer: str | None) -> RequestOutcome:
    claim, call.session.request = call.session.request, None
    if refusal is None:
        return RequestOutcome()
    if claim is None:
        raise MetaException("no request has begun on this connection (lake_begin_request)")
    if refusal:
        return call.metastore.repeated_requests.refuse(claim, refusal, answer or "")
    return call.metastore.repeated_requests.outcome(claim)
