"""Answers Hive's calls out of several metastores."""

import math
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

import structlog
from thrift.protocol.TProtocol import TProtocolException
from thrift.Thrift import TApplicationException, TMessageType
from thrift.transport.TTransport import TTransportException

from lake.protocol.codec import binary
from lake.protocol.codec.reply_reader import RenamePartition, ReplyReader, ReplyTooLong
from lake.protocol.connection.relay import Relay
from lake.protocol.hive_versions import EXCEPTIONS_OF_2_3
from lake.protocol.method import Method
from lake.protocol.services import METHODS, OWN_METHODS
from lake.protocol.struct import Struct
from metastore.federation import kinds, routing, translation
from metastore.federation.errors import BackendError, Unknown, Unreachable
from metastore.federation.fields import Hidden, names_anything
from metastore.federation.mapping import Mapping
from metastore.federation.names import Name, normal
from metastore.federation.pool import Identity, Pool, application_error, timed_out
from metastore.federation.routing import Refused
from metastore.federation.translation import Asked

T = TypeVar("T")

_DECORATION = b"@"  # before what table names may end with
_SUCCESS = b"\0\0"  # the number of a result's field for its value
_BROKEN = (TTransportException, TProtocolException, OSError, EOFError, ValueError, TypeError)

_IN_STEP = (TApplicationException.UNKNOWN_METHOD, TApplicationException.INTERNAL_ERROR)
"""Errors of servers that have read a call to its end. After others they may take the rest of it for the next call."""

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Who:
    """On whose behalf a request is made. `selected`: the backend of requests that name nothing. `only`: the one backend
    that is there, or None; it is asked itself, and not a copy of it. `wrote_at`: by backend
    when the client's connection has changed something there last, by `time.monotonic`; requests write it down there."""

    identity: Identity
    selected: str | None = None
    only: str | None = None
    wrote_at: dict[str, float] = field(default_factory=dict)


class Reply(NamedTuple):
    """What a backend answered, translated. `body`: a result struct, or if `kind` is EXCEPTION an application error's.

    `outcome`: "ok", or the name of the exception.
    """

    kind: int
    body: Iterator[bytes]
    outcome: str
    backend: str


class Backends:
    """A mapping and the pools of its backends, which belong together."""

    def __init__(self, mapping: Mapping, before: "Backends | None" = None) -> None:
        """The pools of `before` go on where their settings are the same."""
        self.mapping = mapping
        self.limit: int = mapping.configuration.federation.max_reply_bytes
        kept = {} if before is None or before.limit != self.limit else before.pools
        self.pools: dict[str, Pool] = {
            backend: kept[backend] if backend in kept and kept[backend].settings == settings else
            Pool(backend, settings, self.limit)
            for backend, settings in mapping.backends.items()
        }  # fmt: skip
        copies = {} if before is None or before.limit != self.limit else before.copies
        self.copies: dict[str, Pool] = {}
        """The pools of copies, which only reads go to."""
        for backend, settings in mapping.backends.items():
            if settings.read_uris:
                of_copy = settings.model_copy(update={"uris": settings.read_uris})
                kept_one = copies.get(backend)
                if kept_one is None or kept_one.settings != of_copy:
                    kept_one = Pool(f"{backend} (copy)", of_copy, self.limit)
                self.copies[backend] = kept_one

    @property
    def all(self) -> Iterator[Pool]:
        """All pools."""
        yield from self.pools.values()
        yield from self.copies.values()


