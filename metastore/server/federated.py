"""A worker that answers out of other metastores (`metastore federate`)."""

import contextlib
import socket
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, cast

import structlog
from thrift.protocol.TProtocol import TProtocolException
from thrift.Thrift import TApplicationException

from lake.protocol.codec import binary
from lake.protocol.codec.preserving import has_unknown
from lake.protocol.codec.protocols import Request
from lake.protocol.generated.fb303_types import fb_status
from lake.protocol.hive import (
    CurrentNotificationEventId,
    MetaException,
    NotificationEventRequest,
    NotificationEventResponse,
    NotificationEventsCountRequest,
    NotificationEventsCountResponse,
)
from lake.protocol.hive_versions import NEW_SINCE_2_3
from lake.protocol.method import Method
from lake.protocol.required import missing_field
from lake.protocol.services import METHODS
from lake.protocol.struct import ExceptionStruct, Struct
from metastore import __version__, api
from metastore.api.configuration import INCLUDE_UNCOMMITTED
from metastore.api.methods import HANDLERS, Call, NotYet
from metastore.api.rights.guard import Guard, Verdict
from metastore.api.session import Session
from metastore.api.subscriptions.events import patience
from metastore.federation import iceberg, kinds, translation
from metastore.federation.configuration import FederationError
from metastore.federation.errors import BackendError
from metastore.federation.following import POLL_SECONDS, Following
from metastore.federation.front import Front, Reply, Who, value_of
from metastore.federation.front import Request as FrontRequest
from metastore.federation.mapping import Mapping
from metastore.federation.merging import MERGED, is_merged
from metastore.federation.names import DEFAULT_CATALOG
from metastore.federation.notifications import Notifications
from metastore.federation.pool import Identity
from metastore.federation.routing import CATALOG, LOG, ONLY, SELECTED, Refused, refusal
from metastore.server import federated_names, federated_rights
from metastore.server.connection.open_connections import Connections
from metastore.server.dispatch import (
    Answer,
    Dispatcher,
    ReplyBroken,
    failure,
    protocol_error,
    raised,
    result_body,
    undeclared,
)
from metastore.server.federated_rights import LIMITED, Events, Gone
from metastore.server.leader_tasks import LeaderTask, LeaderTasks
from metastore.server.monitoring import audit, metrics
from metastore.server.monitoring.audit import AuditLog
from metastore.server.worker import Worker, watch_authorization
from metastore.services.access.control import AccessControl
from metastore.services.commit_flag import commit_flag
from metastore.services.events.recorder import acting
from metastore.services.wiring import Metastore
from metastore.settings import Settings
from metastore.store import Database, DatabaseUnavailable, migrations
from metastore.store.engine.leader_lock import OF_FRONTS, LeaderLock
from metastore.store.federation import merged_log

LOOK_SECONDS = 0.5
"""How often a worker looks whether the file was changed."""

EVENTS_SECONDS = 0.5
"""How often a backend is asked for events while a client waits for some."""

_NAME = "metastore front"
_SHOWN = 20  # hidden databases of a backend
_OWN = frozenset({"set_ugi", "setOption", "getCpuProfile", "reinitialize", "shutdown", "flushCache"})
"""Methods whose handlers need no metastore."""

_LONG_POLLS = frozenset({"lake_read_events", "lake_read_group_events"})
"""Reads that wait for events."""

_WITHOUT_CATALOGS = frozenset({"show_locks", "show_compact"})
"""Reads whose answers name databases without their catalogs."""

_STARTED = int(time.time())

log = structlog.get_logger(__name__)


def run(
    listeners: list[socket.socket],
    settings: Settings,
    *,
    file: Path,
    keeps_log: bool = False,
    worker_id: int,
    parent_alive: int,
    on_ready: Callable[[], None],
) -> int:
    """Runs a worker until it is stopped; see `supervisor.WorkerFunction`. `file`: which metastores are behind it.

    `keeps_log`: there is a database with the schema, for the merged notification log.
    """
    api.load()
    front = Front(Mapping.load(file), changes, metrics.federation_left_out)
    audits = audit.audit_log(settings)
    merged = MergedLog(front, settings) if keeps_log else None
    rights, control = federated_rights.guard(settings)
    if control is not None:
        watch = partial(watch_authorization, control.authorizer)
        threading.Thread(target=watch, name="authorization", daemon=True).start()
    ended = threading.Event()
    threading.Thread(target=_watch, args=(front, file, ended), name="federation", daemon=True).start()
    if merged is not None and worker_id == 0:  # one candidate of each front
        merged.lead()
    try:
        notifications = None if merged is None else merged.notifications
        dispatcher = FrontDispatcher(front, audits, notifications, rights, control)
        worker = Worker(listeners, settings, dispatcher, Connections(), worker_id=worker_id)
        worker.run(parent_alive, on_ready)
    finally:
        ended.set()
        if merged is not None:
            merged.close()
        front.close()
        if audits is not None:
            audits.close()
    return 0


