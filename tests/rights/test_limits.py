"""A limit counts what the caller sees: nothing hidden takes up a place, and nothing is told by how an answer is cut."""

import itertools
from collections.abc import Iterator

import pytest

from lake.protocol.connection.thrift_client import ThriftClient
from lake.protocol.hive import (
    CompactionRequest,
    CompactionType,
    GetTablesExtRequest,
    NotificationEventRequest,
    NotificationEventsCountRequest,
    ShowCompactRequest,
)
from lake.protocol.lake import ReadEventsRequest, ReadGroupEventsRequest
from lake.protocol.services import METHODS
from metastore.api import load
from metastore.api.methods import HANDLERS
from metastore.api.rights import filters
from metastore.api.rights.classification import Need
from tests.rights.conftest import as_user
from tests.rights.world import grant
from tests.support import builders
from tests.support.server import MetastoreServer

load()

NUMBERS = itertools.count(1)
HIDDEN = ("a_hidden", "b_hidden", "y_hidden")
SHOWN = ("m_shown", "n_shown", "z_shown")

COUNTS_WHAT_IS_SHOWN = {
    "get_next_notification",
    "get_notification_events_count",
    "get_table_names_by_filter",
    "get_tables_ext",
    "lake_read_events",
    "lake_read_group_events",
    "show_compact",
}
"""Their answers are about several objects, some of which may be hidden."""

LIMITS = {"limit", "max", "maxparts", "maxevents", "maxtables", "maxindexes"}


def limited_methods() -> set[str]:
    """The reading methods with an argument that limits the answer, or goes on behind an earlier one."""
    found = set()
    for name, method in METHODS.items():
        specs = [entry for entry in method.args.thrift_spec if entry is not None]
        structs = [each[3][0].thrift_spec for each in specs if isinstance(each[3], list) and each[3]]
        fields = [entry[2] for spec in (specs, *structs) for entry in spec if entry is not None]
        if not HANDLERS[name].rule.changes and any(each.replace("_", "").lower() in LIMITS for each in fields):
            found.add(name)
    return found


def test_every_method_with_a_limit_filters_what_is_hidden_or_counts_what_its_caller_may_see() -> None:
    """Who may list a table sees all that a limit counts of it. Uncommitted partitions are not selected."""
    filtered = {name for name in limited_methods() if HANDLERS[name].rule.extra is not None}
    assert filtered == COUNTS_WHAT_IS_SHOWN
    for name in limited_methods() - filtered:
        needs = HANDLERS[name].rule.needs
        assert needs and all(is_of_one_table(need) or need.kind in ("everything", "jobs") for need in needs), name


def is_of_one_table(need: Need) -> bool:
    return need.kind in ("table", "lake") and not need.gentle and not any(path.optional for path in need.paths)


@pytest.mark.parametrize("method", sorted(COUNTS_WHAT_IS_SHOWN))
def test_what_is_hidden_is_left_out_before_the_limit(method: str) -> None:
    extra = HANDLERS[method].rule.extra
    assert extra is not None
    assert filters.is_before_limits(extra)


@pytest.fixture(scope="module")
def begin(root: ThriftClient) -> int:
    """The number of the last notification before the tables were made: other tests use this server, too."""
    last: int = root.get_current_notificationEventId().eventId
    return last


@pytest.fixture(scope="module")
def shop(root: ThriftClient, begin: int) -> str:
    """A database with hidden tables before, between and behind those that `reader` sees; they differ in all."""
    name = "limited"
    root.create_database(builders.database(name, ownerName="root"))
    for table in sorted((*HIDDEN, *SHOWN)):
        parameters = {"pii": "k7" if table in HIDDEN else "none", "comment": table}
        root.create_table(builders.table(name, table, owner="root", parameters=parameters))
        root.compact2(CompactionRequest(name, table, type=CompactionType.MAJOR))
    for table in SHOWN:
        grant(root, "reader", "SELECT", name, table)
    grant(root, "reader", "SUBSCRIBE", name, SHOWN[0])  # to read for a group
    return name


@pytest.fixture
def reader(guarded: MetastoreServer, shop: str) -> Iterator[ThriftClient]:
    with as_user(guarded, "reader") as client:
        yield client


ALL = 'hive_filter_field_params__comment like ".*"'


@pytest.mark.parametrize("limit", [-1, 0, 1, 2, 3, 4, 100])
def test_tables_by_filter(reader: ThriftClient, shop: str, limit: int) -> None:
    expected = list(SHOWN) if limit < 0 else list(SHOWN[:limit])
    assert reader.get_table_names_by_filter(shop, ALL, limit) == expected


