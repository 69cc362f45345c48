"""A shop's tables on a running server, and a project of three layers over them."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from lake.client.lake_types import AsOf
from lake.layers.compiler.graph import Graph, graph_of
from lake.layers.definitions.projects import read_project
from lake.layers.runner.results import LayerResult
from lake.layers.runner.runner import Runner
from lake.tables.lake import LakeClient, LakeTable
from tests.lake.layers import duck_lake
from tests.lake.layers.projects import write_project

ORDERS = {"id": "bigint", "cust": "bigint", "amount": "bigint", "dt": "string"}
CUSTOMERS = {"id": "bigint", "city": "string"}
QUERIES = {
    "details": "SELECT o.id, o.amount, c.city, o.dt FROM orders o LEFT JOIN customers c ON o.cust = c.id",
    "revenue": "SELECT city, dt, CAST(sum(amount) AS BIGINT) AS amount, count(*) AS n FROM details GROUP BY city, dt",
    "best": "SELECT city, dt, CAST(rank() OVER (PARTITION BY dt ORDER BY amount DESC) AS BIGINT) AS place FROM revenue",
}


class Shop:
    """The tables `orders`, by day, and `customers`, and layers over them."""

    def __init__(self, client: LakeClient, database: str, directory: Path) -> None:
        self.client = client
        self.database = database
        self.directory = directory
        self.orders = self.table("orders", ORDERS, {"primary-key": "id,dt", "bucket": "2"}, ["dt"])
        self.customers = self.table("customers", CUSTOMERS, {"primary-key": "id", "table-type": "merge-on-read"})

    def table(
        self, name: str, columns: Mapping[str, str], properties: Mapping[str, str], partitions: Sequence[str] = ()
    ) -> LakeTable:
        return duck_lake.create_table(self.client, self.database, name, columns, properties, partitions)

    def project(self, sql: str | None = None) -> Path:
        """Writes a project, by default that of the three layers."""
        text = sql or ";\n".join(f"CREATE MATERIALIZED VIEW {name} AS {query}" for name, query in QUERIES.items())
        return write_project(self.directory, {"layers.sql": text}, name=self.database, database=self.database)

    def graph(self, sql: str | None = None) -> Graph:
        return graph_of(read_project(self.project(sql)))

    def runner(self, sql: str | None = None) -> Runner:
        return duck_lake.runner(self.graph(sql), self.client)

    def order(self, *rows: tuple[Any, ...]) -> None:
        """Upserts orders: id, customer, amount and day."""
        self.orders.upsert(rows_of(rows, ORDERS))

    def unorder(self, *keys: tuple[int, str]) -> None:
        self.orders.delete(rows_of(keys, {"id": "bigint", "dt": "string"}))

    def know(self, *rows: tuple[Any, ...]) -> None:
        """Upserts customers: id and city."""
        self.customers.upsert(rows_of(rows, CUSTOMERS))

    def rows(self, name: str, as_of: AsOf | None = None) -> list[tuple[Any, ...]]:
        """The visible rows of a layer, sorted."""
        found = self.client.table(f"{self.database}.{name}").scan(as_of=as_of).to_arrow()
        visible = [each for each in found.column_names if not each.startswith("_")]
        return ordered(zip(*(found.column(each).to_pylist() for each in visible), strict=True))

    def answer(self, name: str, as_of: AsOf | None = None) -> list[tuple[Any, ...]]:
        """What the layer's query comes to, computed as a whole from the sources."""
        connection = duckdb.connect()
        for each in (self.orders, self.customers):
            rows = each.scan(as_of=as_of, include_uncommitted=True).to_arrow()
            connection.register(each.name.partition(".")[2], rows)
        for layer, query in QUERIES.items():
            connection.execute(f"CREATE VIEW {layer} AS {query}")
        columns = {"details": "id, amount, city, dt", "revenue": "city, dt, amount, n", "best": "city, dt, place"}
        return ordered(connection.execute(f"SELECT {columns[name]} FROM {name}").fetchall())

    def check(self, as_of: AsOf | None = None) -> None:
        """Raises AssertionError unless all layers have the answers for their sources."""
        for name in QUERIES:
            assert self.rows(name, as_of) == self.answer(name, as_of), name


def ordered(rows: Any) -> list[tuple[Any, ...]]:
    return sorted(map(tuple, rows), key=repr)


def rows_of(rows: Sequence[tuple[Any, ...]], columns: Mapping[str, str]) -> pa.Table:
    types = {"bigint": pa.int64(), "string": pa.string()}
    values = [pa.array([row[place] for row in rows], types[kind]) for place, kind in enumerate(columns.values())]
    return pa.table(values, names=[*columns])


def how(results: Sequence[LayerResult]) -> dict[str, str]:
    """By layer without its database, how it was refreshed."""
    return {each.layer.partition(".")[2]: each.how for each in results}
