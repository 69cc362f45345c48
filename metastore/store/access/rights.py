"""SQL for decisions about access: owners and privileges, as rows of which decisions are made.

Each function records what it reads, so that a decision can be kept until one of these objects changes.
"""

from collections.abc import Collection, Iterable
from typing import Any, NamedTuple

from sqlalchemy import Connection, and_, bindparam, func, literal, or_, select, tuple_, union_all

from metastore.postgres.prepared import Prepared
from metastore.store.access.privileges import Principal
from metastore.store.engine.names import DatabaseName, TableName
from metastore.store.engine.read_set import Kind, record_read
from metastore.store.schema.access import privileges, role_grants, roles
from metastore.store.schema.catalog import catalogs, databases
from metastore.store.schema.partition import partitions
from metastore.store.schema.table import tables


class Granted(NamedTuple):
    """A privilege that a principal has. `table`, `partition_values` and `column`: None where it is on all of them."""

    principal: Principal
    privilege: str
    grant_option: bool
    table: str | None = None
    partition_values: tuple[str, ...] | None = None
    column: str | None = None


class Owned(NamedTuple):
    """An object with its owner. `body`: encoded, it has the owner's type."""

    id: int
    name: str
    owner: str | None
    body: bytes


class TableAccess(NamedTuple):
    """What decisions about a table are made of. The grants are those on the table and what is in it."""

    owned: Owned
    grants: list[Granted]


class DatabaseAccess(NamedTuple):
    """What decisions about a database are made of. The grants are those on the database itself."""

    owned: Owned
    grants: list[Granted]


_NONE = 0
"""The id of no database."""
_IN_DATABASE = (catalogs.c.name == bindparam("catalog"), databases.c.name == bindparam("database"))

_DATABASE = Prepared(
    select(databases.c.id, databases.c.name, databases.c.owner, databases.c.body)
    .join(catalogs, catalogs.c.id == databases.c.catalog_id)
    .where(*_IN_DATABASE)
)
_TABLE = Prepared(
    select(tables.c.id, tables.c.name, tables.c.owner, tables.c.body, tables.c.database_id)
    .join(databases, databases.c.id == tables.c.database_id)
    .join(catalogs, catalogs.c.id == databases.c.catalog_id)
    .where(*_IN_DATABASE, tables.c.name == bindparam("table"))
)
_GRANTED = (
    privileges.c.principal_type,
    privileges.c.principal_name,
    privileges.c.privilege,
    privileges.c.grant_option,
)
_ON_DATABASE = Prepared(select(*_GRANTED).where(privileges.c.database_id == bindparam("database_id")))
_WITH_PLACE = (*_GRANTED, privileges.c.partition_id, partitions.c["values"].label("values"), privileges.c.column_name)
_ON_TABLE = Prepared(
    select(*_WITH_PLACE)
    .outerjoin(partitions, partitions.c.id == privileges.c.partition_id)
    .where(privileges.c.table_id == bindparam("table_id"))
)
_ON_EVERYTHING = Prepared(select(*_GRANTED).where(privileges.c.database_id.is_(None), privileges.c.table_id.is_(None)))
_MEMBERS = Prepared(
    select(
        role_grants.c.principal_type,
        role_grants.c.principal_name,
        roles.c.name,
        role_grants.c.grant_option,
    ).join(roles, roles.c.id == role_grants.c.role_id)
)


def database_access(tx: Connection, name: DatabaseName) -> DatabaseAccess | None:
    """The owner of a database and the privileges on it; None if there is no such database."""
    row = _DATABASE.first(tx, name._asdict())
    # Asked in any case: the time of an answer must not tell a database that is hidden from one that isn't there.
    granted = [_granted(each) for each in _ON_DATABASE.all(tx, {"database_id": _NONE if row is None else row.id})]
    if row is None:
        record_read(Kind.DATABASES, 0)
        return None
    record_read(Kind.DATABASE, row.id)
    record_read(Kind.ACCESS, row.id)
    return DatabaseAccess(Owned(row.id, row.name, row.owner, bytes(row.body)), granted)


def table_access(tx: Connection, name: TableName) -> TableAccess | None:
    """The owner of a table and the privileges on it; None if there is no such table."""
    row = _TABLE.first(tx, name._asdict())
    if row is None:
        database = _DATABASE.first(tx, {"catalog": name.catalog, "database": name.database})
        if database is None:
            record_read(Kind.DATABASES, 0)
        else:
            record_read(Kind.DATABASE, database.id)
            record_read(Kind.TABLES, database.id)
        return None
    record_read(Kind.TABLE, row.id)
    record_read(Kind.DATABASE, row.database_id)
    record_read(Kind.ACCESS, row.database_id)
    grants = [
        Granted(
            Principal(each.principal_type, each.principal_name),
            each.privilege,
            each.grant_option,
            row.name,
            _values(each),
            each.column_name,
        )
        for each in _ON_TABLE.all(tx, {"table_id": row.id})
        if not _is_gone(each)
    ]
    return TableAccess(Owned(row.id, row.name, row.owner, bytes(row.body)), grants)


