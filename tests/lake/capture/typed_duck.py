"""The typed changes of a captured table, by DuckDB: the query of its definitions, without a project and Spark."""

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import sqlglot
from sqlglot import exp

from lake.capture.definitions import columns_of, definition
from lake.capture.raw_table import SCHEMA, rows_of
from lake.tables.lake import LakeClient


def query_of(client: LakeClient, into: str, table: str, *, quarantines: bool = False) -> str:
    """The query of the typed changes as `metastore capture definitions` prints it now."""
    return query_in(definition(client.table(into), table, quarantines=quarantines))


def query_in(definitions: str) -> str:
    """The query of the typed changes in definitions, which has that of a table between in itself."""
    views = re.findall(r"CREATE MATERIALIZED VIEW `([^`]*)`[^;]*? AS\n(.*?);\n\n", definitions, re.DOTALL)
    return query_of_views(dict(views))


def query_of_views(views: Mapping[str, str]) -> str:
    """The same, of the definitions' queries by the names of their tables."""
    [(name, changes)] = [(name, query) for name, query in views.items() if name.endswith("_changes")]
    sent = views.get(between := f"{name.removesuffix('_changes')}_as_sent")
    return changes if sent is None else f"WITH `{between}` AS (\n{sent}\n) SELECT * FROM (\n{changes}\n)"


def query_of_0_1_0(client: LakeClient, into: str, table: str) -> str:
    """The query of the typed changes as version 0.1.0 printed it for a table whose columns are id and a, both int."""
    form = columns_of(client.table(into), table)[1].form
    text = (Path(__file__).parent / "typed_changes_of_0_1_0.sql").read_text()
    return text.replace("RAW", into).replace("TABLE", table).replace("FORM", form)


def misfits_query_of(client: LakeClient, into: str, table: str) -> str:
    """The query of the changes that the quarantine has."""
    made = definition(client.table(into), table, quarantines=True).split(";\n\n")[-3]
    return made[made.index("WITH ") :]


def typed_rows(
    client: LakeClient, into: str, table: str, query: str, key: Sequence[str] = ("id",)
) -> list[dict[str, Any]]:
    """What the typed changes come to by their key, as of now. Raises duckdb.Error with the query's own message."""
    found = rows_of_query(client, into, table, query)
    state: dict[Any, dict[str, Any]] = {}
    for row in sorted(found, key=lambda row: (row.pop("epoch"), row.pop("commit_lsn"), row.pop("ordinal"))):
        place = tuple(row[each] for each in key)
        if row.pop("op") == "delete":
            state.pop(place, None)
        else:
            state[place] = row
    return [state[each] for each in sorted(state)]


def rows_of_query(client: LakeClient, into: str, table: str, query: str) -> list[dict[str, Any]]:
    """The rows of a query over what the raw table has of a table. Raises duckdb.Error with the query's own message."""
    files = [each.select(SCHEMA.names) for each in rows_of(client.table(into), table)]
    raw = pa.concat_tables([SCHEMA.empty_table(), *files])
    raw = raw.append_column("source_table", pa.array([table] * len(raw), pa.string()))
    database, name = into.split(".")
    with duckdb.connect() as connection:
        connection.execute(f"CREATE SCHEMA {database}")
        connection.register("arrived", raw)
        connection.execute(f"CREATE TABLE {database}.{name} AS FROM arrived")
        tree = sqlglot.parse_one(query, read="spark").transform(_of_duckdb, copy=False)
        return connection.execute(tree.sql("duckdb", copy=False)).to_arrow_table().to_pylist()


def _of_duckdb(node: exp.Expr) -> exp.Expr:
    if isinstance(node, exp.Anonymous) and node.name.lower() == "raise_error":
        return exp.Anonymous(this="error", expressions=node.expressions)
    if isinstance(node, exp.FromJson):
        columns = sqlglot.parse_one(f"CREATE TABLE t ({node.expression.name})", read="spark").this.expressions
        types = {each.name: each.args["kind"].sql("duckdb") for each in columns}
        options = node.args.get("options")
        says_lost = options is not None and "columnNameOfCorruptRecord" in options.sql("spark")
        return _read_or_lost(node.this, types) if says_lost else _read_json(node.this, types)
    return node


def _read_json(text: exp.Expr, types: Mapping[str, str]) -> exp.Expr:
    return exp.Anonymous(this="from_json", expressions=[text.copy(), exp.Literal.string(json.dumps(types))])


def _read_or_lost(text: exp.Expr, types: Mapping[str, str]) -> exp.Expr:
    """A text read as JSON; the last column says whether another one has a value that its type doesn't hold."""
    *names, lost = types
    typed = _read_json(text, {each: types[each] for each in names}).sql("duckdb")
    texts = _read_json(text, dict.fromkeys(names, "VARCHAR")).sql("duckdb")
    places = [exp.Literal.string(each).sql("duckdb") for each in names]
    wrong = " OR ".join(f"(t.typed[{each}] IS NULL AND t.texts[{each}] IS NOT NULL)" for each in places)
    added = f"{exp.to_identifier(lost, quoted=True).sql('duckdb')} := CASE WHEN {wrong} THEN 'lost' END"
    row = f"CASE WHEN t.texts IS NOT NULL THEN struct_insert(t.typed, {added}) END"
    made = f"list_transform([{{'typed': {typed}, 'texts': {texts}}}], lambda t: {row})[1]"
    return sqlglot.parse_one(made, read="duckdb")
