"""Reads definitions from Python files that use the names of `pyspark.pipelines`.

A file gets what it needs in two ways: `from pyspark import pipelines as dp` and `from lake import layers as dp`.
Its session is `spark`, or what `SparkSession.active()` returns. Its queries are text: a function returns
`spark.sql("…")`, `spark.table("…")` or `spark.readStream.table("…")`, and the text is recorded. Nothing is computed
while a file is read.
"""

import runpy
import sys
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from lake.layers.definitions.model import (
    AppendFlow,
    AutoCdcFlow,
    Definitions,
    Expectation,
    Sink,
    StreamingTable,
    View,
    Violation,
)
from lake.layers.errors import BadDefinition, Place

_SPARKS = "pyspark.pipelines"


@dataclass(frozen=True)
class _File:
    """The file that is being read."""

    path: Path
    shown: Path
    into: Definitions


_reading: ContextVar[_File | None] = ContextVar("reading", default=None)


class Recorded:
    """What `spark.sql` returns in a definition: the text of a query."""

    def __init__(self, query: str) -> None:
        self.query = query

    def __getattr__(self, name: str) -> NoReturn:
        _refuse(f"a definition's query is SQL: write what .{name} does in the text of spark.sql(…)")


class StreamRecorder:
    """The `spark.readStream` of definitions."""

    def table(self, name: str) -> Recorded:
        """All rows of a table."""
        return Recorded(f"SELECT * FROM {name}")

    def __getattr__(self, name: str) -> NoReturn:
        _refuse(f"spark.readStream.{name} isn't there in a definition: use spark.readStream.table(…)")


class Recorder:
    """The `spark` of definitions, which records the text of queries."""

    readStream = StreamRecorder()  # noqa: N815 - Spark's name

    def sql(self, query: str, *args: Any, **kwargs: Any) -> Recorded:
        """A query in Spark's SQL."""
        if args or kwargs:
            _refuse("spark.sql takes the text of the query alone in a definition")
        return Recorded(query)

    def table(self, name: str) -> Recorded:
        """All rows of a table or view."""
        return Recorded(f"SELECT * FROM {name}")

    def __getattr__(self, name: str) -> NoReturn:
        _refuse(f"spark.{name} isn't there in a definition: use spark.sql(…) or spark.table(…)")


def read(path: Path, shown: Path, into: Definitions) -> None:
    """Adds what a file defines. `shown` is its path for messages. Raises BadDefinition."""
    token = _reading.set(_File(path.resolve(), shown, into))
    try:
        with _in_place_of_sparks(), _as_active_session(Recorder(), path) as spark:
            runpy.run_path(str(path), init_globals={"spark": spark})
    except BadDefinition:
        raise
    except SyntaxError as error:
        raise BadDefinition(Place(shown, error.lineno or 1), f"it isn't Python: {error.msg}") from None
    except Exception as error:
        raise BadDefinition(Place(shown, _line_in(error, path) or 1), f"{type(error).__name__}: {error}") from error
    finally:
        _reading.reset(token)


# --- what definitions call, by the names of pyspark.pipelines ---------------------------------------------------


def materialized_view(
    query_function: Callable[[], Any] | None = None,
    *,
    name: str | None = None,
    comment: str | None = None,
    table_properties: Mapping[str, str] | None = None,
    partition_cols: Sequence[str] | None = None,
    **others: Any,
) -> Any:
    """Defines a materialized view by a function that returns its query. Arguments are those of `pyspark.pipelines`."""
    place = _place()
    _check_others("materialized_view", others)

    def define(function: Callable[[], Any]) -> None:
        _file().into.views.append(
            View(
                name or function.__name__,
                _query_of(function),
                place,
                comment=comment,
                properties=dict(table_properties or {}),
                partitions=tuple(each.lower() for each in partition_cols or ()),
                expectations=_expected_of(function),
            )
        )

    return define if query_function is None else define(query_function)


def table(
    query_function: Callable[[], Any] | None = None,
    *,
    name: str | None = None,
    comment: str | None = None,
    table_properties: Mapping[str, str] | None = None,
    partition_cols: Sequence[str] | None = None,
    **others: Any,
) -> Any:
    """Defines a streaming table with a flow of its own. Arguments are those of `pyspark.pipelines`."""
    place = _place()
    _check_others("table", others)

    def define(function: Callable[[], Any]) -> None:
        own = name or function.__name__
        partitions = tuple(each.lower() for each in partition_cols or ())
        into = _file().into
        into.streaming_tables.append(
            StreamingTable(own, place, comment, dict(table_properties or {}), partitions, _expected_of(function))
        )
        into.flows.append(AppendFlow(own, own, _query_of(function), place))

    return define if query_function is None else define(query_function)