class MergedLog:
    """The merged notification log of a front's worker."""

    def __init__(self, front: Front, settings: Settings) -> None:
        assert settings.database_url is not None
        self._front = front
        self._settings = settings
        self._database = Database(
            settings.database_url,
            pool_size=settings.database_pool_size,
            statement_timeout=settings.request_timeout_seconds,
            application_name=migrations.application_name(),
            waited=metrics.database_pool_waited,
        )
        self._following = Following(front, self._database, metrics.federation_log_lost)
        self.notifications = Notifications(front, self._database, self._following, metrics.federation_left_out)
        self._tasks: LeaderTasks | None = None

    def lead(self) -> None:
        """Follows the backends' logs as long as no other front on the database does."""
        assert self._settings.database_url is not None
        name = f"{socket.gethostname()}:{self._settings.port}"
        self._tasks = LeaderTasks(
            LeaderLock(self._settings.database_url, name, lock=OF_FRONTS),
            [
                LeaderTask("following notification logs", self._follow, POLL_SECONDS),
                LeaderTask("trimming the merged log", self._trim, self._settings.housekeeping_seconds),
            ],
        )
        self._tasks.start()

    def close(self) -> None:
        if self._tasks is not None:
            self._tasks.stop()
        self._following.close()
        self._database.close()

    def _follow(self) -> None:
        for backend, seconds in self._following.follow().items():
            metrics.federation_log_behind(backend, seconds)

    def _trim(self) -> None:
        with self._database.write() as tx:
            merged_log.trim(tx, self._settings.event_retention_days, self._settings.event_retention_count)


def changes(method: str) -> bool:
    """Whether a method changes something, as its handler declares; True for a method without one."""
    handler = HANDLERS.get(method)
    return handler is None or handler.rule.changes


def _watch(front: Front, file: Path, ended: threading.Event) -> None:
    """Takes the file again whenever it was changed. One that can't be used changes nothing."""
    before = _content(file)
    while not ended.wait(LOOK_SECONDS):
        for pool in front.pools:
            metrics.federation_backend(pool.backend, down=pool.state == "down")
        now = _content(file)
        if now is None or now == before:
            continue
        before = now
        try:
            front.reload(Mapping.load(file))
        except FederationError as error:
            log.error("the changed file can't be used; the one before stays in force", reason=str(error))
            metrics.federation_file(usable=False)
        else:
            log.info("took the changed file", file=str(file))
            metrics.federation_file(usable=True)


def _content(file: Path) -> bytes | None:
    with contextlib.suppress(OSError):
        return file.read_bytes()
    return None


