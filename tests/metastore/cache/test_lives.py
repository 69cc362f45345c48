"""Things that are made, changed, dropped and made again, with whatever they lie in, and are read all the time.

Also before they are there, while what they lie in is empty, and after it is gone: answers that tell of nothing are
kept like others, and are forgotten like others.
"""

import itertools
import random
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pytest
from thrift.Thrift import TException

from lake.protocol.hive import (
    AddPrimaryKeyRequest,
    AddUniqueConstraintRequest,
    AlterCatalogRequest,
    Catalog,
    ColumnStatistics,
    ColumnStatisticsData,
    ColumnStatisticsDesc,
    ColumnStatisticsObj,
    CreateCatalogRequest,
    DeleteColumnStatisticsRequest,
    DropCatalogRequest,
    DropConstraintRequest,
    Function,
    FunctionType,
    GetDatabaseRequest,
    GetPartitionNamesPsRequest,
    GetTableRequest,
    GetTablesRequest,
    HiveObjectPrivilege,
    HiveObjectRef,
    HiveObjectType,
    Index,
    LongColumnStatsData,
    PartitionsRequest,
    PartitionsStatsRequest,
    PrincipalType,
    PrivilegeBag,
    PrivilegeGrantInfo,
    Role,
    SetPartitionsStatsRequest,
    SQLPrimaryKey,
    SQLUniqueConstraint,
    TableStatsRequest,
    Type,
)
from lake.protocol.lake import (
    BeginInstantRequest,
    CommitPartitionsRequest,
    CompleteInstantRequest,
    DataFile,
    ListInstantsRequest,
    ReadChangesRequest,
    ReopenPartitionsRequest,
    SnapshotRequest,
    TableReference,
)
from metastore.services.wiring import Metastore
from tests.metastore.cache.local import Keeper, LocalClient, opened
from tests.support.builders import columns, database, partition, storage, table, view
from tests.support.postgres import Postgres
from tests.support.streams import report
from tests.visibility.flags import MODE
from tests.visibility.readers import DECORATION, Reader

NUMBERS = itertools.count(1)
DAY = ["2020-01-01", "1"]
DAY_NAME = "ds=2020-01-01/hr=1"

Client = Any


class Place(NamedTuple):
    """Where a life is led; `catalog` None: in Hive's own, which is always there."""

    catalog: str | None
    database: str

    @property
    def db(self) -> str:
        return self.database if self.catalog is None else f"@{self.catalog}#{self.database}"

    @property
    def table(self) -> TableReference:
        return TableReference(catalog=self.catalog, database=self.database, table="t")


Act = Callable[[Client, Place], Any]


class Thing(NamedTuple):
    """What is made and dropped; `inside`: what has to be there for it. Each may be refused."""

    inside: str | None
    make: Act
    change: Act
    drop: Act


def _catalog(place: Place, description: str = "") -> Catalog:
    return Catalog(place.catalog, description, f"file:/tmp/metastore_no_such_place/{place.catalog}")


def _change_table(client: Client, place: Place) -> None:
    found = client.get_table(place.db, "t")
    found.sd.cols += columns(f"c{next(NUMBERS)}")
    client.alter_table_with_cascade(place.db, "t", found, True)


def _rename_table(client: Client, place: Place) -> None:
    """There and back: others find nothing in between."""
    for old, new in (("t", "u"), ("u", "t")):
        client.alter_table(place.db, old, client.get_table(place.db, old).replace(tableName=new))


def _partition(client: Client, place: Place) -> Any:
    return client.get_partition_with_auth(place.db, "t", DAY, None, None)


def _function(place: Place, class_name: str = "a.B") -> Function:
    return Function(
        "f", place.database, class_name, "me", PrincipalType.USER, 0, FunctionType.JAVA, [], place.catalog or "hive"
    )


def _primary(place: Place) -> AddPrimaryKeyRequest:
    return AddPrimaryKeyRequest([SQLPrimaryKey(place.database, "t", "id", 1, "pk", catName=place.catalog or "hive")])


