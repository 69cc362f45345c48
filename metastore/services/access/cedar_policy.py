"""Decides by policies of the operator's in Cedar, in the server's own process.

What no policy permits is refused, and what one forbids as well. A policy that fails refuses, too: Cedar itself would
leave it out, and a `forbid` that is left out allows.
"""

import contextlib
import functools
import json
from collections.abc import Hashable, Mapping, Sequence
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import structlog

from lake.protocol.codec import binary
from lake.protocol.errors import UsageError
from lake.protocol.hive import Database as HiveDatabase
from lake.protocol.hive import PrincipalType, Table
from metastore.services.access.caller import Caller
from metastore.services.access.policy_files import GROUPS_OF_ACTIONS, Policies, PolicyFiles
from metastore.services.access.rights import ANONYMOUS, Action, Decision, Kind, Securable
from metastore.services.access.roles import PUBLIC
from metastore.services.access.sql_standard import SqlStandard
from metastore.store import Database
from metastore.store.access import attributes as store
from metastore.store.engine.names import DatabaseName
from metastore.store.engine.read_set import recording

if TYPE_CHECKING:
    import cedarpy

_AT_ONCE = 2_000  # objects of a list that are decided on in one call of the library
_OWNER_TYPES: dict[int, str] = {PrincipalType.ROLE: "Role", PrincipalType.GROUP: "Group"}

log = structlog.get_logger(__name__)

Json = dict[str, Any]


class CedarPolicy:
    """An `Authorizer` by policies in files. Users' roles are those that the metastore keeps."""

    def __init__(self, database: Database, path: Path) -> None:
        """`path`: a file, or a directory with files `*.cedar`. Raises UsageError for policies that can't be used."""
        self._database = database
        self._files = PolicyFiles(path)
        self._roles = SqlStandard(database)
        try:
            import cedarpy
        except ImportError as error:  # `PolicyFiles` says it better
            raise UsageError(str(error)) from None
        self._cedar = cedarpy
        self._actions = cedarpy.Entities.from_json_str(json.dumps(_actions()))

    def decide(self, caller: Caller, action: Action, object: Securable) -> Decision:
        """See `Authorizer`. Raises DatabaseUnavailable."""
        return self.decide_all(caller, [(action, object)])[0]

    def decide_all(self, caller: Caller, wanted: Sequence[tuple[Action, Securable]]) -> list[Decision]:
        """See `Authorizer`. Raises DatabaseUnavailable."""
        policies = self._files.current()
        return self._decide_all(policies, caller, wanted, self._attributes(policies, [object for _, object in wanted]))

    def visible(self, caller: Caller, objects: Sequence[Securable], action: Action = Action.SEE) -> list[bool]:
        """See `Authorizer`. Raises DatabaseUnavailable.

        Of tables that no policy can tell apart one is decided on.
        """
        policies = self._files.current()
        attributes = self._attributes(policies, objects)
        alike = [_alike(policies, object, attributes) for object in objects]
        asked = dict(zip(alike, objects, strict=True))
        decisions = self._decide_all(policies, caller, [(action, object) for object in asked.values()], attributes)
        allowed = {key: each.allowed for key, each in zip(asked, decisions, strict=True)}
        return [allowed[key] for key in alike]

    def roles(self, caller: Caller) -> frozenset[str]:
        """See `Authorizer`. Raises DatabaseUnavailable."""
        return self._roles.roles(caller)

    def trouble(self) -> str | None:
        """See `Authorizer`: changed files that can't be used."""
        self._files.current()
        return None if self._files.broken is None else str(self._files.broken)

    def _decide_all(
        self,
        policies: Policies,
        caller: Caller,
        wanted: Sequence[tuple[Action, Securable]],
        attributes: Mapping[Securable, Json],
    ) -> list[Decision]:
        """Decisions in their order. What the same policies decided about the same before is remembered."""
        acting = self._acting(caller, policies)
        policies = policies.about([acting[0]["uid"], *acting[0]["parents"]])
        who = json.dumps([acting, caller.mechanism, caller.real_user, _host(caller)])
        keys = [(who, action, object, _about(object, attributes)) for action, object in wanted]
        decided = {key: policies.decided[key] for key in keys if key in policies.decided}
        left = [(key, each) for key, each in zip(keys, wanted, strict=True) if key not in decided]
        for start in range(0, len(left), _AT_ONCE):
            some = left[start : start + _AT_ONCE]
            try:
                found = self._ask(policies, caller, acting, [each for _, each in some], attributes)
            except ValueError as error:  # of the library, about what it was given: nothing of it is allowed
                log.error("the policies can't be asked", error=str(error))
                return [Decision(False, "the policies can't be asked about this")] * len(wanted)
            for (key, each), result in zip(some, found, strict=True):
                decided[key] = _decision(result, policies, caller, *each)
                if not result.diagnostics.errors:  # what failed is said each time
                    policies.remember(key, decided[key])
        return [decided[key] for key in keys]

    def _ask(
        self,
        policies: Policies,
        caller: Caller,
        acting: list[Json],
        wanted: Sequence[tuple[Action, Securable]],
        attributes: Mapping[Securable, Json],
    ) -> "list[cedarpy.AuthzResult]":
        entities = {(each["uid"]["type"], each["uid"]["id"]): each for each in acting}
        for _, object in wanted:
            _add_entities(object, attributes, entities)
        contexts = {object[5:]: _context(caller, object) for _, object in wanted}
        known = self._actions.with_added_json_str(json.dumps(list(entities.values())))
        principal = acting[0]["uid"]
        requests: list[Json] = [
            {
                "principal": principal,
                "action": {"type": "Action", "id": action.name},
                "resource": _uid(object),
                "context": contexts[object[5:]],  # by column and what is granted
            }
            for action, object in wanted
        ]
        if len(requests) == 1:
            return [self._cedar.is_authorized(requests[0], policies.parsed, known)]
        found: list[cedarpy.AuthzResult] = self._cedar.is_authorized_batch(requests, policies.parsed, known)
        return found

    def _acting(self, caller: Caller, policies: Policies) -> list[Json]:
        """The caller, and its groups and roles as parents."""
        roles = self._roles.roles(caller) if "Role" in policies.words or "owner" in policies.words else ()
        parents = [_named("Group", name) for name in caller.groups] + [_named("Role", name) for name in sorted(roles)]
        uid = _named("Anonymous", ANONYMOUS) if caller.user is None else _named("User", caller.user)
        return [{"uid": uid, "attrs": {"name": caller.user or ""}, "parents": parents}]

    def _attributes(self, policies: Policies, objects: Sequence[Securable]) -> Mapping[Securable, Json]:
        """Owners of databases and tables, and those of their parameters that policies name; nothing if none looks."""
        if not {"owner", "parameters"} & policies.words:
            return {}
        tables: dict[DatabaseName, set[str]] = {}
        for each in objects:
            if each.kind in (Kind.DATABASE, Kind.TABLE):
                tables.setdefault(each.of_database, set())
            if each.kind is Kind.TABLE:
                tables[each.of_database].add(each.table)
        found: dict[Securable, Json] = {}
        with recording(), self._database.read() as tx:  # recorded apart: a reply doesn't depend on it
            for name, wanted in tables.items():
                if (row := store.of_database(tx, name)) is not None:
                    about = binary.decode(HiveDatabase, row.body)
                    owner = _owner(row.owner, about.ownerType)
                    found[Securable(Kind.DATABASE, *name)] = _looked_at(policies, owner, about.parameters)
                for table in store.of_tables(tx, name, wanted):
                    owner = _owner(table.owner, binary.decode(Table, table.body).ownerType)
                    key = Securable(Kind.TABLE, *name, table.name)
                    found[key] = _looked_at(policies, owner, table.parameters)
        return found


