"""Every method, by every role, with every way to name the object: nothing hidden is in any reply."""

import itertools
from collections.abc import Iterable, Iterator

import pytest

from lake.protocol.connection.thrift_client import ThriftClient
from lake.protocol.services import METHODS
from metastore.api import load
from metastore.api.methods import HANDLERS
from tests.rights import calls
from tests.rights import world as names
from tests.rights.conftest import as_user
from tests.rights.wire import RawConnection
from tests.rights.world import (
    HIDDEN,
    HIDDEN_TABLE,
    MISSING,
    MISSING_TABLE,
    NOBODY,
    OPEN,
    OWNER,
    READER,
    SECRET,
    WRITER,
    World,
)

load()

NAMED = calls.named_methods()
COUNTING = {"open_txns", "lock", "get_open_txns", "lake_read_group_events"}
"""Their replies have numbers that rise."""


class Users:
    """One raw connection for each user."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._connections: dict[str | None, RawConnection] = {}

    def reply(self, user: str | None, call: calls.Made) -> bytes:
        if user not in self._connections:
            server = self._world.server
            self._connections[user] = RawConnection(server.host, server.port, user)
        return self._connections[user].reply(call.method, call.arguments)

    def close(self) -> None:
        for connection in self._connections.values():
            connection.close()


@pytest.fixture(scope="module")
def users(world: World) -> Iterator[Users]:
    users = Users(world)
    yield users
    users.close()


@pytest.fixture(scope="module")
def root(world: World) -> Iterator[ThriftClient]:
    with as_user(world.server, "root") as client:
        yield client


def dump(root: ThriftClient, *databases: str) -> list[object]:
    """All that changing methods could have changed of these databases."""
    found: list[object] = []
    for where in databases:
        found.append(root.get_database(where))
        for table in root.get_all_tables(where):
            found += [root.get_table(where, table), root.get_partitions(where, table, -1)]
        found.append(root.get_functions(where, "*"))
    return found


def renamed(reply: bytes) -> bytes:
    """A reply about a missing object, as it would be about the hidden one."""
    for missing, hidden in ((MISSING, HIDDEN), (MISSING_TABLE, HIDDEN_TABLE)):
        for one, other in ((missing, hidden), (missing.upper(), hidden.upper())):
            reply = reply.replace(one.encode(), other.encode())
    return reply


HIDDEN_FROM = {
    "nobody, a database": (NOBODY, (HIDDEN, HIDDEN_TABLE), (MISSING, MISSING_TABLE)),
    "anonymous, a database": (None, (HIDDEN, HIDDEN_TABLE), (MISSING, MISSING_TABLE)),
    "a reader of another table": (READER, (OPEN, HIDDEN_TABLE), (OPEN, MISSING_TABLE)),
    "a writer of another table": (WRITER, (OPEN, HIDDEN_TABLE), (OPEN, MISSING_TABLE)),
    "the owner of another table": (OWNER, (OPEN, HIDDEN_TABLE), (OPEN, MISSING_TABLE)),
}


IN_OTHER_WAYS = ("nobody, a database", "a reader of another table")


@pytest.mark.sampled(5)
@pytest.mark.parametrize("role", HIDDEN_FROM, ids=list(HIDDEN_FROM))
def test_what_is_hidden_looks_like_what_is_missing(users: Users, root: ThriftClient, role: str) -> None:
    """The same bytes, but for the names that the caller sent, also after an administrator had a reply kept.

    Each method by the plain names, and two of the roles in another way to name the table, the next one each time.
    """
    others = itertools.cycle(list(calls.ways("", ""))[1:])
    wanted = [(method, "plain") for method in NAMED]
    if role in IN_OTHER_WAYS:
        wanted += [(method, next(others)) for method in NAMED]
    compare(users, root, role, wanted)


@pytest.mark.long
@pytest.mark.parametrize("role", HIDDEN_FROM, ids=list(HIDDEN_FROM))
def test_in_all_ways(users: Users, root: ThriftClient, role: str) -> None:
    compare(users, root, role, [(method, way) for method in NAMED for way in calls.ways("", "")])


def compare(users: Users, root: ThriftClient, role: str, wanted: Iterable[tuple[str, str]]) -> None:
    user, hidden, missing = HIDDEN_FROM[role]
    before = dump(root, HIDDEN, OPEN)
    wrong = []
    for method, way in wanted:
        call = calls.made(method, calls.ways(*hidden)[way])
        if HANDLERS[method].rule.by_names_alone:
            users.reply("root", call)
        seen = users.reply(user, call)
        if SECRET.encode() in seen:
            wrong.append((method, way, "tells", seen))
        if method in COUNTING:
            continue
        expected = renamed(users.reply(user, calls.made(method, calls.ways(*missing)[way])))
        if seen != expected:
            wrong.append((method, way, "differs", seen, expected))
    assert wrong == []
    assert dump(root, HIDDEN, OPEN) == before


@pytest.mark.parametrize("user", [READER, None])
def test_what_names_no_object_tells_nothing(users: Users, root: ThriftClient, user: str | None) -> None:
    before = dump(root, HIDDEN, OPEN)
    wrong = []
    for method in sorted(METHODS.keys() - calls.NOT_CALLED):
        reply = users.reply(user, calls.made(method, calls.Name("*", "*")))
        if SECRET.encode() in reply or HIDDEN.encode() in reply:
            wrong.append((method, reply))
    assert wrong == []
    assert dump(root, HIDDEN, OPEN) == before


TELLING = {
    "fetch_partition_names_req",
    "getTable",
    "get_all_functions",
    "get_all_tables",
    "get_database",
    "get_database_req",
    "get_databases_req",
    "get_fields",
    "get_fields_req",
    "get_fields_with_environment_context",
    "get_functions",
    "get_functions_req",
    "get_next_notification",
    "get_part_specs_by_filter",
    "get_partition",
    "get_partition_by_name",
    "get_partition_names",
    "get_partition_req",
    "get_partition_with_auth",
    "get_partitions",
    "get_partitions_by_filter",
    "get_partitions_by_filter_req",
    "get_partitions_by_names",
    "get_partitions_by_names_req",
    "get_partitions_ps",
    "get_partitions_ps_with_auth",
    "get_partitions_ps_with_auth_req",
    "get_partitions_pspec",
    "get_partitions_req",
    "get_partitions_with_auth",
    "get_partitions_with_specs",
    "get_primary_keys",
    "get_schema",
    "get_schema_req",
    "get_schema_with_environment_context",
    "get_table",
    "get_table_meta",
    "get_table_objects_by_name",
    "get_table_req",
    "get_tables",
    "get_tables_by_type",
    "lake_get_watermark",
    "lake_list_partitions",
    "lake_read_events",
    "lake_read_group_events",
    "list_privileges",
}


def test_the_calls_find_what_is_hidden(users: Users) -> None:
    """Else the tests above could not fail: an administrator gets the marker from most methods that read."""
    telling = set()
    for method in sorted(METHODS.keys() - calls.NOT_CALLED):
        if HANDLERS[method].rule.changes:
            continue
        for name in (calls.Name(HIDDEN, HIDDEN_TABLE), calls.Name(OPEN, HIDDEN_TABLE), calls.Name("*", "*")):
            if SECRET.encode() in users.reply("root", calls.made(method, name)):
                telling.add(method)
    assert telling >= TELLING, TELLING - telling


def test_readers_read(users: Users) -> None:
    """Who may read a table gets of every method that reads it what an administrator gets."""
    name = calls.Name(OPEN, names.OPEN_TABLE)
    wrong = []
    for method in NAMED:
        rule = HANDLERS[method].rule
        actions = {need.action.name for need in rule.needs if need.action is not None}
        gentle = any(need.gentle for need in rule.needs)
        if rule.changes or not actions <= {"SEE", "LIST", "SELECT"} or rule.extra is not None or gentle:
            continue
        if method in ("get_principals_in_role", "lake_list_jobs"):  # not for whoever may read
            continue
        call = calls.made(method, name)
        if users.reply(READER, call) != users.reply("root", call):
            wrong.append((method, users.reply(READER, call), users.reply("root", call)))
    assert wrong == []


def test_readers_change_nothing(users: Users, root: ThriftClient) -> None:
    before = dump(root, OPEN)
    for method in NAMED:
        if HANDLERS[method].rule.changes:
            for name in (calls.Name(OPEN, names.OPEN_TABLE), calls.Name(f"@hive#{OPEN}", names.OPEN_TABLE)):
                users.reply(READER, calls.made(method, name))
    assert dump(root, OPEN) == before
