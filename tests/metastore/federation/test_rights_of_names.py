"""The rights of a front: a second name in a request, wherever it stands, reaches no backend undecided."""

import json
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import pytest
from thrift.Thrift import TApplicationException, TException

from lake.protocol.connection.thrift_client import ThriftClient
from lake.protocol.hive import (
    ColumnStatistics,
    ColumnStatisticsDesc,
    CommitTxnRequest,
    CreateDatabaseRequest,
    CreationMetadata,
    Database,
    EnvironmentContext,
    GetTablesRequest,
    GetValidWriteIdsRequest,
    Index,
    InsertEventRequestData,
    InvalidOperationException,
    MetaException,
    NoSuchObjectException,
    NotificationEvent,
    PartitionListComposingSpec,
    PartitionSpec,
    ReplLastIdInfo,
    SQLForeignKey,
    SQLPrimaryKey,
    Table,
    WriteNotificationLogBatchRequest,
    WriteNotificationLogRequest,
)
from metastore.server.federated_rights import Events
from metastore.services.access.caller import Caller
from metastore.services.access.control import AccessControl
from metastore.services.access.rights import EVERYTHING, Action, Decision, Securable
from tests.metastore.federation.stand_in import HangUp, LogStandIn, StandIn
from tests.support import builders
from tests.support.front import FrontServer
from tests.support.postgres import Postgres

POLICY = """
permit(principal, action, resource);
forbid(principal == User::"ann", action, resource in Database::"hive.secret");
forbid(principal == User::"ann", action, resource in Database::"cat.secret");
forbid(principal == User::"ann", action, resource == Table::"hive.open.hidden");
forbid(principal == User::"ann", action, resource == Table::"cat.open.hidden");
forbid(principal == User::"ann", action == Action::"LOCATION", resource);
forbid(principal == User::"ann", action == Action::"READ_UNCOMMITTED", resource);
forbid(principal == User::"ann", action == Action::"ADMIN", resource);
"""


def hang_up(*_: Any) -> Any:
    raise HangUp


def get_table(database: str, name: str) -> Table:
    return builders.table(database.rpartition("#")[2], name, keys=("a",), owner="ann")


def backend(**answers: Callable[..., Any]) -> StandIn:
    """A backend that takes down what it is asked, and hangs up when it has no answer."""
    known: dict[str, Callable[..., Any]] = {
        "set_ugi": lambda *_: [],
        "getMetaConf": lambda key: "false",
        "setMetaConf": lambda key, value: None,
        "get_table": get_table,
    }
    return StandIn(defaultdict(lambda: hang_up, known | answers))


@contextmanager
def front(tmp_path: Path, backends: dict[str, str], more: str = "", server: str = "") -> Iterator[FrontServer]:
    file = tmp_path / "policy.cedar"
    file.write_text(POLICY)
    settings = f'[server]\nauthorization = "policy"\npolicy_file = "{file}"\nadmins = ["boss"]\n{server}\n{more}'
    several = {name: f"failures = 1_000_000\nreply_seconds = 5\n{text}" for name, text in backends.items()}
    with FrontServer(tmp_path / "front", several, more=settings) as running:
        yield running


@contextmanager
def client_of(server: FrontServer, user: str) -> Iterator[ThriftClient]:
    with ThriftClient(server.host, server.port) as client:
        client.set_ugi(user, [])
        yield client


TRUST = "trust_unproven_users = true"


def statistics(database: str, table: str) -> ColumnStatistics:
    return ColumnStatistics(ColumnStatisticsDesc(isTblLevel=True, dbName=database, tableName=table), [])


def batch(database: str, table: str) -> WriteNotificationLogBatchRequest:
    one = WriteNotificationLogRequest(1, 1, database, table, InsertEventRequestData(filesAdded=[]))
    return WriteNotificationLogBatchRequest("cat", "open", "t", [one])


def specification(database: str, table: str) -> PartitionSpec:
    listed = PartitionListComposingSpec([builders.partition(database, table, "1")])
    return PartitionSpec("open", "t", partitionList=listed)


def key(database: str, table: str) -> list[SQLPrimaryKey]:
    return [SQLPrimaryKey(database, table, "a", 1, "k", True, False, False)]


def foreign(database: str, table: str) -> list[SQLForeignKey]:
    return [SQLForeignKey("open", "p", "a", database, table, "a", 1, 0, 0, "f", "p", True, False, False)]


def view(database: str, table: str) -> Table:
    return builders.table("open", creationMetadata=CreationMetadata("hive", database, table, {"open.s"}))


def committed(**info: Any) -> CommitTxnRequest:
    return CommitTxnRequest(7, replLastIdInfo=ReplLastIdInfo(lastReplId=1, **info))


NO_CONTEXT = EnvironmentContext({})

