"""The typed changes of a captured table, by DuckDB: the query of its definitions, without a project and Spark."""

import json
from typing import Any

import duckdb
import pyarrow as pa
import sqlglot
from sqlglot import exp

from lake.capture.definitions import definition
from lake.capture.raw_table import SCHEMA, rows_of
from lake.tables.lake import LakeClient


def query_of(client: LakeClient, into: str, table: str) -> str:
    """The query of the typed changes as `metastore capture definitions` prints it now."""
    made = definition(client.table(into), table)
    return made[made.index("WITH ") : made.index(";\n\n")]


def typed_rows(client: LakeClient, into: str, table: str, query: str) -> list[dict[str, Any]]:
    """What the typed changes come to by key `id`, as of now. Raises duckdb.Error with the query's own message."""
    files = [each.select(SCHEMA.names) for each in rows_of(client.table(into), table)]
    raw = pa.concat_tables([SCHEMA.empty_table(), *files])
    raw = raw.append_column("source_table", pa.array([table] * len(raw), pa.string()))
    database, name = into.split(".")
    with duckdb.connect() as connection:
        connection.execute(f"CREATE SCHEMA {database}")
        connection.register("arrived", raw)
        connection.execute(f"CREATE TABLE {database}.{name} AS FROM arrived")
        tree = sqlglot.parse_one(query, read="spark").transform(_of_duckdb)
        found = connection.execute(tree.sql("duckdb")).to_arrow_table().to_pylist()
    state: dict[Any, dict[str, Any]] = {}
    for row in sorted(found, key=lambda row: (row.pop("epoch"), row.pop("commit_lsn"), row.pop("ordinal"))):
        if row.pop("op") == "delete":
            state.pop(row["id"], None)
        else:
            state[row["id"]] = row
    return [state[each] for each in sorted(state)]


def _of_duckdb(node: exp.Expr) -> exp.Expr:
    if isinstance(node, exp.Anonymous) and node.name.lower() == "raise_error":
        return exp.Anonymous(this="error", expressions=node.expressions)
    if isinstance(node, exp.FromJson):
        columns = sqlglot.parse_one(f"CREATE TABLE t ({node.expression.name})", read="spark").this.expressions
        types = {each.name: each.args["kind"].sql("duckdb") for each in columns}
        return exp.Anonymous(this="from_json", expressions=[node.this, exp.Literal.string(json.dumps(types))])
    return node
