"""Privileges: stored and returned, as in Hive's metastore. HiveServer2 decides who may grant what."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from lake.protocol.clock import now_seconds
from lake.protocol.formats import partition_names
from lake.protocol.hive import (
    HiveObjectPrivilege,
    HiveObjectRef,
    HiveObjectType,
    MetaException,
    PrincipalPrivilegeSet,
    PrincipalType,
    PrivilegeBag,
    PrivilegeGrantInfo,
)
from metastore.services.access.roles import PUBLIC, check_role, grantor_type_of, principal_of
from metastore.services.model import client_texts, hive_objects
from metastore.services.model import names as given
from metastore.services.model.visibility import Scope, hides_uncommitted, readable
from metastore.store import Database
from metastore.store.access import privileges as store
from metastore.store.access.privileges import GrantRow, NewGrant, Principal, Target
from metastore.store.catalog import databases
from metastore.store.catalog.databases import RowLock
from metastore.store.engine import read_set
from metastore.store.engine.database import Transaction
from metastore.store.partition import partitions
from metastore.store.partition.partitions import Selection
from metastore.store.table import tables
from metastore.store.table.tables import TableRow

MAX_AT_ONCE = 10_000
"""The most privileges that one call grants or revokes. Each takes one or two statements."""

_IN_TABLES = (HiveObjectType.TABLE, HiveObjectType.PARTITION, HiveObjectType.COLUMN)

PARTITION_LEVEL_PRIVILEGE = "PARTITION_LEVEL_PRIVILEGE"
"""The parameter of a table whose partitions have privileges of their own: a new one gets those of the table."""


class _Asking(NamedTuple):
    """Whose privileges are requested. `everywhere`: global ones, returned only where there are some."""

    users: Sequence[str]
    groups: Sequence[str]
    roles: Sequence[str]
    everywhere: bool

    @property
    def principals(self) -> list[Principal]:
        return [
            *(Principal(PrincipalType.USER, name) for name in self.users),
            *(Principal(PrincipalType.GROUP, name) for name in self.groups),
            *(Principal(PrincipalType.ROLE, name) for name in self.roles),
        ]

    def to_thrift(self, grants: Sequence[GrantRow]) -> PrincipalPrivilegeSet:
        """These grants in the form that clients receive."""

        by_principal: dict[Principal, list[PrivilegeGrantInfo]] = {}
        for grant in grants:
            by_principal.setdefault(grant.principal, []).append(_info(grant))

        def of(kind: PrincipalType, names: Sequence[str]) -> dict[str, list[PrivilegeGrantInfo]]:
            infos = {name: by_principal.get(Principal(kind, name), []) for name in names}
            return {name: each for name, each in infos.items() if each or not self.everywhere}

        return PrincipalPrivilegeSet(
            userPrivileges=of(PrincipalType.USER, self.users) or None,
            groupPrivileges=of(PrincipalType.GROUP, self.groups) if self.groups else None,
            rolePrivileges=of(PrincipalType.ROLE, self.roles) or None,
        )


def _asking(tx: Transaction, user: str | None, groups: Sequence[str] | None, *, roles_too: bool = True) -> _Asking:
    """A user and groups with all roles that they have. Raises MetaException beyond the bounds of `client_texts`."""
    client_texts.check_identity(user, groups or ())
    users = [user] if user is not None else []
    asking = _Asking(users, groups or [], [], everywhere=not roles_too)
    if not roles_too or not asking.principals:
        return asking
    roles = store.ancestors(tx, asking.principals, PrincipalType.ROLE) | ({PUBLIC} if users else set())
    return asking._replace(roles=sorted(roles))


class PrivilegeService:
    """Hive's calls for privileges."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def of_object(
        self, scope: Scope, ref: HiveObjectRef, user: str | None, groups: Sequence[str] | None
    ) -> PrincipalPrivilegeSet:
        """What a user, groups, and all roles they have, may do with an object; nothing if there is no such object.

        Global privileges are returned for the user and groups only, and only where there are some. Raises MetaException
        for a partition of a table that doesn't exist.
        """
        with self._database.read() as tx:
            asking = _asking(tx, user, groups, roles_too=ref.objectType != HiveObjectType.GLOBAL)
            target = _find(tx, ref, scope)
            found = store.find(tx, target=target, principals=asking.principals) if target and asking.principals else []
        return asking.to_thrift(found)

    def find(self, scope: Scope, principal: Principal | None, ref: HiveObjectRef) -> list[HiveObjectPrivilege]:
        """A principal's privileges on an object, or everybody's if `principal` is None.

        If `ref` has no names, the privileges on all objects of its type are returned. If it has no type, all
        privileges are returned.
        Raises MetaException for a partition without values, or of a table that isn't there.
        """
        principals = None if principal is None else [principal]
        only_ready = hides_uncommitted(scope)
        with self._database.read() as tx:
            if ref.objectType is None:
                found = store.find(tx, principals=principals, only_ready=only_ready)
            elif ref.objectType != HiveObjectType.GLOBAL and ref.dbName is None:
                found = store.find(tx, object_type=ref.objectType, principals=principals, only_ready=only_ready)
            elif ref.objectType == HiveObjectType.PARTITION and not ref.partValues:
                raise MetaException("the partition's values are missing")
            else:
                target = _find(tx, ref, scope)
                found = store.find(tx, target=target, principals=principals) if target else []
        return [_privilege(grant) for grant in found]

    def grant(self, bag: PrivilegeBag) -> None:
        """Gives privileges, all or none.

        Raises MetaException for one that was given already by the same grantor, for an unknown role, and, unlike
        Hive, which passes over them, for an object that isn't there.
        """
        now = now_seconds()
        with self._database.write() as tx:
            for wanted, principal, info in _parts(bag):
                if principal.type == PrincipalType.ROLE:
                    check_role(tx, principal.name)
                ref = _ref(wanted)
                target = _held(tx, ref)
                there = {
                    (g.privilege, (g.grantor or "").lower(), g.authorizer)
                    for g in store.find(tx, target=target, principals=[principal])
                }
                for privilege in _split(info.privilege):
                    if (privilege, (info.grantor or "").lower(), wanted.authorizer) in there:
                        raise MetaException(f"{privilege} is already granted on {_described(ref)} by {info.grantor}")
                    store.add(tx, [_new(target, principal, info, privilege, now, wanted.authorizer)])

    def revoke(self, bag: PrivilegeBag, *, only_grant_option: bool = False) -> None:
        """Revokes privileges, regardless of the grantor, all or none.

        `only_grant_option`: only the right to grant them to others. Raises MetaException for one that doesn't exist.
        """
        with self._database.write() as tx:
            for wanted, principal, info in _parts(bag):
                ref = _ref(wanted)
                left = store.find(tx, target=_held(tx, ref), principals=[principal])
                for privilege in _split(info.privilege):
                    found = next((g for g in left if g.privilege.lower() == privilege.lower()), None)
                    if found is None:
                        raise MetaException(f"No grant ({privilege}) found on {_described(ref)}")
                    left.remove(found)
                    if not only_grant_option:
                        store.remove(tx, [found.id])
                    elif found.grant_option:
                        store.clear_grant_option(tx, [found.id])
                    else:
                        raise MetaException(
                            f"User {principal.name} does not have grant option with privilege {privilege}"
                        )

    def refresh(self, ref: HiveObjectRef, authorizer: str | None, bag: PrivilegeBag) -> None:
        """Replaces what an authorizer granted on a database, a table, or a table's columns by the grants in `bag`.

        Without an authorizer, replaces the grants of all of them. Raises MetaException for another type of object, an
        object that doesn't exist, or an unknown role.
        """
        columns = ref.objectType == HiveObjectType.COLUMN
        if not columns and ref.objectType not in (HiveObjectType.DATABASE, HiveObjectType.TABLE):
            raise MetaException(f"Unexpected object type {ref.objectType}")
        if columns and ref.columnName is not None:
            raise MetaException("columnName must be null")
        now = now_seconds()
        with self._database.write() as tx:
            target = _held(tx, ref.replace(objectType=HiveObjectType.TABLE) if columns else ref)
            if columns:
                target = target._replace(object_type=HiveObjectType.COLUMN)
            present = store.find(tx, target=target, any_column=columns)
            unwanted = {
                (target._replace(column=g.column), g.principal, g.privilege, *_given_by(g)): g.id
                for g in present
                if authorizer is None or g.authorizer == authorizer
            }
            new = []
            for wanted, principal, info in _parts(bag):
                if principal.type == PrincipalType.ROLE:
                    check_role(tx, principal.name)
                theirs = _held(tx, _ref(wanted))
                for privilege in _split(info.privilege):
                    grant = _new(theirs, principal, info, privilege, now, wanted.authorizer)
                    if unwanted.pop((theirs, principal, privilege, *_given_by(grant)), None) is None:
                        new.append(grant)
            store.remove(tx, list(unwanted.values()))
            store.add(tx, new)