# A method, how its arguments are made of a database and a table, and what its caller may not name there.
CALLS: list[tuple[str, Callable[[str, str], list[Any]], list[tuple[str, str]]]] = [
    ("get_table", lambda d, t: [d, t], [("secret", "t"), ("\x01secret", "t"), ("@hive#secret", "t"),
                                        (" SECRET ", "t"), ("open", "\x01hidden"), ("open", "HIDDEN "),
                                        ("@hive#!", "t")]),
    ("get_valid_write_ids", lambda d, t: [GetValidWriteIdsRequest([f"{d}.{t}"])],
     [("secret", "t"), ("hive.secret", "t"), ("open", "hidden"), ("hive.open", "hidden")]),
    ("add_write_notification_log_in_batch", lambda d, t: [batch(d, t)], [("secret", "t"), ("open", "hidden")]),
    ("add_partition", lambda d, t: [builders.partition("open", "t", "1", colStats=statistics(d, t))],
     [("secret", "t"), ("open", "hidden")]),
    ("add_partitions_pspec", lambda d, t: [[specification(d, t)]], [("secret", "t"), ("open", "hidden")]),
    ("create_table", lambda d, t: [builders.table("open", colStats=statistics(d, t))],
     [("secret", "t"), ("open", "hidden")]),
    ("create_table", lambda d, t: [view(d, t)], [("secret", "t"), ("open", "hidden")]),
    ("alter_table", lambda d, t: ["open", "t", builders.table("open", owner="ann", colStats=statistics(d, t))],
     [("secret", "t"), ("open", "hidden")]),
    ("create_table_with_constraints", lambda d, t: [builders.table("open"), key(d, t), [], [], [], [], []],
     [("secret", "t"), ("open", "hidden")]),
    ("create_table_with_constraints", lambda d, t: [builders.table("open"), [], foreign(d, t), [], [], [], []],
     [("secret", "t"), ("open", "hidden")]),
    ("commit_txn", lambda d, t: [committed(database=d)], [("secret", "t"), ("open", "t")]),
    ("commit_txn", lambda d, t: [committed(database=d, table=t)], [("secret", "t"), ("open", "hidden")]),
    ("alter_database", lambda d, t: ["open", Database(name=d)], [("secret", "t")]),
    ("get_table_objects_by_name_req", lambda d, t: [GetTablesRequest(dbName=d, tblNames=[t])],
     [("secret", "t"), ("s*", "t"), ("open|secret", "t")]),
]  # fmt: skip


@dataclass
class World:
    """A front, and its backends by their names."""

    server: FrontServer
    backends: dict[str, StandIn]

    def arrived(self) -> list[tuple[str, str]]:
        """What has arrived where since the last time."""
        found = [(name, method) for name, each in self.backends.items() for method in each.names()]
        for each in self.backends.values():
            each.calls.clear()
        return found


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    missing = NoSuchObjectException("open.t table not found")
    answers: dict[str, dict[str, Callable[..., Any]]] = {
        "main": {
            "get_database": lambda name: builders.database(name, locationUri="file:/w/open.db", ownerName="x"),
            "get_partitions": lambda *_: [],
            "create_database": lambda _: None,
        },
        "other": {},
        "copied": {},
        "copy": {},
        "gone": {"get_table": lambda *_: missing},
        "empty": {"get_table": lambda *_: None},
    }
    with ExitStack() as stack:
        made = {name: stack.enter_context(backend(**more)) for name, more in answers.items()}
        settings = {
            "main": 'number = 1\ndeny = ["people"]',
            "other": 'catalog = "cat"\nprimary = true',
            "copied": f'prefix = "c_"\nread_uris = "{made["copy"].uri}"',
            "gone": 'prefix = "g_"',
            "empty": 'prefix = "e_"',
        }
        texts = {name: f'uris = "{made[name].uri}"\n{text}' for name, text in settings.items()}
        yield World(stack.enter_context(front(tmp_path_factory.mktemp("names"), texts, server=TRUST)), made)


@pytest.fixture
def ann(world: World) -> Iterator[ThriftClient]:
    with client_of(world.server, "ann") as client:
        world.arrived()
        yield client


@pytest.mark.parametrize(("name", "made", "forbidden"), CALLS)
def test_second_names(
    world: World,
    ann: ThriftClient,
    name: str,
    made: Callable[[str, str], list[Any]],
    forbidden: list[tuple[str, str]],
) -> None:
    """Each call arrives with names that its caller may use, and not with one that it may not."""
    for database, table in forbidden:
        with suppress(TException):
            ann.call(name, *made(database, table))
        arrived = {method for _, method in world.arrived()}
        assert name not in arrived, (database, table)
    if name != "commit_txn":  # it may not have this name at all
        with suppress(TException):
            ann.call(name, *made("open", "t"))
        assert name in {method for _, method in world.arrived()}


