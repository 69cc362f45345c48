"""Each privilege at each level, held by a user, a group or a role: what each list shows, against a simple model."""

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import pytest

from lake.protocol.connection.thrift_client import ThriftClient
from lake.protocol.hive import (
    CompactionRequest,
    CompactionType,
    Function,
    GetDatabaseObjectsRequest,
    GetTablesExtRequest,
    GetTablesRequest,
    HiveObjectPrivilege,
    HiveObjectRef,
    HiveObjectType,
    NotificationEventRequest,
    PrincipalType,
    PrivilegeBag,
    PrivilegeGrantInfo,
    Role,
    ShowCompactRequest,
)
from lake.protocol.lake import ReadEventsRequest
from lake.protocol.privileges import privilege_of
from metastore.services.access.caller import Caller
from metastore.services.access.rights import COVERING, EVERYTHING, Action, Kind, Privilege, Securable
from metastore.services.access.sql_standard import SqlStandard
from metastore.services.wiring import Metastore
from metastore.settings import Settings
from metastore.store.access.privileges import Principal
from tests.rights.conftest import as_user
from tests.support import builders
from tests.support.postgres import Postgres
from tests.support.server import MetastoreServer

HERE, OTHER = "lists_here", "lists_other"
TABLES = ("t", "u")
PRIVILEGES = (*(str(each.name) for each in Privilege), "ALL")
LEVELS = {
    "everything": HiveObjectRef(HiveObjectType.GLOBAL),
    "database": HiveObjectRef(HiveObjectType.DATABASE, HERE),
    "table": HiveObjectRef(HiveObjectType.TABLE, HERE, "t"),
    "partition": HiveObjectRef(HiveObjectType.PARTITION, HERE, "t", ["1"]),
    "column": HiveObjectRef(HiveObjectType.COLUMN, HERE, "t", columnName="id"),
}
KINDS = (PrincipalType.USER, PrincipalType.GROUP, PrincipalType.ROLE)


class Held(NamedTuple):
    """One privilege on one level, and who holds it."""

    privilege: str
    level: str
    kind: PrincipalType

    @property
    def name(self) -> str:
        return f"{self.privilege}_{self.level}_{self.kind.name}".lower()

    @property
    def grant(self) -> HiveObjectPrivilege:
        info = PrivilegeGrantInfo(self.privilege, 0, "root", PrincipalType.USER, False)
        return HiveObjectPrivilege(LEVELS[self.level], self.name, self.kind, info)

    @property
    def caller(self) -> Caller:
        groups = (self.name,) if self.kind == PrincipalType.GROUP else ()
        return Caller(f"user_{self.name}" if groups else self.name, groups, mechanism="jwt")

    def may(self, action: Action, database: str | None, table: str | None = None) -> bool:
        """Whether it allows SEE or SUBSCRIBE. What is within a database or table makes that visible."""
        privilege = privilege_of(self.privilege)
        covering = bool(privilege & COVERING & action.allowed_by)
        sees = action is Action.SEE
        if self.level == "everything":
            return covering or (table is None and bool(privilege & action.allowed_by))
        if database != HERE:
            return False
        if self.level == "database":
            return covering or (table is None and bool(privilege & action.allowed_by))
        if table is None:
            return sees
        return table == "t" and (sees or (self.level == "table" and covering))


ALL_HELD = [Held(*each) for each in itertools.product(PRIVILEGES, LEVELS, KINDS)]
SOME_HELD = [
    Held(privilege, level, KINDS[number % 3])
    for number, (privilege, level) in enumerate(itertools.product(PRIVILEGES, LEVELS))
]
"""Each privilege at each level, for users, groups and roles in turn."""


OFTEN = ("SELECT", "CREATE", "SHOW_DATABASE", "SUBSCRIBE", "ALL")
"""Those that differ in what they show; the others are as one of them, and are tried in the long run."""


def sampled(values: Sequence[str | Held]) -> list[Any]:
    """Parameters of a test: privileges, or who holds them."""
    found = []
    for each in values:
        name, privilege = (each, each) if isinstance(each, str) else (each.name, each.privilege)
        found.append(pytest.param(each, id=name, marks=() if privilege in OFTEN else pytest.mark.long))
    return found


@pytest.fixture(scope="module")
def metastore(postgres: Postgres, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Metastore]:
    with postgres.fresh_database(upgraded=True) as url:
        opened = Metastore.open(Settings(database_url=url, warehouse_dir=str(tmp_path_factory.mktemp("warehouse"))))
        for database in (HERE, OTHER):
            opened.databases.create(builders.database(database, ownerName="somebody"))
            for table in TABLES:
                opened.tables.create(builders.table(database, table, keys=("dt",), owner="somebody"), {})
                opened.partitions.add(database, table, [builders.partition(database, table, "1")], {})
        for each in ALL_HELD:
            if each.kind == PrincipalType.ROLE:
                opened.roles.create(Role(each.name))
                member = Principal(PrincipalType.USER, each.name)
                opened.roles.grant(each.name, member, grantor=None, grantor_type=None, grant_option=False)
        opened.privileges.grant(PrivilegeBag([each.grant for each in ALL_HELD]))
        yield opened
        opened.close()


def securable(database: str, table: str | None) -> Securable:
    return Securable(Kind.DATABASE if table is None else Kind.TABLE, "hive", database, table or "")