def _given_by(grant: GrantRow | NewGrant) -> tuple[str | None, int | None, bool]:
    return grant.grantor, grant.grantor_type, grant.grant_option


def of_partitions(
    tx: Transaction, table: TableRow, user: str | None, groups: Sequence[str] | None
) -> Callable[[Sequence[str]], PrincipalPrivilegeSet] | None:
    """What a user and groups may do with each partition of a table, by its values; None if its partitions don't have
    privileges of their own."""
    if not hive_objects.is_true(table.parameters.get(PARTITION_LEVEL_PRIVILEGE)):
        return None
    read_set.mark_uncacheable()  # no trigger records the changes of grants
    asking = _asking(tx, user, groups)
    by_values: dict[tuple[str, ...], list[GrantRow]] = {}
    for grant in store.find(tx, object_type=HiveObjectType.PARTITION, table_id=table.id, principals=asking.principals):
        by_values.setdefault(tuple(grant.partition_values or ()), []).append(grant)
    return lambda values: asking.to_thrift(by_values.get(tuple(values), ()))


def keep_of_new_partitions(tx: Transaction, table: TableRow, names: Sequence[str]) -> None:
    """New partitions get the privileges of their table, if its partitions have their own."""
    if hive_objects.is_true(table.parameters.get(PARTITION_LEVEL_PRIVILEGE)):
        store.copy_to_partitions(
            tx, table.id, names, now_seconds(), of_table=HiveObjectType.TABLE, of_partition=HiveObjectType.PARTITION
        )