def owned_tables(tx: Connection, name: DatabaseName, owners: Collection[str]) -> list[Owned]:
    """The tables of a database that somebody of one of these names owns."""
    _record_list(tx, name)
    query = (
        select(tables.c.id, tables.c.name, tables.c.owner, tables.c.body)
        .join(databases, databases.c.id == tables.c.database_id)
        .join(catalogs, catalogs.c.id == databases.c.catalog_id)
        .where(catalogs.c.name == name.catalog, databases.c.name == name.database)
        .where(tables.c.owner == func.any(list(owners)))
    )
    return [Owned(row.id, row.name, row.owner, bytes(row.body)) for row in tx.execute(query)]


def granted_tables(tx: Connection, name: DatabaseName, principals: Collection[Principal]) -> list[Granted]:
    """The privileges that principals have on the tables of a database, and on what is in these."""
    _record_list(tx, name)
    query = (
        select(*_WITH_PLACE, tables.c.name)
        .outerjoin(partitions, partitions.c.id == privileges.c.partition_id)
        .join(tables, tables.c.id == privileges.c.table_id)
        .join(databases, databases.c.id == tables.c.database_id)
        .join(catalogs, catalogs.c.id == databases.c.catalog_id)
        .where(catalogs.c.name == name.catalog, databases.c.name == name.database)
        .where(tuple_(privileges.c.principal_type, privileges.c.principal_name).in_([tuple(p) for p in principals]))
    )
    return [
        Granted(
            Principal(row.principal_type, row.principal_name),
            row.privilege,
            row.grant_option,
            row.name,
            _values(row),
            row.column_name,
        )
        for row in tx.execute(query)
        if not _is_gone(row)
    ]


def databases_with_some(
    tx: Connection, names: Iterable[DatabaseName], owners: Collection[str], principals: Collection[Principal]
) -> set[DatabaseName]:
    """Those of the databases in which one of the owners' names owns a table, or a principal has a privilege."""
    wanted = [tuple(each) for each in names]
    if not wanted:
        return set()
    named = (
        select(databases.c.id, catalogs.c.name.label("catalog"), databases.c.name.label("database"))
        .join(catalogs, catalogs.c.id == databases.c.catalog_id)
        .where(tuple_(catalogs.c.name, databases.c.name).in_(wanted))
        .cte("named")
    )
    owned = select(literal(1)).where(tables.c.database_id == named.c.id, tables.c.owner == func.any(list(owners)))
    granted = (
        select(literal(1))
        .select_from(privileges.join(tables, tables.c.id == privileges.c.table_id))
        .where(
            tables.c.database_id == named.c.id,
            tuple_(privileges.c.principal_type, privileges.c.principal_name).in_([tuple(p) for p in principals]),
        )
    )
    query = select(named.c.catalog, named.c.database).where(or_(owned.exists(), granted.exists()))
    return {DatabaseName(row.catalog, row.database) for row in tx.execute(query)}


def grants_on_everything(tx: Connection) -> list[Granted]:
    """The privileges that are on no single object."""
    record_read(Kind.ACCESS, 0)
    return [_granted(row) for row in _ON_EVERYTHING.all(tx)]


def memberships(tx: Connection) -> list[tuple[Principal, str, bool]]:
    """All members of roles, with the role's name, and whether they may pass it on."""
    record_read(Kind.ACCESS, 0)
    return [(Principal(row.principal_type, row.principal_name), row.name, row.grant_option) for row in _MEMBERS.all(tx)]


def held_anywhere(tx: Connection, principals: Collection[Principal], owners: Collection[str]) -> tuple[set[str], bool]:
    """The privileges that principals have on any object, and whether one of the owners' names owns something."""
    held = select(privileges.c.privilege).where(
        tuple_(privileges.c.principal_type, privileges.c.principal_name).in_([tuple(p) for p in principals])
    )
    names = list(owners)
    owned = union_all(
        select(literal(1)).where(tables.c.owner == func.any(names)).limit(1),
        select(literal(1)).where(and_(databases.c.owner == func.any(names))).limit(1),
    ).subquery()
    found = set(tx.execute(held.distinct()).scalars())
    return found, tx.execute(select(func.count()).select_from(owned)).scalar_one() > 0


def _record_list(tx: Connection, name: DatabaseName) -> None:
    row = _DATABASE.first(tx, name._asdict())
    if row is None:
        record_read(Kind.DATABASES, 0)
        return
    for kind in (Kind.DATABASE, Kind.TABLES, Kind.ACCESS):
        record_read(kind, row.id)


def _values(row: Any) -> tuple[str, ...] | None:
    return None if row.values is None else tuple(row.values)


def _is_gone(row: Any) -> bool:
    """Whether a privilege is on a partition that is gone."""
    return row.partition_id is not None and row.values is None


def _granted(row: NamedTuple) -> Granted:
    principal_type, principal_name, privilege, grant_option = row
    return Granted(Principal(principal_type, principal_name), privilege, grant_option)
