"""SQL for privileges on objects, for roles, and for memberships in roles."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from sqlalchemy import Connection, Row, and_, case, delete, func, insert, literal, or_, select, tuple_, update

from metastore.store.schema.access import privileges, role_grants, roles
from metastore.store.schema.catalog import catalogs, databases
from metastore.store.schema.partition import partitions
from metastore.store.schema.table import tables


class Principal(NamedTuple):
    """Who may have privileges and roles; `type` is Thrift's PrincipalType."""

    type: int
    name: str


class Target(NamedTuple):
    """What a privilege is on; `object_type` is Thrift's HiveObjectType. A column may be that of a partition."""

    object_type: int
    database_id: int | None = None
    table_id: int | None = None
    partition_id: int | None = None
    column: str | None = None


@dataclass(frozen=True, slots=True)
class NewGrant:
    """A privilege to store; the time is in seconds since 1970."""

    target: Target
    principal: Principal
    privilege: str
    time: int
    grantor: str | None
    grantor_type: int | None
    grant_option: bool
    authorizer: str | None = None


@dataclass(frozen=True, slots=True)
class GrantRow:
    """A stored privilege, with the names of its object."""

    id: int
    object_type: int
    catalog: str | None
    database: str | None
    table: str | None
    partition_values: list[str] | None
    column: str | None
    principal: Principal
    privilege: str
    time: int
    grantor: str | None
    grantor_type: int | None
    grant_option: bool
    authorizer: str | None


# --- privileges -----------------------------------------------------------------------------------------------


def find(
    tx: Connection,
    *,
    target: Target | None = None,
    any_column: bool = False,
    object_type: int | None = None,
    table_id: int | None = None,
    principals: Collection[Principal] | None = None,
    only_ready: bool = False,
) -> list[GrantRow]:
    """Privileges on an object or a type of objects, of some principals: by principal and privilege.

    `any_column`: whatever column of the target they are on; `table_id`: only in that table; `only_ready`: none on
    uncommitted partitions.
    """
    query = (
        select(
            privileges,
            catalogs.c.name.label("catalog_name"),
            databases.c.name.label("database_name"),
            tables.c.name.label("table_name"),
            partitions.c["values"].label("partition_values"),
        )
        .outerjoin(tables, tables.c.id == privileges.c.table_id)
        .outerjoin(databases, databases.c.id == func.coalesce(privileges.c.database_id, tables.c.database_id))
        .outerjoin(catalogs, catalogs.c.id == databases.c.catalog_id)
        .outerjoin(partitions, partitions.c.id == privileges.c.partition_id)
        # Privileges on a partition that was dropped since are left out.
        .where(or_(privileges.c.partition_id.is_(None), partitions.c.id.is_not(None)))
        .order_by(privileges.c.principal_name, privileges.c.principal_type, privileges.c.privilege, privileges.c.id)
    )
    if target is not None:
        query = query.where(
            privileges.c.object_type == target.object_type,
            privileges.c.database_id.is_not_distinct_from(target.database_id),
            privileges.c.table_id.is_not_distinct_from(target.table_id),
            privileges.c.partition_id.is_not_distinct_from(target.partition_id),
        )
        if not any_column:
            query = query.where(privileges.c.column_name.is_not_distinct_from(target.column))
    if only_ready:
        query = query.where(or_(privileges.c.partition_id.is_(None), partitions.c.ready))
    if object_type is not None:
        query = query.where(privileges.c.object_type == object_type)
    if table_id is not None:
        query = query.where(privileges.c.table_id == table_id)
    if principals is not None:
        query = query.where(_is_one_of(privileges, principals))
    return [_grant_row(row) for row in tx.execute(query)]


def _is_one_of(table: Any, principals: Collection[Principal]) -> Any:
    return tuple_(table.c.principal_type, table.c.principal_name).in_([tuple(p) for p in principals])


def _grant_row(row: Row[Any]) -> GrantRow:
    return GrantRow(
        row.id,
        row.object_type,
        row.catalog_name,
        row.database_name,
        row.table_name,
        row.partition_values,
        row.column_name,
        Principal(row.principal_type, row.principal_name),
        row.privilege,
        row.grant_time,
        row.grantor,
        row.grantor_type,
        row.grant_option,
        row.authorizer,
    )


def add(tx: Connection, grants: Iterable[NewGrant]) -> None:
    """Adds privileges."""
    rows = [
        {
            "object_type": grant.target.object_type,
            "database_id": grant.target.database_id,
            "table_id": grant.target.table_id,
            "partition_id": grant.target.partition_id,
            "column_name": grant.target.column,
            "principal_type": grant.principal.type,
            "principal_name": grant.principal.name,
            "privilege": grant.privilege,
            "grant_time": grant.time,
            "grantor": grant.grantor,
            "grantor_type": grant.grantor_type,
            "grant_option": grant.grant_option,
            "authorizer": grant.authorizer,
        }
        for grant in grants
    ]
    if rows:
        tx.execute(insert(privileges), rows)


