"""Decides by Hive's grants and roles, as the metastore keeps them, and by owners.

The model is that of Hive's SQL standards based authorisation, with Hive's older privileges beside it. A privilege on a
database covers its tables, one on everything covers all. Owners may do everything with what they own; the owner of a
database also with its tables. Only the role `public` is no such owner: Hive makes it that of the database `default`,
which everybody sees for that reason.
"""

import functools
import operator
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from lake.protocol.codec import binary
from lake.protocol.hive import Database as HiveDatabase
from lake.protocol.hive import PrincipalType, Table
from lake.protocol.privileges import ALL, Privilege, privilege_of
from lake.protocol.struct import Struct
from metastore.services.access.caller import Caller
from metastore.services.access.kept_facts import KeptFacts, Proof
from metastore.services.access.rights import ANONYMOUS, COVERING, Action, Decision, Kind, Securable
from metastore.services.access.roles import ADMIN, PUBLIC
from metastore.store import Database
from metastore.store.access import rights as store
from metastore.store.access.privileges import Principal
from metastore.store.access.rights import Granted, Owned
from metastore.store.engine.database import Transaction
from metastore.store.engine.names import DatabaseName, TableName

T = TypeVar("T")
Part = tuple[tuple[str, ...] | None, str | None]
"""A partition's values and a column: where a privilege is on less than a table."""

_WHOLE: Part = (None, None)
_USER, _ROLE, _GROUP = PrincipalType.USER, PrincipalType.ROLE, PrincipalType.GROUP


class _PrivilegeSet(NamedTuple):
    """Privileges, and those of them that may be passed on, as the numbers of `Privilege`."""

    privileges: int = 0
    grantable: int = 0

    def plus(self, other: "_PrivilegeSet") -> "_PrivilegeSet":
        return _PrivilegeSet(self.privileges | other.privileges, self.grantable | other.grantable)

    def covering(self) -> "_PrivilegeSet":
        return _PrivilegeSet(self.privileges & _COVERING, self.grantable & _COVERING)


_ALL, _COVERING = int(ALL), int(COVERING)
_OWNER = _PrivilegeSet(_ALL, _ALL)
_NOTHING = _PrivilegeSet()
_Grants = Mapping[Principal, Mapping[Part, _PrivilegeSet]]


class _Facts(NamedTuple):
    """What is kept of one object: its owner, who has which privileges on it, and what that means for some callers."""

    owner: Principal | None
    grants: _Grants
    held: "dict[Hashable, _PrivilegeSet]"

    def known(self, key: Hashable, find: Callable[[], "_PrivilegeSet"]) -> "_PrivilegeSet":
        """What was found before for a key."""
        held = self.held.get(key)
        if held is None:
            if len(self.held) >= _MAX_HELD:
                self.held.clear()
            held = self.held[key] = find()
        return held


_MAX_HELD = 100
"""Callers for whom it is kept what they may do with one object."""


class _Everywhere(NamedTuple):
    """Roles, and the privileges on everything. `roles`: by member; `passable`: those that it may pass on."""

    roles: Mapping[Principal, frozenset[str]]
    passable: Mapping[Principal, frozenset[str]]
    grants: _Grants
    acting: "dict[_Identity, _Acting]"


_Identity = tuple[str | None, tuple[str, ...]]
"""A user and groups."""

_MAX_ALLOWED = 10_000
"""Allowed calls of which it is kept what that followed from."""

_MAX_ACTING = 10_000
"""Callers of whom the roles are kept."""


class _Acting(NamedTuple):
    """A caller with all that it acts as. `held`: on everything."""

    principals: frozenset[Principal]
    roles: frozenset[str]
    held: _PrivilegeSet


class _Allowed(NamedTuple):
    """What was allowed, and why that still holds."""

    decision: Decision
    proofs: tuple[Proof, ...]


_NOTHING_WANTED = Decision(True, "needs no right")


Get = Callable[[Hashable, Callable[[Transaction], Any]], Any]
"""Returns a fact of that key, reading it by the function if it isn't known."""