def _unique(place: Place) -> AddUniqueConstraintRequest:
    return AddUniqueConstraintRequest(
        [SQLUniqueConstraint(place.catalog or "hive", place.database, "t", "name", 1, "un")]
    )


def _drop_constraint(place: Place, name: str) -> DropConstraintRequest:
    return DropConstraintRequest(place.database, "t", name, place.catalog)


def _grant(place: Place, privilege: str, *, of_partition: bool = False) -> PrivilegeBag:
    kind = HiveObjectType.PARTITION if of_partition else HiveObjectType.TABLE
    ref = HiveObjectRef(kind, place.database, "t", DAY if of_partition else None, catName=place.catalog)
    info = PrivilegeGrantInfo(privilege, 0, "boss", PrincipalType.USER, False)
    return PrivilegeBag([HiveObjectPrivilege(ref, "me", PrincipalType.USER, info)])


def _statistics(client: Client, place: Place, part: str | None) -> None:
    data = ColumnStatisticsData(longStats=LongColumnStatsData(numNulls=0, numDVs=next(NUMBERS)))
    of = ColumnStatisticsDesc(part is None, place.database, "t", part, catName=place.catalog)
    given = ColumnStatistics(of, [ColumnStatisticsObj("id", "bigint", data)], engine="hive")
    client.set_aggr_stats_for(SetPartitionsStatsRequest([given], engine="hive"))


def _drop_statistics(place: Place, part: str | None) -> DeleteColumnStatisticsRequest:
    return DeleteColumnStatisticsRequest(
        place.catalog, place.database, "t", part_names=[part] if part else None, tableLevel=part is None, engine="hive"
    )


def _index(place: Place) -> Index:
    return Index("i", "handler", place.db, "t", indexTableName="data", sd=storage("id:bigint"), deferredRebuild=True)


def _instant(client: Client, place: Place) -> None:
    begun = client.lake_begin_instant(BeginInstantRequest(place.table, "commit", state="inflight"))
    day = f"ds=2020-01-0{next(NUMBERS) % 9 + 1}/hr=7"
    files = [DataFile(partition=day, fileGroup=begun.timestamp, slice=begun.timestamp, path=f"{day}/f", size=1)]
    client.lake_complete_instants([CompleteInstantRequest(place.table, begun.timestamp, "commit", added=files)])


def _savepoint(client: Client, place: Place) -> None:
    _instant(client, place)
    last = client.lake_list_instants(ListInstantsRequest(place.table, states=["completed"]))[-1].timestamp
    client.lake_begin_instant(BeginInstantRequest(place.table, "savepoint", last, "inflight"))
    client.lake_complete_instants([CompleteInstantRequest(place.table, last, "savepoint")])


def _drop_savepoint(client: Client, place: Place) -> None:
    for each in client.lake_list_instants(ListInstantsRequest(place.table, actions=["savepoint"])):
        client.lake_delete_instant(place.table, each.timestamp, each.action)


def _begun(client: Client, place: Place) -> None:
    client.lake_begin_instant(BeginInstantRequest(place.table, "commit", state="inflight"))


def _drop_begun(client: Client, place: Place) -> None:
    for each in client.lake_list_instants(ListInstantsRequest(place.table, states=["inflight"])):
        client.lake_delete_instant(place.table, each.timestamp, each.action)


