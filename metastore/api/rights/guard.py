"""Decides about a call before its service is entered, and filters its answer."""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NoReturn, cast

from thrift.Thrift import TApplicationException

from lake.protocol.codec import binary
from lake.protocol.errors import PERMISSION_DENIED
from lake.protocol.hive import UnknownDBException
from lake.protocol.method import Method
from lake.protocol.services import METHODS
from lake.protocol.struct import Struct
from metastore.api.methods import HANDLERS, Call, Encoded
from metastore.api.rights import changes, naming, special
from metastore.api.rights.classification import Rule, value_at
from metastore.api.rights.filters import View, filter_named, is_before_limits, shown_named
from metastore.api.rights.naming import Requirement
from metastore.api.rights.special import Asked
from metastore.api.session import Session
from metastore.services.access.caller import Caller
from metastore.services.access.control import AccessControl
from metastore.services.access.kept_facts import Proof
from metastore.services.access.rights import ANONYMOUS, Action, Decision, Kind, Securable, table
from metastore.services.access.sql_standard import SqlStandard
from metastore.store.engine.names import TableName

_NOT_FOUND = (
    "NoSuchObjectException",
    "UnknownTableException",
    "UnknownDBException",
    "InvalidObjectException",
    "InvalidOperationException",
    "MetaException",
    "MetaserverStorageException",
)
_REFUSED = ("MetaException", "InvalidOperationException", "MetaserverStorageException", "NoSuchObjectException")

_BY_ADMINISTRATOR = Decision(True, "administrator")

_CONFINED = Decision(False, "only_allowed_locations")

_MAX_NEEDS = 2_000
"""Calls of which it is remembered what they need; each has some hundred bytes, and four thousand at most."""


@dataclass(slots=True)
class Verdict:
    """What was decided about a call. `needs`: what it needs, and its caller may do; empty for administrators."""

    allowed: bool = True
    reason: str = ""
    needs: Collection[Requirement] = ()


class Guard:
    """Access control for all methods."""

    def __init__(self, control: AccessControl) -> None:
        self._control = control
        self._needs: dict[tuple[bytes, bytes, bool], tuple[Requirement, ...] | None] = {}

    def answer(
        self, call: Call, method: Method, arguments: Struct, function: Callable[[Call], Any], verdict: Verdict
    ) -> Any:
        """What a method returns to its caller, from `function`, which passes a call to its handler. Sets the verdict.

        Raises the exception for a hidden object or a refused action, and whatever `function` raises.
        """
        caller = self._control.acting(call.session.caller)
        if self._control.is_admin(caller):
            verdict.reason = _BY_ADMINISTRATOR.reason
            with self._control.making(caller):
                return function(replace(call, owner=caller.user))
        rule = HANDLERS[method.name].rule
        deciding = _Deciding(self._control, call, caller, method, verdict)
        if not deciding.by_names(rule, arguments):
            return _empty(method)
        deciding.by_values(rule, arguments)
        verdict.needs = deciding.allowed
        if rule.changes or rule.extra is None:
            with self._control.making(caller):
                return function(replace(call, owner=caller.user, shown=deciding.sees_tables))
        view = View(caller, self._control.authorizer, rule, arguments, call.metastore.tables.ids)
        if is_before_limits(rule.extra):
            return function(replace(call, shown=partial(shown_named(rule.extra), view)))
        try:
            value = function(call)
        except UnknownDBException:
            if rule.extra != "requested_tables":
                raise
            return _empty(method)  # no database is called like the pattern, as where the caller sees none of them
        if isinstance(value, Encoded):
            raise TypeError(f"{method.name} has an encoded answer, which can't be filtered")
        return filter_named(rule.extra)(view, value)

    def requirements(self, method: bytes, encoded: bytes, *, uncommitted: bool) -> tuple[Requirement, ...] | None:
        """What a reading call needs, if that follows from its arguments alone; None otherwise, also for bad ones.

        `encoded`: the arguments. It is remembered what the same ones needed. For the event loop.
        """
        key = method, encoded, uncommitted
        try:
            return self._needs[key]
        except KeyError:
            pass
        if len(self._needs) >= _MAX_NEEDS:
            self._needs.clear()
        needs = self._needs[key] = self._read_requirements(method.decode(), encoded, uncommitted=uncommitted)
        return needs

    def _read_requirements(self, name: str, encoded: bytes, *, uncommitted: bool) -> tuple[Requirement, ...] | None:
        rule = HANDLERS[name].rule
        if not rule.by_names_alone:
            return None
        try:
            arguments = binary.decode_strict(METHODS[name].args, encoded)
            return tuple(_by_names(rule, arguments, uncommitted=uncommitted))
        except Exception:  # the thread that answers says what is wrong
            return None

    def allowed_now(
        self, session: Session, wanted: tuple[Requirement, ...], holds: Callable[[Proof], bool]
    ) -> Decision | None:
        """Why a caller may do all of this, if what is in memory says that it may; None otherwise."""
        caller = self._control.acting(session.caller)
        if self._control.is_admin(caller):
            return _BY_ADMINISTRATOR
        authorizer = self._control.authorizer
        if not isinstance(authorizer, SqlStandard):
            return None
        decision = authorizer.allowed_now(caller, wanted, holds)
        return decision if decision is not None and decision.allowed else None