class Front:
    """Thread-safe. `changes`: whether a method changes something; only others are sent again after a lost answer.

    `left_out(backend)` is called whenever a list comes without a backend.
    """

    def __init__(self, mapping: Mapping, changes: Callable[[str], bool], left_out: Callable[[str], None]) -> None:
        self._backends = Backends(mapping)
        self._changes = changes
        self._left_out = left_out
        self._reloading = threading.Lock()

    @property
    def mapping(self) -> Mapping:
        return self._backends.mapping

    def reload(self, mapping: Mapping) -> None:
        """Takes another mapping from the next request on. Requests under way end as they began."""
        with self._reloading:
            before, self._backends = self._backends, Backends(mapping, self._backends)
            kept = set(map(id, self._backends.all))
            for pool in before.all:
                if id(pool) not in kept:
                    pool.close()

    @property
    def pools(self) -> list[Pool]:
        """What this worker knows of the backends and of their copies."""
        return list(self._backends.all)

    def close(self) -> None:
        for pool in self._backends.all:
            pool.close()
            pool.asking.shutdown(wait=False, cancel_futures=True)

    def begin(self, who: Who) -> "Request":
        """A request, which sees one mapping from its beginning to its end."""
        return Request(self._backends, self._changes, self._left_out, who)


class Request:
    """One request of a client."""

    def __init__(
        self,
        backends: Backends,
        changes: Callable[[str], bool],
        left_out: Callable[[str], None],
        who: Who,
    ) -> None:
        self._pools = backends.pools
        self._copies = backends.copies
        self.mapping = backends.mapping
        self._changes = changes
        self._tell_left_out = left_out
        self.who = who

    def route(
        self, method: Method, arguments: Struct, encoded: bytes, *, current: bool = False, to: str | None = None
    ) -> Reply:
        """Passes a request on to the one backend that it is about.

        `arguments` stay as they are: the log has the caller's names. `encoded`: the same as they came. `current`: not
        to a copy of the backend, which may be behind. `to`: the backend, where the caller knows it.
        Raises Refused, BackendError, and exceptions that the method declares.
        """
        asked = translation.asked(arguments)
        places = kinds.places(self, method, arguments, asked) if self.mapping.beside and to is None else {}
        backend = to or routing.backend_of(self.mapping, method, asked, self.who.selected, places)
        if self.who.only is not None and self.mapping.owner(backend) != self.who.only:
            where = asked.names[0] if asked.names else method.name
            routing.missing(method, f"backend {self.who.only} gives no database the name {where}")
        routing.check_own(self.mapping, method.name, backend)
        self._check_form(backend, method, asked)
        if _DECORATION in encoded and (table := kinds.decorated(arguments)) is not None and not self._is_lake(backend):
            raise Refused(
                f"{table}: backend {backend} is no lake metastore, so its partitions are all ready from the start and"
                f" its tables aren't shown as Iceberg: leave {table.table[table.table.find('@') :]} (the hint"
                " includeUnCommit) out"
            )
        if asked.numbers or self.mapping.number(backend) or not (asked.plain and self.mapping.is_identity(backend)):
            sent = binary.decode_preserving(method.args, encoded)
            translation.to_backend(sent, self.mapping, backend)
            encoded = binary.encode(sent)
        if not self._changes(method.name):
            return self._read(backend, method, encoded, asked, current=current)
        routing.check_writable(self.mapping, method.name, asked, backend)
        try:
            return self._pass_on(self._pools[backend], backend, method, encoded)
        finally:
            self.who.wrote_at[backend] = time.monotonic()

    def value(
        self, method: Method, arguments: Struct, encoded: bytes, *, current: bool = False, to: str | None = None
    ) -> Any:
        """What a method returns whose arguments have the front's names. Raises as `route`, TApplicationException."""
        reply = self.route(method, arguments, encoded, current=current, to=to)
        return value_of(method.name, reply.kind, b"".join(reply.body))

    def call(self, name: str, *values: Any) -> Any:
        """What a method returns by the latest state; `values` are its arguments, with the front's names. As `value`."""
        method = METHODS[name]
        arguments = method.args(*values)
        return self.value(method, arguments, binary.encode(arguments), current=True)

    def _read(self, backend: str, method: Method, encoded: bytes, asked: Asked, *, current: bool) -> Reply:
        """Asks a copy of the backend if it has one and that may be behind; the backend itself, if it isn't there."""
        copy = None if current or self.who.only is not None else self._copies.get(backend)
        if copy is not None and routing.may_be_behind(method.name, asked):
            since = time.monotonic() - self.who.wrote_at.get(backend, -math.inf)
            if since >= copy.settings.read_after_write_seconds:
                with suppress(BackendError):
                    return self._pass_on(copy, backend, method, encoded)
        return self._pass_on(self._pools[backend], backend, method, encoded)

    def _pass_on(self, pool: Pool, backend: str, method: Method, encoded: bytes) -> Reply:
        exchange = Exchange(pool, self.who.identity, method, encoded, resend=not self._changes(method.name))
        reader = exchange.begin()
        return self._reply(exchange, reader, backend, method)

    def _check_form(self, backend: str, method: Method, asked: Asked) -> None:
        """Raises Refused for a request whose names, or ids, can't be translated."""
        if asked.replays:
            routing.check_replays(self.mapping, method.name, backend, self.who.selected)
        if not self.mapping.is_identity(backend):
            if method.name in routing.LOG:
                raise Refused(
                    f"the notification log of backend {backend} names databases as {backend} does: follow it there"
                )
            if method.name == "add_dynamic_partitions" and not asked.names:
                raise Refused(
                    "add_dynamic_partitions of Hive 2.3 names its database where it can't be translated: use a client"
                    f" of backend {backend} itself"
                )

    def _is_lake(self, backend: str) -> bool:
        pool = self._pools[backend]
        if pool.is_lake is None:
            pool.give_back(pool.take(self.who.identity), self.who.identity, usable=True)
        return bool(pool.is_lake)

    def ask(self, backend: str, name: str, *values: Any, resend: bool = True) -> Any:
        """What a method of a backend returns; names in it, and in `values`, its arguments, are the backend's.

        `resend`: whether it may be sent a second time.
        Raises BackendError, TApplicationException, and exceptions that the method declares.
        """
        method = METHODS[name]
        encoded = binary.encode(method.args(*values))
        exchange = Exchange(self._pools[backend], self.who.identity, method, encoded, resend=resend)
        reader = exchange.begin()
        kind, body = exchange.whole(reader)
        return value_of(name, kind, body)

    def of_all(self, question: Callable[[str], T], backends: list[str]) -> list[tuple[str, T]]:
        """What a question to each of several backends gives. They are asked at the same time, each by threads of its
        own: `question` asks no other one.

        One that can't be reached is an error, or left out and told of: as the file says. Raises what `question` does.
        """
        futures = [(backend, self._pools[backend].asking.submit(question, backend)) for backend in backends]
        found: list[tuple[str, T]] = []
        missing: list[tuple[str, BackendError]] = []
        deadline = time.monotonic() + self.mapping.configuration.federation.list_seconds
        for backend, future in futures:
            try:
                found.append((backend, future.result(max(0.0, deadline - time.monotonic()))))
            except TimeoutError:
                future.cancel()
                missing.append((backend, self._too_slow(backend)))
            except BackendError as error:
                missing.append((backend, error))
        if missing:
            strict = self.mapping.configuration.federation.unreachable == "fail"
            if strict or not found or not all(error.unreachable for _, error in missing):
                raise missing[0][1]
            for backend, reason in missing:
                log.warning("a list comes without a backend", backend=backend, reason=str(reason))
                self._tell_left_out(backend)
        return found

    def _too_slow(self, backend: str) -> BackendError:
        reason = f"no answer within {self.mapping.configuration.federation.list_seconds:g} s"
        self._pools[backend].failed(reason)
        return Unreachable(backend, reason)

    def databases(self, backend: str) -> list[tuple[Name, Name]]:
        """The databases of a backend that have a name in the front: that name, and the one there."""
        there = self.mapping.backends[backend].backend_catalog
        if there == "hive":
            found = self.ask(backend, "get_all_databases")
        else:
            found = self.ask(backend, "get_databases", f"@{there}#*")
        names = [Name(there, normal(each)) for each in found or ()]
        pairs = [(self.mapping.name(backend, each), each) for each in names]
        admits = self.mapping.backends[backend].admits
        self._pools[backend].hides(
            frozenset(own.database for front, own in pairs if front is None and admits(own.database))
        )
        return [(front, own) for front, own in pairs if front is not None]

    def translated(self, backend: str, value: T) -> T:
        """A struct, or a list of structs, of a backend with the front's names; items that are hidden are left out.

        Raises Refused for a struct that is hidden.
        """
        if isinstance(value, list):
            shown = []
            for item in value:
                with suppress(Hidden):
                    translation.to_front(item, self.mapping, backend)
                    shown.append(item)
            return shown  # type: ignore[return-value]
        try:
            translation.to_front(value, self.mapping, backend)  # type: ignore[arg-type]
        except Hidden as error:
            raise Refused(f"the answer can't be shown: {error}") from None
        return value

    def _decoded(self, backend: str, method: Method, body: bytes) -> Any:
        try:
            return self.translated(backend, binary.decode_preserving(method.result, body))
        except UnicodeDecodeError:
            raise Refused(f"the answer of backend {backend} has a text that is not UTF-8") from None

    def _reply(self, exchange: "Exchange", reader: ReplyReader, backend: str, method: Method) -> Reply:
        if exchange.kind == TMessageType.REPLY and exchange.reads(lambda: reader.begins_partitions(method.result)):
            return Reply(binary.REPLY, exchange.partitions(reader, self._rename(backend)), "ok", backend)
        kind, body = exchange.whole(reader)
        if kind == TMessageType.EXCEPTION:
            error = application_error(body)
            text = f"{error.message} (says backend {backend})"
            if error.type == TApplicationException.UNKNOWN_METHOD and method.name.startswith(OWN_METHODS):
                text += (
                    ": it is no lake metastore of this version. Hive's tables have no readiness, timeline or jobs, and"
                    " their partitions are ready from the start"
                )
            kind_of_error = error.type
            encoded = binary.encode_application_exception(kind_of_error, text)
            return Reply(binary.EXCEPTION, iter((encoded,)), "application error", backend)
        if body[1:3] in (b"", _SUCCESS) and self._needs_no_translation(backend, method):
            return Reply(binary.REPLY, iter((body,)), "ok", backend)
        result = self._decoded(backend, method, body)
        outcome = self._outcome(method, result, backend)
        return Reply(binary.REPLY, iter((binary.encode(result),)), outcome, backend)

    def _needs_no_translation(self, backend: str, method: Method) -> bool:
        """Whether an answer that is no exception has the front's names and ids as it is."""
        if not names_anything(method.result):
            return True
        same = self.mapping.is_identity(backend) and not self.mapping.number(backend)
        return same and method.name in routing.ONE_OBJECT

    def _outcome(self, method: Method, result: Struct, backend: str) -> str:
        """The exception in a result, or "ok". The text of one whose names are the backend's says so."""
        outcome = "ok"
        for cls, place in method.exceptions.items():
            raised = getattr(result, place)
            if raised is None:
                continue
            outcome = cls.__name__
            if not self.mapping.is_identity(backend) and getattr(raised, "message", None):
                raised.message += f" (in the words of backend {backend})"
            older = None if self.who.identity.hive4 else EXCEPTIONS_OF_2_3.get((method.name, place))
            if older is not None:
                setattr(result, older, raised)
        return outcome

    def _rename(self, backend: str) -> RenamePartition | None:
        if self.mapping.is_identity(backend):
            return None
        known: dict[tuple[str | None, str | None], tuple[str | None, str | None]] = {}
        settings = self.mapping.backends[backend]

        def rename(catalog: str | None, database: str | None) -> tuple[str | None, str | None]:
            key = catalog, database
            if key not in known:
                name = None
                if database is not None:
                    name = self.mapping.name(backend, Name(catalog or settings.backend_catalog, database))
                    if name is None:
                        raise Refused(f"backend {backend} answers with a partition of {database}, which is hidden here")
                front = settings.catalog if catalog is not None or settings.catalog != "hive" else None
                known[key] = front, name and name.database
            return known[key]

        return rename