class FrontDispatcher(Dispatcher):
    """Answers requests out of the metastores behind a front."""

    def __init__(
        self,
        front: Front,
        audit_log: AuditLog | None = None,
        notifications: Notifications | None = None,
        guard: Guard | None = None,
        control: AccessControl | None = None,
    ) -> None:
        """`notifications`: the merged log; None if the front was started without one. `guard`, `control`: the rights
        of the front's own; None if everybody may do everything."""
        no_metastore = cast(Metastore, None)  # no function is called that needs one
        super().__init__(HANDLERS, no_metastore, guard, audit_log)
        self._front = front
        self._notifications = notifications
        self._control = control

    def answer(self, session: Session, name: str, request: Request, may_wait: bool) -> Answer:
        method = METHODS.get(name)
        if name in NEW_SINCE_2_3:
            session.hive4 = True
        if method is None:
            return failure(TApplicationException.UNKNOWN_METHOD, f"Invalid method name: '{name}'", "unknown method")
        try:
            arguments = binary.decode_preserving(method.args, request.data, request.header.body)
        except (UnicodeDecodeError, EOFError, TProtocolException, TypeError, ValueError, OverflowError) as error:
            return protocol_error(f"the arguments can't be decoded: {error}")
        # Hive stops reading there, and would take what follows for the next call: one that nobody has decided about.
        if (missing := missing_field(arguments)) is not None:
            return protocol_error(str(missing))._replace(arguments=arguments)
        verdict = None if self.guard is None else Verdict()
        begun = self._front.begin(_who(session))
        try:
            with acting(session.user, session.connection_id):
                if self.guard is None or verdict is None:
                    found = self._reply(session, begun, method, arguments, request.data[request.header.body :])
                else:
                    found = self._permitted(self.guard, verdict, session, begun, method, arguments)
        except (BackendError, Refused) as error:
            answer = undeclared(method, session, str(error), str(error), type(error).__name__)
            return answer._replace(arguments=arguments, verdict=verdict)
        except Exception as error:
            if isinstance(error, MetaException) and MetaException not in method.exceptions:  # its text says what to do
                text = error.message or ""
                answer = undeclared(method, session, text, text, "MetaException")
            else:
                answer = raised(method, error, session)
            return answer._replace(arguments=arguments, verdict=verdict)
        if may_wait and name in _LONG_POLLS and found.value is not None:
            asked: Any = arguments
            if wait := patience(asked.request, found.value):
                raise NotYet(wait, every=EVENTS_SECONDS)
        return found._replace(arguments=arguments, verdict=verdict)

    def _permitted(
        self,
        guard: Guard,
        verdict: Verdict,
        session: Session,
        begun: FrontRequest,
        method: Method,
        arguments: Struct,
    ) -> Answer:
        """The answer, if the caller may have it, with what it may see."""
        limited = not self._is_admin(session)
        if limited and has_unknown(arguments):
            verdict.allowed, verdict.reason = False, "a field that is not known"
            raise Refused(
                f"the arguments of {method.name} have a field that this front doesn't know, so it can't decide about"
                " it: use a client of a version that it knows"
            )
        rule = HANDLERS[method.name].rule
        filtered = not rule.changes and rule.extra is not None

        def answer(call: Call) -> Any:
            if limited:
                federated_names.check(method, arguments, verdict)
            if filtered:
                return self._value(session, begun, method, arguments, call)
            return self._reply(session, begun, method, arguments, binary.encode(arguments))  # owners may be put in

        call = Call(session, federated_rights.objects(begun, method))
        try:
            found = guard.answer(call, method, arguments, answer, verdict)
        except Gone as missing_object:
            raise missing_object.error from None
        return found if isinstance(found, Answer) else Answer(binary.REPLY, *result_body(method, found), "ok")

    def _is_admin(self, session: Session) -> bool:
        """Whether a caller may do everything."""
        return self._control is None or self._control.is_admin(self._control.acting(session.caller))

    def _value(self, session: Session, begun: FrontRequest, method: Method, arguments: Struct, call: Call) -> Any:
        """What a method returns whose answer depends on who calls. `call.shown`: where that is left out of it first."""
        name, mapping = method.name, begun.mapping
        if name in LOG and call.shown is not None and (not mapping.followed or session.metaconf.get(SELECTED)):
            raise Refused("the log of a backend itself is for administrators of the front: others read the merged one")
        if name in _WITHOUT_CATALOGS and not self._is_admin(session) and mapping.catalogs != (DEFAULT_CATALOG,):
            raise Refused(f"{name} is for administrators of a front with several catalogs: its answer names none")
        limited = LIMITED.get(name) if call.shown is not None else None
        if call.shown is not None and limited is None and name not in LOG:
            raise Refused(f"{name} is for administrators of the front: others call the lake metastore itself")
        limit = None if limited is None else limited.lift(arguments)
        answer = self._reply(session, begun, method, arguments, binary.encode(arguments))
        value = value_of(name, answer.kind, b"".join(answer.body))
        if limited is not None and call.shown is not None:
            return limited.cut(value, call.shown, limit)
        return value

    def _reply(
        self, session: Session, begun: FrontRequest, method: Method, arguments: Struct, encoded: bytes
    ) -> Answer:
        name = method.name
        if begun.who.only is not None and name in iceberg.ANSWERED:
            values = [getattr(arguments, each) for each in method.argument_names]
            if None in values:
                return protocol_error(f"an argument of {name} is missing")
            return Answer(binary.REPLY, *result_body(method, iceberg.ANSWERED[name](begun, *values)), "ok")
        if (reason := refusal(name)) is not None:
            raise Refused(reason)
        if name in _OWN:
            handler = HANDLERS[name]
            call = Call(session, self._metastore)
            value = handler.function(call, *[getattr(arguments, each) for each in method.argument_names])
            return Answer(binary.REPLY, *result_body(method, value), "ok")
        if name in _ABOUT_FRONT:
            values = [getattr(arguments, each) for each in method.argument_names]
            value = _ABOUT_FRONT[name](self._front, begun, session, *values)
            return Answer(binary.REPLY, *result_body(method, value), "ok")
        if name == "getStatusDetails":
            text = _status(self._front, self._notifications, everything=self._is_admin(session))
            return Answer(binary.REPLY, *result_body(method, text), "ok")
        if name in LOG and begun.mapping.followed and session.metaconf.get(SELECTED) is None:
            return self._of_log(session, method, arguments)
        if is_merged(name, arguments):
            value = MERGED[name](begun, *[getattr(arguments, each) for each in method.argument_names])
            return Answer(binary.REPLY, *result_body(method, value), "ok")
        if name in _LONG_POLLS:
            return _of_events(begun, method, arguments)
        if begun.mapping.beside and kinds.is_list(begun, method, arguments, asked := translation.asked(arguments)):
            value = kinds.listed(begun, method, arguments, encoded, asked)
            return Answer(binary.REPLY, *result_body(method, value), "ok")
        reply = begun.route(method, arguments, encoded)
        if name == "fire_listener_event" and begun.mapping.followed:
            reply = self._with_numbers(method, reply)
        return _passed_on(name, reply)

    def _of_log(self, session: Session, method: Method, arguments: Struct) -> Answer:
        """The answer to a request for notifications, out of the merged log."""
        if self._notifications is None:
            raise Refused(
                "this front was started before its file said follow: it keeps a log only if it is started again"
            )
        reader = session.caller if self._control is None else self._control.acting(session.caller)
        self._notifications.check_reader(reader.user, reader.groups)
        shown = None
        if self._control is not None and not (events := Events(self._control, session.caller)).sees_all:
            shown = events.shown
        value: Any
        match [getattr(arguments, each) for each in method.argument_names]:
            case []:
                value = CurrentNotificationEventId(self._notifications.last())
            case [NotificationEventRequest() as asked]:
                value = NotificationEventResponse(self._notifications.read(asked, shown))
            case [NotificationEventsCountRequest() as asked]:
                value = NotificationEventsCountResponse(self._notifications.count(asked, shown))
            case _:
                return protocol_error(f"the argument of {method.name} is missing")
        return Answer(binary.REPLY, *result_body(method, value), "ok")

    def _with_numbers(self, method: Method, reply: Reply) -> Reply:
        """The reply of a backend to a reported event with its number in the merged log, or none: it has another there.

        The event is reported by now, so nothing may fail any more.
        """
        body = b"".join(reply.body)
        result: Any = binary.decode_preserving(method.result, body) if reply.kind == binary.REPLY else None
        there = result.success.eventIds if result is not None and result.success is not None else None
        if there:
            numbers: list[int] = []
            if self._notifications is not None and reply.backend in self._front.mapping.followed:
                with contextlib.suppress(DatabaseUnavailable):
                    numbers = self._notifications.numbers_of(reply.backend, there)
            result.success.eventIds = numbers
            body = binary.encode(result)
        return reply._replace(body=iter((body,)))


