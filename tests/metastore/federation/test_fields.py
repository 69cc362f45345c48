"""Which fields hold names: none in the IDL is forgotten, and renaming there and back changes nothing."""

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from thrift.Thrift import TType

from lake.protocol.codec import binary
from lake.protocol.generated import hive_metastore_service
from lake.protocol.hive import (
    AddPartitionsRequest,
    AllocateTableWriteIdsRequest,
    CommitTxnKeyValue,
    CommitTxnRequest,
    CreationMetadata,
    Database,
    EnvironmentContext,
    GetOpenTxnsResponse,
    GetTableRequest,
    GetValidWriteIdsRequest,
    HiveObjectRef,
    LockComponent,
    LockRequest,
    LockResponse,
    MetaException,
    OpenTxnRequest,
    Partition,
    SQLForeignKey,
    Table,
    TableValidWriteIds,
)
from lake.protocol.services import METHODS
from lake.protocol.struct import Struct
from metastore import api
from metastore.api.methods import HANDLERS
from metastore.api.rights.classification import Path
from metastore.federation import fields, identifiers, routing
from metastore.federation.names import Name, in_words
from metastore.federation.routing import Refused
from metastore.federation.translation import asked, to_backend, to_front
from tests.metastore.federation.test_mapping import mapping

api.load()

# Texts whose names sound like a database's or a catalog's, and which name none of this metastore's.
OTHERS = {
    ("Database", "remote_dbname"), ("CreateDatabaseRequest", "remote_dbname"), ("get_table_meta_args", "db_patterns"),
    ("TableValidWriteIds", "abortedBits"), ("GetOpenTxnsResponse", "abortedBits"),
}  # fmt: skip


def call(name: str, *values: Any, **named: Any) -> Any:
    """The arguments of a call."""
    cls: Any = METHODS[name].args
    return cls(*values, **named)


def structs() -> Iterator[type[Struct]]:
    seen: set[str] = set()
    left = [cls for method in hive_metastore_service.METHODS for cls in (method.args, method.result)]
    while left:
        cls = left.pop()
        if cls.__name__ not in seen:
            seen.add(cls.__name__)
            yield cls
            left += [each for e in cls.thrift_spec if e is not None for each in fields.classes(e[1], e[3])]


def test_no_field_that_may_hold_a_name_is_forgotten() -> None:
    forgotten = []
    for cls in structs():
        it = fields.plan(cls)
        known = {*it.databases, *it.qualified, *it.write_ids, it.catalog}
        for entry in cls.thrift_spec:
            if entry is None or entry[1] != TType.STRING or entry[2] in known:
                continue
            sounds = any(word in entry[2].lower() for word in ("db", "database", "catalog", "catname"))
            if sounds and (cls.__name__, entry[2]) not in OTHERS:
                forgotten.append((cls.__name__, entry[2]))
    assert not forgotten


def test_no_id_is_forgotten() -> None:
    """Numbers called after transactions and locks: what isn't an id of one is listed here."""
    others = {
        "replSrcTxnIds",  # those of another metastore
        "hightestTxnId", "nextTxnId", "lockIdInternal", "blockedByIntId", "highestTxnId", "seedTxnId",
    }  # fmt: skip
    forgotten = set()
    for cls in structs():
        for entry in cls.thrift_spec:
            it = fields.plan(cls)
            if entry is None or entry[2] in (*it.ids, *it.highest):
                continue
            inner = entry[3][0] if entry[1] in (TType.LIST, TType.SET) else entry[1]
            if inner == TType.I64 and any(word in entry[2].lower() for word in ("txn", "lockid")):
                forgotten.add(entry[2])
    assert forgotten <= others


def _needs() -> Iterator[tuple[str, str, tuple[Path, ...], dict[str, Path]]]:
    for name, handler in HANDLERS.items():
        if name in {method.name for method in hive_metastore_service.METHODS}:
            for need in handler.rule.needs:
                if need.kind in ("database", "table", "described", "full"):
                    yield name, need.kind, need.paths, need.named


