"""One interface before a server of ours and Hive's own: every name in every answer is the front's, and leads back."""

import itertools
import random
from collections.abc import Callable
from typing import Any

import pytest
from thrift.Thrift import TApplicationException

from lake.protocol.connection.thrift_client import ThriftClient
from lake.protocol.hive import (
    AbortTxnRequest,
    AddPartitionsRequest,
    AlreadyExistsException,
    CheckLockRequest,
    CommitTxnRequest,
    Database,
    DataOperationType,
    ForeignKeysRequest,
    Function,
    FunctionType,
    GetTableRequest,
    GetTablesRequest,
    HeartbeatRequest,
    HiveObjectRef,
    HiveObjectType,
    LockComponent,
    LockLevel,
    LockRequest,
    LockState,
    LockType,
    MetaException,
    NoSuchObjectException,
    OpenTxnRequest,
    Partition,
    PartitionsByExprRequest,
    PrincipalType,
    ShowLocksRequest,
    SQLForeignKey,
    UnlockRequest,
)
from lake.protocol.lake import ListPartitionsRequest, RequestKey, TableReference
from lake.protocol.struct import ExceptionStruct, Struct
from metastore.federation.identifiers import number_of
from tests.support import builders
from tests.support.front import FrontServer

NUMBERS = itertools.count(1)


@pytest.fixture
def name() -> str:
    """A database that nobody uses. It isn't a part of others' names, which end in hexadecimal digits."""
    return f"unused{next(NUMBERS)}n"


def test_databases_are_made_where_their_names_lead(
    client: ThriftClient, ours: ThriftClient, hive: ThriftClient, name: str
) -> None:
    client.create_database(builders.database(name))
    client.create_database(builders.database(f"EU_{name}x"))
    assert name in ours.get_all_databases()
    assert f"{name}x" in hive.get_all_databases()
    assert f"eu_{name}x" not in ours.get_all_databases()
    assert client.get_database(f"eu_{name}x").name == f"eu_{name}x"
    assert {name, f"eu_{name}x", "default", "eu_default"} <= set(client.get_all_databases())
    assert client.get_databases(f"*{name}*") == sorted([f"eu_{name}x", name])
    assert client.get_databases(f"eu_{name}.") == [f"eu_{name}x"]
    with pytest.raises(AlreadyExistsException, match="in the words of backend eu"):
        client.create_database(builders.database(f"eu_{name}x"))
    client.drop_database(f"eu_{name}x", True, True)
    with pytest.raises(NoSuchObjectException):
        client.get_database(f"eu_{name}x")
    assert f"{name}x" not in hive.get_all_databases()


def test_what_is_hidden_is_not_there(client: ThriftClient, ours: ThriftClient, name: str) -> None:
    ours.create_database(builders.database("hidden"))
    ours.create_database(builders.database(f"eu_{name}"))
    try:
        with pytest.raises(NoSuchObjectException, match="no metastore behind this front has a database hidden"):
            client.get_database("hidden")
        assert not {"hidden", f"eu_{name}"} & set(client.get_all_databases())
        assert f"main: up; hidden, since their names mean others: eu_{name}" in client.getStatusDetails()
        with pytest.raises(NoSuchObjectException):
            client.get_database(f"eu_{name}")  # that of the other one
        with pytest.raises(NoSuchObjectException):
            client.get_table_req(GetTableRequest("hidden", "t"))
    finally:
        ours.drop_database("hidden", True, True)
        ours.drop_database(f"eu_{name}", True, True)


def test_a_renamed_database(client: ThriftClient, hive: ThriftClient) -> None:
    client.create_database(builders.database("people"))
    try:
        assert "hr" in hive.get_all_databases()
        client.create_table(builders.table("people", "t"))
        assert client.get_table("people", "t").dbName == "people"
        assert "people" in client.get_all_databases()
        with pytest.raises(NoSuchObjectException):
            client.get_database("eu_hr")
    finally:
        client.drop_database("people", True, True)


