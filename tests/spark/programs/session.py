"""Holds one Spark session and runs requests: requests are lines of JSON on stdin, answers lines on stdout.

Runs under the interpreter of either Spark line and needs nothing but PySpark. A request is `{"sql": STATEMENT}` or
`{"python": CODE}`; the code finds the session as `spark` and leaves its answer in `result`. An answer is
`{"result": ...}` or `{"error": CLASS, "message": TEXT}`. Rows are lists, bytes hexadecimal digits, and what else JSON
has no word for is text.
"""

import argparse
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession


def private_stdout() -> int:
    """A descriptor of the real stdout; everything else that prints, the JVM too, goes to stderr from now on."""
    descriptor = os.dup(1)
    os.dup2(2, 1)
    return descriptor


def stock(uri: str, warehouse: str) -> dict[str, str]:
    """What makes Spark use a metastore."""
    return {
        "spark.sql.catalogImplementation": "hive",
        "spark.hadoop.hive.metastore.uris": uri,
        "spark.sql.warehouse.dir": warehouse,
        "spark.hadoop.hive.exec.dynamic.partition.mode": "nonstrict",
    }


def builder(scratch: Path, settings: dict[str, str]) -> Any:
    """A builder of small sessions that keep to themselves."""
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    made = SparkSession.builder.appName("tests").master("local[2]")
    defaults = {
        "spark.hadoop.hive.exec.scratchdir": f"{scratch}/hive",
        "spark.hadoop.hive.exec.local.scratchdir": f"{scratch}/hive",
        "spark.hadoop.hive.downloaded.resources.dir": f"{scratch}/resources",
        "spark.local.dir": str(scratch),
        "spark.driver.host": "127.0.0.1",
        "spark.driver.memory": "768m",
        "spark.driver.extraJavaOptions": f"-Djava.io.tmpdir={scratch} -XX:+UseSerialGC -XX:TieredStopAtLevel=1",
        "spark.sql.shuffle.partitions": "2",
        "spark.ui.enabled": "false",
    }
    for key, value in {**defaults, **settings}.items():
        made = made.config(key, value)
    return made


def as_json(value: Any) -> str:
    return bytes(value).hex() if isinstance(value, (bytes, bytearray)) else str(value)


def answer(spark: SparkSession, request: dict[str, Any]) -> dict[str, Any]:
    try:
        if "sql" in request:
            return {"result": [list(row) for row in spark.sql(request["sql"]).collect()]}
        scope: dict[str, Any] = {"spark": spark}
        exec(request["python"], scope)
        return {"result": scope.get("result")}
    except Exception as error:
        return {"error": type(error).__name__, "message": str(error)}


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(description=__doc__)
    made.add_argument("--uri", required=True)
    made.add_argument("--warehouse", required=True)
    made.add_argument("--scratch", required=True, type=Path)
    made.add_argument("--settings", type=json.loads, default={})
    return made


def serve(start: Callable[[], SparkSession]) -> None:
    """Starts a session and answers requests until stdin ends."""
    descriptor = private_stdout()
    with os.fdopen(descriptor, "w", buffering=1) as out:
        spark = start()
        out.write(json.dumps({"result": spark.version}) + "\n")
        for line in sys.stdin:
            out.write(json.dumps(answer(spark, json.loads(line)), default=as_json) + "\n")
        spark.stop()


if __name__ == "__main__":
    options = parser().parse_args()
    metastore = stock(options.uri, options.warehouse)
    serve(lambda: builder(options.scratch, {**metastore, **options.settings}).getOrCreate())
