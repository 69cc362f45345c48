"""Answers requests: finds the handler by the method's name, decodes the arguments, encodes the result."""

import logging
import secrets
import struct
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from functools import cache, partial
from typing import Any, NamedTuple

import structlog
from thrift.protocol.TProtocol import TProtocolException
from thrift.Thrift import TApplicationException

import metastore
from lake.protocol.codec import binary
from lake.protocol.codec.binary import EXCEPTION, ONEWAY, REPLY, STOP
from lake.protocol.codec.protocols import Request
from lake.protocol.codec.shared_columns import decode_sharing
from lake.protocol.errors import INTERNAL_ERROR
from lake.protocol.hive import Table
from lake.protocol.hive_versions import EXCEPTIONS_OF_2_3, NEW_SINCE_2_3
from lake.protocol.method import Method
from lake.protocol.required import missing_field
from lake.protocol.services import METHODS, OWN_METHODS
from lake.protocol.struct import ExceptionStruct, Struct
from metastore.api.methods import Call, Encoded, Handler, NotYet
from metastore.api.rights import audited
from metastore.api.rights.guard import Guard, Verdict
from metastore.api.session import Session
from metastore.cache.entry import Renew
from metastore.server.monitoring import audit, metrics
from metastore.server.monitoring.audit import About, AuditLog
from metastore.server.replies import CacheableCall
from metastore.services.access.rights import Decision
from metastore.services.events.recorder import acting
from metastore.services.wiring import Metastore
from metastore.store import DatabaseUnavailable, Unstorable
from metastore.store.catalog.followed_sources import TakenOver
from metastore.store.engine.beginnings import beginning
from metastore.store.engine.read_set import ReadSet, recording
from metastore.store.table.tables import TableRow
from metastore.warehouse import WarehouseError

SLOW_SECONDS = 1.0
"""A call that takes longer is logged as a warning."""

Write = Callable[[int, Iterable[bytes]], int]
"""Sends a reply of a kind (REPLY or EXCEPTION) with a body, and returns how many bytes were sent."""

# The IDL's names for what a struct is about, without underscores: catalog, database, table, and what lies in it.
_RANKS = {
    name: rank
    for rank, names in enumerate(
        (
            ("catname", "catalogname"),
            ("dbname", "database", "databasename", "metadbname", "db"),
            ("tblname", "tablename", "metatblname", "tb", "table"),
            ("partname", "partitionname", "funcname", "functionname", "name", "pattern"),
        )
    )
    for name in names
}
_UNDECODABLE = (EOFError, TProtocolException, TypeError, ValueError, OverflowError, struct.error)
_field = struct.Struct(">bh")
_NO_RESULT = STOP  # a result struct without fields: what a method without return value answers

log = structlog.get_logger(__name__)


class Copy:
    """Copies a reply for the cache while its pieces are sent, up to a limit in bytes."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._pieces: list[bytes] | None = None
        self.read_set: ReadSet | None = None
        self.renew: Renew | None = None
        """Makes the same reply for another state of its table; None if it doesn't follow from a table alone."""

    def of(self, pieces: Iterable[bytes]) -> Iterator[bytes]:
        kept: list[bytes] | None = []
        size = 0
        for piece in pieces:
            yield piece
            size += len(piece)
            if kept is not None and size <= self._limit:
                kept.append(piece)
            else:
                kept = None
        self._pieces = kept

    @property
    def body(self) -> bytes | None:
        """The whole reply; None if it was too long, or did not come to its end."""
        return None if self._pieces is None else b"".join(self._pieces)


class ReplyBroken(Exception):
    """A reply failed after its beginning was sent: nothing may follow on the connection. The text says why."""


class Answer(NamedTuple):
    """`outcome` is "ok", the name of a declared exception's class, or what went wrong in words."""

    kind: int
    body: Iterable[bytes]
    outcome: str
    label: metrics.Outcome
    arguments: Struct | None = None
    verdict: Verdict | None = None
    value: Any = None
    """What the method returned, unless that is encoded already."""