@pytest.mark.parametrize(("name", "kind", "paths", "named"), list(_needs()))
def test_what_a_method_needs_rights_for_is_found(
    name: str, kind: str, paths: tuple[Path, ...], named: dict[str, Path]
) -> None:
    """The declarations of rights say which argument names the object: the front must see the same."""
    method = METHODS[name]
    arguments = method.args()
    _put(arguments, method.args, paths[0], "sales.t" if kind == "full" else "sales")
    if "if" in named:
        return
    assert Name("hive", "sales") in asked(arguments).names


def _put(value: Any, cls: type[Struct], path: Path, text: str) -> None:
    for name in path.within or ():
        value, cls, is_list = _child(value, cls, name)
        if is_list:
            value = _item(value, cls) if path.names else value.append(text)
    for name in path.names[:-1]:
        value, cls, _ = _child(value, cls, name)
    if path.names:
        setattr(value, path.names[-1], text)


def _child(value: Any, cls: type[Struct], name: str) -> tuple[Any, Any, bool]:
    entry = next(each for each in cls.thrift_spec if each is not None and each[2] == name)
    if entry[1] == TType.STRUCT:
        if getattr(value, name) is None:
            setattr(value, name, entry[3][0]())
        return getattr(value, name), entry[3][0], False
    made: list[Any] = []
    setattr(value, name, made)
    return made, entry[3][1][0] if isinstance(entry[3][1], list) else None, True


def _item(made: list[Any], cls: type[Struct]) -> Struct:
    item = cls()
    made.append(item)
    return item


FRONT = mapping(
    main={"primary": True, "deny": "people"},
    eu={"prefix": "eu_", "number": 3, "rename": {"people": "hr"}},
    region={"catalog": "region", "number": 4},
)
TEXTS = st.sampled_from(["sales", "eu_sales", "people", "@hive#eu_x", "@region#sales", "default", "EU_default"])


@given(st.sampled_from(sorted(structs(), key=lambda cls: cls.__name__)), st.data())
def test_there_and_back(cls: type[Struct], data: st.DataObject) -> None:
    """What one backend is asked in the front's names and answers in its own comes back under the names it was given."""
    name = data.draw(st.sampled_from([Name("hive", "eu_sales"), Name("hive", "people"), Name("region", "sales")]))
    value = _filled(cls, name, depth=3)
    place = FRONT.place(name)
    assert place is not None
    before = repr(value)
    to_backend(value, FRONT, place.backend)
    there = repr(value)
    assert "eu_sales" not in there
    assert "people" not in there
    to_front(value, FRONT, place.backend)
    assert repr(value) == before


def _filled(cls: type[Struct], name: Name, depth: int) -> Struct:
    """A struct with the name in each field for one, and itself in each part."""
    value = cls()
    it = fields.plan(cls)
    for field in it.databases:
        setattr(value, field, name.database)
    if it.catalog:
        setattr(value, it.catalog, name.catalog)
    elif name.catalog != "hive":
        for field in it.databases:
            setattr(value, field, None)  # it would be another database, in the default catalog
    for field in it.qualified if name.catalog == "hive" else ():
        kind = next(entry[1] for entry in cls.thrift_spec if entry is not None and entry[2] == field)
        text = f"{name.database}.t"
        setattr(value, field, [text] if kind == TType.LIST else {text} if kind == TType.SET else text)
    for entry in cls.thrift_spec:
        if entry is not None and entry[2] in it.parts and depth:
            inner = fields.classes(entry[1], entry[3])[0]
            if entry[1] == TType.STRUCT:
                setattr(value, entry[2], _filled(inner, name, depth - 1))
            elif entry[1] == TType.LIST:
                setattr(value, entry[2], [_filled(inner, name, depth - 1)])
    return value


def test_all_names_of_a_request_count() -> None:
    key = SQLForeignKey(pktable_db="eu_a", fktable_db="b", catName="hive")
    found = asked(call("create_table_with_constraints", tbl=Table(dbName="c"), foreignKeys=[key]))
    assert set(map(str, found.names)) == {"eu_a", "b", "c"}
    found = asked(call("grant_privileges"))
    assert not found.names
    ref = HiveObjectRef(dbName="@region#Sales")
    assert asked(call("get_privilege_set", ref)).names == [Name("region", "sales")]