class SqlStandard:
    """An `Authorizer` by grants, roles and owners."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._facts = KeptFacts(database)
        self._allowed: dict[Hashable, _Allowed] = {}  # for the event loop

    def decide(self, caller: Caller, action: Action, object: Securable) -> Decision:
        """See `Authorizer`. Raises DatabaseUnavailable."""
        self._facts.refresh()
        return self._decide(self._facts.get, caller, action, object)

    def decide_all(self, caller: Caller, wanted: Sequence[tuple[Action, Securable]]) -> list[Decision]:
        """As `decide`, for several at one time. Raises DatabaseUnavailable."""
        self._facts.refresh()
        return [self._decide(self._facts.get, caller, action, object) for action, object in wanted]

    def allowed_now(
        self, caller: Caller, wanted: tuple[tuple[Action, Securable], ...], holds: Callable[[Proof], bool]
    ) -> Decision | None:
        """Whether all of it is allowed, by what is in memory alone; None if that doesn't say. For the event loop.

        What was allowed is, as long as all facts hold that it followed from. The reason is that of the first.
        """
        key = caller.user, caller.groups, wanted
        known = self._allowed.get(key)
        if known is not None and all(map(holds, known.proofs)):
            return known.decision
        proofs: list[Proof] = []

        def get(key: Hashable, _: Callable[[Transaction], T]) -> T:
            value, proof = self._facts.peek(key, holds)
            proofs.append(proof)
            return value  # type: ignore[no-any-return]

        if any(action in _ANYWHERE for action, _ in wanted):
            return None
        decisions: list[Decision] = []
        try:
            for action, object in wanted:
                decisions.append(self._decide(get, caller, action, object))
                if not decisions[-1].allowed:
                    return decisions[-1]
        except LookupError:
            return None
        first = decisions[0] if decisions else _NOTHING_WANTED
        if len(self._allowed) >= _MAX_ALLOWED:
            self._allowed.clear()
        self._allowed[key] = _Allowed(first, tuple(proofs))
        return first

    def visible(self, caller: Caller, objects: Sequence[Securable], action: Action = Action.SEE) -> list[bool]:
        """See `Authorizer`. Raises DatabaseUnavailable."""
        self._facts.refresh()
        everywhere = self._everywhere(self._facts.get)
        acting = _acting(caller, everywhere)
        if ADMIN in acting.roles:
            return [True] * len(objects)
        held = acting.held.privileges & action.mask
        of_table, of_database = Kind.TABLE, Kind.DATABASE
        entered: frozenset[DatabaseName] = frozenset()
        if action is Action.SEE and not held:
            entered = self._entered(acting, [each.of_database for each in objects if each[0] is of_database])
        sees_tables = bool(held & _COVERING)
        seen: dict[tuple[str, ...], frozenset[str] | None] = {}
        place: tuple[str, ...] = ()
        tables: frozenset[str] | None = None
        visible: list[bool] = []
        for each in objects:
            if each[0] is not of_table:
                visible.append(self._is_visible(acting, action, each, entered))
                continue
            if sees_tables:
                visible.append(True)
                continue
            if each[1:3] != place:  # lists mostly go through one database after another
                place = each[1:3]
                if place not in seen:
                    seen[place] = self._seen_tables(acting, action, DatabaseName(*place))
                tables = seen[place]
            visible.append(tables is None or each[3] in tables)
        return visible

    def held_anywhere(self, caller: Caller) -> tuple[Privilege, bool]:
        """The privileges that a caller has on any object, and whether it owns something. Raises DatabaseUnavailable."""
        self._facts.refresh()
        everywhere = self._everywhere(self._facts.get)
        acting = _acting(caller, everywhere)
        with self._database.read() as tx:
            names, owns = store.held_anywhere(tx, acting.principals, _owners(acting))
        return functools.reduce(operator.or_, map(privilege_of, names), Privilege(0)), owns

    def principals(self, caller: Caller) -> frozenset[Principal]:
        """The user, the groups and the roles as which a caller acts. Raises DatabaseUnavailable."""
        self._facts.refresh()
        return _acting(caller, self._everywhere(self._facts.get)).principals

    def roles(self, caller: Caller) -> frozenset[str]:
        """See `Authorizer`. Raises DatabaseUnavailable."""
        return frozenset(each.name for each in self.principals(caller) if each.type == _ROLE)

    def trouble(self) -> None:
        """See `Authorizer`: grants are in the database."""

    # -- one object -------------------------------------------------------------------------------------------

    def _decide(self, get: Get, caller: Caller, action: Action, object: Securable) -> Decision:
        everywhere = self._everywhere(get)
        acting = _acting(caller, everywhere)
        if ADMIN in acting.roles:
            return Decision(True, "role admin")
        if action is Action.ADMIN:
            return Decision(False, "only administrators may")
        if object.kind is Kind.ROLE:
            return _decide_role(acting, everywhere, action, object)
        if action in _ANYWHERE:
            return self._decide_anywhere(caller, action)
        held = self._held_on(get, acting, action, object)
        if _allows(held, action, object):
            return Decision(True, f"{_named(held.privileges & (action.mask or _ALL))} on {object}")
        if action is Action.SEE and object.kind is Kind.DATABASE and self._enters(get, acting, object.of_database):
            return Decision(True, f"something in {object}")
        if action is Action.SEE and object.kind is Kind.CATALOG:
            return Decision(True, "catalogs are no secret")
        return Decision(False, f"no {action.privilege} on {object} for {caller.user or ANONYMOUS}")

    def _held_on(self, get: Get, acting: _Acting, action: Action, object: Securable) -> _PrivilegeSet:
        """What is held on an object, also by what covers it."""
        held = acting.held
        if object.kind in (Kind.DATABASE, Kind.TABLE):
            held = held.plus(self._held_on_database(get, acting, object.of_database))
        if object.kind is Kind.TABLE:
            held = held.covering()
            if action is Action.GRANT or not held.privileges & action.mask:
                held = held.plus(self._held_on_table(get, acting, object, whole=action is not Action.SEE))
        return held

    def _decide_anywhere(self, caller: Caller, action: Action) -> Decision:
        """Whether the caller has a privilege on anything at all that allows the action."""
        held, owns = self.held_anywhere(caller)
        if held & action.allowed_by or owns:
            return Decision(True, "a privilege on something")
        return Decision(False, f"no {action.privilege} on anything for {caller.user or ANONYMOUS}")

    def _held_on_database(self, get: Get, acting: _Acting, name: DatabaseName) -> _PrivilegeSet:
        facts = self._database_facts(get, name)
        if facts is None:
            return _NOTHING
        if facts.owner in acting.principals and facts.owner != _PUBLIC:
            return _OWNER
        return facts.known(acting.principals, lambda: _held(facts.grants, acting.principals))

    def _held_on_table(self, get: Get, acting: _Acting, object: Securable, *, whole: bool) -> _PrivilegeSet:
        """What is held on a table. `whole`: not what is held on other partitions or columns than the object's."""
        facts = self._table_facts(get, object.of_table)
        if facts is None:
            return _NOTHING
        if facts.owner in acting.principals:
            return _OWNER
        part = object.partition, object.column

        def find() -> _PrivilegeSet:
            parts = {_WHOLE, (part[0], None), (None, part[1]), part}
            found = _NOTHING
            for principal in facts.grants.keys() & acting.principals:
                for on, some in facts.grants[principal].items():
                    if not whole or on in parts:
                        found = found.plus(some)
            return found

        return facts.known((acting.principals, whole, part), find)

    def _enters(self, get: Get, acting: _Acting, name: DatabaseName) -> bool:
        """Whether somebody may know of a database because of something in it, or since it is everybody's."""
        facts = self._database_facts(get, name)
        if facts is not None and facts.owner == _PUBLIC:
            return True
        # Also for one that isn't there: the time of an answer must not tell that from one that is hidden.
        return bool(get(*self._seen_key(acting, name))) and facts is not None

    # -- many objects -----------------------------------------------------------------------------------------

    def _seen_tables(self, acting: _Acting, action: Action, name: DatabaseName) -> frozenset[str] | None:
        """The tables of a database on which the action is allowed; None for all of them."""
        held = self._held_on_database(self._facts.get, acting, name).covering()
        if held.privileges & action.mask:
            return None
        seen: Mapping[str, int] = self._facts.get(*self._seen_key(acting, name))
        if action is Action.SEE:
            return frozenset(seen)
        return frozenset(table for table, whole in seen.items() if whole & action.mask)

    def _seen_key(
        self, acting: _Acting, name: DatabaseName
    ) -> tuple[Hashable, Callable[[Transaction], dict[str, int]]]:
        """The tables of a database that somebody sees, with what is held on all of each, for `KeptFacts.get`.

        Who holds something on a partition or column alone sees the table, too.
        """

        def read(tx: Transaction) -> dict[str, int]:
            seen: dict[str, int] = {}
            for owned in store.owned_tables(tx, name, _owners(acting)):
                if _owner(owned, Table) in acting.principals:
                    seen[owned.name] = _ALL
            for grant in store.granted_tables(tx, name, acting.principals):
                if grant.table is not None and (privilege := _number_of(grant.privilege)):
                    is_whole = (grant.partition_values, grant.column) == _WHOLE
                    seen[grant.table] = seen.get(grant.table, 0) | (privilege if is_whole else 0)
            return seen

        return ("seen", name, acting.principals), read

    def _entered(self, acting: _Acting, names: Sequence[DatabaseName]) -> frozenset[DatabaseName]:
        """Those of the databases in which somebody has a privilege, or owns something."""
        if not names:
            return frozenset()
        with self._database.read() as tx:
            likely = store.databases_with_some(tx, names, _owners(acting), acting.principals)
        # A role may have the name of a user: what is owned is looked at again, with the owner's type.
        return frozenset(name for name in likely if self._facts.get(*self._seen_key(acting, name)))

    def _is_visible(
        self,
        acting: _Acting,
        action: Action,
        object: Securable,
        entered: frozenset[DatabaseName],
    ) -> bool:
        held = acting.held.privileges & action.mask
        if object.kind is Kind.DATABASE:
            if held or self._held_on_database(self._facts.get, acting, object.of_database).privileges & action.mask:
                return True
            facts = self._database_facts(self._facts.get, object.of_database)
            is_public = facts is not None and facts.owner == _PUBLIC
            return action is Action.SEE and (is_public or object.of_database in entered)
        if object.kind is Kind.ROLE:
            return action is Action.SEE and object.database in acting.roles
        return bool(held) or (object.kind is Kind.CATALOG and action is Action.SEE)

    # -- facts ------------------------------------------------------------------------------------------------

    def _everywhere(self, get: Get) -> _Everywhere:
        found: _Everywhere = get("everywhere", _read_everywhere)
        return found

    def _database_facts(self, get: Get, name: DatabaseName) -> _Facts | None:
        def read(tx: Transaction) -> _Facts | None:
            found = store.database_access(tx, name)
            return found and _Facts(_owner(found.owned, HiveDatabase), _by_principal(found.grants), {})

        facts: _Facts | None = get(name, read)
        return facts

    def _table_facts(self, get: Get, name: TableName) -> _Facts | None:
        def read(tx: Transaction) -> _Facts | None:
            found = store.table_access(tx, name)
            return found and _Facts(_owner(found.owned, Table), _by_principal(found.grants), {})

        facts: _Facts | None = get(name, read)
        return facts


