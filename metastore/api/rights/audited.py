"""What the audit log says a call is about: its objects, by the rules that rights are decided by, and details of grants.

Nothing here is a secret: of a token it is the id, of a key the number.
"""

import contextlib
from collections.abc import Iterator
from typing import Any

from lake.protocol.hive import GrantRevokeType, HiveObjectRef, PrincipalType
from lake.protocol.sasl import delegation_token
from lake.protocol.sasl.delegation_token import BadToken, Identifier
from lake.protocol.struct import Struct
from metastore.api.methods import HANDLERS
from metastore.api.rights import naming
from metastore.api.rights.classification import Need
from metastore.api.rights.naming import Row, rows, table_object
from metastore.services.access.rights import Kind, Securable
from metastore.services.model import names as given

_LONGEST_TEXT = 200
_OF_REFERENCE = frozenset({"instant", "hudi_import", "jobs", "submitted_jobs", "lease"})
_OF_TABLE = frozenset({"table_change", "partition_change", "new_partitions", "hudi_instant"})
_OF_GRANTS = frozenset({"grants", "refreshed_grants"})
_MOST_OBJECTS = 100


def objects(method: str, arguments: Struct, named: str) -> str:
    """The objects of a call with commas between, as far as its arguments name them.

    `named`: what the arguments' own fields name, which may be a part of an object, such as a partition.
    """
    found: list[Securable] = []
    # Whatever a client sends is recorded: names that can't be any, fields of another type.
    with contextlib.suppress(Exception):
        found.extend(_objects(method, arguments))
    texts = list(dict.fromkeys(map(str, found)))
    if not texts:
        return named
    if len(texts) > _MOST_OBJECTS:
        texts[_MOST_OBJECTS:] = [f"{len(texts) - _MOST_OBJECTS} more"]
    part = named.lower().removeprefix("hive.")
    if part.startswith(f"{texts[0]}."):
        texts[0] = part
    return ", ".join(texts)


def details(method: str, arguments: Struct, value: Any = None) -> list[dict[str, Any]]:
    """What a call about rights, roles or tokens gives to whom, one item for each; empty for other calls.

    `value`: the call's answer, if it has one.
    """
    found: list[dict[str, Any]] = []
    with contextlib.suppress(Exception):  # see `objects`
        found.extend(_details(method, arguments, value))
    return found


def _objects(method: str, arguments: Any) -> Iterator[Securable]:
    if method == "create_role":
        yield Securable(Kind.ROLE, database=arguments.role.roleName)
    elif method == "drop_role":
        yield Securable(Kind.ROLE, database=arguments.role_name)
    seen: set[Any] = set()
    for need in HANDLERS[method].rule.needs:
        for row in rows(need, arguments):
            key = _key(need, row)
            if key is None or key not in seen:
                seen.add(key)
                yield from _of_row(need, row)


def _key(need: Need, row: Row) -> Any:
    """What rows of a need have in common that name the same object; None if that can't be told by their values."""
    values = row.values
    if all(each is None or isinstance(each, str) for each in values):
        return (need.kind, *values, row.get("cat"))
    return None


def _of_row(need: Need, row: Row) -> Iterator[Securable]:
    values = row.values
    if need.action is not None:
        for object in naming.objects(need.kind, row):
            if object.kind is not Kind.EVERYTHING:
                yield object
    elif need.kind in _OF_TABLE:
        yield table_object(values[0], values[1], row.get("cat"))
        new = row.get("new")
        if need.kind == "table_change" and new is not None and new.tableName is not None:
            yield table_object(new.dbName or values[0], new.tableName, new.catName or row.get("cat"))
    elif need.kind in _OF_REFERENCE:
        if values[0] is not None:
            yield table_object(values[0].database, values[0].table, values[0].catalog)
    elif need.kind in _OF_GRANTS:
        ref = values[0] if isinstance(values[0], HiveObjectRef) else values[0].hiveObject
        yield from naming.of_ref(ref)
    elif need.kind == "locks":
        part = values[0]
        if part.tablename is None:
            yield Securable(Kind.DATABASE, given.DEFAULT_CATALOG, given.database_name(part.dbname).database)
        else:
            yield table_object(part.dbname, part.tablename)


# -- details -----------------------------------------------------------------------------------------------------