THINGS: dict[str, Thing] = {
    "catalog": Thing(
        None,
        lambda client, place: place.catalog and client.create_catalog(CreateCatalogRequest(_catalog(place))),
        lambda client, place: client.alter_catalog(AlterCatalogRequest(place.catalog, _catalog(place, "new"))),
        lambda client, place: client.drop_catalog(DropCatalogRequest(place.catalog)),
    ),
    "database": Thing(
        "catalog",
        lambda client, place: client.create_database(database(place.database, catalogName=place.catalog)),
        lambda client, place: client.alter_database(
            place.db, client.get_database(place.db).replace(description=str(next(NUMBERS)))
        ),
        lambda client, place: client.drop_database(place.db, True, False),
    ),
    "table": Thing(
        "database",
        lambda client, place: client.create_table(
            table(place.database, "t", keys=("ds", "hr"), catName=place.catalog, parameters={MODE: "manual"})
        ),
        _change_table,
        lambda client, place: client.drop_table(place.db, "t", True),
    ),
    "renamed table": Thing(
        "table", _rename_table, _rename_table, lambda client, place: client.drop_table(place.db, "t", True)
    ),
    "view": Thing(
        "database",
        lambda client, place: client.create_table(view(place.database, catName=place.catalog)),
        lambda client, place: client.alter_table(
            place.db, "v", client.get_table(place.db, "v").replace(owner=str(next(NUMBERS)))
        ),
        lambda client, place: client.drop_table(place.db, "v", True),
    ),
    "partition": Thing(
        "table",
        lambda client, place: client.append_partition(place.db, "t", DAY),
        lambda client, place: client.alter_partition(
            place.db, "t", _partition(client, place).replace(parameters={"a": str(next(NUMBERS))})
        ),
        lambda client, place: client.drop_partition(place.db, "t", DAY, True),
    ),
    "hidden partition": Thing(
        "table",
        lambda client, place: client.add_partition(
            partition(place.database, "t", *DAY, catName=place.catalog, parameters={"commit": "false"})
        ),
        lambda client, place: client.lake_commit_partitions(CommitPartitionsRequest(place.table, [DAY_NAME])),
        lambda client, place: client.lake_reopen_partitions(ReopenPartitionsRequest(place.table, [DAY_NAME])),
    ),
    "function": Thing(
        "database",
        lambda client, place: client.create_function(_function(place)),
        lambda client, place: client.alter_function(place.db, "f", _function(place, "a.C")),
        lambda client, place: client.drop_function(place.db, "f"),
    ),
    "constraint": Thing(
        "table",
        lambda client, place: client.add_primary_key(_primary(place)),
        lambda client, place: client.add_unique_constraint(_unique(place)),
        lambda client, place: client.drop_constraint(_drop_constraint(place, "pk")),
    ),
    "privilege": Thing(
        "table",
        lambda client, place: client.grant_privileges(_grant(place, "SELECT")),
        lambda client, place: client.grant_privileges(_grant(place, "INSERT")),
        lambda client, place: client.revoke_privileges(_grant(place, "SELECT")),
    ),
    "privilege on a partition": Thing(
        "partition",
        lambda client, place: client.grant_privileges(_grant(place, "SELECT", of_partition=True)),
        lambda client, place: client.grant_privileges(_grant(place, "INSERT", of_partition=True)),
        lambda client, place: client.revoke_privileges(_grant(place, "SELECT", of_partition=True)),
    ),
    "role": Thing(
        None,
        lambda client, place: client.create_role(Role("cache_life")),
        lambda client, place: client.grant_role("cache_life", "me", PrincipalType.USER, "b", PrincipalType.USER, False),
        lambda client, place: client.drop_role("cache_life"),
    ),
    "type": Thing(
        None,
        lambda client, place: client.create_type(Type("cache_life", "int")),
        lambda client, place: client.get_type("cache_life"),
        lambda client, place: client.drop_type("cache_life"),
    ),
    "statistics": Thing(
        "table",
        lambda client, place: _statistics(client, place, None),
        lambda client, place: _statistics(client, place, None),
        lambda client, place: client.delete_column_statistics_req(_drop_statistics(place, None)),
    ),
    "statistics of a partition": Thing(
        "partition",
        lambda client, place: _statistics(client, place, DAY_NAME),
        lambda client, place: _statistics(client, place, DAY_NAME),
        lambda client, place: client.delete_column_statistics_req(_drop_statistics(place, DAY_NAME)),
    ),
    "index": Thing(
        "table",
        lambda client, place: client.add_index(_index(place), table(place.database, "data", tableType="INDEX_TABLE")),
        lambda client, place: client.alter_index(place.db, "t", "i", _index(place)),
        lambda client, place: client.drop_index_by_name(place.db, "t", "i", True),
    ),
    "instant": Thing("table", _begun, _instant, _drop_begun),
    "savepoint": Thing("table", _savepoint, _instant, _drop_savepoint),
    "batch": Thing(
        "table",
        lambda client, place: report(client, place.table, {"s": 1}),
        lambda client, place: report(client, place.table, {"s": 2}),
        lambda client, place: client.truncate_table(place.db, "t", None),
    ),
}