_PUBLIC = Principal(_ROLE, PUBLIC)
_ANYWHERE = (Action.TAKE_PART, Action.GROUPS)  # a privilege on any object is enough


def _decide_role(acting: _Acting, everywhere: _Everywhere, action: Action, object: Securable) -> Decision:
    """Members may see a role; who has it with the right to pass it on may grant it."""
    role = object.database
    if action is Action.SEE and role in acting.roles:
        return Decision(True, f"member of {role}")
    if action is Action.GRANT:
        for principal in acting.principals:
            if role in everywhere.passable.get(principal, ()):
                return Decision(True, f"{role} with its grant option")
    return Decision(False, f"no right to role {role}")


def _allows(held: _PrivilegeSet, action: Action, object: Securable) -> bool:
    if action is not Action.GRANT:
        return bool(held.privileges & action.mask)
    wanted = 0
    for name in object.granting.split(","):
        wanted |= _number_of(name) or _ALL  # who gives what has no meaning here needs everything
    return held.grantable & wanted == wanted


def _acting(caller: Caller, everywhere: _Everywhere) -> _Acting:
    """A caller with its groups and all its roles, also by way of other roles."""
    identity = caller.user, caller.groups
    known = everywhere.acting.get(identity)
    if known is None:
        if len(everywhere.acting) >= _MAX_ACTING:
            everywhere.acting.clear()
        known = everywhere.acting[identity] = _reached(caller, everywhere)
    return known


