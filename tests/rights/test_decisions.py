"""Decisions by grants, against a plain reading of the same grants; and that a REVOKE is seen everywhere at once."""

import random
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from lake.protocol.hive import (
    HiveObjectPrivilege,
    HiveObjectRef,
    HiveObjectType,
    PrincipalType,
    PrivilegeBag,
    PrivilegeGrantInfo,
    Role,
)
from lake.protocol.privileges import ALL, Privilege, privilege_of
from metastore.cache.changes import Changes
from metastore.cache.stamp import Stamp
from metastore.services.access.caller import Caller
from metastore.services.access.kept_facts import KeptFacts
from metastore.services.access.rights import COVERING, Action, Kind, Securable
from metastore.services.access.sql_standard import SqlStandard
from metastore.services.wiring import Metastore
from metastore.settings import Settings
from metastore.store.access import privileges
from metastore.store.access.privileges import Principal
from metastore.store.cache import cache_changes
from metastore.store.engine import read_set
from metastore.store.engine.database import Transaction
from metastore.store.engine.read_set import record_read
from metastore.store.migrations import upgrade
from tests.support import builders
from tests.support.postgres import Postgres

DATABASES, TABLES = ("a", "b"), ("t", "u")
USERS, ROLES = ("alice", "bob"), ("r", "s")
PRIVILEGES = ("SELECT", "INSERT", "CREATE", "ALTER", "DROP", "COMMIT", "ALL")
ACTIONS = (Action.SEE, Action.LIST, Action.SELECT, Action.INSERT, Action.ALTER, Action.DROP, Action.CREATE)


@pytest.fixture(scope="module")
def metastore(postgres: Postgres, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Metastore]:
    warehouse: Path = tmp_path_factory.mktemp("warehouse")
    with postgres.fresh_database() as url:
        upgrade(url)
        opened = Metastore.open(Settings(database_url=url, warehouse_dir=str(warehouse)))
        for database in DATABASES:
            opened.databases.create(builders.database(database, ownerName="owner"))
            for table in TABLES:
                opened.tables.create(builders.table(database, table, owner=f"owner_{table}"), {})
        for role in ROLES:
            opened.roles.create(Role(role))
        yield opened
        opened.close()


def bag(place: Securable, kind: int, name: str, privilege: str) -> PrivilegeBag:
    ref = HiveObjectRef(HiveObjectType.GLOBAL)
    if place.kind is Kind.DATABASE:
        ref = HiveObjectRef(HiveObjectType.DATABASE, place.database)
    elif place.kind is Kind.TABLE:
        ref = HiveObjectRef(HiveObjectType.TABLE, place.database, place.table)
    info = PrivilegeGrantInfo(privilege, 0, "root", PrincipalType.USER, False)
    return PrivilegeBag([HiveObjectPrivilege(ref, name, PrincipalType(kind), info)])


def database(name: str) -> Securable:
    return Securable(Kind.DATABASE, "hive", name)


def table(where: str, name: str) -> Securable:
    return Securable(Kind.TABLE, "hive", where, name)


EVERYTHING = Securable(Kind.EVERYTHING)
PLACES = [EVERYTHING, *map(database, DATABASES), *(table(d, t) for d in DATABASES for t in TABLES)]


class Model:
    """Grants as a set, and what they allow by the rules as docs/rights.md has them."""

    def __init__(self) -> None:
        self.grants: set[tuple[Securable, int, str, str]] = set()
        self.members: set[tuple[str, str]] = set()

    def principals(self, user: str) -> set[tuple[int, str]]:
        roles = {"public"}
        reached = {name for name, role in self.members if name == user}
        roles |= {role for name, role in self.members if name in reached}
        roles |= {outer for inner, outer in self.members if inner in roles}
        return {(PrincipalType.USER, user), *((PrincipalType.ROLE, role) for role in roles)}

    def allows(self, user: str, action: Action, object: Securable) -> bool:
        mine = self.principals(user)
        held = Privilege(0)
        for place, kind, name, privilege in self.grants:
            if (kind, name) not in mine:
                continue
            above = place == EVERYTHING or (place.kind is Kind.DATABASE and place.database == object.database)
            if place == object:
                held |= privilege_of(privilege)
            elif above:
                held |= privilege_of(privilege) & (COVERING if object.kind is Kind.TABLE else ALL)
            elif action is Action.SEE and object.kind is Kind.DATABASE and place.database == object.database:
                return True
        return bool(held & action.allowed_by)


