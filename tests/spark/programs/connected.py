"""As configured.py, but the requests come from a client of Spark Connect, whose server it starts."""

import os
import sys
from pathlib import Path

import session

if __name__ == "__main__":
    parser = session.parser()
    parser.add_argument("--jar", type=Path, help="in place of the one that a wheel has, or that is built")
    options = parser.parse_args()
    sys.path.append(str(Path(__file__).resolve().parents[3]))
    from pyspark.sql import SparkSession

    from lake.spark import configure, jar

    jar.PACKAGED_JAR = options.jar
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    given = configure(session.builder(options.scratch, options.settings), options.uri, warehouse_dir=options.warehouse)
    settings = {key: str(value) for key, value in given._options.items() if key != "spark.master"}
    builder = SparkSession.Builder().remote("local[2]")
    for key, value in settings.items():
        builder = builder.config(key, value)
    session.serve(builder.getOrCreate)
