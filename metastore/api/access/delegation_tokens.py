"""Delegation tokens: those that this metastore issues, and those with their keys that it keeps for other servers."""

from lake.protocol.hive import MetaException
from lake.protocol.lake import CancelTokensRequest, DelegationToken, ListTokensRequest
from metastore.api.methods import Call, answers
from metastore.api.rights import audited
from metastore.services.access.issued_tokens import IssuedTokenService

_NOT_ISSUED = "delegation tokens are issued where `authentication` lists `token`, which it doesn't here"


@answers(
    "get_delegation_token",
    changes="-",
    uncommitted="no table",
    audit=audited.new_token,
    differs="tokens are issued where `authentication` lists `token`, else refused",
)
def get_delegation_token(call: Call, owner: str | None, renewer: str | None) -> str:
    return _tokens(call).issue(call.session.caller, owner, renewer)


@answers(
    "renew_delegation_token",
    changes="-",
    uncommitted="no table",
    audit=audited.token,
    differs="tokens are issued where `authentication` lists `token`, else refused",
)
def renew_delegation_token(call: Call, token: str | None) -> int:
    return _tokens(call).renew(call.session.caller, token)


@answers(
    "cancel_delegation_token",
    changes="-",
    uncommitted="no table",
    audit=audited.token,
    differs="tokens are issued where `authentication` lists `token`, else refused",
)
def cancel_delegation_token(call: Call, token: str | None) -> None:
    _tokens(call).cancel(call.session.caller, token)


@answers(
    "lake_list_tokens",
    reads="principal request.owner; ADMIN everything if=request.everybody",
    uncommitted="no table",
    audit=audited.issued_tokens,
)
def lake_list_tokens(call: Call, request: ListTokensRequest) -> list[DelegationToken]:
    return _tokens(call).find(call.session.caller, request.owner, everybody=bool(request.everybody))


@answers(
    "lake_cancel_tokens",
    changes="principal request.owner; ADMIN everything if=request.everybody",
    uncommitted="no table",
    audit=audited.issued_tokens,
)
def lake_cancel_tokens(call: Call, request: CancelTokensRequest) -> list[int]:
    everybody = bool(request.everybody)
    return _tokens(call).cancel_all(call.session.caller, request.tokens, request.owner, everybody=everybody)


def _tokens(call: Call) -> IssuedTokenService:
    if not call.metastore.issued_tokens.enabled:
        raise MetaException(_NOT_ISSUED)
    return call.metastore.issued_tokens


@answers("add_token", changes="ADMIN everything", uncommitted="no table", audit=audited.stored_token)
def add_token(call: Call, identifier: str | None, token: str | None) -> bool:
    return call.metastore.delegation_tokens.add(identifier, token)


@answers("get_token", reads="ADMIN everything", uncommitted="no table", audit=audited.stored_token)
def get_token(call: Call, identifier: str | None) -> str | None:
    """Hive 2.3 answers nothing for an unknown one, Hive 4 the empty text."""
    return call.metastore.delegation_tokens.get(identifier) or ("" if call.session.hive4 else None)


@answers("remove_token", changes="ADMIN everything", uncommitted="no table", audit=audited.stored_token)
def remove_token(call: Call, identifier: str | None) -> bool:
    return call.metastore.delegation_tokens.remove(identifier)


@answers("get_all_token_identifiers", reads="ADMIN everything", uncommitted="no table")
def get_all_token_identifiers(call: Call) -> list[str]:
    return call.metastore.delegation_tokens.identifiers()


@answers("add_master_key", changes="ADMIN everything", uncommitted="no table")
def add_master_key(call: Call, key: str | None) -> int:
    return call.metastore.delegation_tokens.add_key(key)


@answers("update_master_key", changes="ADMIN everything", uncommitted="no table", audit=audited.master_key)
def update_master_key(call: Call, number: int | None, key: str | None) -> None:
    call.metastore.delegation_tokens.update_key(number or 0, key)


@answers("remove_master_key", changes="ADMIN everything", uncommitted="no table", audit=audited.master_key)
def remove_master_key(call: Call, number: int | None) -> bool:
    return call.metastore.delegation_tokens.remove_key(number or 0)


@answers("get_master_keys", reads="ADMIN everything", uncommitted="no table")
def get_master_keys(call: Call) -> list[str]:
    return call.metastore.delegation_tokens.keys()
