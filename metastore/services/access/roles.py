"""Roles: names for groups of privileges, which users, groups and other roles are members of.

Every user is implicitly a member of `public`. Members of `admin` may do anything. HiveServer2 decides who may grant
what: the metastore stores every grant, as Hive's does.
"""

from lake.protocol.clock import now_seconds
from lake.protocol.hive import HiveObjectType, MetaException, PrincipalType, Role, RolePrincipalGrant
from metastore.store import Conflict, Database
from metastore.store.access import privileges as store
from metastore.store.access.privileges import Membership, NewGrant, Principal, RoleRow, Target
from metastore.store.engine.database import Transaction

ADMIN, PUBLIC = "admin", "public"


class RoleService:
    """Hive's calls for roles."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def bootstrap(self) -> None:
        """Makes the roles that are always there, and gives `admin` everything."""
        with self._database.read() as tx:
            if store.find_role(tx, ADMIN) is not None:
                return
        now = now_seconds()
        everything = NewGrant(
            target=Target(HiveObjectType.GLOBAL),
            principal=Principal(PrincipalType.ROLE, ADMIN),
            privilege="All",
            time=now,
            grantor=ADMIN,
            grantor_type=PrincipalType.ROLE,
            grant_option=True,
        )
        try:
            with self._database.write() as tx:
                for name in (ADMIN, PUBLIC):
                    store.add_role(tx, name, name, now)
                store.add(tx, [everything])
        except Conflict:  # another server was as quick
            return

    def names(self) -> list[str]:
        """All roles' names in order."""
        with self._database.read() as tx:
            return store.role_names(tx)

    def create(self, role: Role) -> None:
        """Adds a role; its name's case matters. Raises MetaException if it is there, or has no name."""
        if role.roleName == PUBLIC:
            raise MetaException("public role implicitly exists. It can't be created.")
        if not role.roleName:
            raise MetaException("a role needs a name")
        try:
            with self._database.write() as tx:
                store.add_role(tx, role.roleName, role.ownerName, now_seconds())
        except Conflict:
            raise MetaException(f"Role {role.roleName} already exists.") from None

    def drop(self, name: str | None) -> None:
        """Removes a role with its members and privileges; nothing happens if there is none.

        Raises MetaException for `public` and `admin`.
        """
        if name in (ADMIN, PUBLIC):
            raise MetaException("public,admin roles can't be dropped.")
        with self._database.write() as tx:
            role = store.find_role(tx, name or "", lock=True)
            if role is not None:
                store.remove_role(tx, role, Principal(PrincipalType.ROLE, role.name))

    def grant(
        self,
        name: str | None,
        principal: Principal,
        *,
        grantor: str | None,
        grantor_type: int | None,
        grant_option: bool,
    ) -> None:
        """Makes a principal a member.

        Raises MetaException for an unknown role, for `public`, for a member, and where a role would become a member
        of itself.
        """
        if name == PUBLIC:
            raise MetaException("No user can be added to public. Since all users implicitly belong to public role.")
        try:
            with self._database.write() as tx:
                role = _role(tx, name)
                if principal.type == PrincipalType.ROLE:
                    if principal.name in {name} | store.ancestors(
                        tx, [Principal(PrincipalType.ROLE, role.name)], PrincipalType.ROLE
                    ):
                        raise MetaException(
                            f"Cannot grant role {principal.name} to {name} as {name} already belongs to the role"
                            f" {principal.name}. (no cycles allowed)"
                        )
                    check_role(tx, principal.name)
                store.add_member(
                    tx,
                    role,
                    principal,
                    time=now_seconds(),
                    grantor=grantor,
                    grantor_type=grantor_type_of(grantor_type),
                    grant_option=grant_option,
                )
        except Conflict:
            raise MetaException(f"Principal {principal.name} already has the role {name}") from None

    def revoke(self, name: str | None, principal: Principal, *, only_grant_option: bool = False) -> None:
        """Ends a membership, or the right to pass it on; nothing happens where there is none.

        Raises MetaException for an unknown role, for `public`, and if there was no such right.
        """
        if name == PUBLIC:
            raise MetaException("public role can't be revoked.")
        with self._database.write() as tx:
            role = _role(tx, name)
            for membership in store.memberships(tx, role=role.name, principal=principal):
                if not only_grant_option:
                    store.remove_member(tx, membership)
                elif membership.grant_option:
                    store.clear_member_grant_option(tx, membership)
                else:
                    raise MetaException(f"User {principal.name} does not have grant option with role {name}")

    def of_principal(self, principal: Principal) -> list[Role]:
        """The roles that a principal is a member of itself."""
        with self._database.read() as tx:
            found = [membership.role for membership in store.memberships(tx, principal=principal)]
        implied = [RoleRow(0, PUBLIC, PUBLIC, 0)] if principal.type == PrincipalType.USER else []
        return [Role(role.name, role.create_time, role.owner) for role in (*found, *implied)]

    def grants_of(self, principal: Principal) -> list[RolePrincipalGrant]:
        """A principal's own memberships."""
        with self._database.read() as tx:
            found = [_membership(each) for each in store.memberships(tx, principal=principal)]
        if principal.type == PrincipalType.USER:
            found.append(RolePrincipalGrant(PUBLIC, principal.name, PrincipalType.USER, False, 0))
        return found

    def members(self, name: str | None) -> list[RolePrincipalGrant]:
        """Who is a member of a role; of `public` only those of whom it was said."""
        with self._database.read() as tx:
            return [_membership(each) for each in store.memberships(tx, role=name or "")]


def principal_of(name: str | None, kind: int | None) -> Principal:
    """The principal that a client names. Raises MetaException if its name or type is missing."""
    if name is None or kind not in (PrincipalType.USER, PrincipalType.ROLE, PrincipalType.GROUP):
        raise MetaException(f"{name} with the type {kind} is no principal")
    return Principal(kind, name)


def grantor_type_of(kind: int | None) -> int | None:
    """The kind of principal that grants; None for a number that is none, as a Java server reads it."""
    return kind if kind in (PrincipalType.USER, PrincipalType.ROLE, PrincipalType.GROUP) else None


def check_role(tx: Transaction, name: str) -> None:
    """Raises MetaException if there is no role of that name; it is not dropped until the transaction ends."""
    if store.find_role(tx, name, lock=True) is None:
        raise MetaException(f"Role {name} does not exist")


def _role(tx: Transaction, name: str | None) -> RoleRow:
    role = store.find_role(tx, name or "", lock=True)
    if role is None:
        raise MetaException(f"{name} role can not be found.")
    return role


def _membership(each: Membership) -> RolePrincipalGrant:
    return RolePrincipalGrant(
        each.role.name,
        each.principal.name,
        PrincipalType(each.principal.type),
        each.grant_option,
        each.time,
        each.grantor,
        PrincipalType(each.grantor_type) if each.grantor_type else None,
    )