PLACES: list[tuple[str, str | None]] = [(d, t) for d in (HERE, OTHER) for t in (*TABLES, None, "missing")]


@pytest.mark.parametrize("action", [Action.SEE, Action.SUBSCRIBE])
@pytest.mark.parametrize("privilege", sampled(PRIVILEGES))
def test_many_objects_are_decided_on_like_one(metastore: Metastore, privilege: str, action: Action) -> None:
    authorizer = SqlStandard(metastore.database)
    others = [EVERYTHING, Securable(Kind.CATALOG, "hive"), Securable(Kind.ROLE, database="select_table_role")]
    objects = [*(securable(*each) for each in PLACES), *others]
    wrong = []
    for held in ALL_HELD:
        if held.privilege != privilege:
            continue
        single = [each.allowed for each in authorizer.decide_all(held.caller, [(action, o) for o in objects])]
        if authorizer.visible(held.caller, objects, action) != single:
            wrong.append((held, "together"))
        for place, allowed in zip(PLACES, single, strict=False):
            if "missing" not in place and allowed != held.may(action, *place):
                wrong.append((held, place, allowed))
    assert wrong == []


# -- over the wire ---------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def lists(guarded: MetastoreServer) -> Iterator[MetastoreServer]:
    with as_user(guarded, "root") as root:
        for database in (HERE, OTHER):
            root.create_database(builders.database(database, ownerName="somebody"))
            root.create_function(Function("f", database, "F", "somebody", PrincipalType.USER, 0, 1, []))
            for table in TABLES:
                root.create_table(builders.table(database, table, keys=("dt",), owner="somebody"))
                root.add_partition(builders.partition(database, table, "1"))
                root.compact2(CompactionRequest(database, table, type=CompactionType.MAJOR))
        for each in SOME_HELD:
            if each.kind == PrincipalType.ROLE:
                root.create_role(Role(each.name))
                root.grant_role(each.name, each.name, PrincipalType.USER, "root", PrincipalType.USER, False)
        root.grant_privileges(PrivilegeBag([each.grant for each in SOME_HELD]))
    return guarded


Names = set[tuple[str, str | None]]
SEEN_TABLES: dict[str, Callable[[ThriftClient, str], list[str]]] = {
    "get_all_tables": lambda c, d: c.get_all_tables(d),
    "get_tables": lambda c, d: c.get_tables(d, "*"),
    "get_tables_by_type": lambda c, d: c.get_tables_by_type(d, "*", "MANAGED_TABLE"),
    "get_table_names_by_filter": lambda c, d: c.get_table_names_by_filter(
        d, 'hive_filter_field_tablename__ like ".*"', -1
    ),
    "get_tables_ext": lambda c, d: [each.tblName for each in c.get_tables_ext(GetTablesExtRequest("hive", d, "*", 0))],
    "get_table_objects_by_name": lambda c, d: [each.tableName for each in c.get_table_objects_by_name(d, list(TABLES))],
    "get_table_objects_by_name_req": lambda c, d: [
        each.tableName for each in c.get_table_objects_by_name_req(GetTablesRequest(d, tablesPattern="*")).tables
    ],
    "get_table_meta": lambda c, d: [each.tableName for each in c.get_table_meta(d, "*", [])],
    "show_compact": lambda c, d: [each.tablename for each in c.show_compact(ShowCompactRequest(dbName=d)).compacts],
}
SEEN_DATABASES: dict[str, Callable[[ThriftClient], list[str]]] = {
    "get_all_databases": lambda c: c.get_all_databases(),
    "get_databases": lambda c: c.get_databases("lists_*"),
    "get_databases_req": lambda c: [
        each.name for each in c.get_databases_req(GetDatabaseObjectsRequest(pattern="*")).databases
    ],
    "get_all_functions": lambda c: [each.dbName for each in c.get_all_functions().functions or ()],
}
SUBSCRIBED: dict[str, Callable[[ThriftClient], list[str]]] = {
    "get_next_notification": lambda c: [
        f"{each.dbName}.{each.tableName}"
        for each in c.get_next_notification(NotificationEventRequest(0, eventTypeList=["CREATE_TABLE"])).events
    ],
    "lake_read_events": lambda c: [
        f"{each.database}.{each.table}"
        for each in c.lake_read_events(ReadEventsRequest(0, 1000, types=["CREATE_TABLE"])).events
    ],
}


@pytest.mark.parametrize("held", sampled(SOME_HELD))
def test_each_list(lists: MetastoreServer, held: Held) -> None:
    with as_user(lists, held.caller.user, *held.caller.groups) as client:
        wrong = []
        for method, databases in SEEN_DATABASES.items():
            found = {each for each in databases(client) if each in (HERE, OTHER)}
            if found != {each for each in (HERE, OTHER) if held.may(Action.SEE, each)}:
                wrong.append((method, found))
        for method, tables in SEEN_TABLES.items():
            for database in (HERE, OTHER):
                found = set(tables(client, database))
                if found != {each for each in TABLES if held.may(Action.SEE, database, each)}:
                    wrong.append((method, database, found))
        for method, subscribed in SUBSCRIBED.items():
            found = {each for each in subscribed(client) if each.startswith((HERE, OTHER))}
            if found != {f"{d}.{t}" for d in (HERE, OTHER) for t in TABLES if held.may(Action.SUBSCRIBE, d, t)}:
                wrong.append((method, found))
    assert wrong == []
