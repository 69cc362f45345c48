"""No method tells of an uncommitted partition, unless its caller asked for such.

Every method declares what it has to do with such partitions. Those that hide them have a recipe.
"""

import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest
from thrift.Thrift import TException

from lake.protocol import hive, lake
from lake.protocol.connection.thrift_client import ThriftClient
from lake.protocol.hive import (
    AddPartitionsRequest,
    DropPartitionsExpr,
    DropPartitionsRequest,
    FireEventRequest,
    FireEventRequestData,
    InsertEventRequestData,
    NoSuchObjectException,
    NotificationEventRequest,
    NotificationEventsCountRequest,
    RequestPartsSpec,
)
from lake.protocol.lake import ReopenPartitionsRequest, TableReference
from lake.protocol.services import METHODS
from metastore.api import load
from metastore.api.methods import HANDLERS
from metastore.api.uncommitted import Uncommitted
from tests.support.builders import partition, table
from tests.support.expressions import serialised
from tests.visibility.readers import CONNECTION, LISTENER, NONE, Ports, Reader, Readers, RecordingClient, Scope
from tests.visibility.recipes import (
    ALL,
    HIDDEN,
    HIDDEN_NAME,
    NOTE,
    NUMBER,
    READY,
    RECIPES,
    TOKEN,
    TRACES,
    Recipe,
    commit_files,
    fill,
    keep_statistics,
)

load()

WITH, WITHOUT = "with_a_hidden_one", "without_one"

TELL_OF_PARTITIONS = {
    hive.Partition,
    hive.PartitionSpec,
    hive.PartitionValuesRow,
    hive.AggrStats,
    hive.PartitionsStatsResult,
    lake.PartitionState,
    lake.DataFile,
}


@pytest.fixture(scope="module", autouse=True)
def filled(ports: Ports) -> Iterator[None]:
    """Two databases that differ in a hidden partition."""
    with ThriftClient(ports.host, ports.usual) as client:
        fill(client, WITH, with_hidden=True)
        fill(client, WITHOUT, with_hidden=False)
        commit_files(client, WITH, with_hidden=True)
        commit_files(client, WITHOUT, with_hidden=False)
        yield
        for name in (WITH, WITHOUT):
            client.drop_database(name, True, True)


# --- every method is thought of -------------------------------------------------------------------------------


def declared(*kinds: Uncommitted) -> set[str]:
    return {name for name, handler in HANDLERS.items() if handler.uncommitted in kinds}


def test_every_method_that_hides_partitions_has_a_recipe() -> None:
    assert {recipe.method for recipe in RECIPES} == declared(Uncommitted.HIDDEN)


def test_what_has_no_recipe_returns_no_partitions() -> None:
    """As far as types tell; writers get back what they sent."""
    telling = {name for name in HANDLERS if _returned(name) & TELL_OF_PARTITIONS}
    tried = declared(Uncommitted.HIDDEN, Uncommitted.SELECTED)
    assert telling - tried - declared(Uncommitted.NAMED, Uncommitted.LOAD_PATH, Uncommitted.CLEANERS) == set()


def _returned(name: str) -> set[type]:
    """The structs that an answer may hold."""
    result = METHODS[name].result_spec
    return _structs_in(result[0][3]) if result and result[0] is not None else set()


def _structs_in(argument: Any) -> set[type]:
    """The structs that a field may hold, those within structs included."""
    found: set[type] = set()
    waiting = [argument]
    while waiting:
        part = waiting.pop()
        if isinstance(part, list):
            cls = part[0]
            if cls not in found:
                found.add(cls)
                waiting += [entry[3] for entry in cls.thrift_spec if entry is not None]
        elif isinstance(part, tuple):
            waiting += part
    return found


# --- reads ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("recipe", RECIPES, ids=str)
def test_hidden_without_a_scope(recipe: Recipe, readers: Readers) -> None:
    reader = NONE.of(readers, WITH)
    answer = asked(recipe, reader)
    assert traces(reader.client) == []
    assert answer == asked(recipe, NONE.of(readers, WITHOUT))


