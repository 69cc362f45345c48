"""Constraints as Hive's database keeps them: one row for each column, of all kinds in one table."""

from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any

from lake.protocol.hive import (
    SQLAllTableConstraints,
    SQLCheckConstraint,
    SQLDefaultConstraint,
    SQLForeignKey,
    SQLNotNullConstraint,
    SQLPrimaryKey,
    SQLUniqueConstraint,
)
from metastore.migration.hive_rows import HiveRows, Row
from metastore.migration.objects import TableKey

_PRIMARY, _FOREIGN, _UNIQUE, _NOT_NULL, _DEFAULT, _CHECK = range(6)
_ENABLE, _VALIDATE, _RELY = 4, 2, 1


def constraints_of(rows: HiveRows, key: TableKey, table_id: int) -> SQLAllTableConstraints:
    """All constraints on a table."""
    own = [row for row in rows.rows("KEY_CONSTRAINTS", PARENT_TBL_ID=table_id) if row["CONSTRAINT_TYPE"] != _FOREIGN]
    foreign = rows.rows("KEY_CONSTRAINTS", CHILD_TBL_ID=table_id)
    foreign = [row for row in foreign if row["CONSTRAINT_TYPE"] == _FOREIGN]
    if not own and not foreign:
        return SQLAllTableConstraints()
    columns = _Columns(rows, [*own, *foreign])
    by_kind: dict[int, list[Row]] = defaultdict(list)
    for row in sorted([*own, *foreign], key=lambda row: (row["CONSTRAINT_NAME"], row["POSITION"])):
        if columns.has_those_of(row):
            by_kind[row["CONSTRAINT_TYPE"]].append(row)

    def of(kind: int, make: Callable[[Row, str | None, dict[str, Any]], Any]) -> list[Any]:
        return [make(row, columns.parent(row), _common(row)) for row in by_kind[kind]]

    def named(row: Row, column: str | None, field: str) -> dict[str, Any]:
        return {"table_db": key.database, "table_name": key.table, "column_name": column, field: row["CONSTRAINT_NAME"]}

    catalog: dict[str, Any] = {"catName": key.catalog}
    return SQLAllTableConstraints(
        primaryKeys=of(
            _PRIMARY,
            lambda row, column, flags: SQLPrimaryKey(
                **named(row, column, "pk_name"), key_seq=row["POSITION"], **flags, **catalog
            ),
        ),
        foreignKeys=[_foreign_key(row, key, columns) for row in by_kind[_FOREIGN]],
        uniqueConstraints=of(
            _UNIQUE,
            lambda row, column, flags: SQLUniqueConstraint(
                **named(row, column, "uk_name"), key_seq=row["POSITION"], **flags, **catalog
            ),
        ),
        notNullConstraints=of(
            _NOT_NULL,
            lambda row, column, flags: SQLNotNullConstraint(**named(row, column, "nn_name"), **flags, **catalog),
        ),
        defaultConstraints=of(
            _DEFAULT,
            lambda row, column, flags: SQLDefaultConstraint(
                **named(row, column, "dc_name"), default_value=row.get("DEFAULT_VALUE"), **flags, **catalog
            ),
        ),
        checkConstraints=of(
            _CHECK,
            lambda row, column, flags: SQLCheckConstraint(
                **named(row, column, "dc_name"), check_expression=row.get("DEFAULT_VALUE"), **flags, **catalog
            ),
        ),
    )


def _foreign_key(row: Row, key: TableKey, columns: "_Columns") -> SQLForeignKey:
    database, table = columns.names[row["PARENT_TBL_ID"]]
    return SQLForeignKey(
        pktable_db=database,
        pktable_name=table,
        pkcolumn_name=columns.parent(row),
        fktable_db=key.database,
        fktable_name=key.table,
        fkcolumn_name=columns.child(row),
        key_seq=row["POSITION"],
        update_rule=row["UPDATE_RULE"],
        delete_rule=row["DELETE_RULE"],
        fk_name=row["CONSTRAINT_NAME"],
        catName=key.catalog,
        **_common(row),
    )


def _common(row: Row) -> dict[str, Any]:
    bits = row["ENABLE_VALIDATE_RELY"] or 0
    return {
        "enable_cstr": bool(bits & _ENABLE),
        "validate_cstr": bool(bits & _VALIDATE),
        "rely_cstr": bool(bits & _RELY),
    }


class _Columns:
    """The names of columns by the list that they are in and their place, and of partition keys by their table's id."""

    def __init__(self, rows: HiveRows, constraints: Iterable[Row]) -> None:
        some = list(constraints)
        lists = {row[name] for row in some for name in ("PARENT_CD_ID", "CHILD_CD_ID")} - {None}
        tables = {row[name] for row in some for name in ("PARENT_TBL_ID", "CHILD_TBL_ID")} - {None}
        self._columns = {
            (number, row["INTEGER_IDX"]): row["COLUMN_NAME"]
            for number, own in rows.grouped("COLUMNS_V2", "CD_ID", lists).items()
            for row in own
        }
        self._lists = {number for number, _ in self._columns}
        self._keys = {
            (number, row["INTEGER_IDX"]): row["PKEY_NAME"]
            for number, own in rows.grouped("PARTITION_KEYS", "TBL_ID", tables).items()
            for row in own
        }
        found = rows.rows("TBLS", TBL_ID=list(tables))
        homes = {row["DB_ID"]: row["NAME"] for row in rows.rows("DBS", DB_ID=[row["DB_ID"] for row in found])}
        self.names = {row["TBL_ID"]: (homes[row["DB_ID"]], row["TBL_NAME"]) for row in found}

    def has_those_of(self, row: Row) -> bool:
        """Whether a constraint is one still: Hive 2.3 leaves its row where a column of the table has changed since."""
        return all(row[name] is None or row[name] in self._lists for name in ("PARENT_CD_ID", "CHILD_CD_ID"))

    def parent(self, row: Row) -> str | None:
        return self._name(row, "PARENT")

    def child(self, row: Row) -> str | None:
        return self._name(row, "CHILD")

    def _name(self, row: Row, role: str) -> str | None:
        place = row[f"{role}_INTEGER_IDX"]
        if row[f"{role}_CD_ID"] is None:
            return self._keys.get((row[f"{role}_TBL_ID"], place))
        return self._columns.get((row[f"{role}_CD_ID"], place))