# -- what is read ------------------------------------------------------------------------------------------------


def reads(client: Client, place: Place) -> list[tuple[str, Callable[[Reader], Any], Reader]]:
    """The lists, and what is found by a name, of everything that a life is about; as everybody sees it, and all."""
    db, name, catalog = place.db, place.database, place.catalog
    days = [DAY_NAME, "ds=2020-01-02/hr=7"]
    calls: list[tuple[str, tuple[Any, ...]]] = [
        ("get_all_databases", ()),
        ("get_databases", ("*",)),
        ("get_databases", (name,)),
        ("get_databases", (f"@{catalog or 'hive'}#*",)),
        ("get_database", (db,)),
        ("get_database_req", (GetDatabaseRequest(name, catalog),)),
        ("get_all_tables", (db,)),
        ("get_tables", (db, "*")),
        ("get_tables", (db, "u")),
        ("get_tables_by_type", (db, "*", "MANAGED_TABLE")),
        ("get_tables_by_type", (db, "*", "VIRTUAL_VIEW")),
        ("get_table_objects_by_name", (db, ["t", "u", "v"])),
        ("get_table_objects_by_name_req", (GetTablesRequest(name, ["t", "u", "v"], catName=catalog),)),
        ("get_table_objects_by_name_req", (GetTablesRequest(name, None, catName=catalog, tablesPattern="*"),)),
        ("get_table_req", (GetTableRequest(name, "t", catName=catalog, getColumnStats=True, engine="hive"),)),
        ("get_table", (db, "u")),
        ("get_table", (db, "v")),
    ]
    for decoration in ("", DECORATION):
        t = "t" + decoration
        reference = TableReference(catalog=catalog, database=name, table=t)
        calls += [
            ("get_table", (db, t)),
            ("get_fields", (db, t)),
            ("get_schema", (db, t)),
            ("get_partition", (db, t, DAY)),
            ("get_partition_by_name", (db, t, DAY_NAME)),
            ("get_partition_with_auth", (db, t, DAY, "me", ["us"])),
            ("get_partitions", (db, t, -1)),
            ("get_partitions_req", (PartitionsRequest(catalog, name, t, -1),)),
            ("get_partitions_with_auth", (db, t, -1, "me", ["us"])),
            ("get_partitions_by_names", (db, t, days)),
            ("get_partitions_by_filter", (db, t, "ds = '2020-01-01'", -1)),
            ("get_num_partitions_by_filter", (db, t, "")),
            ("get_partition_names", (db, t, -1)),
            ("get_partition_names_ps", (db, t, [DAY[0]], -1)),
            ("get_partition_names_ps_req", (GetPartitionNamesPsRequest(catalog, name, t, [DAY[0]], -1),)),
            ("get_table_column_statistics", (db, t, "id")),
            ("get_partition_column_statistics", (db, t, DAY_NAME, "id")),
            ("get_table_statistics_req", (TableStatsRequest(name, t, ["id"], catalog, engine="hive"),)),
            (
                "get_partitions_statistics_req",
                (PartitionsStatsRequest(name, t, ["id"], days, catalog, engine="hive"),),
            ),
            ("get_aggr_stats_for", (PartitionsStatsRequest(name, t, ["id"], days, catalog, engine="hive"),)),
            ("lake_timeline_position", (reference,)),
            ("lake_list_instants", (ListInstantsRequest(reference),)),
            ("lake_get_snapshot", (SnapshotRequest(reference),)),
            ("lake_read_changes", (ReadChangesRequest(reference, 0),)),
        ]
    reader = Reader(client, db)
    return [
        (method, lambda r, method=method, given=given: r.client.call(method, *given), reader) for method, given in calls
    ]