class Dispatcher:
    """Answers requests with the functions of a handler table. Thread-safe."""

    def __init__(
        self,
        handlers: Mapping[str, Handler],
        metastore: Metastore,
        guard: Guard | None = None,
        audit_log: AuditLog | None = None,
    ) -> None:
        """`guard`: decides who may do what; None: everybody may do everything. `audit_log`: None: there is none."""
        self._handlers = handlers
        self._metastore = metastore
        self.audit_log = audit_log
        self._log_of_reads = audit_log if audit_log is not None and audit_log.reads else None
        self._log_cached = log.is_enabled_for(logging.DEBUG)
        self.guard = guard
        self.as_iceberg: Callable[[Session, Table], Table] | None = None
        """Shows a table as Iceberg's on behalf of a session."""

    def serve(
        self, session: Session, request: Request, write: Write, *, may_wait: bool = False, copy: Copy | None = None
    ) -> None:
        """Answers one request through `write`; a oneway request gets no answer.

        A successful reply gets into `copy`, with what was read for it. Raises ReplyBroken, NotYet if the request
        `may_wait` and wants to, and whatever `write` raises.
        """
        with nullcontext() if copy is None else recording() as read_set:
            if copy is not None:
                copy.read_set = read_set
            self._serve(session, request, write, may_wait, copy)

    def _serve(self, session: Session, request: Request, write: Write, may_wait: bool, copy: Copy | None) -> None:
        started = time.perf_counter()
        name = request.header.name
        answer = self.answer(session, name, request, may_wait)
        body = answer.body
        if copy is not None and answer.outcome == "ok":
            body = copy.of(body)
            copy.renew = self._renewal(name, answer.arguments)
        sent, complete = 0, False
        try:
            if wants_answer(request):
                sent = write(answer.kind, body)
            complete = True
        finally:
            if (close := getattr(answer.body, "close", None)) is not None:
                close()  # a reply that nobody wants, or that broke off, may have a transaction
            seconds = time.perf_counter() - started
            outcome = answer.outcome if complete else "reply not delivered"
            known = name if name in self._handlers else "unknown"  # else clients could fill the memory with names
            metrics.request_finished(known, answer.label if complete else "failure", seconds)
            if self.audit_log is not None:
                self.audit_log.record(name, session.caller, partial(_about, name, answer), outcome, answer.verdict)
            (log.warning if seconds > SLOW_SECONDS else log.info)(
                "call",
                method=name,
                object=described(answer.arguments),
                user=session.user,
                peer=session.peer,
                outcome=outcome,
                ms=round(seconds * 1000, 1),
                bytes=sent,
            )

    def served_from_cache(
        self,
        session: Session,
        call: CacheableCall,
        decision: Decision | None,
        message: bytes,
        arguments: int,
        sent: int,
    ) -> None:
        """Logs a request that the cache answered, with `sent` bytes. `decision`: that it was allowed; None: to all.

        `arguments`: where they begin in the message. They are decoded for the audit log alone, once.
        """
        if self._log_of_reads is not None:
            if not call.audited:
                name = call.method.decode()
                call.audited = audit.beginning(name, _object_of(name, message, arguments))
            self._log_of_reads.record_cached(call.audited, session.caller, decision)
        if self._log_cached:
            facts = {"method": call.method.decode(), "user": session.user, "peer": session.peer, "bytes": sent}
            log.debug("call", outcome="cached", **facts)

    def answer(self, session: Session, name: str, request: Request, may_wait: bool) -> Answer:
        handler = self._handlers.get(name)
        method = METHODS.get(name)
        if name in NEW_SINCE_2_3:
            session.hive4 = True
        if handler is None or method is None:
            message = f"Invalid method name: '{name}'"  # as in Hive
            if name.startswith(OWN_METHODS):
                message += f"; this server has version {metastore.__version__}"
            return failure(TApplicationException.UNKNOWN_METHOD, message, "unknown method")

        try:
            own = name.startswith(OWN_METHODS)
            decode = decode_sharing if handler.stores else binary.decode_preserving if own else binary.decode_strict
            arguments = decode(method.args, request.data, request.header.body)
        except UnicodeDecodeError:
            return protocol_error("a text among the arguments is not UTF-8")
        except _UNDECODABLE as error:
            return protocol_error(f"the arguments can't be decoded: {error}")
        if own and hasattr(arguments, "unknown"):
            return protocol_error(
                f"the arguments of {name} have a field that this server's version, {metastore.__version__}, doesn't"
                " know: the client is newer. Upgrade the server first"
            )
        if (missing := missing_field(arguments)) is not None:
            return protocol_error(str(missing))._replace(arguments=arguments)
        for argument in handler.required:
            if getattr(arguments, argument) is None:
                return protocol_error(f"the argument '{argument}' of {name} is missing")

        verdict = None if self.guard is None else Verdict()
        try:
            with acting(session.user, session.connection_id), holding(session):
                value = self.value(session, method, arguments, may_wait=may_wait, verdict=verdict)
            body, outcome = result_body(method, value)
        except NotYet:
            raise
        except Exception as error:
            return raised(method, error, session)._replace(arguments=arguments, verdict=verdict)
        kept = value if isinstance(value, str | Struct) or name == "lake_cancel_tokens" else None
        return Answer(REPLY, body, outcome, "ok", arguments, verdict, kept)

    def value(
        self,
        session: Session,
        method: Method,
        arguments: Struct,
        *,
        may_wait: bool = False,
        verdict: Verdict | None = None,
    ) -> Any:
        """What a method returns, or raises: a call that needn't be decoded, nor its answer encoded."""
        shows = None if self.as_iceberg is None else partial(self.as_iceberg, session)
        call, handler = Call(session, self._metastore, may_wait, as_iceberg=shows), self._handlers[method.name]
        if self.guard is None:
            return handler.function(call, *[getattr(arguments, each) for each in method.argument_names])
        return self._guarded(self.guard, call, method, handler, arguments, verdict or Verdict())

    def _renewal(self, name: str, arguments: Struct | None) -> Renew | None:
        of_table = self._handlers[name].of_table
        if of_table is None or arguments is None:
            return None
        return partial(_renewed, METHODS[name], of_table, arguments)

    @staticmethod
    def _guarded(
        guard: Guard, call: Call, method: Method, handler: Handler, arguments: Struct, verdict: Verdict
    ) -> Any:
        def answer(call: Call) -> Any:  # the guard may have changed an argument
            return handler.function(call, *[getattr(arguments, each) for each in method.argument_names])

        return guard.answer(call, method, arguments, answer, verdict)