def _by_names(rule: Rule, arguments: Struct, *, uncommitted: bool) -> Iterator[Requirement]:
    for need in rule.needs:
        if need.action is not None:
            yield from naming.requirements(need, arguments, uncommitted=uncommitted)


class _Deciding:
    """The decisions about one call. Each requirement is decided once."""

    def __init__(self, control: AccessControl, call: Call, caller: Caller, method: Method, verdict: Verdict) -> None:
        self._control = control
        self._call = call
        self._caller = caller
        self._method = method
        self._verdict = verdict
        self.allowed: set[Requirement] = set()

    def by_names(self, rule: Rule, arguments: Struct) -> bool:
        """Decides what follows from names alone. False: the answer is an empty one, for a hidden object."""
        wanted: dict[Requirement, bool] = {}
        for need in rule.needs:
            if need.action is not None:
                uncommitted = self._call.session.include_uncommitted
                for each in naming.requirements(need, arguments, uncommitted=uncommitted):
                    wanted[each] = wanted.get(each, True) and need.gentle
        for requirement, decision in self._decided(list(wanted)):
            if not decision.allowed:
                if wanted[requirement]:
                    self._verdict.allowed, self._verdict.reason = False, decision.reason
                    return False
                self._refuse(requirement, decision)
        return True

    def by_values(self, rule: Rule, arguments: Struct) -> None:
        """Decides what depends on more than names; each requirement before what comes after it is looked at."""
        kinds = [need for need in rule.needs if need.action is None]
        if not kinds and not (rule.changes and rule.extra is not None):
            return
        control = self._control
        roles = control.roles(self._caller)
        asked = Asked(
            self._call, self._caller, roles, control.places, self._sees, by_directories=control.by_directories
        )
        for need in kinds:
            self._each(special.SPECIAL[need.kind].requirements(asked, need, arguments))
        if rule.extra is None:
            return
        value = value_at(arguments, rule.extra_paths[0].names)
        if value is None:
            return
        self._each(changes.CHECKS[rule.extra](asked, value, arguments))
        if rule.extra in changes.OWNED:
            changes.claim(asked, value)

    def _sees(self, object: Securable) -> bool:
        return self._control.authorizer.decide(self._caller, Action.SEE, object).allowed

    def sees_tables(self, names: Sequence[TableName]) -> list[bool]:
        return [self._sees(table(each)) for each in names]

    def _each(self, wanted: Iterable[Requirement]) -> None:
        for requirement in wanted:
            for _, decision in self._decided([requirement]):
                if not decision.allowed:
                    self._refuse(requirement, decision)

    def _decided(self, wanted: Sequence[Requirement]) -> list[tuple[Requirement, Decision]]:
        """The decisions about what isn't allowed already."""
        new = [each for each in wanted if each not in self.allowed]
        if not new:
            return []
        decisions = self._control.authorizer.decide_all(self._caller, new)
        if self._control.places.confined:
            decisions = [
                _CONFINED if action is Action.LOCATION else decision
                for (action, _), decision in zip(new, decisions, strict=True)
            ]
        found = list(zip(new, decisions, strict=True))
        self.allowed.update(each for each, decision in found if decision.allowed)
        if decisions and decisions[0].allowed:
            self._verdict.reason = decisions[0].reason
        return found

    def _refuse(self, requirement: Requirement, decision: Decision) -> NoReturn:
        """Raises the exception: as for a missing object, unless the caller may know of it."""
        self._verdict.allowed, self._verdict.reason = False, decision.reason
        action, object = requirement
        if object.kind in (Kind.DATABASE, Kind.TABLE) and (action is Action.SEE or not self._sees(object)):
            raise _exception(self._method, _NOT_FOUND, _missing(object))
        user = self._caller.user or ANONYMOUS
        text = (
            f"{PERMISSION_DENIED}user [{user}] does not have [{object.granting or action.privilege}] privilege"
            f" on [{object}] (authentication: {self._caller.mechanism})"
        )
        if decision is _CONFINED:
            text += f". The server allows {object.place} to nobody: leave the location out, or see allowed_locations"
        raise _exception(self._method, _REFUSED, text)


def _missing(object: Securable) -> str:
    """What is said of a missing object, and of a hidden one."""
    if object.kind is Kind.TABLE:
        return f"{object.database}.{object.table} table not found"
    return object.database


def _exception(method: Method, preferred: Sequence[str], text: str) -> Exception:
    """The first of the exceptions that a method declares, or one that every client understands."""
    declared = {each.__name__: each for each in method.exceptions}
    for name in preferred:
        if name in declared:
            return cast(Exception, declared[name](message=text))  # type: ignore[call-arg]
    error: Exception = TApplicationException(TApplicationException.INTERNAL_ERROR, text)
    return error


_EMPTY: dict[str, dict[str, Any]] = {
    "GetTablesResult": {"tables": []},
    "NotificationEventsCountResponse": {"eventsCount": 0},
    "GetFunctionsResponse": {"function_names": []},
}


def _empty(method: Method) -> Any:
    """What a method returns that finds nothing: an empty list, or a struct with empty lists."""
    success = method.result_spec[0]
    assert success is not None
    argument = success[3]
    if isinstance(argument, list):
        cls: type[Struct] = argument[0]
        return cls(**_EMPTY.get(cls.__name__, {}))
    return []