def test_partitions_inherit_the_catalog_of_their_request() -> None:
    request = AddPartitionsRequest(dbName="sales", catName="region", parts=[Partition(dbName="sales")])
    arguments = call("add_partitions_req", request)
    assert set(asked(arguments).names) == {Name("region", "sales")}
    to_backend(arguments, FRONT, "region")
    assert request.parts is not None
    assert (request.catName, request.parts[0].dbName) == ("hive", "sales")


def test_an_old_backend_gets_no_catalog_in_a_name() -> None:
    arguments = call("get_table", "@region#Sales", "t")
    to_backend(arguments, FRONT, "region")
    assert arguments.dbname == "sales"
    arguments = call("get_table", "@hive#sales", "t")
    to_backend(arguments, FRONT, "main")
    assert arguments.dbname == "sales"


def test_a_name_of_another_backend_is_refused() -> None:
    request = LockRequest([LockComponent(dbname="eu_a"), LockComponent(dbname="b")])
    with pytest.raises(MetaException, match="one backend"):
        to_backend(request, FRONT, "eu")


def test_answers_have_the_catalog_of_the_front() -> None:
    table = Table(dbName="sales", tableName="t")  # of Hive 2.3, which knows no catalogs
    to_front(table, FRONT, "region")
    assert (table.catName, table.dbName) == ("region", "sales")
    database = Database(name="sales")
    to_front(database, FRONT, "eu")
    assert (database.catalogName, database.name) == (None, "eu_sales")


def test_lists_of_write_ids_begin_with_a_name() -> None:
    ids = TableValidWriteIds(fullTableName="hr.t")
    to_front(ids, FRONT, "eu")
    assert ids.fullTableName == "people.t"
    arguments = GetTableRequest(dbName="people", tblName="t", validWriteIdList="people.t:5:9223372036854775807::")
    to_backend(arguments, FRONT, "eu")
    assert arguments.validWriteIdList == "hr.t:5:9223372036854775807::"


@pytest.mark.parametrize("wrapped", ["{}", '{{"validTxnList":"{}","tableSnapshots":{{}}}}'])
def test_what_a_materialized_view_was_built_from_has_write_ids(wrapped: str) -> None:
    """A write id is no transaction's: marked as one, it would say that the view has all that came later, too."""
    rest = "t:5:9223372036854775807::3"
    there = wrapped.format(f"8$hr.{rest}$sales.{rest}")
    here = wrapped.format(f"{3 << 48 | 8}$people.{rest}$eu_sales.{rest}")
    metadata = CreationMetadata(dbName="hr", tblName="v", tablesUsed={"hr.t", "sales.t"}, validTxnList=there)
    table = Table(dbName="hr", tableName="v", creationMetadata=metadata)
    to_front(table, FRONT, "eu")
    assert table.creationMetadata is not None
    assert table.creationMetadata.validTxnList == here
    arguments = call("create_table", table)
    found = asked(arguments)
    assert (found.numbers, set(map(str, found.names))) == ({3}, {"people", "eu_sales"})
    to_backend(arguments, FRONT, "eu")
    assert table.creationMetadata.validTxnList == there


def test_names_of_other_snapshots_in_a_materialized_view() -> None:
    text = '{"validTxnList":null,"tableSnapshots":{"hr.t":{"snapshotId":9}}}'
    metadata = CreationMetadata(dbName="hr", tblName="v", validTxnList=text)
    to_front(metadata, FRONT, "eu")
    assert metadata.validTxnList == text.replace("hr.t", "people.t")
    metadata.validTxnList = "{8:9"
    to_front(metadata, FRONT, "eu")
    assert metadata.validTxnList == "{8:9"


@given(st.integers(0, (1 << 14) - 1), st.integers(1, (1 << 48) - 1))
def test_ids_carry_their_backend(number: int, identifier: int) -> None:
    marked = identifiers.marked(number, identifier)
    assert identifiers.number_of(marked) == number
    assert identifiers.unmarked(marked) == identifier
    assert marked < 1 << 62
    text = f"{marked}:9223372036854775807:{marked},{marked}:"
    assert identifiers.numbers_in(text) == {number}
    assert identifiers.in_text(text, identifiers.unmarked) == (
        f"{identifier}:9223372036854775807:{identifier},{identifier}:"
    )