def test_what_is_for_administrators(world: World) -> None:
    """What reaches further than names tell: the table that goes with an index, and what a connector leads to."""
    index = Index("i", "h", "open", "t", 0, 0, "open.s", builders.storage(), {}, False)
    calls: list[tuple[str, list[Any]]] = [
        ("add_index", [index, None]),
        ("alter_index", ["open", "t", "i", index]),
        ("create_database", [builders.database("new", connector_name="c")]),
        ("create_database_req", [CreateDatabaseRequest("new", dataConnectorName="c")]),
        ("alter_database", ["open", builders.database("open", connector_name="c")]),
    ]
    world.arrived()
    for user in ("ann", "bob", "boss"):
        for name, arguments in calls:
            with client_of(world.server, user) as client, suppress(TException):
                client.call(name, *arguments)
        found = {name for _, name in world.arrived() if name != "get_database"}
        assert found == ({name for name, _ in calls} if user == "boss" else set()), user


def test_control_characters_reach_no_denied_database(world: World) -> None:
    """Hive strips them from a name's ends, so what the front's file denies would have a second name."""
    with client_of(world.server, "boss") as boss:
        world.arrived()
        for name in ("people", "\x01people", "people\x00", "@hive#\x01people", "@\x02hive#people"):
            with pytest.raises((MetaException, TException)):
                boss.get_table(name, "t")
        assert world.arrived() == []
        assert boss.get_table("open", "t").tableName == "t"


def test_decisions_are_about_the_latest_state(world: World, ann: ThriftClient) -> None:
    """A copy that is behind would have a rule that compares with the table there is allow too much."""
    changed = builders.table("c_open", owner="ann", sd=builders.storage(location="file:/elsewhere"), keys=("a",))
    with pytest.raises(MetaException, match="LOCATION"):
        ann.alter_table("c_open", "t", changed)
    assert world.arrived() == [("copied", "get_table")]
    assert ann.get_table("c_open", "t").tableName == "t"
    assert world.arrived() == [("copy", "get_table")]


@pytest.mark.parametrize("which", ["gone", "empty"])
def test_what_is_not_there_is_not_changed(world: World, ann: ThriftClient, which: str) -> None:
    """A rule needs less for a table that isn't there, and it may be there when the call arrives."""
    database = f"{which[0]}_open"
    changed = builders.table(database, owner="x", sd=builders.storage(location="file:/elsewhere"))
    with pytest.raises(InvalidOperationException, match=r"not found|no answer"):
        ann.alter_table(database, "t", changed)
    assert world.arrived() == [(which, "get_table")]


def test_uncommitted_partitions(world: World, ann: ThriftClient) -> None:
    """A connection that asked for them needs the right, as at the lake metastore itself."""
    assert ann.get_partitions("open", "t", -1) == []
    ann.setMetaConf("INCLUDEuncommit", "true")
    with pytest.raises(MetaException, match="READ_UNCOMMITTED"):
        ann.get_partitions("open", "t", -1)
    world.arrived()
    ann.setMetaConf("INCLUDEUNCOMMIT", "false")
    assert ann.get_partitions("open", "t", -1) == []
    sent = [values for _, method, values in world.backends["main"].calls if method == "setMetaConf"]
    assert sent[-1:] == [["includeUnCommit", "false"]]  # and no other spelling of it after that


def test_no_place_is_usual_for_a_new_database(world: World, ann: ThriftClient) -> None:
    place = f"file:{world.server.data_dir}/warehouse/new.db"
    with pytest.raises(MetaException, match="LOCATION"):
        ann.create_database(builders.database("new", locationUri=place))
    assert world.arrived() == []
    ann.create_database(builders.database("new"))
    assert world.arrived() == [("main", "create_database")]


def test_claimed_names_read_no_log(tmp_path: Path, postgres: Postgres) -> None:
    """A name that nobody has proven is no reader's where the front doesn't trust such names."""
    with postgres.fresh_database(upgraded=True) as url, LogStandIn() as log:
        backends = {"only": f'uris = "{log.uri}"\nfollow = true'}
        readers = '[federation]\nlog_readers = ["etl"]\n'
        with (
            front(tmp_path, backends, readers, f"database_url = {json.dumps(url)}") as server,
            client_of(server, "etl") as client,
            pytest.raises((TApplicationException, MetaException), match="may not read"),
        ):
            client.get_current_notificationEventId()


class OnlyOpen:
    """Decides that a caller may subscribe to `open`, and to nothing else."""

    def decide_all(self, caller: Caller, wanted: list[tuple[Action, Securable]]) -> list[Decision]:
        return [Decision(each is not EVERYTHING and each.database == "open", "") for _, each in wanted]


@pytest.mark.parametrize(
    ("type", "database", "message", "shown"),
    [
        ("DROP_TABLE", "open", "{}", True),
        ("DROP_TABLE", "secret", "{}", False),
        ("DROP_TABLE", None, "{}", False),
        ("COMMIT_TXN", "open", '{"databases": ["secret"]}', False),
        ("TO_COME", "open", '{"dbName": "secret"}', False),
        ("ALTER_TABLE", "open", "no JSON", False),
    ],
)
def test_which_events_are_shown(type: str, database: str | None, message: str, shown: bool) -> None:
    control = AccessControl(cast(Any, OnlyOpen()), cast(Any, None), frozenset(), True)
    event = NotificationEvent(1, 7, type, database, "t", message, "json-0.2")
    assert Events(control, Caller("ann")).shown([event]) == [shown]