@pytest.mark.parametrize("value", ["k7", "k8", "none"])
def test_no_parameter_is_told(reader: ThriftClient, shop: str, value: str) -> None:
    """The same answer, whatever a hidden table has."""
    text = f'hive_filter_field_params__pii like "{value}.*" or hive_filter_field_params__comment = "m_shown"'
    assert reader.get_table_names_by_filter(shop, text, 1) == ["m_shown"]


@pytest.mark.parametrize("limit", [None, -1, 0, 1, 2, 3, 4, 100])
@pytest.mark.parametrize("pattern", ["*", "*_shown", "*hidden"])
def test_extended_tables(reader: ThriftClient, shop: str, limit: int | None, pattern: str) -> None:
    found = reader.get_tables_ext(GetTablesExtRequest("hive", shop, pattern, 0, limit))
    expected = [] if pattern == "*hidden" else list(SHOWN)
    assert [each.tblName for each in found] == (expected if limit is None or limit < 0 else expected[:limit])


@pytest.mark.parametrize("limit", [None, 0, 1, 2, 3, 4, 100])
def test_compactions(reader: ThriftClient, shop: str, limit: int | None) -> None:
    found = reader.show_compact(ShowCompactRequest(dbName=shop, limit=limit)).compacts
    assert [each.tablename for each in found] == list(SHOWN[:limit] if limit else SHOWN)


@pytest.mark.parametrize("limit", [1, 2, 3, 100])
def test_events(reader: ThriftClient, shop: str, limit: int) -> None:
    names = []
    position = 0
    for _ in range(100):
        request = ReadEventsRequest(position, limit, [f"{shop}.*"], ["CREATE_TABLE"])
        response = reader.lake_read_events(request)
        names += [each.table for each in response.events]
        assert len(response.events) <= limit
        if not response.events:
            assert response.position == response.last
            break
        last_of_all = response.position == response.last
        assert last_of_all or response.position == response.events[-1].number
        position = response.position
    assert names == list(SHOWN)


@pytest.mark.parametrize("tables", [["limited.a_hidden"], ["limited.*_hidden"], ["limited.nothing"]])
def test_a_filter_of_events_finds_nothing_hidden(reader: ThriftClient, shop: str, tables: list[str]) -> None:
    response = reader.lake_read_events(ReadEventsRequest(0, 1, tables, ["CREATE_TABLE"]))
    assert (response.events, response.position) == ([], response.last)


@pytest.mark.parametrize("limit", [1, 2, 100])
def test_events_of_a_group(reader: ThriftClient, shop: str, limit: int) -> None:
    group, names, held = f"limited{next(NUMBERS)}", [], None
    for _ in range(100):
        response = reader.lake_read_group_events(
            ReadGroupEventsRequest(
                group, "m", 0, shards=held, limit=limit, tables=[f"{shop}.*"], types=["CREATE_TABLE"]
            )
        )
        names += [each.table for each in response.events]
        held = response.shards
        if not response.events:
            break
        assert len(response.events) <= limit
    assert names == list(SHOWN)
    assert {each.read for each in held or ()} == {response.last}


def test_notifications_without_a_filter_leave_numbers(reader: ThriftClient, shop: str) -> None:
    """Hive's clients stop at a gap."""
    found = reader.get_next_notification(NotificationEventRequest(0)).events
    assert [each.eventId for each in found] == list(range(1, len(found) + 1))
    created = [each.tableName for each in found if each.eventType == "CREATE_TABLE" and each.dbName == shop]
    assert created == list(SHOWN)


@pytest.mark.parametrize("limit", [None, 1, 2, 3, 4])
def test_filtered_notifications(reader: ThriftClient, shop: str, begin: int, limit: int | None) -> None:
    """Where a filter says what a notification is about, a hidden one is none."""
    for filtered in ({"dbName": shop}, {"eventTypeSkipList": ["ALTER_TABLE"]}, {"tableNames": [*HIDDEN, *SHOWN]}):
        request = NotificationEventRequest(begin, limit, eventTypeList=["CREATE_TABLE"], **filtered)
        names = [each.tableName for each in reader.get_next_notification(request).events]
        assert names == list(SHOWN[:limit]), filtered
    request = NotificationEventRequest(0, limit, dbName=shop, tableNames=list(HIDDEN))
    assert reader.get_next_notification(request).events == []


@pytest.mark.parametrize("limit", [None, 1, 100])
def test_counted_notifications(reader: ThriftClient, root: ThriftClient, shop: str, limit: int | None) -> None:
    def count(client: ThriftClient, *tables: str) -> int:
        request = NotificationEventsCountRequest(0, shop, limit=limit, tableNames=list(tables) or None)
        return client.get_notification_events_count(request).eventsCount

    most = limit or 100
    assert count(reader, *HIDDEN) == 0
    assert count(reader) == count(reader, *HIDDEN, *SHOWN) == min(len(SHOWN), most)
    assert count(root) == min(len(SHOWN) + len(HIDDEN) + 1, most)