class PolicyOfNames(CedarPolicy):
    """An `Authorizer` by policies for a server that knows nothing of objects but their names, and no roles.

    Policies that look at owners, parameters or roles can't be decided by: one that forbids would not apply.
    """

    def __init__(self, path: Path) -> None:
        """As `CedarPolicy`. Raises UsageError also for policies that look at more than names."""
        super().__init__(cast(Database, None), path)  # nothing is read from it
        if (reason := self._more(self._files.current())) is not None:
            raise UsageError(reason)

    def roles(self, caller: Caller) -> frozenset[str]:
        """See `Authorizer`: none."""
        return frozenset()

    def trouble(self) -> str | None:
        """See `Authorizer`."""
        return super().trouble() or self._more(self._files.current())

    def _decide_all(
        self,
        policies: Policies,
        caller: Caller,
        wanted: Sequence[tuple[Action, Securable]],
        attributes: Mapping[Securable, Json],
    ) -> list[Decision]:
        if (reason := self._more(policies)) is not None:
            return [Decision(False, reason)] * len(wanted)
        return super()._decide_all(policies, caller, wanted, attributes)

    def _attributes(self, policies: Policies, objects: Sequence[Securable]) -> Mapping[Securable, Json]:
        return {}

    @staticmethod
    def _more(policies: Policies) -> str | None:
        """Why policies can't be decided by; None if they can."""
        words = sorted({"owner", "parameters", "Role"} & policies.words)
        if not words:
            return None
        return f"the policies look at {', '.join(words)}, of which a front knows nothing: they may look at names alone"


def _alike(policies: Policies, object: Securable, attributes: Mapping[Securable, Json]) -> Hashable:
    """The same for tables of one database that no policy can tell apart, by their names or anything else."""
    if object.kind is not Kind.TABLE or object.partition is not None or policies.looks_at_names:
        return object
    if object.table in policies.names or "." in object.table or "%" in object.table:
        return object
    return (*object[:3], *object[5:], _about(object, attributes))


def _about(object: Securable, attributes: Mapping[Securable, Json]) -> str:
    """A text of what policies look at in an object."""
    return json.dumps(attributes.get(_without_parts(object)), sort_keys=True) if attributes else ""


