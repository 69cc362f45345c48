"""Puts the Spark extension into the wheel: its source, and its jar if LAKE_METASTORE_SPARK_HOME names a Spark 3.5.

A jar compiled against Spark 3.5 serves Spark 4 too. Without it the extension is built when it is first used.
"""

import os
import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class SparkExtension(BuildHookInterface[Any]):
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "editable":
            return
        checkout = Path(self.root).parent
        source = checkout / "spark_extension" / "src"
        build_data["force_include"][str(source)] = "spark/extension/src"
        if spark := os.environ.get("LAKE_METASTORE_SPARK_HOME"):
            self._directory = tempfile.TemporaryDirectory()
            jar = Path(self._directory.name) / "lake-metastore-spark.jar"
            sys.path.insert(0, str(checkout))
            from lake.spark.jar import build

            build(source, Path(spark), jar)
            build_data["force_include"][str(jar)] = "spark/extension/lake-metastore-spark.jar"