def append_flow(*, target: str, name: str | None = None, **others: Any) -> Callable[[Callable[[], Any]], None]:
    """Defines a query whose rows a streaming table or a sink gets, too. Arguments are those of `pyspark.pipelines`."""
    place = _place()
    _check_others("append_flow", others)

    def define(function: Callable[[], Any]) -> None:
        _file().into.flows.append(AppendFlow(name or function.__name__, target, _query_of(function), place))

    return define


def temporary_view(query_function: Callable[[], Any] | None = None, *, name: str | None = None, **others: Any) -> Any:
    """Defines a query that other definitions may name. Arguments are those of `pyspark.pipelines`."""
    place = _place()
    _check_others("temporary_view", others, ("comment",))

    def define(function: Callable[[], Any]) -> None:
        view = View(name or function.__name__, _query_of(function), place, is_temporary=True)
        _file().into.views.append(view)

    return define if query_function is None else define(query_function)


def create_streaming_table(
    name: str,
    *,
    comment: str | None = None,
    table_properties: Mapping[str, str] | None = None,
    partition_cols: Sequence[str] | None = None,
    **others: Any,
) -> None:
    """Defines a table that a flow fills. Arguments are those of `pyspark.pipelines`."""
    _check_others("create_streaming_table", others)
    partitions = tuple(each.lower() for each in partition_cols or ())
    made = StreamingTable(name, _place(), comment, dict(table_properties or {}), partitions)
    _file().into.streaming_tables.append(made)


def create_auto_cdc_flow(
    target: str,
    source: str,
    keys: Sequence[str],
    sequence_by: str,
    apply_as_deletes: str | None = None,
    column_list: Sequence[str] | None = None,
    except_column_list: Sequence[str] | None = None,
    stored_as_scd_type: int | str = 1,
    name: str | None = None,
    **others: Any,
) -> None:
    """Defines a flow of changes into a streaming table. Arguments are those of `pyspark.pipelines`, as texts."""
    _check_others("create_auto_cdc_flow", others)
    for argument, value in (("sequence_by", sequence_by), ("apply_as_deletes", apply_as_deletes)):
        if value is not None and not isinstance(value, str):
            _refuse(f"{argument} is a text of SQL in a definition")
    if any(not isinstance(each, str) for each in (*keys, *(column_list or ()), *(except_column_list or ()))):
        _refuse("columns are named by texts in a definition")
    if str(stored_as_scd_type) not in ("1", "2"):
        _refuse("stored_as_scd_type is 1 or 2")
    _file().into.flows.append(
        AutoCdcFlow(
            name or target,
            target,
            source,
            tuple(each.lower() for each in keys),
            sequence_by,
            _place(),
            apply_as_deletes,
            None if column_list is None else tuple(each.lower() for each in column_list),
            tuple(each.lower() for each in except_column_list or ()),
            int(stored_as_scd_type),
        )
    )


def create_sink(name: str, format: str, options: Mapping[str, str] | None = None) -> None:
    """Defines where rows go that flows append: a format of Spark's. Arguments are those of `pyspark.pipelines`."""
    if not isinstance(format, str) or not format.strip():
        _refuse("a sink needs a format: kafka, parquet, or another that Spark writes")
    given = dict(options or {})
    if wrong := [key for key, value in given.items() if not (isinstance(key, str) and isinstance(value, str))]:
        _refuse(f"option {wrong[0]!r} of a sink must be a text")
    _file().into.streaming_tables.append(StreamingTable(name, _place(), sink=Sink(format, given)))


def foreach_batch_sink(function: Callable[[Any, int], None] | None = None, *, name: str | None = None) -> Any:
    """Defines a sink by a function that is called with the rows of each batch, as a DataFrame, and its number.

    A batch that may have come already comes again with the same rows and number.
    """
    place = _place()

    def define(function: Callable[[Any, int], None]) -> None:
        made = StreamingTable(name or function.__name__, place, sink=Sink(function=function))
        _file().into.streaming_tables.append(made)

    return define if function is None else define(function)


def expect(name: str, condition: str) -> Callable[[Callable[[], Any]], Callable[[], Any]]:
    """Counts the rows of a materialized view that don't meet a condition. It stands below `materialized_view`."""
    return _expecting(name, condition, Violation.KEEP)


def expect_or_drop(name: str, condition: str) -> Callable[[Callable[[], Any]], Callable[[], Any]]:
    """Leaves out, and counts, the rows that don't meet a condition."""
    return _expecting(name, condition, Violation.DROP)


