"""Whatever is changed by hand on either side, `verify` names it, and `import --replace` mends what it can."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lake.protocol.connection.thrift_client import ThriftClient
from lake.protocol.hive import (
    ColumnStatistics,
    ColumnStatisticsData,
    ColumnStatisticsDesc,
    ColumnStatisticsObj,
    DropConstraintRequest,
    FieldSchema,
    HiveObjectPrivilege,
    HiveObjectRef,
    HiveObjectType,
    LongColumnStatsData,
    PrincipalType,
    PrivilegeBag,
    PrivilegeGrantInfo,
)
from tests.metastore.migration.random_catalog import Catalog, Maker
from tests.support import builders, called
from tests.support.reference import HiveReference
from tests.support.server import MetastoreServer

DATABASE = "dif_0"
TABLE = "t_0"  # it has partitions, by `dt`


@pytest.fixture(scope="module")
def hive(hive_reference: HiveReference) -> Iterator[ThriftClient]:
    with ThriftClient(hive_reference.host, hive_reference.port) as client:
        yield client


@pytest.fixture(scope="module")
def made(hive: ThriftClient, tmp_path_factory: pytest.TempPathFactory) -> Catalog:
    return Maker(hive, "dif", tmp_path_factory.mktemp("old"), seed=6).make(databases=1)


def run(what: str, hive: HiveReference, ours: MetastoreServer, *options: str, code: int = 0) -> dict[str, Any]:
    source = f"thrift://{hive.host}:{hive.port}"
    result = called.run("migrate", what, source, "--uri", ours.uri, "--databases", "dif_*", "--json", *options)
    found: dict[str, Any] = json.loads(result.stdout)
    assert result.returncode == code, found
    return found


def named(found: dict[str, Any]) -> dict[tuple[str, str], str]:
    return {(each["kind"], each["name"]): each["text"] for each in found["differences"]}


def grant(table: str, who: str) -> PrivilegeBag:
    ref = HiveObjectRef(HiveObjectType.TABLE, DATABASE, table)
    info = PrivilegeGrantInfo("INSERT", 0, "boss", PrincipalType.USER, False)
    return PrivilegeBag([HiveObjectPrivilege(ref, who, PrincipalType.USER, info)])


def change(client: ThriftClient) -> dict[tuple[str, str], str]:
    """Changes an object of each kind; what has to be named, and a part of how."""
    database = client.get_database(DATABASE)
    database.parameters = {**(database.parameters or {}), "by hand": "1"}
    client.alter_database(DATABASE, database)

    view = client.get_table(DATABASE, "t_1")
    view.viewOriginalText = "select 2"
    client.alter_table(DATABASE, "t_1", view)

    table = client.get_table(DATABASE, "t_2")
    table.sd.cols[0].comment = "by hand"
    table.sd.serdeInfo.parameters["by hand"] = ""
    client.alter_table(DATABASE, "t_2", table)

    first, second = client.get_partition_names(DATABASE, TABLE, -1)[:2]
    one = client.get_partition_by_name(DATABASE, TABLE, first)
    one.parameters = {**(one.parameters or {}), "by hand": " "}
    one.sd.cols.append(FieldSchema("by_hand", "int", None))
    client.alter_partition(DATABASE, TABLE, one)
    client.drop_partition_by_name(DATABASE, TABLE, second, False)

    of = ColumnStatisticsDesc(isTblLevel=False, dbName=DATABASE, tableName=TABLE, partName=first, lastAnalyzed=1)
    numbers = LongColumnStatsData(lowValue=0, highValue=99, numNulls=98, numDVs=97)
    value = ColumnStatisticsObj("c0", "bigint", ColumnStatisticsData(longStats=numbers))
    client.update_partition_column_statistics(ColumnStatistics(of, [value], engine="hive"))

    client.drop_constraint(DropConstraintRequest(DATABASE, TABLE, f"pk_{DATABASE}_{TABLE}"))
    client.drop_function(DATABASE, "f_1")
    client.grant_privileges(grant("t_2", "by_hand"))
    client.grant_role("dif_role_0", "by_hand", PrincipalType.USER, "boss", PrincipalType.USER, False)
    client.create_table(builders.table(DATABASE, "by_hand"))
    client.drop_table(DATABASE, "t_3", False)
    return {
        ("databases", DATABASE): "parameters.by hand",
        ("tables", f"{DATABASE}.t_1"): "viewOriginalText",
        ("tables", f"{DATABASE}.t_2"): "sd.serdeInfo",
        ("partitions", f"{DATABASE}.{TABLE} {first}"): "sd.cols",
        ("partitions", f"{DATABASE}.{TABLE} {second}"): "it isn't",
        ("statistics", f"{DATABASE}.{TABLE} {first} c0"): "numNulls",
        ("constraints", f"{DATABASE}.{TABLE} pk_{DATABASE}_{TABLE} 1"): "it isn't",
        ("functions", f"{DATABASE}.f_1"): "it isn't",
        ("grants", f"by_hand (user): INSERT on table {DATABASE}.t_2 by boss"): "it isn't",
        ("members", "dif_role_0 user by_hand"): "it isn't",
        ("tables", f"{DATABASE}.by_hand"): "it isn't",
        ("tables", f"{DATABASE}.t_3"): "it isn't",
    }


def check(found: dict[str, Any], wanted: dict[tuple[str, str], str]) -> None:
    shown = named(found)
    for key, text in wanted.items():
        assert text in shown.get(key, ""), (key, shown)


@pytest.mark.long
def test_each_change_is_named(hive_reference: HiveReference, hive: ThriftClient, made: Catalog, tmp_path: Path) -> None:
    with MetastoreServer(tmp_path / "data", "--workers", "1") as ours, ThriftClient(ours.host, ours.port) as own:
        run("import", hive_reference, ours)
        assert run("verify", hive_reference, ours)["differing"] == 0
        wanted = change(own)
        check(run("verify", hive_reference, ours, code=1), wanted)
        # What differs here becomes as it is there; what is here only stays, and is still named.
        run("import", hive_reference, ours, "--replace")
        left = named(run("verify", hive_reference, ours, code=1))
        assert set(left.values()) == {"it isn't there"}
        assert set(left) <= set(wanted)
        own.drop_table(DATABASE, "by_hand", False)
        own.revoke_privileges(grant("t_2", "by_hand"))
        own.revoke_role("dif_role_0", "by_hand", PrincipalType.USER)
        assert run("verify", hive_reference, ours)["differing"] == 0
        # The other way round.
        wanted = change(hive)
        check(run("verify", hive_reference, ours, code=1), wanted)
        run("import", hive_reference, ours, "--replace")
        left = named(run("verify", hive_reference, ours, code=1))
        assert set(left.values()) <= {"it isn't there"}