def _reached(caller: Caller, everywhere: _Everywhere) -> _Acting:
    reached = {_PUBLIC, *(Principal(_GROUP, name) for name in caller.groups)}
    if caller.user is not None:
        reached.add(Principal(_USER, caller.user))
    waiting = list(reached)
    while waiting:
        for role in everywhere.roles.get(waiting.pop(), ()):
            principal = Principal(_ROLE, role)
            if principal not in reached:
                reached.add(principal)
                waiting.append(principal)
    principals = frozenset(reached)
    roles = frozenset(each.name for each in reached if each.type == _ROLE)
    return _Acting(principals, roles, _held(everywhere.grants, principals))


def _owners(acting: _Acting) -> list[str]:
    return [each.name for each in acting.principals if each != _PUBLIC]


def _held(grants: _Grants, principals: frozenset[Principal]) -> _PrivilegeSet:
    held = _NOTHING
    for principal in grants.keys() & principals:
        held = held.plus(grants[principal].get(_WHOLE, _NOTHING))
    return held


def _owner(owned: Owned, struct: type[Struct]) -> Principal | None:
    """Who owns an object: a user unless its struct says otherwise."""
    if owned.owner is None:
        return None
    kind = getattr(binary.decode(struct, owned.body), "ownerType", None)
    return Principal(kind or _USER, owned.owner)


