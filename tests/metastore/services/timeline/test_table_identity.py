"""A table is its id: what names a table that was dropped is refused, although another table has the name now."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from lake.protocol import lake as wire
from lake.protocol.connection.thrift_client import ThriftClient
from lake.protocol.hive import EnvironmentContext, InvalidOperationException, MetaException, NoSuchObjectException
from lake.protocol.lake import TableReference, TableReplaced
from lake.protocol.services import METHODS
from lake.protocol.struct import Struct
from tests.support import builders
from tests.support.server import MetastoreServer

DATABASE = "identity"
READY = {"partition.commit.mode": "manual"}
INSTANT = ("20260101000000000", "commit")


@pytest.fixture(scope="module")
def client(metastore_server: MetastoreServer) -> Iterator[ThriftClient]:
    with ThriftClient(metastore_server.host, metastore_server.port) as opened:
        opened.create_database(builders.database(DATABASE))
        yield opened


def make(client: ThriftClient, name: str, **parameters: str) -> TableReference:
    """Makes a table, and drops the one that has the name."""
    if name in client.get_all_tables(DATABASE):
        client.drop_table(DATABASE, name, True)
    made = builders.table(DATABASE, name, keys=("dt",), sd=builders.parquet(), parameters={**READY, **parameters})
    client.create_table(made)
    found = TableReference(database=DATABASE, table=name)
    return found.replace(id=client.lake_timeline_position(found).tableId)


REQUESTS: dict[str, Callable[[TableReference], tuple[Any, ...]]] = {
    "lake_list_partitions": lambda t: (wire.ListPartitionsRequest(t),),
    "lake_commit_partitions": lambda t: (wire.CommitPartitionsRequest(t, ["dt=1"]),),
    "lake_reopen_partitions": lambda t: (wire.ReopenPartitionsRequest(t, ["dt=1"]),),
    "lake_get_watermark": lambda t: (t,),
    "lake_route_partitions": lambda t: (wire.RoutePartitionsRequest(t, ["dt=1"]),),
    "lake_begin_instant": lambda t: (wire.BeginInstantRequest(t, "commit"),),
    "lake_transition_instant": lambda t: (wire.TransitionInstantRequest(t, *INSTANT, "inflight"),),
    "lake_complete_instants": lambda t: ([wire.CompleteInstantRequest(t, *INSTANT)],),
    "lake_heartbeat_instant": lambda t: (t, *INSTANT),
    "lake_delete_instant": lambda t: (t, *INSTANT),
    "lake_list_instants": lambda t: (wire.ListInstantsRequest(t),),
    "lake_get_instant": lambda t: (t, *INSTANT),
    "lake_list_rejected_commits": lambda t: (t,),
    "lake_timeline_position": lambda t: (t,),
    "lake_get_snapshot": lambda t: (wire.SnapshotRequest(t),),
    "lake_read_changes": lambda t: (wire.ReadChangesRequest(t, 0),),
    "lake_plan_clean": lambda t: (wire.PlanCleanRequest(t, 1),),
    "lake_find_orphans": lambda t: (wire.FindOrphansRequest(t),),
    "lake_remove_orphans": lambda t: (wire.RemoveOrphansRequest(t, [".instants/20260101000000000.commit/a"]),),
    "lake_import_hudi": lambda t: (wire.ImportHudiRequest(t, f"file:///tmp/{DATABASE}", {}, []),),
    "lake_lease_snapshot": lambda t: (wire.LeaseRequest(t, "lease", seconds=5),),
    "lake_release_lease": lambda t: (t, "lease"),
    "lake_list_leases": lambda t: (t,),
    "lake_service_facts": lambda t: (wire.ServiceFactsRequest(t),),
    "lake_record_decisions": lambda t: (wire.RecordDecisionsRequest(t, 0, []),),
    "lake_list_decisions": lambda t: (t, 10),
    "lake_submit_job": lambda t: (t, wire.JobRequest("compaction")),
    "lake_list_jobs": lambda t: (wire.ListJobsRequest(t),),
    "lake_pause_table_services": lambda t: (t, None),
    "lake_report_figures": lambda t: (t, wire.EngineFigures(1, 1, 0, 1, 1, 0, 0)),
    "lake_data_place": lambda t: (t, True, False),
}
"""By method, the arguments of a call that names a table."""


def names_table(spec: Any, within: frozenset[type] = frozenset()) -> bool:
    """Whether a field of a struct, at any depth, is a TableReference. `within`: the structs around it, which may be
    parts of themselves."""
    for entry in spec:
        if entry is None:
            continue
        kind = entry[3][0] if isinstance(entry[3], list | tuple) else None
        kind = entry[3][1][0] if isinstance(entry[3], tuple) and isinstance(entry[3][1], list) else kind
        if kind is TableReference:
            return True
        struct = isinstance(kind, type) and issubclass(kind, Struct) and kind not in within
        if struct and names_table(kind.thrift_spec, within | {kind}):
            return True
    return False


def test_every_call_that_names_a_table_is_tried() -> None:
    ours = {name: method for name, method in METHODS.items() if name.startswith("lake_")}
    assert {name for name, method in ours.items() if names_table(method.args_spec)} == REQUESTS.keys()


@pytest.mark.parametrize("method", REQUESTS)
def test_a_call_that_names_the_dropped_table_is_refused(client: ThriftClient, method: str) -> None:
    old = make(client, "t")
    new = make(client, "t")
    assert old.id != new.id
    with pytest.raises(TableReplaced, match="Read the schema of the table again") as refused:
        client.call(method, *REQUESTS[method](old))
    assert refused.value.id == new.id
    assert client.lake_list_instants(wire.ListInstantsRequest(new)) == []
    assert client.lake_list_leases(new) == []
    assert client.lake_list_jobs(wire.ListJobsRequest(new)).jobs == []


@pytest.mark.parametrize("method", REQUESTS)
def test_a_call_that_names_the_table_itself_gets_further(client: ThriftClient, method: str) -> None:
    table = make(client, "t")
    try:
        client.call(method, *REQUESTS[method](table))
    except (NoSuchObjectException, InvalidOperationException) as refused:
        assert "is another table" not in (refused.message or "")


def test_replies_say_which_table_they_are_about(client: ThriftClient) -> None:
    table = make(client, "told")
    begun = client.lake_begin_instant(wire.BeginInstantRequest(table, "commit", state="inflight"))
    done = client.lake_complete_instants([wire.CompleteInstantRequest(table, begun.timestamp, "commit")])
    told = {
        begun.tableId,
        done[0].instant.tableId,
        client.lake_timeline_position(table).tableId,
        client.lake_get_snapshot(wire.SnapshotRequest(table)).tableId,
        client.lake_read_changes(wire.ReadChangesRequest(table, 0)).tableId,
        client.lake_get_watermark(table).tableId,
        client.lake_lease_snapshot(wire.LeaseRequest(table, "lease", seconds=5)).table.id,
        client.lake_service_facts(wire.ServiceFactsRequest(table)).table.id,
        client.lake_submit_job(table, wire.JobRequest("compaction")).table.id,
        client.get_table(DATABASE, "told").id,
    }
    assert told == {table.id}


def test_a_renamed_table_is_the_same_under_its_new_name_alone(client: ThriftClient) -> None:
    table = make(client, "before")
    altered = client.get_table(DATABASE, "before")
    client.alter_table(DATABASE, "before", altered.replace(tableName="after"))
    assert client.lake_timeline_position(table.replace(table="after")).tableId == table.id
    with pytest.raises(NoSuchObjectException):
        client.lake_timeline_position(table)
    other = make(client, "before")
    assert other.id != table.id
    with pytest.raises(TableReplaced):
        client.lake_timeline_position(table)


def complete(client: ThriftClient, table: TableReference, **of_completion: Any) -> wire.Instant:
    begun = client.lake_begin_instant(wire.BeginInstantRequest(table, "commit", state="inflight"))
    request = wire.CompleteInstantRequest(table, begun.timestamp, "commit", **of_completion)
    done: wire.Instant = client.lake_complete_instants([request])[0].instant
    return done


LAYOUTS = [
    {"primary-key": "k,dt"},
    {"bucket": "3"},
    {"merge-engine": "first-row"},
    {"sequence.field": "v"},
    {"no-such-property": "1"},
]


@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda each: next(iter(each)))
def test_a_writer_that_goes_by_another_layout_is_refused(client: ThriftClient, layout: dict[str, str]) -> None:
    table = make(client, "laid", **{"primary-key": "id,dt", "bucket": "2"})
    with pytest.raises(InvalidOperationException, match=next(iter(layout))):
        client.lake_begin_instant(wire.BeginInstantRequest(table, "compaction", layout=layout))
    with pytest.raises(InvalidOperationException, match=next(iter(layout))):
        complete(client, table, layout=layout)
    position = client.lake_timeline_position(table)
    assert position.position == 0
    same = {"primary-key": "ID, dt", "bucket": "2", "merge-engine": "deduplicate", "sequence.field": ""}
    assert complete(client, table, layout=same).position


def test_a_writer_with_a_layout_is_refused_by_a_table_without_a_key(client: ThriftClient) -> None:
    table = make(client, "plain")
    with pytest.raises(InvalidOperationException, match="has no primary-key"):
        complete(client, table, layout={"primary-key": "id,dt"})


def drop_and_make_again(client: ThriftClient, table: TableReference) -> TableReference:
    return make(client, table.table or "")


def rename_away(client: ThriftClient, table: TableReference) -> TableReference:
    altered = client.get_table(DATABASE, table.table)
    client.alter_table(DATABASE, table.table, altered.replace(tableName=f"{table.table}_away"))
    return make(client, table.table or "")


def rename_another_to_it(client: ThriftClient, table: TableReference) -> TableReference:
    other = make(client, f"{table.table}_other")
    client.drop_table(DATABASE, table.table, True)
    altered = client.get_table(DATABASE, other.table)
    client.alter_table(DATABASE, other.table, altered.replace(tableName=table.table))
    return other.replace(table=table.table)


REPLACEMENTS = [drop_and_make_again, rename_away, rename_another_to_it]


@pytest.mark.parametrize("replace", REPLACEMENTS, ids=lambda each: each.__name__)
def test_positions_go_on_after_those_of_earlier_tables_of_the_name(
    client: ThriftClient, replace: Callable[[ThriftClient, TableReference], TableReference]
) -> None:
    """Clients that don't send the table's id can't take a position of one table for one of the other."""
    old = make(client, f"positions_{replace.__name__}")
    nameless = old.replace(id=None)
    for _ in range(3):
        complete(client, nameless)
    assert client.lake_timeline_position(nameless).position == 3
    new = replace(client, old)
    first = complete(client, nameless)
    assert (first.tableId, first.position) == (new.id, 4)
    second = complete(client, nameless)
    before, after = 3, second.position or 0
    requests: dict[str, Callable[[TableReference, int], Any]] = {
        "begin": lambda t, at: client.lake_begin_instant(wire.BeginInstantRequest(t, "commit", readPosition=at)),
        "complete": lambda t, at: complete(client, t, readPosition=at),
        "snapshot": lambda t, at: client.lake_get_snapshot(wire.SnapshotRequest(t, asOfPosition=at)),
        "changes": lambda t, at: client.lake_read_changes(wire.ReadChangesRequest(t, at)),
        "lease": lambda t, at: client.lake_lease_snapshot(wire.LeaseRequest(t, "lease", at, 5)),
    }
    for name, request in requests.items():
        with pytest.raises(InvalidOperationException, match=r"position 3 is of a table that had the name .* before"):
            request(nameless, before)
        assert request(nameless, after), name
        assert request(new, before), name
    found = client.lake_read_changes(wire.ReadChangesRequest(nameless, 0)).changes
    assert [each.instant.position for each in found][:2] == [4, 5]
    assert client.lake_get_snapshot(wire.SnapshotRequest(nameless, asOfPosition=0)).files == []