@pytest.mark.parametrize("prefix", ["", "eu_"])
def test_partitions(client: ThriftClient, name: str, prefix: str) -> None:
    db = prefix + name
    client.create_database(builders.database(db))
    client.create_table(builders.table(db, "t", keys=("a", "b")))
    new = [builders.partition(db, "t", f"{i:02}", "eu") for i in range(20)]
    added = client.add_partitions_req(AddPartitionsRequest(db, "t", new, False, True)).partitions
    assert {each.dbName for each in added} == {db}
    lists: list[list[Partition]] = [
        client.get_partitions(db, "t", -1),
        client.get_partitions_with_auth(db, "t", -1, "u", ["g"]),
        client.get_partitions_ps(db, "t", ["01"], -1),
        client.get_partitions_by_filter(db, "t", 'a = "03"', -1),
        client.get_partitions_by_names(db, "t", client.get_partition_names(db, "t", 3)),
        [client.get_partition(db, "t", ["05", "eu"])],
    ]
    assert [len(each) for each in lists] == [20, 20, 1, 1, 3, 1]
    assert {each.dbName for some in lists for each in some} == {db}
    assert {each.values[1] for some in lists for each in some if each.values} == {"eu"}
    spec = client.get_partitions_pspec(db, "t", -1)
    assert {each.dbName for each in spec} == {db}
    changed = lists[0][0].replace(parameters={"k": "v"})
    client.alter_partition(db, "t", changed)
    assert client.get_partition(db, "t", changed.values).parameters.get("k") == "v"
    client.drop_partition(db, "t", changed.values, True)
    assert len(client.get_partition_names(db, "t", -1)) == 19
    client.drop_database(db, True, True)


def test_tables_in_all_forms(client: ThriftClient, name: str) -> None:
    db = f"eu_{name}"
    client.create_database(builders.database(db))
    for table in ("t", "u"):
        client.create_table(builders.table(db, table))
    assert client.get_all_tables(db) == ["t", "u"]
    assert client.get_tables(db, "u*") == ["u"]
    found = client.get_table_objects_by_name(db, ["t", "u"])
    found += client.get_table_objects_by_name_req(GetTablesRequest(db, ["t", "u"])).tables
    found += [client.get_table(db, "t"), client.get_table_req(GetTableRequest(db, "t")).table]
    assert {each.dbName for each in found} == {db}
    assert len(found) == 6
    meta = client.get_table_meta(f"{db}|default", "*", [])
    assert [(each.dbName, each.tableName) for each in meta if each.dbName == db] == [(db, "t"), (db, "u")]
    renamed = client.get_table(db, "u").replace(tableName="w")
    client.alter_table(db, "u", renamed)
    assert client.get_all_tables(db) == ["t", "w"]
    with pytest.raises(ExceptionStruct, match="one backend"):
        client.alter_table(db, "w", renamed.replace(dbName="default"))
    client.drop_database(db, True, True)


def test_views(client: ThriftClient, hive: ThriftClient, name: str) -> None:
    db = f"eu_{name}"
    client.create_database(builders.database(db))
    client.create_table(builders.table(db, "t"))
    text = f"select `t`.`id`, '{db}.t' from `{db}`.`t`"
    client.create_table(builders.view(db, "v", viewExpandedText=text, viewOriginalText="select id from t"))
    assert hive.get_table(name, "v").viewExpandedText == f"select `t`.`id`, '{db}.t' from `{name}`.`t`"
    assert client.get_table(db, "v").viewExpandedText == text
    with pytest.raises(ExceptionStruct, match="one backend"):
        client.create_table(builders.view(db, "w", viewExpandedText="select id from sales.t"))
    with pytest.raises(ExceptionStruct, match="certain"):
        client.create_table(builders.view(db, "w", viewExpandedText="select select"))
    client.drop_database(db, True, True)