def _by_principal(grants: Iterable[Granted]) -> dict[Principal, dict[Part, _PrivilegeSet]]:
    found: dict[Principal, dict[Part, _PrivilegeSet]] = {}
    for grant in grants:
        privilege = _number_of(grant.privilege)
        held = _PrivilegeSet(privilege, privilege if grant.grant_option else 0)
        parts = found.setdefault(grant.principal, {})
        part = grant.partition_values, grant.column
        parts[part] = parts.get(part, _NOTHING).plus(held)
    return found


def _read_everywhere(tx: Transaction) -> _Everywhere:
    members: dict[Principal, set[str]] = {}
    passable: dict[Principal, set[str]] = {}
    for principal, role, option in store.memberships(tx):
        members.setdefault(principal, set()).add(role)
        if option:
            passable.setdefault(principal, set()).add(role)
    return _Everywhere(_frozen(members), _frozen(passable), _by_principal(store.grants_on_everything(tx)), {})


def _frozen(sets: Mapping[Principal, set[str]]) -> dict[Principal, frozenset[str]]:
    return {principal: frozenset(names) for principal, names in sets.items()}


@functools.lru_cache(maxsize=1_000)
def _number_of(name: str) -> int:
    return int(privilege_of(name[:_LONGEST]))


_LONGEST = 64  # of a privilege's name: longer ones have no meaning


@functools.lru_cache(maxsize=1_000)
def _named(privileges: int) -> str:
    return "ALL" if privileges == _ALL else "|".join(str(each.name) for each in Privilege if each & privileges)
