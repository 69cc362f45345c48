"""Calls of test code that runs in Spark's process."""

from typing import Any

from tests.spark.session import ROOT, SparkSession


def call(spark: SparkSession, module: str, expression: str) -> Any:
    """What an expression over the names of a module has as its value there. `spark` is PySpark's session in it."""
    return spark.python(f"import sys\nsys.path.insert(0, {str(ROOT)!r})\nfrom {module} import *\nresult = {expression}")