def _who(session: Session) -> Who:
    caller = session.caller
    settings = tuple((key, value) for key, value in sorted(session.metaconf.items()) if key not in (SELECTED, ONLY))
    identity = Identity(caller.user, tuple(caller.groups), settings, session.hive4)
    return Who(identity, session.metaconf.get(SELECTED), session.metaconf.get(ONLY), session.wrote_at)


def _of_events(begun: FrontRequest, method: Method, arguments: Any) -> Answer:
    """What the event bus of a backend has now. One that waits would keep a connection that all share."""
    if arguments.request is None:
        return protocol_error(f"the argument of {method.name} is missing")
    now: Struct = arguments.replace(request=arguments.request.replace(maxWait=None))
    value = begun.value(method, now, binary.encode(now))
    return Answer(binary.REPLY, *result_body(method, value), "ok", value=value)


def _passed_on(name: str, reply: Reply) -> Answer:
    """A backend's reply. Its first piece is made now: what fails at once still gets a proper answer."""
    pieces = iter(reply.body)
    first = next(pieces, b"")
    label: metrics.Outcome = "ok" if reply.outcome == "ok" else "exception"
    if reply.kind == binary.EXCEPTION:
        label = "failure"
    return Answer(reply.kind, _streamed(first, pieces, name, reply.backend), reply.outcome, label)


