"""Calls of every method that names objects, made from the declared rights and the structs of the arguments."""

import copy
from collections.abc import Iterator
from typing import Any, NamedTuple

from thrift.Thrift import TType

from lake.protocol.hive import HiveObjectPrivilege, HiveObjectRef, HiveObjectType, PrincipalType, PrivilegeGrantInfo
from lake.protocol.lake import TableReference
from lake.protocol.services import METHODS
from lake.protocol.struct import Struct
from metastore.api.methods import HANDLERS
from metastore.api.rights.classification import Path, Rule
from metastore.api.rights.special import SPECIAL, referenced

NOT_CALLED = {"shutdown", "set_ugi", "reinitialize"}
"""They end the server or the test's identity."""

# What the other fields get, wherever a struct has one of that name.
_USUAL: dict[str, Any] = {
    **{key: ["1"] for key in ("part_vals", "partVals", "values", "partitionVals", "partValues")},
    **dict.fromkeys(("part_name", "partName", "partitionname"), "dt=1"),
    **{key: ["dt=1"] for key in ("names", "partNames", "partitionnames")},
    **{key: ["id"] for key in ("colNames", "col_names")},
    **dict.fromkeys(("col_name", "colName", "columnName"), "id"),
    **dict.fromkeys(("maxParts", "max_parts", "max_tables", "max_indexes"), -1),
    **dict.fromkeys(("pattern", "tbl_patterns", "tableNamePattern", "db_patterns"), "*"),
    "engine": "hive",
    "maxEvents": 1000,
    "limit": 1000,
    "timestamp": "20260101000000000",
    "type": 1,
    "level": 2,
    "applyDistinct": True,
    "fieldList": None,
    "tblNames": None,
    "tablesPattern": None,
    "privilege": "SELECT",
    "requestType": 1,
    "principalName": "nobody",
    "principalType": PrincipalType.USER,
    "nameSpace": "x",
    "actions": None,
    "columns": None,
    "properties": None,
}


class Name(NamedTuple):
    """How a call names its table. `catalog`: where there is a field for it."""

    database: str
    table: str
    catalog: str | None = None


class Made(NamedTuple):
    """A call: `method` with `arguments`."""

    method: str
    arguments: Struct


def ways(database: str, table: str) -> dict[str, Name]:
    """The ways to name a table."""
    return {
        "plain": Name(database, table),
        "decorated": Name(database, f"{table}@includeuncommit"),
        "with the catalog before": Name(f"@hive#{database}", table),
        "with the catalog beside": Name(database, table, "hive"),
        "in capitals": Name(database.upper(), table.upper()),
    }


def named_methods() -> list[str]:
    """The methods whose needs name objects."""
    return sorted(
        name
        for name, handler in HANDLERS.items()
        if name not in NOT_CALLED and any(need.paths for need in handler.rule.needs)
    )


def made(method: str, name: Name) -> Made:
    """A call of a method in which every argument that names an object names this one."""
    rule = HANDLERS[method].rule
    arguments = METHODS[method].args()
    for entry in METHODS[method].args_spec:
        if entry is not None:
            setattr(arguments, entry[2], _filled(entry[1], entry[3], entry[2], 4))
    for kind, position, path, label in _named(rule):
        _put(arguments, path, _value(kind, position, label, name))
    for request in (arguments, getattr(arguments, "req", None)):
        for field in ("tbl_names", "tblNames"):
            if hasattr(request, field):
                setattr(request, field, [name.table])
        if hasattr(request, "tablesPattern") and name.table == "*":
            request.tblNames, request.tablesPattern = None, "*"
    return Made(method, arguments)


def _named(rule: Rule) -> Iterator[tuple[str, int, Path, str]]:
    for need in rule.needs:
        for position, path in enumerate(need.paths):
            yield need.kind, position, path, ""
        for label, path in need.named.items():
            if label == "cat":
                yield need.kind, -1, path, label


_REFERENCES = {"lake", *(kind for kind, each in SPECIAL.items() if each.objects is referenced)}


def _value(kind: str, position: int, label: str, name: Name) -> Any:
    if label == "cat":
        return name.catalog
    if kind in _REFERENCES:
        return TableReference(catalog=name.catalog, database=name.database, table=name.table)
    if kind in ("ref", "refreshed_grants"):
        return HiveObjectRef(HiveObjectType.TABLE, name.database, name.table, catName=name.catalog)
    if kind == "grants":
        info = PrivilegeGrantInfo("SELECT", 0, "nobody", PrincipalType.USER, False)
        ref = HiveObjectRef(HiveObjectType.TABLE, name.database, name.table, catName=name.catalog)
        return HiveObjectPrivilege(ref, "nobody", PrincipalType.USER, info)
    if kind == "locks":
        return _LOCK
    if kind == "full":
        return f"{name.database}.{name.table}"
    if kind == "role":
        return "admin"
    if kind == "principal":
        return [None, PrincipalType.USER][position]
    if kind == "catalog":
        return "hive"
    return (name.database, name.table)[position]


_LOCK = object()


def _put(arguments: Any, path: Path, value: Any) -> None:
    if value is _LOCK:
        return
    if path.within is not None:
        items = _at(arguments, path.within)
        if not path.names:
            _put_at(arguments, path.within, type(items or [])([value]))
            return
        for item in items or ():
            _put_at(item, path.names, value)
    else:
        _put_at(arguments, path.names, value)


def _put_at(value: Any, names: tuple[str, ...], new: Any) -> None:
    target = _at(value, names[:-1])
    if target is not None:
        setattr(target, names[-1], new)


def _at(value: Any, names: tuple[str, ...]) -> Any:
    for name in names:
        value = value and getattr(value, name)
    return value


def _filled(ttype: int, argument: Any, name: str, depth: int) -> Any:
    """A value of a field that suits its name; None where nothing need be given."""
    if name in _USUAL:
        usual = _USUAL[name]
        return copy.copy(usual) if _suits(usual, ttype, argument) else None
    if ttype == TType.STRUCT:
        if depth == 0:
            return None
        value = argument[0]()
        required = set(argument[0].required)
        for entry in argument[0].thrift_spec:
            if entry is not None:
                found = _filled(entry[1], entry[3], entry[2], depth - 1)
                if found is None and entry[2] in required:
                    found = _required(entry[1], entry[3])
                setattr(value, entry[2], found)
        return value
    if ttype == TType.LIST and depth > 1 and argument[0] == TType.STRUCT:
        return [_filled(argument[0], argument[1], "", depth - 1)]
    if ttype in (TType.LIST, TType.SET):
        return [] if ttype == TType.LIST else set()
    return None


def _suits(usual: Any, ttype: int, argument: Any) -> bool:
    if isinstance(usual, bool):
        return ttype == TType.BOOL
    if isinstance(usual, int):
        return ttype in (TType.I16, TType.I32, TType.I64)
    if isinstance(usual, list):
        return ttype == TType.LIST and argument[0] == TType.STRING
    return isinstance(usual, str) and ttype == TType.STRING and argument == "UTF8"


def _required(ttype: int, argument: Any) -> Any:
    if ttype == TType.STRUCT:
        value = argument[0]()
        for entry in argument[0].thrift_spec:
            if entry is not None and entry[2] in argument[0].required:
                setattr(value, entry[2], _required(entry[1], entry[3]))
        return value
    return {
        TType.STRING: "x",
        TType.BOOL: False,
        TType.LIST: [],
        TType.SET: set(),
        TType.MAP: {},
    }.get(ttype, 1)