def test_a_request_about_two_backends_is_refused(client: ThriftClient, name: str) -> None:
    client.create_database(builders.database(name))
    client.create_database(builders.database(f"eu_{name}"))
    key = SQLForeignKey(name, "t", "id", f"eu_{name}", "t", "id", 1, 0, 0, "f", "p", True, False, False)
    with pytest.raises(
        MetaException, match=f"(?=.*database {name} of backend main)(?=.*database eu_{name} of backend eu)"
    ):
        client.create_table_with_constraints(builders.table(f"eu_{name}", "t"), [], [key])
    assert client.get_all_tables(f"eu_{name}") == []
    with pytest.raises(MetaException, match="about one backend"):
        client.get_foreign_keys(ForeignKeysRequest(name, "t", f"eu_{name}", "t"))
    for each in (name, f"eu_{name}"):
        client.drop_database(each, True, True)


def test_functions_of_all(client: ThriftClient, name: str) -> None:
    for db in (name, f"eu_{name}"):
        client.create_database(builders.database(db))
        client.create_function(Function("fun", db, "a.B", "me", PrincipalType.USER, 0, FunctionType.JAVA, []))
        assert client.get_function(db, "fun").dbName == db
        assert client.get_functions(db, "*") == ["fun"]
    functions = client.get_all_functions().functions
    assert {name, f"eu_{name}"} <= {each.dbName for each in functions}
    for db in (name, f"eu_{name}"):
        client.drop_database(db, True, True)


def lock_of(db: str, **fields: Any) -> LockRequest:
    component = LockComponent(LockType.SHARED_READ, LockLevel.DB, db, operationType=DataOperationType.SELECT)
    return LockRequest([component], user="me", hostname="here", **fields)


@pytest.mark.parametrize("prefix", ["", "eu_"])
def test_locks_find_their_backend(client: ThriftClient, front: FrontServer, name: str, prefix: str) -> None:
    db = prefix + name
    client.create_database(builders.database(db))
    lock = client.lock(lock_of(db))
    assert lock.state == LockState.ACQUIRED
    assert number_of(lock.lockid) == (1 if prefix else 0)
    with ThriftClient(front.host, front.port) as other:  # Hive sends heartbeats over other connections
        other.heartbeat(HeartbeatRequest(lockid=lock.lockid))
        assert other.check_lock(CheckLockRequest(lockid=lock.lockid)).lockid == lock.lockid
        shown = [each for each in other.show_locks(ShowLocksRequest()).locks if each.dbname == db]
        assert [each.lockid for each in shown] == [lock.lockid]
        assert [each.lockid for each in other.show_locks(ShowLocksRequest(dbname=db)).locks] == [lock.lockid]
        other.unlock(UnlockRequest(lock.lockid))
    assert client.show_locks(ShowLocksRequest(dbname=db)).locks == []
    client.drop_database(db, True, True)


def test_transactions(client: ThriftClient, front: FrontServer, name: str) -> None:
    db = f"eu_{name}"
    client.create_database(builders.database(db))
    (of_primary,) = client.open_txns(OpenTxnRequest(1, "me", "here")).txn_ids
    assert number_of(of_primary) == 0
    with pytest.raises(TApplicationException, match="about one backend"):
        client.lock(lock_of(db, txnid=of_primary))
    client.abort_txn(AbortTxnRequest(of_primary))
    with ThriftClient(front.host, front.port) as selecting:
        selecting.setMetaConf("federation.backend", "eu")
        (there,) = selecting.open_txns(OpenTxnRequest(1, "me", "here")).txn_ids
        assert number_of(there) == 1
        assert there in {each.id for each in selecting.get_open_txns_info().open_txns}
        open_ones = selecting.get_open_txns()  # Hive 2.3 has a set, which this client doesn't know by that name
        assert number_of(open_ones.txn_high_water_mark) == 1
    lock = client.lock(lock_of(db, txnid=there))
    assert lock.state == LockState.ACQUIRED
    client.heartbeat(HeartbeatRequest(txnid=there, lockid=lock.lockid))
    client.commit_txn(CommitTxnRequest(there))
    with pytest.raises(ExceptionStruct):
        client.commit_txn(CommitTxnRequest(there))
    client.drop_database(db, True, True)


