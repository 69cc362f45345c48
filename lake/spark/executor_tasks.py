"""Runs Python functions over Arrow's batches on a session's executors."""

import os
import sys
import zipimport
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.types import StructField, StructType

_ARCHIVES = ("pyspark", "py4j", "spark-core")
"""What the names of the archives begin with that Spark puts on the path of its workers."""

OverBatches = Callable[[Iterator[pa.RecordBatch]], Iterable[pa.RecordBatch]]


def over_batches(rows: DataFrame, function: OverBatches, schema: StructType) -> DataFrame:
    """What a function makes of each partition's batches, as `DataFrame.mapInArrow`, but whatever the columns' names.

    The executors need pyarrow and this package, like the driver.
    """
    context = rows.sparkSession.sparkContext
    if (context.master or "").startswith("local") and "PYSPARK_PYTHON" not in os.environ:
        # Spark would start the python3 of the PATH, which may be another one than the driver's, without its packages.
        context.pythonExec = sys.executable
    names = rows.columns
    given, made = _numbers(names), _numbers(schema.names)
    numbered = StructType(
        [
            StructField(name, each.dataType, each.nullable, each.metadata)
            for name, each in zip(made, schema, strict=True)
        ]
    )

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in function(_renamed(each, names) for each in batches):
            yield _renamed(batch, made)
        _trust_archives()

    # Spark takes a dot in a name for the way into a struct.
    return rows.toDF(*given).mapInArrow(run, numbered).toDF(*schema.names)


def _trust_archives() -> None:
    """Has Python believe what it knows of Spark's own archives, which never change.

    Before each task, Spark 3.5 makes its workers forget where modules are: Python then reads the archives' directories
    anew, once per package, which takes 0.2 s.
    """
    for finder in sys.path_importer_cache.values():
        if isinstance(finder, zipimport.zipimporter) and Path(finder.archive).name.startswith(_ARCHIVES):
            finder.invalidate_caches = _nothing  # type: ignore[method-assign]


def _nothing() -> None:
    pass


def _numbers(names: Sequence[str]) -> list[str]:
    return [f"_{number}" for number in range(len(names))]


def _renamed(batch: pa.RecordBatch, names: Sequence[str]) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays(batch.columns, list(names))