def test_positions_go_on_where_the_database_was_dropped_too(client: ThriftClient) -> None:
    def made() -> TableReference:
        client.create_database(builders.database("identity_gone"))
        client.create_table(builders.table("identity_gone", "t", keys=("dt",), sd=builders.parquet()))
        return TableReference(database="identity_gone", table="t")

    assert complete(client, made()).position == 1
    client.drop_database("identity_gone", True, True)
    assert complete(client, made()).position == 2


def test_an_alteration_says_which_parameters_it_expects(client: ThriftClient) -> None:
    make(client, "expected", one="1", two="2")

    def alter(**expected: str) -> None:
        table = client.get_table(DATABASE, "expected")
        table.parameters["one"] = str(int(table.parameters["one"]) + 1)
        given = EnvironmentContext({name.replace("__", "."): value for name, value in expected.items()})
        client.alter_table_with_environment_context(DATABASE, "expected", table, given)

    alter(expected_parameter__one="1", expected_parameter__two="2", absent_parameter__three="")
    for wrong, now in (
        ({"expected_parameter__one": "2", "expected_parameter__two": "3"}, "'two' is '2'"),
        ({"expected_parameter__three": "3"}, "'three' is 'None'"),
        ({"absent_parameter__two": "2"}, "'two' is '2'"),
    ):
        with pytest.raises(MetaException, match=f"The table has been modified.*{now}"):
            alter(**wrong)
    assert client.get_table(DATABASE, "expected").parameters["one"] == "2"