# -- lives -------------------------------------------------------------------------------------------------------


class Life:
    """Does things in one place, and looks after each."""

    def __init__(self, metastore: Metastore, *, own_catalog: bool) -> None:
        number = next(NUMBERS)
        self._client: Client = LocalClient(metastore)
        self._place = Place(f"c{number}" if own_catalog else None, f"d{number}")
        self._keeper = Keeper(metastore, reads(self._client, self._place))
        self._keeper.look("nothing had been made")
        self.done: set[tuple[str, str]] = set()

    def do(self, act: str, kind: str) -> None:
        """What is refused changes nothing; that is looked at, too."""
        try:
            getattr(THINGS[kind], act)(self._client, self._place)
        except TException as error:
            assert "internal error" not in str(error)
        else:
            self.done.add((act, kind))
        self._keeper.look(f"{act} {kind}")

    def drop_all(self) -> None:
        try:
            self._client.drop_database(self._place.db, True, True)
        except TException:
            return
        self.done.add(("drop_all", "database"))
        self._keeper.look("drop database with all that was in it")


def path_to(kind: str) -> list[str]:
    """What lies in what, from the outermost to the thing itself."""
    inside = THINGS[kind].inside
    return [*(path_to(inside) if inside else ()), kind]


def lead(life: Life, kind: str, outermost: str) -> None:
    """Made and changed, dropped from the inside out and made again; then dropped at once, and made again."""
    path = path_to(kind)
    again = path[path.index(outermost) :]
    for each in path:
        life.do("make", each)
    life.do("change", kind)
    for _ in range(2):
        for each in reversed(again):
            life.do("drop", each)
        for each in again:
            life.do("make", each)
    life.drop_all()
    for each in path:
        life.do("make", each)
    life.do("change", kind)


LIVES = [
    (kind, outermost)
    for kind in THINGS
    for outermost in path_to(kind)
    # The calls about indexes are older than catalogs: they reach Hive's own alone.
    if (kind, outermost) != ("index", "catalog")
]


@pytest.fixture(scope="module")
def metastore(postgres: Postgres, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Metastore]:
    with opened(postgres, tmp_path_factory.mktemp("lives")) as metastore:
        yield metastore


@pytest.mark.sampled(16)
@pytest.mark.parametrize(
    ("kind", "outermost"),
    # From the database on is what a life is about in most; the others take longer.
    [
        pytest.param(
            kind,
            outermost,
            marks=() if outermost in ("database", kind) and kind != "renamed table" else pytest.mark.long,
        )
        for kind, outermost in LIVES
    ],
)
def test_a_life(metastore: Metastore, kind: str, outermost: str) -> None:
    life = Life(metastore, own_catalog=kind == "catalog" or outermost == "catalog")
    lead(life, kind, outermost)
    assert life.done >= {("make", kind), ("change", kind), ("drop", kind)}


@pytest.mark.long
@pytest.mark.parametrize("seed", range(20))
def test_lives_at_random(metastore: Metastore, seed: int) -> None:
    chance = random.Random(seed)
    life = Life(metastore, own_catalog=bool(seed % 2))
    acts = [(act, kind) for kind in THINGS for act in ("make", "make", "change", "drop")]
    for number in range(150 if seed else 60):
        if number % 25 == 24:
            life.drop_all()
        # Most things need what they lie in: that is made again soon after it was dropped.
        for each in path_to(chance.choice(list(THINGS)))[:3] if chance.random() < 0.3 else ():
            life.do("make", each)
        life.do(*chance.choice(acts))
    assert len(life.done) > len(THINGS)
