"""Layers as materialised views of Spark's own, which spark-pipelines computes in a session that is there."""

import os
import socket
import subprocess
import sys
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

from lake.protocol.errors import UserError

_SPECIFICATION = """\
name: views
storage: {storage}
database: {database}
configuration:
  spark.sql.ansi.enabled: "true"
  spark.sql.session.timeZone: UTC
libraries:
  - glob:
      include: transformations/**
"""


class SparkViews:
    """A project of spark-pipelines. Its client is a process of its own, and Spark that of a session here."""

    def __init__(self, home: Path, port: int, database: str, views: Mapping[str, str]) -> None:
        """`port`: that of Spark Connect. `views`: the queries by the views' names; they are partitioned by the day."""
        self._home, self._port = home, port
        (home / "transformations").mkdir(parents=True)
        specification = _SPECIFICATION.format(storage=(home / "storage").as_uri(), database=database)
        (home / "spark-pipeline.yml").write_text(specification)
        text = "".join(
            f"CREATE MATERIALIZED VIEW {name} PARTITIONED BY (day) AS {query};\n\n" for name, query in views.items()
        )
        (home / "transformations" / "views.sql").write_text(text)

    def refresh(self) -> None:
        """Computes all of them. Raises UserError with what spark-pipelines says if it fails."""
        command = [sys.executable, "-m", "pyspark.pipelines.cli", "run"]
        environment = {**os.environ, "SPARK_REMOTE": f"sc://127.0.0.1:{self._port}"}
        done = subprocess.run(
            command, cwd=self._home, env=environment, capture_output=True, text=True, timeout=1200, check=False
        )
        if done.returncode:
            raise UserError(f"spark-pipelines ended with {done.returncode}: {(done.stderr + done.stdout)[-2000:]}")


def connect_settings() -> tuple[int, dict[str, str]]:
    """A free port, and the settings with which a session serves Spark Connect there, on loopback alone.

    Raises UserError where what its client needs isn't installed.
    """
    if find_spec("grpc") is None:
        raise UserError("spark-pipelines lacks packages: run tools/setup.sh --spark-connect")
    with socket.create_server(("127.0.0.1", 0)) as found:
        port = found.getsockname()[1]
    settings = {
        "spark.plugins": "org.apache.spark.sql.connect.SparkConnectPlugin",
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": str(port),
    }
    return port, settings