def bring(tx: Transaction, wanted: HiveObjectPrivilege, *, replace: bool) -> bool | None:
    """Stores a privilege of another metastore, with its time and its grantor; whether it wasn't there.

    None: it was there, but the right to pass it on is another one; with `replace` that is as it was there, by now.
    Raises MetaException for an object or a role that isn't there.
    """
    info = wanted.grantInfo
    if info is None or not info.privilege:
        raise MetaException("a privilege needs a name")
    principal = principal_of(wanted.principalName, wanted.principalType)
    if principal.type == PrincipalType.ROLE:
        check_role(tx, principal.name)
    target = _held(tx, _ref(wanted))
    new = _new(target, principal, info, info.privilege, info.createTime or now_seconds(), wanted.authorizer)
    found = store.find(tx, target=target, principals=[principal])
    there = [each for each in found if _identity(each) == _identity(new)]
    if not there:
        store.add(tx, [new])
        return True
    if any(each.grant_option == new.grant_option for each in there):
        return False
    if replace:
        store.remove(tx, [each.id for each in there])
        store.add(tx, [new])
    return None


def _identity(grant: GrantRow | NewGrant) -> tuple[str, str, str | None]:
    """What tells two grants on one object to one principal apart."""
    return grant.privilege.lower(), (grant.grantor or "").lower(), grant.authorizer


def described(wanted: HiveObjectPrivilege) -> str:
    """A privilege in words, for people."""
    info = wanted.grantInfo or PrivilegeGrantInfo()
    return f"{info.privilege} on {_described(_ref(wanted))} to {wanted.principalName}"


def keep_creators(tx: Transaction, table_id: int, privileges: PrincipalPrivilegeSet | None) -> None:
    """Stores the privileges on a new table that its creator sent along."""
    if privileges is None:
        return
    now, target = now_seconds(), Target(HiveObjectType.TABLE, table_id=table_id)
    by_principal = (
        (PrincipalType.USER, privileges.userPrivileges),
        (PrincipalType.GROUP, privileges.groupPrivileges),
        (PrincipalType.ROLE, privileges.rolePrivileges),
    )
    store.add(
        tx,
        [
            _new(target, Principal(kind, name), info, info.privilege, now)
            for kind, by_name in by_principal
            for name, infos in (by_name or {}).items()
            for info in infos
            if info.privilege
        ],
    )


# --- objects --------------------------------------------------------------------------------------------------


