"""What entries of a Hive metastore's notification log say that has changed.

Only names are taken from the log. The objects themselves are read again at the metastore, so it doesn't matter whether
an entry is read late, twice, or together with others.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from lake.protocol.formats import partition_names
from lake.protocol.hive import NotificationEvent, Partition, Table
from metastore.federation.messages import NotUnderstood, decoded, struct_of
from metastore.migration.objects import DEFAULT_CATALOG, DatabaseKey, TableKey

Values = tuple[str, ...] | frozenset[tuple[str, str]]
"""A partition, by its values in order, or by them with their keys."""

_WITHOUT_CHANGE = frozenset({
    "OPEN_TXN", "COMMIT_TXN", "ABORT_TXN", "ALLOC_WRITE_ID", "ACID_WRITE", "BATCH_ACID_WRITE", "COMMIT_COMPACTION",
    "LOAD_PARTITION_DONE", "RELOAD", "MARK_PARTITION", "CREATE_INDEX", "ALTER_INDEX", "DROP_INDEX", "CREATE_ROLE",
    "CREATE_ISCHEMA", "ALTER_ISCHEMA", "DROP_ISCHEMA", "ADD_SCHEMA_VERSION", "ALTER_SCHEMA_VERSION",
    "DROP_SCHEMA_VERSION", "CREATE_DATACONNECTOR", "ALTER_DATACONNECTOR", "DROP_DATACONNECTOR",
})  # fmt: skip
"""Types of entries about what isn't brought, and about transactions, whose write ids are compared at the end."""

_CATALOGS = frozenset({"CREATE_CATALOG", "ALTER_CATALOG", "DROP_CATALOG"})
_DATABASES = frozenset({"CREATE_DATABASE", "ALTER_DATABASE", "DROP_DATABASE"})
_FUNCTIONS = frozenset({"CREATE_FUNCTION", "ALTER_FUNCTION", "DROP_FUNCTION"})
_ITSELF = frozenset({
    "ADD_PRIMARYKEY", "ADD_FOREIGNKEY", "ADD_UNIQUECONSTRAINT", "ADD_NOTNULLCONSTRAINT", "ADD_DEFAULTCONSTRAINT",
    "ADD_CHECKCONSTRAINT", "DROP_CONSTRAINT", "UPDATE_TBL_COL_STAT", "UPDATE_TABLE_COLUMN_STAT", "DELETE_TBL_COL_STAT",
    "DELETE_TABLE_COLUMN_STAT",
})  # fmt: skip


@dataclass
class TableChange:
    """What is to be read again of a table.

    `itself`: the table, its constraints and statistics. `everything`: its partitions, too. `remade`: it was dropped, so
    if there is one, it's another table. `partitions`: some of them; `remade_partitions`: those that were dropped.
    `gone`: when those tables were made that were dropped, or got another name, as far as the log tells it.
    """

    itself: bool = False
    everything: bool = False
    remade: bool = False
    partitions: set[Values] = field(default_factory=set)
    remade_partitions: set[Values] = field(default_factory=set)
    gone: set[int] = field(default_factory=set)

    @classmethod
    def whole(cls) -> "TableChange":
        return cls(itself=True, everything=True)


@dataclass
class Changes:
    """What is to be read again. `compared`: databases of which it isn't known what has changed in them."""

    catalogs: bool = False
    databases: set[DatabaseKey] = field(default_factory=set)
    remade: set[DatabaseKey] = field(default_factory=set)
    functions: set[DatabaseKey] = field(default_factory=set)
    tables: dict[TableKey, TableChange] = field(default_factory=dict)
    compared: set[DatabaseKey] = field(default_factory=set)
    everything: bool = False

    def table(self, key: TableKey) -> TableChange:
        return self.tables.setdefault(key, TableChange())

    def add(self, other: "Changes") -> None:
        """Adds other changes."""
        self.catalogs |= other.catalogs
        self.everything |= other.everything
        self.databases |= other.databases
        self.remade |= other.remade
        self.functions |= other.functions
        self.compared |= other.compared
        for key, change in other.tables.items():
            own = self.table(key)
            own.itself |= change.itself
            own.everything |= change.everything
            own.remade |= change.remade
            own.partitions |= change.partitions
            own.remade_partitions |= change.remade_partitions
            own.gone |= change.gone

    def named(self) -> set[DatabaseKey]:
        """The databases that something is about."""
        return self.databases | self.functions | self.compared | {key.of_database for key in self.tables}

    def only(self, wanted: Callable[[DatabaseKey], bool]) -> "Changes":
        """What of this is about some databases."""
        return Changes(
            self.catalogs,
            {each for each in self.databases if wanted(each)},
            {each for each in self.remade if wanted(each)},
            {each for each in self.functions if wanted(each)},
            {key: change for key, change in self.tables.items() if wanted(key.of_database)},
            {each for each in self.compared if wanted(each)},
            self.everything,
        )


def changes_of(events: Iterable[NotificationEvent], *, again: bool = False) -> Changes:
    """What the entries say that has changed. `again`: they were dealt with before, as it is assumed."""
    found = Changes()
    for event in events:
        _note(found, event, again)
    return found