def value_of(name: str, kind: int, body: bytes) -> Any:
    """What a reply says that a method returns. Raises the exception in it."""
    if kind == binary.EXCEPTION:
        raise application_error(body)
    method = METHODS[name]
    result = binary.decode_preserving(method.result, body)
    for place in method.exceptions.values():
        if (raised := getattr(result, place)) is not None:
            raise raised
    return getattr(result, "success", None)


class Exchange:
    """One call to a backend and its reply."""

    def __init__(self, pool: Pool, identity: Identity, method: Method, arguments: bytes, *, resend: bool) -> None:
        self._pool = pool
        self._identity = identity
        self._method = method
        self._arguments = arguments
        self._resend = resend
        self._relay: Relay | None = None
        self.kind = TMessageType.REPLY

    def begin(self) -> ReplyReader:
        """Sends the call and reads the reply's header. Raises BackendError.

        Once bytes have left, only what changes nothing is sent again, and only once.
        """
        try:
            return self._attempt(fresh=False)
        except _Lost as lost:
            if not self._resend or lost.timed_out:
                raise self._error(lost.reason) from None
        try:
            return self._attempt(fresh=True)
        except _Lost as lost:
            raise self._error(lost.reason) from None

    def _attempt(self, *, fresh: bool) -> ReplyReader:
        relay = self._relay = self._pool.take(self._identity, fresh=fresh)
        try:
            reader = relay.call(self._method.name, self._arguments)
            self.kind = reader.header().kind
        except _BROKEN as error:
            self._give_back(usable=False)
            self._pool.broke(relay.uri, error)
            raise _Lost(f"{relay.uri}: {error}", timed_out=timed_out(error)) from None
        except BaseException:
            self._give_back(usable=False)
            raise
        self._pool.succeeded()
        return reader

    def whole(self, reader: ReplyReader) -> tuple[int, bytes]:
        """The kind and the body of a reply. Raises BackendError, Refused for one that is too long."""
        body = self.reads(reader.skipped)
        in_step = self.kind != TMessageType.EXCEPTION or application_error(body).type in _IN_STEP
        self._give_back(usable=reader.ended and in_step)
        return self.kind, body

    def partitions(self, reader: ReplyReader, rename: RenamePartition | None) -> Iterator[bytes]:
        """The body of a reply that begins with partitions, while it arrives. Raises BackendError."""
        try:
            yield from reader.partitions(rename)
        except _BROKEN as error:
            self._pool.failed(str(error))
            self._give_back(usable=False)
            raise self._error(str(error)) from None
        except BaseException:  # the client has gone, too
            self._give_back(usable=False)
            raise
        self._give_back(usable=reader.ended)

    def reads(self, read: Callable[[], T]) -> T:
        """What a function reads of the reply. Raises BackendError, Refused for a reply that is too long."""
        try:
            return read()
        except ReplyTooLong as error:
            self._give_back(usable=False)
            raise Refused(
                f"{self._method.name}: {error} from backend {self._pool.backend}: ask for less at a time, or raise the"
                " front's max_reply_bytes"
            ) from None
        except _BROKEN as error:
            self._pool.failed(str(error))
            self._give_back(usable=False)
            raise self._error(str(error)) from None
        except BaseException:
            self._give_back(usable=False)
            raise

    def _give_back(self, *, usable: bool) -> None:
        relay, self._relay = self._relay, None
        if relay is not None:
            self._pool.give_back(relay, self._identity, usable=usable)

    def _error(self, reason: str) -> BackendError:
        if self._resend:
            return Unreachable(self._pool.backend, reason)
        return Unknown(self._pool.backend, reason)


class _Lost(Exception):
    """The answer to a call is lost."""

    def __init__(self, reason: str, *, timed_out: bool) -> None:
        super().__init__(reason)
        self.reason = reason
        self.timed_out = timed_out