def _decision(
    result: "cedarpy.AuthzResult", policies: Policies, caller: Caller, action: Action, object: Securable
) -> Decision:
    if errors := result.diagnostics.errors:
        log.error("a policy failed, which refuses", action=action.name, object=str(object), errors=errors)
        return Decision(False, f"a policy failed: {errors[0]}")
    places = ", ".join(policies.place(each) for each in result.diagnostics.reasons)
    if result.allowed:
        return Decision(True, f"policy {places}")
    if places:
        return Decision(False, f"forbidden by policy {places}")
    return Decision(False, f"no policy permits {action.name} on {object} for {caller.user or ANONYMOUS}")


def _actions() -> list[Json]:
    """The actions, with the groups that they are in as parents."""
    groups = [{"uid": _named("Action", name), "attrs": {}, "parents": []} for name in GROUPS_OF_ACTIONS]
    return groups + [
        {
            "uid": _named("Action", each.name),
            "attrs": {},
            "parents": [_named("Action", name) for name, actions in GROUPS_OF_ACTIONS.items() if each in actions],
        }
        for each in Action
    ]


def _add_entities(
    object: Securable, attributes: Mapping[Securable, Json], entities: dict[tuple[str, str], Json]
) -> None:
    """Adds an object and all that it is in. What isn't there has no owner and no parameters."""
    uid = _uid(object)
    key = uid["type"], uid["id"]
    if key in entities:
        return
    whole = _without_parts(object)
    parents: list[Securable] = []
    if object.partition is not None:
        parents = [whole]
    elif object.kind is Kind.TABLE:
        parents = [Securable(Kind.DATABASE, object.catalog, object.database)]
    elif object.kind is Kind.DATABASE:
        parents = [Securable(Kind.CATALOG, object.catalog)]
    elif object.kind in (Kind.CATALOG, Kind.ROLE):
        parents = [Securable(Kind.EVERYTHING)]
    about = dict(attributes.get(whole, _UNKNOWN)) | {"name": object.table or object.database or object.catalog}
    if object.partition is not None:
        about["values"] = list(object.partition)
    entities[key] = {"uid": uid, "attrs": about, "parents": [_uid(each) for each in parents]}
    for parent in parents:
        _add_entities(parent, attributes, entities)


def _without_parts(object: Securable) -> Securable:
    return object._replace(partition=None, column=None, granting="", place="")


def _named(type: str, id: str) -> Json:
    return {"type": type, "id": id}


_UNKNOWN: Json = {"owner": {"__entity": _named("Nobody", "nobody")}, "parameters": {}}


def _owner(name: str | None, kind: int | None) -> Json:
    """The owner as an entity: `principal in resource.owner` holds for the user and for members of the role or group."""
    if name is None or (name == PUBLIC and kind == PrincipalType.ROLE):  # Hive gives `default` to everybody's role
        return _named("Nobody", "nobody")
    return _named(_OWNER_TYPES.get(kind or PrincipalType.USER, "User"), name)


def _looked_at(policies: Policies, owner: Json, parameters: Mapping[str, str] | None) -> Json:
    kept = {key: value for key, value in (parameters or {}).items() if key in policies.words and isinstance(value, str)}
    for escape in ("__entity", "__extn", "__expr"):  # in Cedar's JSON these aren't names of attributes
        kept.pop(escape, None)
    return {"owner": {"__entity": owner}, "parameters": kept}


@functools.lru_cache(maxsize=10_000)
def _uid(object: Securable) -> Json:
    """The entity of an object: `Table::"hive.shop.orders"`, `Partition::"hive.shop.orders/2026-01-31/07"`."""
    if object.kind is Kind.EVERYTHING:
        return _named("Metastore", "metastore")
    if object.kind is Kind.ROLE:
        return _named("Role", object.database)
    names = [each for each in (object.catalog, object.database, object.table) if each]
    id = ".".join(_escaped(each, ".") for each in names)
    if object.partition is not None:
        return _named("Partition", "/".join([id, *(_escaped(each, "/") for each in object.partition)]))
    return _named(object.kind.value.capitalize(), id)


def _escaped(name: str, separator: str) -> str:
    """A part of a name whose separator can't be taken for that between parts."""
    return name.replace("%", "%25").replace(separator, f"%{ord(separator):02X}")


def _context(caller: Caller, object: Securable) -> Json:
    context: Json = {
        "mechanism": caller.mechanism,
        "real_user": caller.real_user or "",
        "column": object.column or "",
        "granting": [each for each in object.granting.split(",") if each],
    }
    with contextlib.suppress(ValueError):  # a probe of the server's own; a policy that asks for the address refuses
        context["peer"] = {"__extn": {"fn": "ip", "arg": str(ip_address(_host(caller)))}}
    return context


def _host(caller: Caller) -> str:
    return caller.peer.rpartition(":")[0].strip("[]").partition("%")[0]
