"""What the audit log says a call is about: its objects, by the rules that rights are decided by, and details of grants.

Nothing here is a secret: of a token it is the id, of a key the number.
"""

import contextlib
from collections.abc import Iterable, Iterator
from typing import Any

from lake.protocol.hive import GrantRevokeType, HiveObjectRef, PrincipalType
from lake.protocol.sasl import delegation_token
from lake.protocol.sasl.delegation_token import BadToken, Identifier
from lake.protocol.struct import Struct
from metastore.api.methods import HANDLERS
from metastore.api.rights import naming
from metastore.api.rights.classification import Need
from metastore.api.rights.naming import Row, rows
from metastore.api.rights.special import SPECIAL
from metastore.services.access.rights import Kind, Securable

_LONGEST_TEXT = 200
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


def _of_row(need: Need, row: Row) -> Iterable[Securable]:
    if need.action is None:
        return SPECIAL[need.kind].objects(row)
    return (each for each in naming.objects(need.kind, row) if each.kind is not Kind.EVERYTHING)


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
    if (audit := HANDLERS[method].audit) is not None:
        yield from audit(arguments, value)


# -- details of single methods: `audit=` of `answers` --


def role_grant(arguments: Any, value: Any) -> Iterator[dict[str, Any]]:
    found = {"role": arguments.role_name, "grantee": _principal(arguments.principal_name, arguments.principal_type)}
    yield found | ({"grant_option": bool(arguments.grant_option)} if _has(arguments, "grant_option") else {})


def requested_role_grant(arguments: Any, value: Any) -> Iterator[dict[str, Any]]:
    request = arguments.request
    if request is not None:
        grantee = _principal(request.principalName, request.principalType)
        found = {"role": request.roleName, "grantee": grantee, "grant_option": bool(request.grantOption)}
        yield found | _action(request)


def job(arguments: Any, value: Any) -> Iterator[dict[str, Any]]:
    yield {"job": arguments.request.job if _has(arguments, "request") else arguments.job}


def location(arguments: Any, value: Any) -> Iterator[dict[str, Any]]:
    yield {"location": arguments.location}


def imported(arguments: Any, value: Any) -> Iterator[dict[str, Any]]:
    """What an import brings, named as far as its lists do, and whose privileges."""
    request = arguments.request
    for each in (request.catalogs or ())[:_MOST_OBJECTS]:
        yield {"kind": "catalog", "object": each.name}
    for each in (request.databases or ())[:_MOST_OBJECTS]:
        yield {"kind": "database", "object": each.name}
    for each in (request.functions or ())[:_MOST_OBJECTS]:
        yield {"kind": "function", "object": f"{each.dbName}.{each.functionName}"}
    for each in (request.tables or ())[:_MOST_OBJECTS]:
        yield {"kind": "table", "object": f"{each.dbName}.{each.tableName}"}
    of_partitions = {(each.dbName, each.tableName) for each in request.partitions or ()}
    for database, table in sorted(of_partitions, key=str)[:_MOST_OBJECTS]:
        yield {"kind": "partitions", "object": f"{database}.{table}"}
    for each in (request.roles or ())[:_MOST_OBJECTS]:
        yield {"kind": "role", "object": each.roleName}
    for each in (request.members or ())[:_MOST_OBJECTS]:
        yield {"role": each.roleName, "grantee": _principal(each.principalName, each.principalType)}
    for each in (request.grants or ())[:_MOST_OBJECTS]:
        info = each.grantInfo
        yield {
            "privilege": info and info.privilege,
            "object": _object(each.hiveObject),
            "grantee": _principal(each.principalName, each.principalType),
        }


def issued_tokens(arguments: Any, value: Any) -> Iterator[dict[str, Any]]:
    """The tokens that the answer or the request names, each with their owner."""
    request = arguments.request
    ids = (value if isinstance(value, list) else getattr(request, "tokens", None)) or ()
    of = {"everybody": True} if request.everybody else {"owner": request.owner}
    for each in ids or (None,):
        yield ({} if each is None else {"token": each}) | of


def new_token(arguments: Any, value: Any) -> Iterator[dict[str, Any]]:
    issued = _of_text(value if isinstance(value, str) else "")
    yield issued or {"owner": arguments.token_owner, "renewer": arguments.renewer_kerberos_principal_name}


def token(arguments: Any, value: Any) -> Iterator[dict[str, Any]]:
    if found := _of_text(arguments.token_str_form or ""):
        yield found


def stored_token(arguments: Any, value: Any) -> Iterator[dict[str, Any]]:
    """Another service's token, which is kept here."""
    yield {"stored_token": (arguments.token_identifier or "")[:_LONGEST_TEXT]}


def master_key(arguments: Any, value: Any) -> Iterator[dict[str, Any]]:
    yield {"key": arguments.seq_number if _has(arguments, "seq_number") else arguments.key_seq}


# -- their parts --


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
