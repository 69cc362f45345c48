"""Runs Python functions over Arrow's batches on a session's executors."""

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructField, StructType

_TASKS_PER_CORE = 4

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

    # Spark takes a dot in a name for the way into a struct.
    return rows.toDF(*given).mapInArrow(run, numbered).toDF(*schema.names)


def over_texts(
    spark: SparkSession,
    texts: Sequence[str],
    function: Callable[[str], Iterator[pa.RecordBatch]],
    schema: StructType,
) -> DataFrame:
    """What a function makes of each of some texts, a few of them per task."""
    count = max(1, min(len(texts), _TASKS_PER_CORE * spark.sparkContext.defaultParallelism))

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for text in batch.column(0).to_pylist():
                yield from function(text)

    listed = spark.createDataFrame([(text,) for text in texts], "task string").repartition(count)
    return over_batches(listed, run, schema)


def _numbers(names: Sequence[str]) -> list[str]:
    return [f"_{number}" for number in range(len(names))]


def _renamed(batch: pa.RecordBatch, names: Sequence[str]) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays(batch.columns, list(names))
