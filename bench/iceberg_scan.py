"""A keyed table as DuckDB reads it by the REST catalog, beside the same files by their paths."""

import time
from pathlib import Path

import duckdb
import pyarrow as pa
from sqlalchemy import URL

from bench.comparison import Compared, Comparison
from bench.progress import noted, say
from lake.protocol.errors import UserError
from lake.tables.lake import LakeClient, LakeTable
from metastore.iceberg.routes import BASE
from tests.support import builders
from tests.support.duck import attached
from tests.support.exposition import http_address
from tests.support.server import MetastoreServer

QUERIES = {
    "all rows": "SELECT count(*), sum(amount), max(name) FROM {}",
    "some rows": "SELECT count(*), sum(amount) FROM {} WHERE amount < 1000",
}
AIM = 1 / 1.2
_BATCH = 1_000_000


def compare(directory: Path, url: URL, rows: int, rounds: int) -> Comparison:
    """`directory`: where a server keeps its files. `url`: an empty database. Raises UserError if answers differ."""
    about = f"{rows:,} rows in 8 buckets. A query by DuckDB, again and again, in turn."
    section = Comparison("A scan by DuckDB", about, ("the files", "the table"), charted=False)
    directory.mkdir()
    options = ("--database-url", url.render_as_string(hide_password=False), "--http-port", "0")
    with MetastoreServer(directory / "data", *options) as server, LakeClient(server.uri) as lake:
        with noted(f"writing a table of {rows:,} rows"):
            table = _filled(lake, rows)
        snapshot = table.snapshot()
        files = [f"{snapshot.location.removeprefix('file:')}/{each.path}" for each in snapshot]
        with attached(f"{http_address(server)}{BASE}") as duck:
            sources = (f"read_parquet({files!r})", f"lake.{table.name}")
            for name, query in QUERIES.items():
                section.compared.append(_compared(duck, name, query, sources, rounds))
                say(f"{section.title}: {section.compared[-1]}")
    return section


def _compared(
    duck: duckdb.DuckDBPyConnection, name: str, query: str, sources: tuple[str, str], rounds: int
) -> Compared:
    found: list[list[float]] = [[], []]
    for number in range(-3, rounds):  # the first ones warm up
        answers = []
        for source, samples in zip(sources, found, strict=True):
            began = time.perf_counter()
            answers.append(duck.execute(query.format(source)).fetchall())
            if number >= 0:
                samples.append((time.perf_counter() - began) * 1000)
        if answers[0] != answers[1]:
            raise UserError(f"{name}: the files and the table have other rows: {answers}")
    return Compared.of(name, "DuckDB", "ms", found, AIM, samples=True)


def _filled(lake: LakeClient, rows: int) -> LakeTable:
    columns = builders.parquet("id:bigint", "amount:bigint", "name:string")
    properties = {"primary-key": "id", "bucket": "8", "iceberg.expose": "true"}
    lake.call(lambda client: client.create_database(builders.database("scan")))
    lake.call(lambda client: client.create_table(builders.table("scan", "t", sd=columns, parameters=properties)))
    table = lake.table("scan.t")
    for start in range(0, rows, _BATCH):
        ids = range(start, min(start + _BATCH, rows))
        values = {
            "id": pa.array(ids, pa.int64()),
            "amount": pa.array([each * 7_919 % 1_000_003 for each in ids], pa.int64()),
            "name": [f"name {each % 1_000}" for each in ids],
        }
        table.upsert(pa.table(values))
    return table
