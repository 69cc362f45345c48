"""Brings what belongs to tables of another metastore, or to who uses them: statistics, constraints, roles, grants."""

from collections.abc import Iterable, Mapping, Sequence

from lake.protocol.clock import now_seconds
from lake.protocol.codec import binary
from lake.protocol.events.types import EventType
from lake.protocol.hive import (
    ColumnStatistics,
    ColumnStatisticsDesc,
    ColumnStatisticsObj,
    HiveObjectPrivilege,
    InvalidOperationException,
    MetaException,
    NoSuchObjectException,
    PrincipalType,
    Role,
    RolePrincipalGrant,
    SQLAllTableConstraints,
    SQLForeignKey,
)
from lake.protocol.struct import Struct
from metastore.services.access import privileges
from metastore.services.access.roles import ADMIN, PUBLIC, check_role, grantor_type_of, principal_of
from metastore.services.events.recorder import Events
from metastore.services.migration.outcome import Outcome, difference
from metastore.services.migration.tables import PAST_TIMELINE, rows_are_of_timeline
from metastore.services.model import names as given
from metastore.services.statistics import column_values, kept_statistics
from metastore.services.statistics.service import DEFAULT_ENGINE
from metastore.services.table import constraints as constraint_rules
from metastore.services.table.constraint_forms import FORM, FORMS, Entry, asked_for, struct_of
from metastore.store.access import privileges as store
from metastore.store.catalog.databases import RowLock
from metastore.store.engine.database import Transaction
from metastore.store.engine.names import TableName
from metastore.store.partition import partitions
from metastore.store.partition.partitions import Selection
from metastore.store.statistics import statistics
from metastore.store.statistics.statistics import OF_TABLE, NewStatistics
from metastore.store.table import constraints, tables
from metastore.store.table.constraints import Place
from metastore.store.table.tables import TableRow

_Key = tuple[TableName, str | None]


class Belongings:
    """Keeps statistics, constraints, roles and privileges as they are elsewhere, in transactions of the caller's."""

    def __init__(self, events: Events) -> None:
        self._events = events

    # --- statistics -------------------------------------------------------------------------------------------

    def statistics(self, tx: Transaction, brought: Sequence[ColumnStatistics], outcome: Outcome) -> None:
        """Statistics of tables and of their partitions. They are neither merged nor do they count as accurate by it:
        the parameters say that, and are brought with their table or partition.

        Raises NoSuchObjectException for a table or partition that isn't there, MetaException, InvalidObjectException.
        """
        by_table: dict[tuple[TableName, str], list[ColumnStatistics]] = {}
        for each in brought:
            of = each.statsDesc or ColumnStatisticsDesc()
            name = given.table_name(of.dbName, of.tableName, of.catName)
            by_table.setdefault((name, each.engine or DEFAULT_ENGINE), []).append(each)
        for (name, engine), some in sorted(by_table.items(), key=lambda pair: pair[0]):
            own = any(not _partition_of(each) for each in some)
            row = tables.find(tx, name, RowLock.EXCLUSIVE if own else RowLock.SHARED)
            if row is None:
                raise NoSuchObjectException(f"No table {name}: import the tables first")
            if rows_are_of_timeline(tx, row):
                raise InvalidOperationException(PAST_TIMELINE.format(name))
            self._of_table(tx, row, engine, some, outcome)

    def _of_table(
        self, tx: Transaction, row: TableRow, engine: str, brought: Sequence[ColumnStatistics], outcome: Outcome
    ) -> None:
        wanted = {_partition_of(each): _by_column(each) for each in brought}
        columns = sorted({column for own in wanted.values() for column in own})
        names = [name for name in wanted if name]
        ids = {each.name: each.id for each in partitions.rows(tx, Selection(row.id, names=names), lock=True)}
        ids[""] = OF_TABLE
        here = _kept(tx, row, names, columns, engine)
        times = {_partition_of(each): (each.statsDesc or ColumnStatisticsDesc()).lastAnalyzed for each in brought}
        new: list[NewStatistics] = []
        changed: set[str] = set()
        for partition, own in sorted(wanted.items()):
            if partition not in ids:
                raise NoSuchObjectException(f"No partition {partition} of {row.name}: import the partitions first")
            for column, value in own.items():
                old = here.get(partition, {}).get(column)
                if old is None:
                    outcome.added += 1
                elif not outcome.differs(
                    "statistics", f"{row.name} {partition} {column}".replace("  ", " "), _difference(old, value)
                ):
                    continue
                time = times[partition] or now_seconds()
                new.append(NewStatistics(ids[partition], column, engine, time, binary.encode(value)))
                changed.add(partition)
        if new:
            statistics.put(tx, row.id, new)
            named = sorted(changed - {""})
            self._events.statistics(tx, EventType.UPDATE_STATISTICS, row, named, sorted({each.column for each in new}))
            tables.touch(tx, row.id)

    # --- constraints ------------------------------------------------------------------------------------------

    def constraints(self, tx: Transaction, brought: SQLAllTableConstraints, outcome: Outcome) -> None:
        """All columns of a constraint have to be among those brought.

        Raises MetaException for a key that can't be, InvalidObjectException for a column or table that isn't there.
        """
        fresh: list[Entry] = []
        by_name: dict[_Key, list[Entry]] = {}
        for entry in asked_for(brought):
            if entry.name is None:  # a name that is made up would be another one at each repetition
                raise MetaException(f"a constraint on {entry.table} has no name")
            by_name.setdefault((entry.table, entry.name), []).append(entry)
        for (table, name), entries in by_name.items():
            rows = [row for row in constraints.find(tx, on=Place(*table)) if row.name == name]
            if not rows:
                fresh += entries
                outcome.added += 1
                continue
            here = [struct_of(FORM[row.kind].struct, row) for row in rows]
            wanted = [each.struct for each in sorted(entries, key=lambda entry: entry.position)]
            outcome.differs("constraint", f"{table} {name}", _constraint_difference(here, wanted), replaceable=False)
        if fresh:
            constraint_rules.keep(tx, self._events, fresh)

    # --- roles and grants -------------------------------------------------------------------------------------

    def role(self, tx: Transaction, brought: Role, outcome: Outcome) -> None:
        """Raises MetaException for a role without a name."""
        if not brought.roleName:
            raise MetaException("a role needs a name")
        row = store.find_role(tx, brought.roleName, lock=True)
        if row is None:
            store.add_role(tx, brought.roleName, brought.ownerName, brought.createTime or now_seconds())
            outcome.added += 1
            return
        made = brought.roleName in (ADMIN, PUBLIC)  # every metastore makes them, at its own time
        unknown = brought.ownerName is None  # Hive tells the owners of those roles alone that have members
        found = None
        if not made and not unknown and row.owner != brought.ownerName:
            found = f"ownerName: here {row.owner!r}, there {brought.ownerName!r}"
        if outcome.differs("role", brought.roleName, found):
            store.change_role(tx, row, brought.ownerName)

    def member(self, tx: Transaction, brought: RolePrincipalGrant, outcome: Outcome) -> None:
        """Raises MetaException for a role that isn't there, and where it would become a member of itself."""
        principal = principal_of(brought.principalName, brought.principalType)
        role = store.find_role(tx, brought.roleName or "", lock=True)
        if role is None:
            raise MetaException(f"Role {brought.roleName} does not exist: import the roles first")
        there = [each for each in store.memberships(tx, role=role.name) if each.principal == principal]
        if there:
            option = bool(brought.grantOption)
            found = None if there[0].grant_option == option else f"grantOption: here {not option}, there {option}"
            if not outcome.differs("member", f"{principal.name} of {role.name}", found):
                return
            store.remove_member(tx, there[0])
        else:
            outcome.added += 1
        if principal.type == PrincipalType.ROLE:
            own = store.ancestors(tx, [store.Principal(PrincipalType.ROLE, role.name)], PrincipalType.ROLE)
            if principal.name in {role.name} | own:
                raise MetaException(f"role {principal.name} would become a member of itself")
            check_role(tx, principal.name)
        store.add_member(
            tx,
            role,
            principal,
            time=brought.grantTime or now_seconds(),
            grantor=brought.grantorName,
            grantor_type=grantor_type_of(brought.grantorPrincipalType),
            grant_option=bool(brought.grantOption),
        )

    def grant(self, tx: Transaction, brought: HiveObjectPrivilege, outcome: Outcome) -> None:
        """Raises MetaException for an object or a role that isn't there."""
        added = privileges.bring(tx, brought, replace=outcome.replace)
        if added:
            outcome.added += 1
        else:
            found = None if added is not None else "the right to pass it on is on one side only"
            outcome.differs("grant", privileges.described(brought), found)


