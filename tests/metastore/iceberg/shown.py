"""Tables that are shown as Iceberg, and how their rows are read."""

import itertools
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.catalog.rest import RestCatalog

from lake.client.lake_types import Completion, DataFile
from lake.tables.lake import LakeClient, LakeTable
from tests.support import builders
from tests.support.duck import attached
from tests.support.target import local_path

NUMBERS = itertools.count(1)
Rows = list[dict[str, Any]]


class Duck:
    """DuckDB with the catalog attached as `lake`."""

    def __init__(self, uri: str) -> None:
        self.connection = attached(uri)
        self.uri = uri

    def rows(self, lake: LakeTable, moment: str = "") -> Rows:
        found = self.connection.execute(f"SELECT * FROM lake.{lake.name} {moment}")
        return in_order(found.to_arrow_table().to_pylist())


def keyed(
    lake: LakeClient, columns: Mapping[str, str], keys: tuple[str, ...] = ("part:string",), **properties: str
) -> LakeTable:
    """A new keyed table that is exposed."""
    database = f"exposed_{next(NUMBERS)}"
    own = {
        "primary-key": "id",
        "bucket": "2",
        "iceberg.expose": "true",
        **{k.replace("_", "-"): v for k, v in properties.items()},
    }
    if keys:
        own["primary-key"] = ",".join(["id", *(each.partition(":")[0] for each in keys)])
    specs = [f"{name}:{kind}" for name, kind in columns.items()]
    made = builders.table(database, "t", keys=keys, sd=builders.parquet(*specs), parameters=own)
    lake.call(lambda client: client.create_database(builders.database(database)))
    lake.call(lambda client: client.create_table(made))
    return lake.table(f"{database}.t")


def in_order(rows: Rows) -> Rows:
    return sorted(rows, key=lambda row: tuple(map(repr, (row["id"], row.get("part")))))


def own(lake: LakeTable, as_of: int | None = None, **scope: Any) -> Rows:
    return in_order(lake.scan(as_of=as_of, **scope).to_arrow().to_pylist())


def of_pyiceberg(ours: RestCatalog, lake: LakeTable, snapshot: int | None = None) -> Rows:
    table = ours.load_table(lake.name)
    return in_order(table.scan(snapshot_id=snapshot).to_arrow().to_pylist())


def batch(*ids: int, part: str = "a", value: str = "x") -> pa.Table:
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "b": pa.array([f"{value}{each}" for each in ids]),
            "part": pa.array([part] * len(ids)),
        }
    )


COLUMNS = {"id": "bigint", "b": "string"}


def lake_table(lake: LakeClient, kind: str = "string", **further: Any) -> LakeTable:
    """A new lake table without a key."""
    database = f"exposed_{next(NUMBERS)}"
    columns = builders.parquet("id:bigint", "B:string")
    made = builders.table(
        database, "t", keys=(f"part:{kind}",), sd=columns, parameters={"iceberg.expose": "TRUE"}, **further
    )
    lake.call(lambda client: client.create_database(builders.database(database)))
    lake.call(lambda client: client.create_table(made))
    return lake.table(f"{database}.t")


def add_file(table: LakeTable, partition: str, ids: Sequence[int], name: str = "id") -> None:
    """Adds a file as foreign writers do: no field ids, names in another case, and nobody says how many rows it has."""
    rows = pa.table({name: pa.array(ids, pa.int64()), "B": [f"row {each}" for each in ids]})
    with table.writing() as writing:
        name = f"{uuid.uuid4().hex}.parquet"
        directory = Path(local_path(writing.directory)) / partition
        directory.mkdir(parents=True)
        pq.write_table(rows, directory / name)
        size = (directory / name).stat().st_size
        path = f"{writing.path}/{partition}/{name}"
        file = DataFile(partition, uuid.uuid4().hex, writing.instant.timestamp, path, size)
        writing.complete(Completion(added=[file], staged=True))
