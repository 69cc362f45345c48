"""The registry of handlers: which function answers which Thrift method, and what is declared of it."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from inspect import signature
from typing import Any, TypeVar

from lake.protocol.hive import MetaException, Table
from lake.protocol.services import METHODS
from lake.protocol.struct import Struct
from metastore.api.rights.classification import Rule
from metastore.api.session import Session
from metastore.api.uncommitted import Uncommitted
from metastore.services.model.visibility import Scope
from metastore.services.wiring import Metastore
from metastore.store.access import request_keys

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")
Audit = Callable[[Any, Any], Iterable[dict[str, Any]]]


class NotYet(Exception):
    """Raised by a long poll that has no result yet.

    It is called again when there are new events, at the latest after `seconds`. No thread waits meanwhile. `predicate`:
    says whether to call again for new events; see `EventWaits.predicate`. It is called in a request's thread. `every`:
    it is called again after so many seconds in any case, for events that this server isn't told of.
    """

    def __init__(
        self, seconds: float, predicate: Callable[[int], bool] | None = None, every: float | None = None
    ) -> None:
        super().__init__(seconds)
        self.seconds = seconds
        self.predicate = predicate
        self.every = every


@dataclass(frozen=True, slots=True)
class Call:
    """One call under way: on which connection, and the services it may use.

    `may_wait`: the function may raise NotYet; otherwise it has to answer now. `shown`: says for each of several items
    whether the caller sees it: tables by their names, or what the method's filter in `metastore.api.rights.filters`
    takes. None if the caller sees all of them. A function whose method has a limit leaves hidden items out before it
    counts, otherwise the limit would tell of them. It calls `shown` outside of transactions.
    `owner`: the user who owns what the call makes without naming an owner; None where there are no rights.
    `as_iceberg`: shows a table of another format as Iceberg's. It is called outside of transactions, and writes files.
    """

    session: Session
    metastore: Metastore
    may_wait: bool = False
    shown: Callable[[Sequence[Any]], list[bool]] | None = None
    owner: str | None = None
    as_iceberg: Callable[[Table], Table] | None = None

    def visible(self, items: list[T]) -> list[T]:
        """The items that the caller sees."""
        if self.shown is None:
            return items
        return [item for item, sees in zip(items, self.shown(items), strict=True) if sees]

    @contextmanager
    def once(self) -> Iterator[None]:
        """The change that is made within the block is that of the connection's request (`lake_begin_request`).

        Raises MetaException if the request has been done or refused meanwhile: then nothing is changed.
        """
        try:
            with request_keys.claiming(self.session.request):
                yield
        except request_keys.Repeated:
            raise MetaException("a request with the same key was answered meanwhile") from None

    @property
    def scope(self) -> Scope:
        """Which partitions a read shows, unless the table's name or the request says more."""
        return Scope.UNCOMMITTED if self.session.include_uncommitted else Scope.READY


@dataclass(frozen=True, slots=True)
class Encoded:
    """A return value that is already encoded: the result's `success` value in the binary protocol, in pieces.

    Pieces are produced while they are sent; an error among them closes the connection, since half an answer
    must never look whole.
    """

    pieces: Iterable[bytes]


@dataclass(frozen=True, slots=True)
class Handler:
    """`function(call, *arguments)`, the arguments in the IDL's order, None for one that was not sent.

    `rule`: which rights the method needs, and whether it changes something. `uncommitted`: what it tells of uncommitted
    partitions. `stores`: what arrives is kept, so fields that the IDL doesn't know must survive decoding. `required`:
    the names of the arguments without which the function can't be called. `cached`: its answer follows from the
    arguments, from what the session shows, and from what it records in `metastore.store.engine.read_set`.
    `of_table(row, *arguments)`: the same answer, where it follows from the arguments and the stored row of one table;
    None where it doesn't. `audit(arguments, value)`: what the audit log says of a call beside its objects; see
    `metastore.api.rights.audited`. `off`: what isn't in use here, so that the method answers as Hive's does without it.
    `differs`: what it does in another way than Hive's. Both are for docs/methods.md.
    """

    function: Callable[..., Any]
    rule: Rule
    uncommitted: Uncommitted
    stores: bool
    required: tuple[str, ...] = ()
    cached: bool = False
    of_table: Callable[..., Any] | None = None
    audit: Audit | None = None
    off: str | None = None
    differs: str | None = None


HANDLERS: dict[str, Handler] = {}


def answers(
    name: str,
    *,
    reads: str | None = None,
    changes: str | None = None,
    uncommitted: str | None = None,
    stores: bool = False,
    cached: bool = False,
    of_table: Callable[..., Any] | None = None,
    audit: Audit | None = None,
    off: str | None = None,
    differs: str | None = None,
) -> Callable[[F], F]:
    """Declares a Thrift method, which the decorated function answers.

    `reads`, or `changes` for a method that changes something: which rights it needs, in the form of
    `metastore.api.rights.classification`. `uncommitted`: a value of `Uncommitted`. The others are the
    handler's. An argument whose annotation is a struct, and not a struct or None, is required.

    Raises KeyError for a method that the IDL doesn't have, TypeError for a declaration that is missing, made twice, or
    in another form.
    """
    method = METHODS[name]
    text = reads if changes is None else changes
    if text is None or (reads is not None and changes is not None):
        raise TypeError(
            f'{name}: say which rights it needs, by reads="LIST table db_name tbl_name" if it changes nothing,'
            " else by changes=...; metastore/api/rights/classification.py has the form"
        )
    if name in HANDLERS:
        raise TypeError(f"{name} is declared twice")
    try:
        rule = Rule.parse(text, changes=changes is not None)
    except (LookupError, ValueError) as e:
        raise TypeError(f"{name}: {text!r} is not in the form of metastore/api/rights/classification.py") from e
    if uncommitted not in list(Uncommitted):
        raise TypeError(
            f"{name}: say what it tells of uncommitted partitions, by uncommitted= one of {', '.join(Uncommitted)};"
            " metastore/api/uncommitted.py explains them"
        )

    def register(function: F) -> F:
        _, *parameters = signature(function).parameters.values()
        required = (
            argument
            for argument, parameter in zip(method.argument_names, parameters, strict=True)
            if isinstance(parameter.annotation, type) and issubclass(parameter.annotation, Struct)
        )
        HANDLERS[name] = Handler(
            function, rule, Uncommitted(uncommitted), stores, tuple(required), cached, of_table, audit, off, differs
        )
        return function

    return register