def test_what_names_nothing_is_refused_until_a_backend_is_selected(client: ThriftClient, hive: ThriftClient) -> None:
    with pytest.raises(MetaException, match=r"select one first by set metaconf:federation\.backend"):
        client.get_role_names()
    with pytest.raises((TApplicationException, MetaException), match="one of main, eu"):
        client.get_current_notificationEventId()
    with pytest.raises(MetaException, match="has no backend mars"):
        client.setMetaConf("federation.backend", "mars")
    client.setMetaConf("federation.backend", "eu")
    assert client.getMetaConf("federation.backend") == "eu"
    assert client.get_role_names() == hive.get_role_names()
    with pytest.raises((TApplicationException, MetaException), match="names databases as eu does"):
        client.get_current_notificationEventId()
    client.setMetaConf("federation.backend", "main")
    assert client.get_current_notificationEventId().eventId >= 0
    client.setMetaConf("federation.backend", "")
    with pytest.raises(MetaException):
        client.get_role_names()


def test_what_a_front_never_does(client: ThriftClient) -> None:
    with pytest.raises(MetaException, match="clients log in to the front"):
        client.get_delegation_token("me", "you")
    with pytest.raises((TApplicationException, MetaException), match="have the names of their own metastore"):
        client.lake_pause_table_services(TableReference(database="eu_default", table="t"), "why")
    with pytest.raises(TApplicationException, match="no lake metastore of this version"):
        client.lake_get_watermark(TableReference(database="eu_default", table="t"))
    with pytest.raises((TApplicationException, MetaException), match="is about a connection"):
        client.lake_begin_request(RequestKey("0" * 36, b"0"))
    with pytest.raises((TApplicationException, ExceptionStruct), match="Hudi's own calls"):
        client.createNewInstantTime("d", "t")


def test_grants_go_to_the_object_s_backend(client: ThriftClient, name: str) -> None:
    db = f"eu_{name}"
    client.create_database(builders.database(db))
    ref = HiveObjectRef(HiveObjectType.DATABASE, db)
    assert client.get_privilege_set(ref, "me", []) is not None
    assert client.list_privileges("me", PrincipalType.USER, ref) == []
    client.drop_database(db, True, True)


def test_settings_of_a_connection(client: ThriftClient, front: FrontServer) -> None:
    client.setMetaConf("includeUnCommit", "true")  # only ours knows it
    assert client.getMetaConf("includeUnCommit") == "true"
    assert client.get_all_tables("eu_default") is not None
    with ThriftClient(front.host, front.port) as other:
        assert other.getMetaConf("includeUnCommit") == "false"
    with pytest.raises(MetaException):
        client.setMetaConf("no.such.setting", "x")


def test_uncommitted_partitions_by_name(client: ThriftClient, name: str) -> None:
    client.create_database(builders.database(name))
    client.create_table(builders.table(name, "t", keys=("a",)))
    client.add_partition(builders.partition(name, "t", "1", parameters={"commit": "false"}))
    assert client.get_partitions(name, "t", -1) == []
    assert len(client.get_partitions(name, "t@includeuncommit", -1)) == 1
    listed = client.lake_list_partitions(
        ListPartitionsRequest(TableReference(database=name, table="t"), includeUncommitted=True)
    )
    assert [each.name for each in listed.partitions] == ["a=1"]
    client.drop_database(name, True, True)


def test_what_the_front_says_of_itself(client: ThriftClient, front: FrontServer) -> None:
    client.get_all_databases()
    assert [line.partition(";")[0] for line in client.getStatusDetails().splitlines()] == ["main: up", "eu: up"]
    assert client.getName() == "metastore front"
    assert client.set_ugi("me", ["g"]) == ["g"]
    assert client.get_catalogs().names == ["hive"]
    assert client.partition_name_to_vals("a=1/b=2") == ["1", "2"]


# -- random calls ------------------------------------------------------------------------------------------------