def _partition_of(brought: ColumnStatistics) -> str:
    """The name of the partition that statistics are of; empty for those of the table itself."""
    of = brought.statsDesc or ColumnStatisticsDesc()
    return "" if of.isTblLevel else of.partName or ""


def _by_column(brought: ColumnStatistics) -> dict[str, ColumnStatisticsObj]:
    return {each.colName or "": each for each in map(column_values.checked, brought.statsObj or ())}


def _kept(
    tx: Transaction, row: TableRow, names: Sequence[str], columns: Sequence[str], engine: str
) -> Mapping[str, Mapping[str, ColumnStatisticsObj]]:
    """What is kept of a table, under an empty name, and of its partitions, by column."""
    own = statistics.of_table(tx, row.id, columns, engine)
    found = [own] if own else []
    if names:
        found += statistics.of_partitions(tx, Selection(row.id, names=names), columns, engine)
    return {
        each.partition: {value.colName or "": value for value in kept_statistics.decoded(each.columns, each.bodies)}
        for each in found
    }


def _difference(here: ColumnStatisticsObj, brought: ColumnStatisticsObj) -> str | None:
    """What differs; a sketch that isn't brought doesn't count, since many servers don't tell it."""
    kind, data = column_values.kind_of(here)
    other_kind, other = column_values.kind_of(brought)
    if kind == other_kind:
        for sketch in (column_values.SKETCH, column_values.HISTOGRAM):
            if getattr(other, sketch, None) is None and getattr(data, sketch, None) is not None:
                data = data.replace(**{sketch: None})
        here = column_values.with_data(here, kind, data)
    return difference(here, brought)


def _constraint_difference(here: Sequence[Struct], brought: Iterable[Struct]) -> str | None:
    wanted = list(brought)
    if len(here) != len(wanted) or any(type(a) is not type(b) for a, b in zip(here, wanted, strict=False)):
        return f"here {here}, there {wanted}"
    found = (difference(_bare(one), _bare(other)) for one, other in zip(here, wanted, strict=True))
    return next((each for each in found if each is not None), None)


def _bare(constraint: Struct) -> Struct:
    """A constraint with what Hive 2.3 leaves out; the name of a referenced key follows from the columns.

    Hive 2.3 keeps the case of names.
    """
    name = next(form.name for form in FORMS if form.struct is type(constraint))
    fields = {"catName": None, name: (getattr(constraint, name) or "").lower()}
    if isinstance(constraint, SQLForeignKey):
        fields["pk_name"] = None
    flags = {flag: bool(getattr(constraint, flag)) for flag in ("enable_cstr", "validate_cstr", "rely_cstr")}
    return constraint.replace(**fields, **flags)