def copy_to_partitions(
    tx: Connection, table_id: int, names: Sequence[str], time: int, *, of_table: int, of_partition: int
) -> None:
    """Gives partitions the privileges on their table, as those of type `of_partition`, and those on its columns."""
    kept = ("principal_type", "principal_name", "privilege", "grantor", "grantor_type", "grant_option")
    object_type = case((privileges.c.object_type == of_table, of_partition), else_=privileges.c.object_type)
    copied = select(
        object_type,
        privileges.c.table_id,
        partitions.c.id,
        privileges.c.column_name,
        literal(time),
        *(privileges.c[name] for name in kept),
    ).where(
        privileges.c.table_id == table_id,
        privileges.c.partition_id.is_(None),
        partitions.c.table_id == table_id,
        partitions.c.name == func.any(list(names)),
    )
    columns = ["object_type", "table_id", "partition_id", "column_name", "grant_time", *kept]
    tx.execute(insert(privileges).from_select(columns, copied))


def remove(tx: Connection, grant_ids: Collection[int]) -> None:
    """Removes privileges."""
    tx.execute(delete(privileges).where(privileges.c.id == func.any(list(grant_ids))))


def clear_grant_option(tx: Connection, grant_ids: Collection[int]) -> None:
    """Leaves the privileges, but not the right to pass them on."""
    tx.execute(update(privileges).where(privileges.c.id == func.any(list(grant_ids))).values(grant_option=False))


# --- roles ----------------------------------------------------------------------------------------------------


class RoleRow(NamedTuple):
    id: int
    name: str
    owner: str | None
    create_time: int


class Membership(NamedTuple):
    """A principal's membership in a role."""

    id: int
    role: RoleRow
    principal: Principal
    time: int
    grantor: str | None
    grantor_type: int | None
    grant_option: bool


def find_role(tx: Connection, name: str, *, lock: bool = False) -> RoleRow | None:
    """The role of that name; with `lock` nobody else grants, revokes or drops it until the transaction ends."""
    query = select(roles.c.id, roles.c.name, roles.c.owner, roles.c.create_time).where(roles.c.name == name)
    row = tx.execute(query.with_for_update() if lock else query).one_or_none()
    return RoleRow(*row) if row else None


def role_names(tx: Connection) -> list[str]:
    """All roles' names in order."""
    return list(tx.execute(select(roles.c.name).order_by(roles.c.name)).scalars())


def add_role(tx: Connection, name: str, owner: str | None, create_time: int) -> None:
    """Adds a role. Raises store.Conflict if the name is taken."""
    tx.execute(insert(roles), {"name": name, "owner": owner, "create_time": create_time})


def change_role(tx: Connection, role: RoleRow, owner: str | None) -> None:
    """Gives a role another owner."""
    tx.execute(update(roles).where(roles.c.id == role.id).values(owner=owner))


def remove_role(tx: Connection, role: RoleRow, principal: Principal) -> None:
    """Removes a role, its members, and what it has: `principal` is the role as a holder of privileges and roles."""
    for table in (privileges, role_grants):
        tx.execute(delete(table).where(_is_one_of(table, [principal])))
    tx.execute(delete(roles).where(roles.c.id == role.id))


def memberships(tx: Connection, *, role: str | None = None, principal: Principal | None = None) -> list[Membership]:
    """Who is a member of a role, or of which roles a principal is a member itself, in the order they were granted."""
    query = (
        select(
            roles.c.id.label("role_id"),
            roles.c.name.label("role_name"),
            roles.c.owner.label("role_owner"),
            roles.c.create_time.label("role_create_time"),
            role_grants,
        )
        .join(roles, roles.c.id == role_grants.c.role_id)
        .order_by(role_grants.c.id)
    )
    if role is not None:
        query = query.where(roles.c.name == role)
    if principal is not None:
        query = query.where(_is_one_of(role_grants, [principal]))
    return [
        Membership(
            row.id,
            RoleRow(row.role_id, row.role_name, row.role_owner, row.role_create_time),
            Principal(row.principal_type, row.principal_name),
            row.grant_time,
            row.grantor,
            row.grantor_type,
            row.grant_option,
        )
        for row in tx.execute(query)
    ]


def ancestors(tx: Connection, principals: Collection[Principal], role_type: int) -> set[str]:
    """The names of all roles that principals have, also by way of other roles; `role_type` is the type of a role."""
    granted = select(roles.c.name).join(role_grants, role_grants.c.role_id == roles.c.id)
    reached = granted.where(_is_one_of(role_grants, principals)).cte("reached", recursive=True)
    # UNION, not UNION ALL: the recursion ends even if roles were granted to each other.
    reached = reached.union(
        granted.join(
            reached,
            and_(role_grants.c.principal_type == literal(role_type), role_grants.c.principal_name == reached.c.name),
        )
    )
    return set(tx.execute(select(reached.c.name)).scalars())


def add_member(
    tx: Connection,
    role: RoleRow,
    principal: Principal,
    *,
    time: int,
    grantor: str | None,
    grantor_type: int | None,
    grant_option: bool,
) -> None:
    """Makes a principal a member of a role. Raises store.Conflict if it is one."""
    values = {
        "role_id": role.id,
        "principal_type": principal.type,
        "principal_name": principal.name,
        "grant_time": time,
        "grantor": grantor,
        "grantor_type": grantor_type,
        "grant_option": grant_option,
    }
    tx.execute(insert(role_grants), values)


def remove_member(tx: Connection, membership: Membership) -> None:
    """Ends a membership."""
    tx.execute(delete(role_grants).where(role_grants.c.id == membership.id))


def clear_member_grant_option(tx: Connection, membership: Membership) -> None:
    """Leaves the membership, but not the right to pass it on."""
    tx.execute(update(role_grants).where(role_grants.c.id == membership.id).values(grant_option=False))