def visible_everywhere(authorizer: SqlStandard, model: Model) -> None:
    objects = [each for each in PLACES if each.kind is not Kind.EVERYTHING]
    for user in USERS:
        expected = [model.allows(user, Action.SEE, each) for each in objects]
        assert authorizer.visible(Caller(user, mechanism="jwt"), objects) == expected


def test_as_a_plain_reading_of_the_grants(metastore: Metastore) -> None:
    """Two servers decide alike, after each of many grants and revokes."""
    chance = random.Random(7)
    servers = SqlStandard(metastore.database), SqlStandard(metastore.database)
    model = Model()
    for _ in range(60):
        place = chance.choice(PLACES)
        kind, name = chance.choice(
            [(PrincipalType.USER, each) for each in USERS] + [(PrincipalType.ROLE, each) for each in (*ROLES, "public")]
        )
        grant = place, kind, name, chance.choice(PRIVILEGES)
        if grant in model.grants:
            metastore.privileges.revoke(bag(*grant))
            model.grants.remove(grant)
        else:
            metastore.privileges.grant(bag(*grant))
            model.grants.add(grant)
        user, role = chance.choice(USERS), chance.choice(ROLES)
        if chance.random() < 0.3 and (user, role) not in model.members:
            metastore.roles.grant(
                role, Principal(PrincipalType.USER, user), grantor=None, grantor_type=None, grant_option=False
            )
            model.members.add((user, role))
        for authorizer in servers:
            for _ in range(4):
                user, action, object = chance.choice(USERS), chance.choice(ACTIONS), chance.choice(PLACES[1:])
                found = authorizer.decide(Caller(user, mechanism="jwt"), action, object)
                assert found.allowed == model.allows(user, action, object), (user, action, object, found)
        visible_everywhere(servers[chance.randrange(2)], model)


def test_the_event_loop_decides_only_by_what_holds(metastore: Metastore) -> None:
    """A decision from memory is the same, or it is none: never an earlier one."""
    authorizer = SqlStandard(metastore.database)
    loop = Changes()
    caller, wanted = Caller("carol", mechanism="jwt"), ((Action.SELECT, table("a", "t")),)

    def now() -> bool | None:
        with metastore.database.read() as tx:
            last = loop.last
            found = cache_changes.poll(tx, *((last.begun, list(last.open_)) if last else (0, [])))
        assert found is not None
        loop.add(Stamp.of(found.incarnation, found.snapshot), found.floor, found.changes, complete=found.complete)
        decision = authorizer.allowed_now(caller, wanted, loop.holds)
        return None if decision is None else decision.allowed

    assert now() is None
    assert not authorizer.decide(caller, *wanted[0]).allowed
    assert now() is False
    grant = bag(table("a", "t"), PrincipalType.USER, "carol", "SELECT")
    for change, allowed in ((metastore.privileges.grant, True), (metastore.privileges.revoke, False)) * 3:
        change(grant)
        assert now() is None
        assert authorizer.decide(caller, *wanted[0]).allowed == allowed
        assert now() is allowed
    other = bag(table("b", "t"), PrincipalType.USER, "carol", "SELECT")
    metastore.privileges.grant(other)
    assert now() is False  # a grant in another database leaves what is known of this one


def test_threads_share_polls_and_see_what_came_before(metastore: Metastore) -> None:
    """Each thread that begins after a change sees it, however many poll at once."""
    facts = KeptFacts(metastore.database)
    wrong: list[int] = []

    def ask(number: int) -> None:
        name = f"role_{number}"
        metastore.roles.create(Role(name))
        facts.refresh()
        seen = facts.get("roles", role_names)
        if name not in seen:
            wrong.append(number)

    threads = [threading.Thread(target=ask, args=(each,)) for each in range(12)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert wrong == []


def role_names(tx: Transaction) -> set[str]:
    record_read(read_set.Kind.ACCESS, 0)
    return set(privileges.role_names(tx))


def test_a_fact_without_a_proof_is_not_kept(metastore: Metastore) -> None:
    facts = KeptFacts(metastore.database)
    values = iter(range(3))
    facts.refresh()
    assert [facts.get("x", lambda tx: next(values)) for _ in range(3)] == [0, 1, 2]  # it read nothing that is watched
