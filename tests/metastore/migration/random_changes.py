"""A writer that goes on changing databases of a Hive metastore by random calls, and knows which were acknowledged."""

import copy
import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from thrift.Thrift import TApplicationException, TException

from lake.protocol.connection.thrift_client import ThriftClient
from lake.protocol.errors import NOTHING_DONE, OUTCOME_UNKNOWN
from lake.protocol.hive import (
    AddPrimaryKeyRequest,
    ColumnStatistics,
    ColumnStatisticsData,
    ColumnStatisticsDesc,
    ColumnStatisticsObj,
    DropConstraintRequest,
    FieldSchema,
    Function,
    FunctionType,
    GetTableRequest,
    HiveObjectPrivilege,
    HiveObjectRef,
    HiveObjectType,
    LongColumnStatsData,
    MetaException,
    NoSuchObjectException,
    Partition,
    PartitionsStatsRequest,
    PrincipalType,
    PrivilegeBag,
    PrivilegeGrantInfo,
    SQLPrimaryKey,
    Table,
)
from lake.protocol.struct import ExceptionStruct
from tests.support import builders

OWN = "w_*"
"""The tables of writers."""

SURE_SECONDS = 3.0
"""How long a change may be under way after its client was told that its answer is lost."""

VALUES = ("1", "a b", "x=y/z", "Ünï", "100%")


TableName = tuple[str, str]


@dataclass
class Kept:
    """A table as its writer knows it: its parameter `n`, which counts writes, and its partitions' parameter `p`."""

    n: int = 0
    partitions: dict[tuple[str, ...], str | None] = field(default_factory=dict)


Tables = dict[TableName, Kept]