def _details(method: str, arguments: Any, value: Any) -> Iterator[dict[str, Any]]:
    for need in HANDLERS[method].rule.needs:
        if need.kind == "grants":
            for row in rows(need, arguments):
                for each in row.values:
                    yield _grant(each) | _action(arguments.request if _has(arguments, "request") else None)
        elif need.kind == "refreshed_grants":
            request = arguments.grantRequest
            for each in (request and request.privileges and request.privileges.privileges) or ():
                yield _grant(each) | _action(request)
        elif need.kind == "principal":
            for row in rows(need, arguments):
                name, *kind = row.values
                yield {"principal": _principal(name, kind[0] if kind else PrincipalType.USER)}
    if method in ("grant_role", "revoke_role"):
        found = {"role": arguments.role_name, "grantee": _principal(arguments.principal_name, arguments.principal_type)}
        option = {"grant_option": bool(arguments.grant_option)} if method == "grant_role" else {}
        yield found | option
    elif method == "grant_revoke_role" and arguments.request is not None:
        request = arguments.request
        grantee = _principal(request.principalName, request.principalType)
        found = {"role": request.roleName, "grantee": grantee, "grant_option": bool(request.grantOption)}
        yield found | _action(request)
    elif method in ("lake_list_tokens", "lake_cancel_tokens"):
        request = arguments.request
        ids = (value if isinstance(value, list) else getattr(request, "tokens", None)) or ()
        of = {"everybody": True} if request.everybody else {"owner": request.owner}
        for each in ids or (None,):
            yield ({} if each is None else {"token": each}) | of
    elif method in _OF_TOKENS:
        yield from _token(method, arguments, value)
    elif method == "lake_refresh_hudi":
        yield {"location": arguments.location}
    elif method in _OF_JOBS:
        yield {"job": arguments.request.job if _has(arguments, "request") else arguments.job}


_OF_JOBS = frozenset({"lake_heartbeat_job", "lake_claim_plan", "lake_finish_job", "lake_cancel_job"})
_OF_TOKENS = frozenset(
    {
        "get_delegation_token",
        "renew_delegation_token",
        "cancel_delegation_token",
        "add_token",
        "get_token",
        "remove_token",
        "update_master_key",
        "remove_master_key",
    }
)


def _grant(privilege: Any) -> dict[str, Any]:
    info = privilege.grantInfo
    return {
        "privilege": (info and info.privilege) or "ALL",
        "object": _object(privilege.hiveObject),
        "grantee": _principal(privilege.principalName, privilege.principalType),
        "grant_option": bool(info and info.grantOption),
        "grantor": info and info.grantor,
    }


def _action(request: Any) -> dict[str, Any]:
    """Whether a request that may do both grants or revokes."""
    if request is None or getattr(request, "requestType", None) is None:
        return {}
    found: dict[str, Any] = {"action": "revoke" if request.requestType == GrantRevokeType.REVOKE else "grant"}
    if getattr(request, "revokeGrantOption", None):
        found["only_grant_option"] = True
    return found


def _object(ref: HiveObjectRef | None) -> str:
    whole = ", ".join(map(str, naming.of_ref(ref))) or "the metastore"
    parts = [whole, "/".join((ref and ref.partValues) or ()), (ref and ref.columnName) or ""]
    return ".".join(part for part in parts if part)


def _principal(name: str | None, kind: int | None) -> str | None:
    """A principal as the command line names it: `user:ann`."""
    if name is None:
        return None
    word = {int(PrincipalType.ROLE): "role", int(PrincipalType.GROUP): "group"}.get(kind or 0, "user")
    return f"{word}:{name}"


def _token(method: str, arguments: Any, value: Any) -> Iterator[dict[str, Any]]:
    if method == "get_delegation_token":
        issued = _of_text(value if isinstance(value, str) else "")
        asked = {"owner": arguments.token_owner, "renewer": arguments.renewer_kerberos_principal_name}
        yield issued or asked
    elif _has(arguments, "token_str_form"):
        if found := _of_text(arguments.token_str_form or ""):
            yield found
    elif _has(arguments, "token_identifier"):  # of another service's token, which is kept here
        yield {"stored_token": (arguments.token_identifier or "")[:_LONGEST_TEXT]}
    else:
        yield {"key": arguments.seq_number if _has(arguments, "seq_number") else arguments.key_seq}


def _of_text(text: str) -> dict[str, Any]:
    """What a token says about itself; empty for a text that is no token."""
    try:
        return of_token(Identifier.decode(delegation_token.from_text(text).identifier))
    except BadToken:
        return {}


def of_token(identifier: Identifier) -> dict[str, Any]:
    """A delegation token as records name it, without what logs in with it."""
    found = {"token": identifier.sequence, "owner": identifier.owner, "renewer": identifier.renewer}
    return found | ({"real_user": identifier.real_user} if identifier.real_user else {})


def _has(arguments: Any, name: str) -> bool:
    return name in type(arguments).field_names()