def _find(tx: Transaction, ref: HiveObjectRef, scope: Scope | None, lock: RowLock = RowLock.NOT) -> Target | None:
    """What a reference means, None if it isn't there, or a reader of that scope doesn't see it; None is a writer."""
    if ref.objectType == HiveObjectType.GLOBAL:
        return Target(HiveObjectType.GLOBAL)
    if ref.objectType == HiveObjectType.DATABASE:
        database = databases.find(tx, given.database_name(ref.dbName, ref.catName), lock)
        return Target(HiveObjectType.DATABASE, database_id=database.id) if database else None
    if ref.objectType not in _IN_TABLES:
        raise MetaException(f"there are no privileges on objects of type {ref.objectType}")
    name = (given.table_name if scope is None else given.decorated_name)(ref.dbName, ref.objectName, ref.catName)
    table = tables.find(tx, given.base(name), lock)
    if table is not None:
        table = replace(table, name=name)
    if table is None:
        if ref.partValues:
            raise MetaException(f"{given.plain(ref.dbName)}.{ref.objectName} table not found")
        return None
    partition_id = None
    if ref.objectType != HiveObjectType.TABLE and ref.partValues:
        keys = [key.name or "" for key in hive_objects.table_of(table).partitionKeys or ()]
        partition = partition_names.make_name(keys, ref.partValues)
        selection = Selection(table.id) if scope is None else readable(table, scope)
        found = partitions.rows(tx, replace(selection, names=[partition]))
        if not found:
            return None
        partition_id = found[0].id
    elif ref.objectType == HiveObjectType.PARTITION:
        return None
    column = None
    if ref.objectType == HiveObjectType.COLUMN:
        if not ref.columnName:
            raise MetaException("the column's name is missing")
        column = given.normalized(ref.columnName)
    return Target(ref.objectType, table_id=table.id, partition_id=partition_id, column=column)


def _held(tx: Transaction, ref: HiveObjectRef) -> Target:
    """What a reference means; nobody else changes its privileges until the transaction ends."""
    target = _find(tx, ref, None, RowLock.EXCLUSIVE)
    if target is None:
        raise MetaException(f"there is no {_described(ref)}")
    return target


def _described(ref: HiveObjectRef) -> str:
    """An object in words: `table sales.orders`."""
    if ref.objectType == HiveObjectType.GLOBAL:
        return "everything"
    kind = HiveObjectType(ref.objectType or 0).name.lower()
    name = ".".join(part for part in (given.plain(ref.dbName), ref.objectName, ref.columnName) if part)
    return f"{kind} {name}" + (f" {ref.partValues}" if ref.partValues else "")


# --- to and from what clients send ----------------------------------------------------------------------------


def _parts(bag: PrivilegeBag) -> Iterator[tuple[HiveObjectPrivilege, Principal, PrivilegeGrantInfo]]:
    infos = [wanted.grantInfo for wanted in bag.privileges or ()]
    count = sum(1 if info is None else 1 + (info.privilege or "").count(",") for info in infos)
    if count > MAX_AT_ONCE:
        raise MetaException(f"{count} privileges are too many for one call: give or take {MAX_AT_ONCE} at a time")
    for wanted in bag.privileges or ():
        if wanted.grantInfo is None:
            raise MetaException("what is granted is missing")
        yield wanted, principal_of(wanted.principalName, wanted.principalType), wanted.grantInfo


def _ref(wanted: HiveObjectPrivilege) -> HiveObjectRef:
    if wanted.hiveObject is None:
        raise MetaException("a privilege needs an object")
    return wanted.hiveObject


def _split(privileges: str | None) -> list[str]:
    """One or several privileges with commas between; blanks are kept as Hive keeps them."""
    return privileges.split(",") if privileges and privileges.strip() else []


def _new(
    target: Target,
    principal: Principal,
    info: PrivilegeGrantInfo,
    privilege: str,
    now: int,
    authorizer: str | None = None,
) -> NewGrant:
    return NewGrant(
        target,
        principal,
        privilege,
        now,
        info.grantor,
        grantor_type_of(info.grantorType),
        bool(info.grantOption),
        authorizer,
    )


def _info(grant: GrantRow) -> PrivilegeGrantInfo:
    kind = PrincipalType(grant.grantor_type) if grant.grantor_type else None
    return PrivilegeGrantInfo(grant.privilege, grant.time, grant.grantor, kind, grant.grant_option)


def _privilege(grant: GrantRow) -> HiveObjectPrivilege:
    return HiveObjectPrivilege(
        hiveObject=HiveObjectRef(
            objectType=HiveObjectType(grant.object_type),
            dbName=grant.database,
            objectName=grant.table,
            partValues=grant.partition_values,
            columnName=grant.column,
            catName=grant.catalog,
        ),
        principalName=grant.principal.name,
        principalType=PrincipalType(grant.principal.type),
        grantInfo=_info(grant),
        authorizer=grant.authorizer,
    )
