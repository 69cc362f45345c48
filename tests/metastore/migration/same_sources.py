"""Compares two ways of reading one metastore: its rows, and what its server says."""

import json
from typing import Any

from metastore.migration import canonical
from metastore.migration.hive_database import HiveDatabase
from metastore.migration.objects import DatabaseKey, TableKey, TableParts
from metastore.migration.thrift_source import ThriftSource
from tests.metastore.migration.random_catalog import Catalog

CONSTRAINTS = (
    *("primaryKeys", "foreignKeys", "uniqueConstraints", "notNullConstraints", "defaultConstraints"),
    "checkConstraints",
)  # fmt: skip


def assert_same(url: str, uri: str, made: Catalog) -> None:
    """All of what was made is the same by `url`, a database, as by `uri`, the server on it."""
    rows, server = HiveDatabase(url), ThriftSource(uri)
    try:
        for name in made.databases:
            key = DatabaseKey("hive", name)
            [one], [other] = (
                [canonical.of_struct(each) for each in source.databases("hive") if each.name == name]
                for source in (rows, server)
            )
            if "createTime" not in one:  # versions before Hive 4 keep none
                other.pop("createTime", None)
            assert one == other, canonical.differences(one, other)
            assert plain(rows.functions(key)) == plain(server.functions(key))
            assert rows.tables(key) == server.tables(key)
            names = rows.tables(key)
            one, other = (in_any_order(each.grants(key, names)) for each in (rows, server))
            assert one == other, (one, other)
            for table in made.tables[name]:
                same_table(rows, server, TableKey("hive", name, table))
        one, other = ([each for each in s.roles() if each.roleName in made.roles] for s in (rows, server))
        assert plain(one) == plain(other)
        for role in made.roles:
            assert in_any_order(rows.members(role)) == in_any_order(server.members(role))
        assert plain(rows.global_grants()) == plain(server.global_grants())
    finally:
        rows.close()
        server.close()


def same_table(rows: HiveDatabase, server: ThriftSource, key: TableKey) -> None:
    one, other = rows.table(key), server.table(key)
    assert one is not None and other is not None
    mine, theirs = canonical.of_struct(one.table), canonical.of_struct(other.table)
    assert mine == theirs, canonical.differences(mine, theirs)
    for kind in CONSTRAINTS:
        mine, theirs = ([strip(each) for each in getattr(s.constraints, kind) or ()] for s in (one, other))
        assert mine == theirs, (mine, theirs)
    assert numbers(one.statistics) == numbers(other.statistics), key
    names = rows.partition_names(one)
    assert names == server.partition_names(other)
    by_values = [
        sorted(plain(source.partitions(parts, names)), key=lambda each: each["values"])
        for source, parts in ((rows, one), (server, other))
    ]
    for mine, theirs in zip(*by_values, strict=True):
        assert mine == theirs, canonical.differences(mine, theirs)
    assert numbers(rows.partition_statistics(one, names)) == numbers(server.partition_statistics(other, names))
    for source, parts in ((rows, one), (server, other)):
        assert heard(source, parts, names) == heard(source, parts, names)


def heard(source: HiveDatabase | ThriftSource, parts: TableParts, names: list[str]) -> bytes | None:
    with source.heard() as answers:
        source.pass_over_partitions(parts, names)
    return answers()


def in_any_order(some: list[Any]) -> list[str]:
    return sorted(json.dumps(each, sort_keys=True) for each in plain(some))


def plain(some: list[Any]) -> list[Any]:
    return [canonical.of_struct(each) for each in some]


def strip(constraint: Any) -> Any:
    kept = canonical.of_struct(constraint)
    kept.pop("pk_name", None) if "fk_name" in kept else None
    return kept


def numbers(some: Any) -> Any:
    """Statistics by partition and column."""
    return {
        (each.statsDesc.partName, own.colName): canonical.of_statistics(own, sketches=False)
        for each in some
        for own in each.statsObj
    }