@pytest.mark.parametrize(("recipe", "scope"), [pytest.param(r, s, id=f"{r}-{s}") for r in RECIPES for s in r.scopes])
def test_found_within_a_scope(recipe: Recipe, scope: Scope, readers: Readers) -> None:
    """The recipe is good: it finds the partition when it may."""
    reader = scope.of(readers, WITH)
    assert asked(recipe, reader) != asked(recipe, NONE.of(readers, WITHOUT))
    if recipe.tells:
        assert traces(reader.client)


def asked(recipe: Recipe, reader: Reader) -> str:
    """What a reader gets to know, without what differs between any two databases."""
    try:
        reply = repr(recipe.ask(reader))
    except TException as error:
        reply = f"{type(error).__name__}: {error}"
    varying = "createTime|lastAnalyzed|id|tableId|requestedAt|changedAt|moment|completionTime"
    reply = re.sub(rf"({varying})='?\d+'?", r"\1", reply)
    reply = re.sub(r"('transient_lastDdlTime': )'\d+'", r"\1", reply)
    return reply.replace(reader.db, "db").replace(reader.table(), "t")


def traces(client: RecordingClient) -> list[bytes]:
    """What the last reply's bytes hold of the hidden partition, and the caller didn't say itself."""
    return [trace for trace in TRACES if trace in client.received and trace not in client.sent]


def test_named_exactly_by_a_load_path(client: RecordingClient) -> None:
    """The one lookup that hides nothing says what it found."""
    found = client.get_partition_with_auth(WITH, "t", list(HIDDEN), "me", [])
    assert found.values == list(HIDDEN) and found.parameters["commit"] == "false"


def test_counters(client: RecordingClient, db: str) -> None:
    client.create_table(table(db, keys=("ds", "hr")))

    def counted() -> set[int]:
        return {client.getCounters()["partitions"], client.getCounter("partitions")}

    before = counted()
    client.add_partition(partition(db, "t", *HIDDEN, parameters={"commit": "false"}))
    assert counted() == before
    client.add_partition(partition(db, "t", "a", "b"))
    assert counted() == {before.pop() + 1}


def test_a_writer_is_told_how_many_are_open(client: RecordingClient) -> None:
    watermark = client.lake_get_watermark(TableReference(database=WITH, table="t"))
    assert (watermark.uncommitted, watermark.oldestUncommitted) == (1, HIDDEN_NAME)


# --- Hive's notification log -----------------------------------------------------------------------------------


@pytest.fixture
def log(client: RecordingClient, db: str) -> Callable[[], list[tuple[str, str]]]:
    """Reads what is new in Hive's log about a database: types and messages. The counts must agree."""
    client.create_table(table(db, keys=("ds", "hr")))
    position = client.get_current_notificationEventId().eventId

    def read() -> list[tuple[str, str]]:
        nonlocal position
        found = client.get_next_notification(NotificationEventRequest(position, 0)).events
        assert [each.eventId for each in found] == list(range(position + 1, position + 1 + len(found)))
        counted = client.get_notification_events_count(NotificationEventsCountRequest(position, db))
        position = client.get_current_notificationEventId().eventId
        assert not found or found[-1].eventId == position
        own = [(each.eventType, each.message) for each in found if each.dbName == db]
        assert counted.eventsCount == len(own)
        return own

    return read