def expect_or_fail(name: str, condition: str) -> Callable[[Callable[[], Any]], Callable[[], Any]]:
    """Lets a refresh fail that would write rows that don't meet a condition."""
    return _expecting(name, condition, Violation.FAIL)


def expect_or_hold(name: str, condition: str) -> Callable[[Callable[[], Any]], Callable[[], Any]]:
    """Keeps partitions uncommitted that have rows which don't meet a condition."""
    return _expecting(name, condition, Violation.HOLD)


def expect_or_quarantine(name: str, condition: str) -> Callable[[Callable[[], Any]], Callable[[], Any]]:
    """Puts the rows that don't meet a condition into a table of their own, `<name>_quarantine`."""
    return _expecting(name, condition, Violation.QUARANTINE)


API: Mapping[str, Callable[..., Any]] = {
    each.__name__: each
    for each in (
        materialized_view,
        temporary_view,
        table,
        append_flow,
        create_streaming_table,
        create_auto_cdc_flow,
        create_sink,
        foreach_batch_sink,
        expect,
        expect_or_drop,
        expect_or_fail,
        expect_or_hold,
        expect_or_quarantine,
    )
}


def _expecting(name: str, condition: str, violation: Violation) -> Callable[[Callable[[], Any]], Callable[[], Any]]:
    def mark(function: Callable[[], Any]) -> Callable[[], Any]:
        found = Expectation(name, condition, violation)
        function.__dict__["_expectations"] = (found, *_expected_of(function))
        return function

    return mark


def _expected_of(function: Callable[[], Any]) -> tuple[Expectation, ...]:
    found: tuple[Expectation, ...] = function.__dict__.get("_expectations", ())
    return found


def _query_of(function: Callable[[], Any]) -> str:
    found = function()
    if not isinstance(found, Recorded):
        _refuse(f"{function.__name__} returns {type(found).__name__}: return spark.sql(…) or spark.table(…)")
    return found.query


def _check_others(name: str, others: Mapping[str, Any], ignored: Sequence[str] = ()) -> None:
    if wrong := [each for each, value in others.items() if value is not None and each not in ignored]:
        _refuse(f"{name}({wrong[0]}=…) isn't supported")


@contextmanager
def _in_place_of_sparks() -> Iterator[None]:
    """Has `pyspark.pipelines` be the functions here."""
    module = types.ModuleType(_SPARKS)
    module.__dict__.update(API)
    package = sys.modules.get("pyspark")
    before = sys.modules.get(_SPARKS)
    attribute = None if package is None else package.__dict__.get("pipelines")
    sys.modules[_SPARKS] = module
    if package is not None:
        package.__dict__["pipelines"] = module
    try:
        yield
    finally:
        del sys.modules[_SPARKS]
        if before is not None:
            sys.modules[_SPARKS] = before
        if (package := sys.modules.get("pyspark")) is not None:
            package.__dict__.pop("pipelines", None)
            if attribute is not None:
                package.__dict__["pipelines"] = attribute


@contextmanager
def _as_active_session(recorder: Recorder, path: Path) -> Iterator[Recorder]:
    """Has Spark's class return a recorder for the active session, if a file names that class."""
    if b"SparkSession" not in path.read_bytes():  # to import Spark takes a while
        yield recorder
        return
    from pyspark.sql import SparkSession

    names = ("active", "getActiveSession")
    before = {name: SparkSession.__dict__[name] for name in names}
    for name in names:
        setattr(SparkSession, name, staticmethod(lambda: recorder))
    try:
        yield recorder
    finally:
        for name, method in before.items():
            setattr(SparkSession, name, method)


def _file() -> _File:
    found = _reading.get()
    if found is None:
        raise RuntimeError("definitions are read by `metastore pipeline run DIR`, not run by themselves")
    return found


def _place() -> Place:
    """The line of the project's file that is being run."""
    file = _file()
    frame = sys._getframe()
    found = 1
    while frame is not None:
        if Path(frame.f_code.co_filename) == file.path or frame.f_code.co_filename == str(file.path):
            found = frame.f_lineno
            break
        frame = frame.f_back  # type: ignore[assignment]
    return Place(file.shown, found)


def _refuse(reason: str) -> NoReturn:
    raise BadDefinition(_place(), reason)


def _line_in(error: BaseException, path: Path) -> int | None:
    """The last line of a file that an exception came through."""
    traceback, found = error.__traceback__, None
    while traceback is not None:
        if Path(traceback.tb_frame.f_code.co_filename) == path:
            found = traceback.tb_lineno
        traceback = traceback.tb_next
    return found
