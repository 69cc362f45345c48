"""Runs in a process with Spark: what Spark's analyser makes of queries. No metastore is needed."""

from collections.abc import Sequence
from typing import Any

from pyspark.sql import SparkSession

from lake.layers.errors import BadQuery
from lake.layers.runner.spark_engine import SparkEngine

_ENGINES: list[SparkEngine] = []


def answers(spark: SparkSession, requests: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The answer to each request, or why it is refused. A request may be whether two others have the same rows."""
    if not _ENGINES:
        _ENGINES.append(SparkEngine(spark, {}))
    found = []
    for each in requests:
        try:
            if "same" in each:
                found.append({"same": _ENGINES[0].same(*each["same"])})
            else:
                found.append({**_ENGINES[0].read(each)})
        except BadQuery as error:
            found.append({"refused": str(error)})
    return found