@dataclass
class Writer:
    """`told`: only changes that the notification log tells: not of statistics and grants.

    `kept`: the tables as acknowledged writes have left them: a lost write shows, and a double one. Where an answer was
    lost, the writer looks whether the change was made, and `strange` notes what is neither the one nor the other.
    `connect`: makes another connection where one broke. `careful`: renames no table whose partitions have statistics:
    Hive 2.3 can't drop it any more, since the statistics keep its name.
    """

    client: ThriftClient
    databases: list[str]
    place: Path
    seed: int
    told: bool = False
    connect: Callable[[], ThriftClient] | None = None
    careful: bool = False
    kept: Tables = field(default_factory=dict)
    done: int = 0
    unsure: int = 0
    refused: list[str] = field(default_factory=list)
    strange: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._rng = random.Random(self.seed)

    def write(self, count: int) -> None:
        for _ in range(count):
            self.step()

    def step(self) -> None:
        """One change. What the metastore refuses, such as a name that is there, is no change."""
        actions: list[tuple[int, Callable[[], None]]] = [
            (3, self._create), (2, self._drop), (4, self._count), (2, self._rename), (2, self._columns),
            (6, self._add_partitions), (3, self._drop_partition), (3, self._alter_partition),
            (1, self._rename_partition), (1, self._function), (1, self._database), (1, self._primary_key),
            (1, self._view),
        ]  # fmt: skip
        if not self.told:
            actions += [(3, self._statistics), (1, self._grant)]
        [action] = self._rng.choices([each for _, each in actions], [weight for weight, _ in actions])
        try:
            action()
        except (ExceptionStruct, TException, OSError) as error:
            self.refused.append(f"{action.__name__}: {getattr(error, 'message', None) or error}")
            if not isinstance(error, ExceptionStruct | TApplicationException):
                self._connect_again()
            return
        self.done += 1

    def check(self, client: ThriftClient) -> None:
        """No acknowledged write is lost, none came twice."""
        assert not self.strange, "\n".join(self.strange)
        found = self._found(client)
        differing = [
            f"{key} is {found.get(key)}, and the writer knows {self.kept.get(key)}"
            for key in sorted({*found, *self.kept})
            if found.get(key) != self.kept.get(key)
        ]
        told = f"{self.unsure} answers were lost, refused were {self.refused[-30:]}"
        assert not differing, "\n".join([*differing, told])

    def _found(self, client: ThriftClient) -> Tables:
        """The tables as a metastore has them."""
        found = {}
        for database in self.databases:
            for name in client.get_tables(database, OWN):
                table = client.get_table_req(GetTableRequest(database, name)).table
                some = client.get_partitions(database, name, -1) if table.partitionKeys else ()
                own = {tuple(each.values): (each.parameters or {}).get("p") for each in some}
                found[database, name] = Kept(int((table.parameters or {}).get("n", "0")), own)
        return found

    def _change(self, call: Callable[[], object], change: Callable[[Tables], object]) -> None:
        """A call, and what it makes of the tables. Raises what the call does, if it has changed nothing."""
        try:
            call()
        except (ExceptionStruct, TException, OSError) as error:
            if _is_refusal(error):
                raise
            self.unsure += 1
            why = str(getattr(error, "message", None) or error)
            answered = isinstance(error, ExceptionStruct) and OUTCOME_UNKNOWN not in why
            self._look_which(change, why, may_be_late=not answered)
            return
        change(self.kept)

    def _look_which(self, change: Callable[[Tables], object], why: str, *, may_be_late: bool) -> None:
        before, after = copy.deepcopy(self.kept), copy.deepcopy(self.kept)
        change(after)
        if (found := self._looked()) == before and may_be_late:
            time.sleep(SURE_SECONDS)
            found = self._looked()
        if found not in (before, after):
            self.strange.append(f"{why}: {found} is neither {before} nor {after}")
        self.kept = found

    def _looked(self) -> Tables:
        """The tables, once the metastore answers again."""
        deadline = time.monotonic() + 120
        while True:
            try:
                return self._found(self.client)
            except (ExceptionStruct, TException, OSError) as error:
                assert time.monotonic() < deadline, error
                time.sleep(0.2)
                if not isinstance(error, ExceptionStruct | TApplicationException):
                    self._connect_again()

    def _connect_again(self) -> None:
        assert self.connect is not None, "the connection broke"
        self.client.close()
        deadline = time.monotonic() + 120
        while True:
            try:
                self.client = self.connect()
                return
            except (TException, OSError):
                assert time.monotonic() < deadline
                time.sleep(0.2)

    def _table(self) -> Table:
        database = self._rng.choice(self.databases)
        names = self.client.get_tables(database, OWN)
        table: Table = self.client.get_table_req(GetTableRequest(database, self._rng.choice(names or ["none"]))).table
        return table

    def _partition(self) -> Partition:
        table = self._table()
        found = self.client.get_partitions(table.dbName, table.tableName, -1)
        if not found:
            self._add(table)
            found = self.client.get_partitions(table.dbName, table.tableName, -1)
        if not found:
            raise NoSuchObjectException("it has no partitions")
        chosen: Partition = self._rng.choice(found)
        return chosen

    def _create(self) -> None:
        database, name = self._rng.choice(self.databases), f"w_{self._rng.randrange(6)}"
        keys = self._rng.choice(((), ("dt",), ("dt", "region")))
        sd = builders.storage(location=f"file:{self.place}/{database}/{name}_{self._rng.randrange(10**9)}")
        table = builders.table(database, name, sd=sd, keys=keys, parameters={"n": "0", "EXTERNAL": "TRUE"})
        table.tableType = "EXTERNAL_TABLE"
        self._change(lambda: self.client.create_table(table), lambda kept: kept.update({(database, name): Kept()}))

    def _drop(self) -> None:
        table = self._table()
        drop = self.client.drop_table
        self._change(lambda: drop(table.dbName, table.tableName, False), lambda kept: kept.pop(_key(table)))

    def _count(self) -> None:
        table = self._table()
        assert table.parameters is not None
        table.parameters["n"] = str(int(table.parameters.get("n", "0")) + 1)

        def counted(kept: Tables) -> None:
            kept[_key(table)].n += 1

        self._change(lambda: self.client.alter_table(table.dbName, table.tableName, table), counted)

    def _rename(self) -> None:
        table = self._table()
        if self.careful and self._has_statistics(table):
            raise NoSuchObjectException("its partitions have statistics")
        new = f"w_{self._rng.randrange(6)}"
        self._change(
            lambda: self.client.alter_table(table.dbName, table.tableName, table.replace(tableName=new)),
            lambda kept: kept.update({(table.dbName or "", new): kept.pop(_key(table))}),
        )

    def _has_statistics(self, table: Table) -> bool:
        names = self.client.get_partition_names(table.dbName, table.tableName, -1) if table.partitionKeys else []
        request = PartitionsStatsRequest(table.dbName, table.tableName, ["id"], names, engine="hive")
        return bool(names and self.client.get_partitions_statistics_req(request).partStats)

    def _columns(self) -> None:
        table = self._table()
        assert table.sd is not None
        columns = [*(table.sd.cols or ()), FieldSchema(f"c{self._rng.randrange(10**6)}", "string", "new")]
        changed = table.replace(sd=table.sd.replace(cols=columns))
        alter = self.client.alter_table_with_cascade
        self._change(lambda: alter(table.dbName, table.tableName, changed, True), lambda kept: None)

    def _add_partitions(self) -> None:
        self._add(self._table())

    def _add(self, table: Table) -> None:
        if not table.partitionKeys:
            return
        some = {
            tuple(self._rng.choice((*VALUES, str(self._rng.randrange(50)))) for _ in table.partitionKeys)
            for _ in range(self._rng.randint(1, 4))
        }
        new = [
            Partition(
                values=list(values),
                dbName=table.dbName,
                tableName=table.tableName,
                sd=table.sd and table.sd.replace(location=None),
                parameters={"p": str(self._rng.randrange(100))},
            )
            for values in sorted(some)
        ]

        def added(kept: Tables) -> None:
            kept[_key(table)].partitions.update({tuple(each.values or ()): _p(each) for each in new})

        self._change(lambda: self.client.add_partitions(new), added)

    def _drop_partition(self) -> None:
        gone = self._partition()
        self._change(
            lambda: self.client.drop_partition(gone.dbName, gone.tableName, gone.values, False),
            lambda kept: kept[_key(gone)].partitions.pop(tuple(gone.values or ())),
        )

    def _alter_partition(self) -> None:
        one = self._partition()
        new = one.replace(parameters={**(one.parameters or {}), "p": f"{self._rng.random()}"})

        def altered(kept: Tables) -> None:
            kept[_key(one)].partitions[tuple(one.values or ())] = _p(new)

        self._change(lambda: self.client.alter_partition(one.dbName, one.tableName, new), altered)

    def _rename_partition(self) -> None:
        one = self._partition()
        values = [str(self._rng.randrange(50, 100)) for _ in one.values or ()]

        def renamed(kept: Tables) -> None:
            some = kept[_key(one)].partitions
            some[tuple(values)] = some.pop(tuple(one.values or ()))

        rename = self.client.rename_partition
        self._change(lambda: rename(one.dbName, one.tableName, one.values, one.replace(values=values)), renamed)

    def _function(self) -> None:
        database, name = self._rng.choice(self.databases), f"f_{self._rng.randrange(3)}"
        if name in self.client.get_functions(database, "*"):
            self.client.drop_function(database, name)
        else:
            own = Function(name, database, "a.B", "ann", PrincipalType.USER, 0, FunctionType.JAVA, [])
            self.client.create_function(own)

    def _view(self) -> None:
        database, name = self._rng.choice(self.databases), f"v_{self._rng.randrange(2)}"
        if name in self.client.get_tables(database, "v_*"):
            self.client.drop_table(database, name, False)
        else:
            self.client.create_table(builders.view(database, name))

    def _database(self) -> None:
        name = f"{self.databases[0]}_x"
        if name in self.client.get_all_databases():
            self.client.drop_database(name, False, True)
        else:
            self.client.create_database(builders.database(name, locationUri=f"file:{self.place}/{name}.db"))
            self.client.create_table(
                builders.table(name, "inside", sd=builders.storage(location=f"file:{self.place}/{name}.db/inside"))
            )

    def _statistics(self) -> None:
        table = self._table()
        number = LongColumnStatsData(lowValue=0, highValue=9, numNulls=0, numDVs=self._rng.randrange(1, 9))
        columns = [each.name for each in (table.sd and table.sd.cols) or () if each.type == "bigint"]
        own = [ColumnStatisticsObj(columns[0], "bigint", ColumnStatisticsData(longStats=number))]
        of = ColumnStatisticsDesc(isTblLevel=True, dbName=table.dbName, tableName=table.tableName)
        if table.partitionKeys:
            one = self._partition()
            if (one.dbName, one.tableName) != (table.dbName, table.tableName):
                return
            names = self.client.get_partition_names(table.dbName, table.tableName, -1)
            if not names:
                return
            of = of.replace(isTblLevel=False, partName=self._rng.choice(names))
            self.client.update_partition_column_statistics(ColumnStatistics(of, own, engine="hive"))
        else:
            self.client.update_table_column_statistics(ColumnStatistics(of, own, engine="hive"))

    def _primary_key(self) -> None:
        table = self._table()
        name = f"pk_{table.dbName}_{table.tableName}_{table.createTime}"
        column: Any = ((table.sd and table.sd.cols) or [FieldSchema("id")])[0].name
        if self._rng.random() < 0.5:
            key = SQLPrimaryKey(table.dbName, table.tableName, column, 1, name, False, False, True)
            self.client.add_primary_key(AddPrimaryKeyRequest([key]))
        else:
            self.client.drop_constraint(DropConstraintRequest(table.dbName, table.tableName, name))

    def _grant(self) -> None:
        table = self._table()
        ref = HiveObjectRef(HiveObjectType.TABLE, table.dbName, table.tableName)
        info = PrivilegeGrantInfo(self._rng.choice(("SELECT", "INSERT")), 0, "boss", PrincipalType.USER, False)
        bag = PrivilegeBag([HiveObjectPrivilege(ref, "ann", PrincipalType.USER, info)])
        if self._rng.random() < 0.6:
            self.client.grant_privileges(bag)
        else:
            self.client.revoke_privileges(bag)


def _key(of: Table | Partition) -> TableName:
    return of.dbName or "", of.tableName or ""


def _p(partition: Partition) -> str | None:
    return (partition.parameters or {}).get("p")


_REFUSALS = (NOTHING_DONE, "is read-only here")


def _is_refusal(error: Exception) -> bool:
    """Whether nothing was done for sure. Hive says MetaException for all that goes wrong within it."""
    text = str(getattr(error, "message", "") or "")
    if isinstance(error, MetaException | TApplicationException):
        return any(each in text for each in _REFUSALS)
    return isinstance(error, ExceptionStruct)