def test_hives_log_tells_of_ready_partitions_only(
    client: RecordingClient, db: str, log: Callable[[], list[tuple[str, str]]]
) -> None:
    client.add_partition(partition(db, "t", *HIDDEN, parameters={"commit": "false", "note": NOTE}))
    client.add_partitions(
        [
            partition(db, "t", "2020-01-01", "10"),
            partition(db, "t", TOKEN, "11", parameters={"commit": "false", "note": NOTE}),
        ]
    )
    [(type, message)] = log()
    assert type == "ADD_PARTITION" and TOKEN not in message and NOTE not in message

    hidden = client.get_partition_with_auth(db, "t", list(HIDDEN), "me", [])
    ready = client.get_partition(db, "t", ["2020-01-01", "10"])
    client.alter_partitions(db, "t", [hidden.replace(parameters={"note": NOTE + "2"}), ready])
    keep_statistics(client, db, HIDDEN_NAME, numDVs=NUMBER)
    inserted = FireEventRequestData(InsertEventRequestData(filesAdded=["file:/f"]))
    assert client.fire_listener_event(FireEventRequest(True, inserted, db, "t", list(HIDDEN))).eventIds == []
    client.truncate_table(db, "t", [HIDDEN_NAME])
    client.rename_partition(db, "t", [TOKEN, "11"], partition(db, "t", TOKEN, "12"))
    client.drop_partition(db, "t", [TOKEN, "12"], True)
    [(type, message)] = log()
    assert type == "ALTER_PARTITION" and TOKEN not in message and NOTE not in message

    client.alter_partition(db, "t", hidden.replace(parameters={"commit": "true", "note": NOTE}))
    [(type, message)] = log()
    assert type == "ADD_PARTITION" and HIDDEN[0] in message and NOTE in message
    assert len(client.fire_listener_event(FireEventRequest(True, inserted, db, "t", list(HIDDEN))).eventIds) == 1
    client.alter_partition(db, "t", hidden.replace(parameters={"note": "x"}))
    assert [type for type, _ in log()] == ["INSERT", "ALTER_PARTITION"]

    client.lake_reopen_partitions(
        ReopenPartitionsRequest(table=TableReference(database=db, table="t"), names=[HIDDEN_NAME])
    )
    [(type, message)] = log()
    assert type == "DROP_PARTITION" and HIDDEN[0] in message
    client.alter_partition(db, "t", hidden.replace(parameters={"note": NOTE}))
    client.drop_partition(db, "t", list(HIDDEN), True)
    assert log() == []


# --- writes that answer with partitions -----------------------------------------------------------------------


def test_adding_what_is_missing_answers_with_what_was_added(client: RecordingClient) -> None:
    new = [partition(WITH, "t", *values) for values in (HIDDEN, READY[0])]
    added = client.add_partitions_req(AddPartitionsRequest(WITH, "t", new, ifNotExists=True))
    assert added.partitions == [] and traces(client) == []


@pytest.fixture
def own(readers: Readers) -> Iterator[str]:
    """A database with a hidden partition, for a test that changes it."""
    client = readers.plain()
    fill(client, "changed", with_hidden=True)
    yield "changed"
    client.drop_database("changed", True, True)


def drop(client: ThriftClient, db: str, *, if_exists: bool = True) -> Any:
    wanted = RequestPartsSpec(exprs=[DropPartitionsExpr(expr=serialised(ALL))])
    return client.drop_partitions_req(DropPartitionsRequest(db, "t", wanted, deleteData=True, ifExists=if_exists))


def exchange(method: Callable[..., object], db: str) -> None:
    """Moves the partitions of all days, those that the caller sees, by partial specs: the hidden one's day last."""
    for day in (*(ready[0] for ready in READY), HIDDEN[0]):
        with suppress(hive.MetaException):  # where it sees none
            method({"ds": day}, db, "t", db, "u")


CHANGES: dict[str, Callable[[ThriftClient, str], Any]] = {
    "drop_partitions_req": drop,
    "exchange_partition": lambda client, db: exchange(client.exchange_partition, db),
    "exchange_partitions": lambda client, db: exchange(client.exchange_partitions, db),
}


def test_every_such_change_is_tried() -> None:
    assert CHANGES.keys() == declared(Uncommitted.SELECTED)


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_of_what_is_seen_leaves_the_rest(name: str, readers: Readers, own: str) -> None:
    client = readers.plain()
    CHANGES[name](client, own)
    assert traces(client) == []
    assert readers.metaconf().get_partition_names(own, "t", -1) == [HIDDEN_NAME]


@pytest.mark.parametrize("scope", [CONNECTION, LISTENER], ids=str)
@pytest.mark.parametrize("name", CHANGES)
def test_a_change_of_what_a_scope_shows_takes_all(name: str, scope: Scope, readers: Readers, own: str) -> None:
    client = scope.connect(readers)
    CHANGES[name](client, own)
    assert traces(client) or name == "exchange_partition"  # which answers with an empty partition
    assert client.get_partition_names(own, "t", -1) == []


def test_nothing_to_drop_but_hidden_ones(readers: Readers, own: str) -> None:
    client = readers.plain()
    drop(client, own)
    with pytest.raises(NoSuchObjectException) as caught:
        drop(client, own, if_exists=False)
    assert TOKEN not in str(caught.value)