def holding(session: Session) -> AbstractContextManager[None]:
    """What a connection that follows a source changes, it changes only while nobody else follows that."""
    return beginning(None if session.held is None else session.held.check)


def _object_of(name: str, message: bytes, arguments: int) -> str:
    """The object of a call whose reply was kept; the same arguments were decoded when that was made."""
    try:
        decoded = binary.decode(METHODS[name].args, message, arguments)
        return audited.objects(name, decoded, described(decoded))
    except _UNDECODABLE:  # the arguments of Hive 2.3 have other types here and there
        return ""


def _about(name: str, answer: Answer) -> About:
    """What the audit log says a call was about."""
    if answer.arguments is None:
        return About("")
    found = audited.objects(name, answer.arguments, described(answer.arguments))
    if not found and isinstance(answer.value, Struct):  # of a job that was named by its number
        found = described(answer.value)
    return About(found, audited.details(name, answer.arguments, answer.value))


def wants_answer(request: Request) -> bool:
    """Whether the client expects a reply. It would take an unexpected one as the reply to its next call."""
    name = request.header.name
    return request.header.kind != ONEWAY and not (name in METHODS and METHODS[name].oneway)


def result_body(method: Method, value: Any) -> tuple[Iterable[bytes], str]:
    """The result struct that carries a return value, and the call's outcome."""
    if not method.returns_value:
        return (_NO_RESULT,), "ok"
    if value is None:
        # Java's server does the same with null; the client raises MISSING_RESULT.
        return (_NO_RESULT,), "no result"
    if isinstance(value, Encoded):
        pieces = iter(value.pieces)
        first = next(pieces, b"")  # so that what fails at once still gets a proper answer
        success = method.result_spec[0]
        assert success is not None
        return _spliced(_field.pack(success[1], 0) + first, pieces, method.name), "ok"
    return (binary.encode_result("success", value, method.result),), "ok"