def is_about(event: NotificationEvent, key: DatabaseKey) -> bool:
    """Whether an entry names a database, also one that a table has left or come to by a rename, or may name it."""
    found = changes_of([event])
    return found.everything or key in (_database(event), *found.named())


def _database(event: NotificationEvent) -> DatabaseKey:
    return DatabaseKey((event.catName or DEFAULT_CATALOG).lower(), (event.dbName or "").lower())


def _note(found: Changes, event: NotificationEvent, again: bool) -> None:
    kind = event.eventType or ""
    if kind in _WITHOUT_CHANGE:
        return
    if kind in _CATALOGS:
        found.catalogs = True
        return
    if not event.dbName:
        found.everything = True  # it may be about anything
        return
    database = _database(event)
    if kind in _DATABASES:
        found.databases.add(database)
        if kind == "DROP_DATABASE" and not again:
            found.remade.add(database)
    elif kind in _FUNCTIONS:
        found.functions.add(database)
    elif not event.tableName:
        found.compared.add(database)
    else:
        try:
            _note_table(found, TableKey(*database, event.tableName.lower()), kind, event, again)
        except (NotUnderstood, AttributeError, LookupError, TypeError, ValueError):
            change = found.table(TableKey(*database, event.tableName.lower()))
            change.itself = change.everything = True
            found.everything |= kind == "ALTER_TABLE"  # it may name another table, too


def _note_table(found: Changes, key: TableKey, kind: str, event: NotificationEvent, again: bool) -> None:
    if kind == "ALTER_TABLE":
        _note_altered(found, key, event)
        return
    change = found.table(key)
    if kind in _ITSELF:
        change.itself = True
    elif kind in ("ADD_PARTITION", "DROP_PARTITION"):
        values = [_pairs(each) for each in decoded(event)["partitions"]]
        change.partitions.update(values)
        if kind == "DROP_PARTITION" and not again:
            change.remade_partitions.update(values)
    elif kind == "ALTER_PARTITION":
        message = decoded(event)
        change.partitions.add(_pairs(message["keyValues"]))
        for name in ("partitionObjBeforeJson", "partitionObjAfterJson"):
            if message.get(name):
                change.partitions.add(_values(struct_of(name, message[name])))
    elif kind == "INSERT":
        _note_inserted(change, decoded(event))
    else:  # CREATE_TABLE, DROP_TABLE, statistics of partitions, and what newer versions have
        change.itself = change.everything = True
        if kind == "DROP_TABLE":
            change.remade |= not again
            _note_gone(change, decoded(event).get("tableObjJson"))


def _note_gone(change: TableChange, text: str | None) -> None:
    """Hive 2.3 doesn't tell the table that was dropped."""
    table = struct_of("tableObjJson", text) if text else None
    if isinstance(table, Table) and table.createTime:
        change.gone.add(table.createTime)


def _note_inserted(change: TableChange, message: dict[str, Any]) -> None:
    pairs = message.get("partKeyVals") or message.get("partitionKeyValues")
    if message.get("ptnObjJson"):
        change.partitions.add(_values(struct_of("ptnObjJson", message["ptnObjJson"])))
    elif pairs:
        change.partitions.add(_pairs(pairs))
    else:
        change.itself = True


def _note_altered(found: Changes, key: TableKey, event: NotificationEvent) -> None:
    """A rename names two tables. Partitions change with their table where columns or places do, without being named."""
    message = decoded(event)
    before, after = (
        struct_of(name, message[name]) if message.get(name) else None
        for name in ("tableObjBeforeJson", "tableObjAfterJson")
    )
    everything = True
    if isinstance(before, Table) and isinstance(after, Table):
        was, now = _key(before), _key(after)
        everything = (
            was != now
            or before.sd != after.sd
            or before.partitionKeys != after.partitionKeys
            or str(message.get("isTruncateOp")).lower() == "true"
        )
        for each in (was, now):
            found.table(each).itself = True
            found.table(each).everything |= everything
        if was != now and before.createTime:
            found.table(was).gone.add(before.createTime)
    else:
        found.everything = True  # which other table it names isn't known
    change = found.table(key)
    change.itself = True
    change.everything |= everything


def _key(table: Table) -> TableKey:
    return TableKey(
        (table.catName or DEFAULT_CATALOG).lower(), (table.dbName or "").lower(), (table.tableName or "").lower()
    )


def _pairs(values: Any) -> Values:
    if not isinstance(values, dict) or not values:
        raise NotUnderstood("it doesn't name its partition")
    return frozenset((str(key).lower(), str(value)) for key, value in values.items())


def _values(partition: Partition) -> Values:
    if not partition.values:
        raise NotUnderstood("it doesn't name its partition")
    return tuple(partition.values)


def names_of(keys: Sequence[str], some: Iterable[Values]) -> list[str] | None:
    """The names of partitions of a table with these keys; None if they are those of another table."""
    wanted = [each.lower() for each in keys]
    found = set()
    for each in some:
        if isinstance(each, tuple):
            values = list(each)
        else:
            pairs = dict(each)
            if sorted(pairs) != sorted(wanted):
                return None
            values = [pairs[key] for key in wanted]
        if len(values) != len(wanted):
            return None
        found.add(partition_names.make_name(list(keys), values))
    return sorted(found)
