"""The objects that a call names, from its arguments."""

from collections.abc import Iterator
from typing import Any

from lake.protocol.formats.commit_mode import UNCOMMITTED_NAME
from lake.protocol.hive import HiveObjectRef, HiveObjectType
from lake.protocol.lake import TableReference
from metastore.api.rights.classification import Need, Path, value_at
from metastore.services.access.rights import EVERYTHING, Action, Kind, Securable, database, table
from metastore.services.model import names as given
from metastore.services.model import patterns

Requirement = tuple[Action, Securable]


class Row:
    """The values of one need for one item of its list, by the names of paths; the rest by position."""

    def __init__(self, need: Need, arguments: Any, item: Any) -> None:
        self._need = need
        self._arguments = arguments
        self._item = item

    def at(self, path: Path) -> Any:
        return value_at(self._arguments if path.within is None else self._item, path.names)

    def get(self, name: str) -> Any:
        path = self._need.named.get(name)
        return None if path is None else self.at(path)

    @property
    def values(self) -> list[Any]:
        return [self.at(path) for path in self._need.paths]

    @property
    def applies(self) -> bool:
        """Whether everything is there without which the need is none."""
        needed = all(self.at(path) not in (None, "") for path in self._need.paths if path.optional)
        condition = self._need.named.get("if")
        return needed and (condition is None or bool(self.at(condition)))


def rows(need: Need, arguments: Any) -> Iterator[Row]:
    """The items of a need's list, or the one need."""
    items = [None] if need.within is None else value_at(arguments, need.within) or ()
    for item in items:
        row = Row(need, arguments, item)
        if row.applies:
            yield row


def requirements(need: Need, arguments: Any, *, uncommitted: bool) -> Iterator[Requirement]:
    """What a need means for a call. `uncommitted`: the connection reads uncommitted partitions, too.

    Raises MetaException for a missing or impossible name.
    """
    assert need.action is not None
    for row in rows(need, arguments):
        for object in objects(need.kind, row):
            yield need.action, object
            if object.kind is Kind.TABLE and _reads_uncommitted(need, row, uncommitted):
                yield Action.READ_UNCOMMITTED, object._replace(partition=None, column=None)


def _reads_uncommitted(need: Need, row: Row, uncommitted: bool) -> bool:
    if need.action in (Action.LIST, Action.SELECT) and (uncommitted or bool(row.get("uncommitted"))):
        return True
    names = [_table_of(value) for value in row.values]
    return any(name is not None and given.normalized(name).endswith(UNCOMMITTED_NAME) for name in names)


def _table_of(value: Any) -> str | None:
    """The table's name in a value that names an object: the value itself, or a reference's field."""
    if isinstance(value, TableReference):
        return value.table
    if isinstance(value, HiveObjectRef):
        return value.objectName
    return value if isinstance(value, str) else None


def objects(kind: str, row: Row) -> Iterator[Securable]:
    values, catalog = row.values, row.get("cat")
    if kind == "everything":
        yield EVERYTHING
    elif kind == "catalog":
        yield Securable(Kind.CATALOG, given.normalized(values[0] or given.DEFAULT_CATALOG))
    elif kind == "database":
        yield database(given.database_name(values[0], catalog))
    elif kind == "databases":
        if patterns.only_name(given.split_database(values[0])[1]) is not None:
            yield database(given.database_name(values[0], catalog))
    elif kind == "events":
        where = given.database_name(values[0], catalog)
        yield EVERYTHING if where.database == "*" else database(where)
    elif kind == "role":
        yield Securable(Kind.ROLE, database=values[0] or "")
    elif kind == "table":
        yield from _parts(table_object(values[0], values[1], catalog), row)
    elif kind == "described":  # what follows a dot in the name is not the table's
        yield table_object(values[0], values[1] and values[1].partition(".")[0], catalog)
    elif kind == "lake":
        reference = values[0]
        yield table_object(reference.database, reference.table, reference.catalog)
    elif kind == "full":
        of, _, name = (values[0] or "").rpartition(".")
        yield table_object(of, name, catalog)
    elif kind == "ref":
        yield from of_ref(values[0])
    else:
        raise AssertionError(f"no kind of object: {kind}")


def table_object(database_name: str | None, name: str | None, catalog: str | None = None) -> Securable:
    """A table by the names that a client gives, without a decoration. Raises MetaException."""
    shown = given.shown_as_iceberg(name)
    return table(given.base(given.decorated_name(database_name, name if shown is None else shown, catalog)))


def of_ref(ref: HiveObjectRef | None) -> Iterator[Securable]:
    """The object of a privilege; none if the reference names none."""
    if ref is None or ref.objectType == HiveObjectType.GLOBAL:
        return
    if ref.objectType == HiveObjectType.DATABASE or (ref.dbName is not None and ref.objectName is None):
        if ref.dbName is not None:
            yield database(given.database_name(ref.dbName, ref.catName))
    elif ref.objectName is not None:
        yield table_object(ref.dbName, ref.objectName, ref.catName)


def _parts(whole: Securable, row: Row) -> Iterator[Securable]:
    """The partitions and columns that a call names, else the whole table."""
    # A partition's name may have the keys in any order: who names one so needs the table.
    partition = tuple(values) if (values := row.get("values")) else None
    columns = [column] if (column := row.get("col")) else row.get("cols") or [None]
    for column in columns:
        yield whole._replace(partition=partition, column=column and given.normalized(column))
