"""Databases that are hidden from some and shown to others. What is hidden bears a marker everywhere."""

from dataclasses import dataclass

from lake.protocol.connection.thrift_client import ThriftClient
from lake.protocol.hive import (
    AddForeignKeyRequest,
    AddPrimaryKeyRequest,
    ColumnStatistics,
    ColumnStatisticsData,
    ColumnStatisticsDesc,
    ColumnStatisticsObj,
    Function,
    HiveObjectPrivilege,
    HiveObjectRef,
    HiveObjectType,
    LongColumnStatsData,
    PrincipalType,
    PrivilegeBag,
    PrivilegeGrantInfo,
    SQLForeignKey,
    SQLPrimaryKey,
)
from tests.support import builders
from tests.support.server import MetastoreServer

SECRET = "zqsecretqz"
"""In every comment, parameter, location and name of what is hidden, but for the names by which tests ask."""

HIDDEN, MISSING = "veiled_db", "nowher_db"
HIDDEN_TABLE, MISSING_TABLE = "veiled_t", "nowher_t"
"""Names of equal length: replies about them differ in the names alone."""

OPEN, OPEN_TABLE = "open_db", "shown_t"
READER, WRITER, OWNER, NOBODY = "reader", "writer", "owner", "nobody"


@dataclass(frozen=True)
class World:
    server: MetastoreServer


def fill(server: MetastoreServer, root: ThriftClient) -> World:
    """Makes a hidden database, and an open one with a table that is shown to some and one that is hidden."""
    root.create_database(
        builders.database(HIDDEN, description=SECRET, parameters={SECRET: SECRET}, ownerName=f"{SECRET}_owner")
    )
    root.create_database(builders.database(OPEN, ownerName="root"))
    for where in (HIDDEN, OPEN):
        _table(root, where, HIDDEN_TABLE, f"{SECRET}_owner", SECRET)
    _table(root, HIDDEN, f"other_{SECRET}", f"{SECRET}_owner", SECRET)
    _table(root, OPEN, OPEN_TABLE, OWNER, "shown")
    root.create_function(Function(f"f_{SECRET}", HIDDEN, SECRET, SECRET, PrincipalType.USER, 0, 1, []))
    key = SQLPrimaryKey(OPEN, HIDDEN_TABLE, "id", 1, f"pk_{SECRET}", False, False, False, "hive")
    root.add_primary_key(AddPrimaryKeyRequest([key]))
    foreign = SQLForeignKey(
        OPEN, HIDDEN_TABLE, "id", OPEN, OPEN_TABLE, "id", 1, 0, 0, f"fk_{SECRET}", f"pk_{SECRET}", False, False, False
    )
    root.add_foreign_key(AddForeignKeyRequest([foreign]))
    for user, privilege in ((READER, "SELECT"), (WRITER, "INSERT"), (WRITER, "DELETE")):
        grant(root, user, privilege, OPEN, OPEN_TABLE)
    grant(root, SECRET, "SELECT", HIDDEN, HIDDEN_TABLE)
    return World(server)


def _table(root: ThriftClient, where: str, name: str, owner: str, word: str) -> None:
    root.create_table(
        builders.table(
            where,
            name,
            keys=("dt",),
            owner=owner,
            parameters={word: word, "comment": word},
            sd=builders.storage("id:bigint", f"c_{word}:string#{word}"),
        )
    )
    root.add_partition(builders.partition(where, name, "1", parameters={word: word, "commit": "true"}))
    root.add_partition(builders.partition(where, name, f"v_{word}", parameters={word: word}))
    root.add_partition(builders.partition(where, name, f"late_{word}", parameters={word: word, "commit": "false"}))
    numbers = ColumnStatisticsData(longStats=LongColumnStatsData(numNulls=1, numDVs=2))
    for level, part in ((True, None), (False, "dt=1")):
        described = ColumnStatisticsDesc(level, where, name, part, 0, "hive")
        values = ColumnStatistics(described, [ColumnStatisticsObj("id", "bigint", numbers)], engine="hive")
        if level:
            continue  # a partitioned table has those of its partitions
        root.update_partition_column_statistics(values)


def grant(
    root: ThriftClient,
    name: str,
    privilege: str,
    database: str | None = None,
    table: str | None = None,
    *,
    kind: PrincipalType = PrincipalType.USER,
    option: bool = False,
) -> None:
    """Gives a privilege on a table, a database or everything."""
    root.grant_privileges(PrivilegeBag([_privilege(name, privilege, database, table, kind, option)]))


def revoke(
    root: ThriftClient,
    name: str,
    privilege: str,
    database: str | None = None,
    table: str | None = None,
    *,
    kind: PrincipalType = PrincipalType.USER,
) -> None:
    root.revoke_privileges(PrivilegeBag([_privilege(name, privilege, database, table, kind, False)]))


def _privilege(
    name: str, privilege: str, database: str | None, table: str | None, kind: PrincipalType, option: bool
) -> HiveObjectPrivilege:
    on = HiveObjectType.GLOBAL if database is None else HiveObjectType.DATABASE
    ref = HiveObjectRef(HiveObjectType.TABLE if table else on, database, table)
    return HiveObjectPrivilege(ref, name, kind, PrivilegeGrantInfo(privilege, 0, "root", PrincipalType.USER, option))