def test_a_list_of_no_transactions_is_of_one_backend() -> None:
    """By a list that ends at 0 readers of another backend's tables would see none of their rows."""
    answers = {backend: GetOpenTxnsResponse(txn_high_water_mark=0, open_txns=[]) for backend in ("main", "eu")}
    for backend, number in (("main", 0), ("eu", 3)):
        to_front(answers[backend], FRONT, backend)
        text = f"{answers[backend].txn_high_water_mark}:9223372036854775807::"
        arguments = call("get_valid_write_ids", GetValidWriteIdsRequest(["eu_sales.t"], validTxnList=text))
        assert asked(arguments).numbers == {number}
    to_backend(arguments, FRONT, "eu")
    assert arguments.rqst.validTxnList == "0:9223372036854775807::"


def test_an_id_that_cant_be_marked_is_refused() -> None:
    nameless = mapping(main={"primary": True}, eu={"prefix": "eu_"})
    response = LockResponse(lockid=7)
    with pytest.raises(MetaException, match=r"give backends\.eu a number"):
        to_front(response, nameless, "eu")
    to_front(response, FRONT, "eu")
    assert response.lockid == 3 << 48 | 7


def test_the_transaction_of_a_call_in_its_context() -> None:
    context = EnvironmentContext({"txnId": str(3 << 48 | 7), "ifPurge": "TRUE"})
    arguments = call("drop_table_with_environment_context", "eu_sales", "t", True, context)
    assert asked(arguments).numbers == {3}
    to_backend(arguments, FRONT, "eu")
    assert context.properties == {"txnId": "7", "ifPurge": "TRUE"}
    other = EnvironmentContext({"txnId": "none"})
    to_backend(
        call("alter_table_with_environment_context", "eu_sales", "t", Table(dbName="eu_sales"), other), FRONT, "eu"
    )
    assert other.properties == {"txnId": "none"}


def test_a_table_by_its_id_alone() -> None:
    """It may be one that the front doesn't show, or may only read."""
    found = asked(call("commit_txn", CommitTxnRequest(7, keyValue=CommitTxnKeyValue(5, "_meta", "x"))))
    assert not asked(call("get_table_req", GetTableRequest("sales", "t", id=5))).nameless_ids
    open_one = mapping(it={})
    routing.check_writable(open_one, "commit_txn", found, "it")
    for settings in ({"read_only": True}, {"read_only": ["x"]}, {"deny": "people"}, {"allow": "sales"}):
        with pytest.raises(Refused, match="by its id alone"):
            routing.check_writable(mapping(it=settings), "commit_txn", found, "it")


def test_transactions_of_other_metastores() -> None:
    """Their ids have no backend's number: the primary one would take them for its own."""
    for arguments in (
        call("open_txns", OpenTxnRequest(1, "me", "here", replPolicy="sales.*")),
        call("commit_txn", CommitTxnRequest(7, replPolicy="sales.*")),
        call("allocate_table_write_ids", AllocateTableWriteIdsRequest("sales", "t", replPolicy="sales.*")),
    ):
        assert asked(arguments).replays
    routing.check_replays(FRONT, "commit_txn", "main", None)
    for backend, selected in (("eu", "eu"), ("main", "eu"), ("eu", None)):
        with pytest.raises(Refused, match=r"repeats a transaction of another metastore"):
            routing.check_replays(FRONT, "commit_txn", backend, selected)


def test_words() -> None:
    assert in_words("Region.Sales") == Name("region", "sales")


def test_open_transactions_of_both_forms() -> None:
    """Servers answer with a set for Hive 2.3, with a list for later versions, or with both."""
    answer = binary.encode_fields(GetOpenTxnsResponse(txn_high_water_mark=9, open_txns=[7]))
    older = b"\x0e\x00\x02\x0a\x00\x00\x00\x01" + (8).to_bytes(8)
    value = binary.decode_preserving(GetOpenTxnsResponse, answer + older + binary.STOP)
    to_front(value, FRONT, "eu")
    assert value.open_txns == [3 << 48 | 7]
    assert value.unknown == older[:-8] + (3 << 48 | 8).to_bytes(8)