def _renewed(method: Method, of_table: Callable[..., Any], arguments: Struct, row: TableRow) -> bytes | None:
    """The body of a reply about a table, for the state of a row; None if it doesn't follow from that."""
    value = of_table(row, *[getattr(arguments, each) for each in method.argument_names])
    return None if value is None else binary.encode_result("success", value, method.result)


def _spliced(begin: bytes, pieces: Iterator[bytes], name: str) -> Iterator[bytes]:
    try:
        yield begin
        yield from pieces
    except Exception as error:
        reference = _report(name, error)
        raise ReplyBroken(f"{name} failed in the middle of its reply, reference {reference}") from error
    yield STOP


def raised(method: Method, error: Exception, session: Session) -> Answer:
    """The reply for what a handler raised."""
    if isinstance(error, ExceptionStruct):
        field = method.exceptions.get(type(error))
        if field is not None:
            return Answer(REPLY, _failed(method, field, error, session), type(error).__name__, "exception")
        message = f"Internal error processing {method.name}"
        return undeclared(method, session, str(error), message, type(error).__name__)
    if isinstance(error, TApplicationException):
        return failure(error.type, error.message or "", "application error")
    if isinstance(error, DatabaseUnavailable | Unstorable | WarehouseError | TakenOver):
        return undeclared(method, session, str(error), str(error), type(error).__name__)
    reference = _report(method.name, error, user=session.user, peer=session.peer)
    message = f"{INTERNAL_ERROR}{reference}; see the server's log"
    return undeclared(method, session, message, message, "internal error")


def undeclared(method: Method, session: Session, message: str, otherwise: str, outcome: str) -> Answer:
    """The reply for an error that the method doesn't declare: a MetaException if it declares that one."""
    for cls, field in method.exceptions.items():
        if cls.__name__ == "MetaException":
            error = cls(message=message)  # type: ignore[call-arg]
            return Answer(REPLY, _failed(method, field, error, session), outcome, "failure")
    return failure(TApplicationException.INTERNAL_ERROR, otherwise, outcome)


def _failed(method: Method, field: str, error: Struct, session: Session) -> tuple[bytes]:
    """The result struct that carries an exception.

    A client that may be of Hive 2.3 gets it in the field that it expects as well, and skips a field it doesn't know.
    """
    result = method.result()
    setattr(result, field, error)
    older = None if session.hive4 else EXCEPTIONS_OF_2_3.get((method.name, field))
    if older is not None:
        setattr(result, older, error)
    return (binary.encode(result),)


def protocol_error(message: str) -> Answer:
    return failure(TApplicationException.PROTOCOL_ERROR, message, message)


def failure(kind: int, message: str, outcome: str) -> Answer:
    return Answer(EXCEPTION, (binary.encode_application_exception(kind, message),), outcome, "failure")


def _report(name: str, error: Exception, **facts: object) -> str:
    """Logs an error that should not happen, and returns the reference by which to find it."""
    reference = secrets.token_hex(4)
    log.error("internal error", reference=reference, method=name, **facts, exc_info=error)
    return reference


def described(value: Struct | None, *, depth: int = 3) -> str:
    """The object of a call, as far as its arguments name it: `catalog.database.table.partition`."""
    if value is None:
        return ""
    fields = _name_fields(type(value))  # type: ignore[arg-type]  # mypy: as unhashable as its instances
    names = [name for field in fields if (name := getattr(value, field))]
    if names:
        return ".".join(name[:200] for name in names)[:200]
    if depth > 1:  # a request struct, or the table or partition itself
        for field in type(value).field_names():
            part = getattr(value, field)
            if isinstance(part, list) and part:
                part = part[0]
            if isinstance(part, Struct) and (found := described(part, depth=depth - 1)):
                return found
    return ""


@cache
def _name_fields(cls: type[Any]) -> list[str]:
    """The fields that name an object, from the widest to the narrowest."""
    ranked = {
        entry[2]: rank
        for entry in cls.thrift_spec
        if entry is not None
        and entry[3] == "UTF8"
        and (rank := _RANKS.get(entry[2].replace("_", "").lower())) is not None
    }
    return sorted(ranked, key=lambda field: ranked[field])