def _calls(rng: random.Random, db: str) -> list[Callable[[ThriftClient], Any]]:
    """A random history on a database: what each call does follows from the random numbers alone."""

    def one() -> Callable[[ThriftClient], Any]:
        t, value = f"t{rng.randrange(3)}", str(rng.randrange(4))
        values = [str(rng.randrange(4)) for _ in range(rng.randrange(4))]
        new = [builders.partition(db, t, each) for each in values]
        kinds: list[Callable[[ThriftClient], Any]] = [
            lambda c: c.create_table(builders.table(db, t, keys=("a",))),
            lambda c: c.create_table(builders.view(db, t, viewExpandedText=f"select id from `{db}`.`t0`")),
            lambda c: c.drop_table(db, t, True),
            lambda c: c.get_table(db, t),
            lambda c: c.get_table_req(GetTableRequest(db, t)),
            lambda c: c.get_table_objects_by_name(db, ["t0", t]),
            lambda c: c.get_all_tables(db),
            lambda c: c.get_database(db),
            lambda c: c.add_partition(builders.partition(db, t, value)),
            lambda c: c.add_partitions(new),
            lambda c: c.add_partitions_req(AddPartitionsRequest(db, t, new, True, True)),
            lambda c: c.get_partitions(db, t, -1),
            lambda c: c.get_partitions_by_names(db, t, [f"a={each}" for each in values]),
            lambda c: c.get_partitions_ps(db, t, [value], -1),
            lambda c: c.get_partition(db, t, [value]),
            lambda c: c.drop_partition(db, t, [value], True),
            lambda c: c.alter_partition(db, t, builders.partition(db, t, value, parameters={"k": value})),
            lambda c: c.get_partition_names(db, t, -1),
            lambda c: c.get_fields(db, t),
            lambda c: c.get_table_meta(db, "*", []),
            lambda c: c.get_partitions_by_expr(PartitionsByExprRequest(db, t, b"", "")),
        ]
        return rng.choice(kinds)

    return [one() for _ in range(60)]


def _outcome(call: Callable[[ThriftClient], Any], client: ThriftClient, names: list[str], *, has_order: bool) -> str:
    """What a call gives. `has_order`: its lists have an order; Hive gives tables as its database finds them."""
    try:
        found = call(client)
    except (ExceptionStruct, TApplicationException) as error:
        return type(error).__name__  # the texts name the database as the backend does
    _forget_times(found)
    text = repr(found if has_order or not isinstance(found, list) else sorted(found, key=repr))
    for each in names:
        text = text.replace(each, "DB")
    return text


def _forget_times(value: Any) -> None:
    if isinstance(value, list):
        for each in value:
            _forget_times(each)
    elif isinstance(value, Struct):
        for field in value.field_names():
            if field in ("createTime", "lastAccessTime", "id"):
                setattr(value, field, None)
            elif field == "parameters" and getattr(value, field):
                value.parameters = {k: v for k, v in sorted(value.parameters.items()) if "Time" not in k}  # type: ignore[attr-defined]
            else:
                _forget_times(getattr(value, field))


@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.long) for seed in range(2, 30))])
@pytest.mark.parametrize("backend", ["ours", "hive"])
def test_random_calls_give_what_the_backend_gives(
    request: pytest.FixtureRequest, client: ThriftClient, backend: str, seed: int, name: str
) -> None:
    direct: ThriftClient = request.getfixturevalue(backend)
    prefix = "" if backend == "ours" else "eu_"
    by_front, by_hand = f"{prefix}{name}front", f"{name}direct"
    client.create_database(Database(name=by_front))
    direct.create_database(Database(name=by_hand))
    one, other = _calls(random.Random(seed), by_front), _calls(random.Random(seed), by_hand)
    for number, (mine, theirs) in enumerate(zip(one, other, strict=True)):
        found = _outcome(mine, client, [by_front, f"{name}front"], has_order=backend == "ours")
        wanted = _outcome(theirs, direct, [by_hand], has_order=backend == "ours")
        assert found == wanted, f"call {number}"
    client.drop_database(by_front, True, True)
    direct.drop_database(by_hand, True, True)