def _streamed(first: bytes, pieces: Iterator[bytes], name: str, backend: str) -> Iterator[bytes]:
    try:
        yield first
        yield from pieces
    except Exception as error:
        raise ReplyBroken(f"{name} failed in the middle of the reply of backend {backend}: {error}") from error
    finally:
        if (close := getattr(pieces, "close", None)) is not None:
            close()  # its connection can't be used for others


# -- what a front says about itself ----------------------------------------------------------------------------


def _get_meta_conf(front: Front, request: FrontRequest, session: Session, key: str | None) -> Any:
    if key in (SELECTED, ONLY):
        return session.metaconf.get(key, "")
    if key == CATALOG:
        only = session.metaconf.get(ONLY)
        return request.mapping.backends[only].catalog if only in request.mapping.backends else ""
    if key in session.metaconf:
        return session.metaconf[key]
    return _known_settings(request, key)[0]


def _set_meta_conf(front: Front, request: FrontRequest, session: Session, key: str | None, value: str | None) -> None:
    """Keeps a setting for the connections to the backends, if one of them knows it."""
    key, value = key or "", value or ""
    if key == ONLY:
        session.metaconf[ONLY] = _only(request, value)
        return
    if key == SELECTED:
        if value and value not in front.mapping.backends:
            raise MetaException(f"this front has no backend {value}: it has {', '.join(front.mapping.backends)}")
        if value:
            session.metaconf[key] = value
        else:
            session.metaconf.pop(key, None)
        return
    _known_settings(request, key)
    if key.lower() == INCLUDE_UNCOMMITTED.lower():  # the front's own rights depend on it, so it has one spelling
        session.include_uncommitted = commit_flag.truth(INCLUDE_UNCOMMITTED, value)
        key = INCLUDE_UNCOMMITTED
    session.metaconf[key] = value


def _only(request: FrontRequest, value: str) -> str:
    """The backend that a connection of the REST catalog is for. Raises MetaException."""
    mapping = request.mapping
    named = [backend for backend, settings in mapping.backends.items() if settings.beside is None]
    backend = value or mapping.primary or (named[0] if len(named) == 1 else None)
    if backend not in named:
        raise MetaException(f"Warehouse does not exist: {value or 'say which one'}. There are {', '.join(named)}")
    return backend


def _known_settings(request: FrontRequest, key: str | None) -> list[Any]:
    """What the backends that know a setting say of it, the primary first. Raises MetaException if none does."""
    refused: list[ExceptionStruct] = []

    def of(backend: str) -> Any:
        try:
            return request.ask(backend, "getMetaConf", key)
        except MetaException as error:
            refused.append(error)
            return None

    backends = sorted(request.mapping.backends, key=lambda each: each != request.mapping.primary)
    known = [value for _, value in request.of_all(of, backends) if value is not None]
    if not known:
        raise refused[0] if refused else MetaException(f"no backend knows the setting {key}")
    return known


def _status(front: Front, notifications: Notifications | None, *, everything: bool) -> str:
    """A line for each backend, and one for its notification log if that is followed.

    `everything`: also what names databases.
    """
    lines, logs = [], {}
    if notifications is not None and everything:
        try:
            logs = notifications.described()
        except DatabaseUnavailable as error:
            lines.append(f"the merged notification log: {error}")
    for pool in front.pools:
        line = f"{pool.backend}: {pool.state}" + (f", {pool.trouble}" if pool.trouble else "")
        if pool.hidden and everything:
            line += f"; hidden, since their names mean others: {', '.join(sorted(pool.hidden)[:_SHOWN])}"
        lines.append(line)
        if pool.backend in logs:
            lines.append(f"  {logs[pool.backend]}")
    return "\n".join(lines)


_ABOUT_FRONT: dict[str, Callable[..., Any]] = {
    "getMetaConf": _get_meta_conf,
    "setMetaConf": _set_meta_conf,
    "getName": lambda front, request, session: _NAME,
    "getVersion": lambda front, request, session: __version__,
    "getStatus": lambda front, request, session: fb_status.ALIVE,
    "aliveSince": lambda front, request, session: _STARTED,
    "getCounters": lambda front, request, session: {},
    "getCounter": lambda front, request, session, key: 0,
    "getOptions": lambda front, request, session: {},
    "getOption": lambda front, request, session, key: "",
}
"""`function(front, request, session, *arguments)`."""
