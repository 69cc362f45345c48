"""The one Spark session in which both sides work, by turns: the same settings for both."""

import os
from pathlib import Path

from pyspark.sql import SparkSession

from bench.spark_stages import stages
from lake.spark import configure

SETTINGS = {
    "spark.master": "local[2]",
    "spark.driver.memory": "6g",
    "spark.sql.shuffle.partitions": "8",
    "spark.driver.host": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    # What Hudi's documentation asks for.
    "spark.serializer": "org.apache.spark.serializer.KryoSerializer",
    "spark.kryo.registrator": "org.apache.spark.HoodieSparkKryoRegistrar",
    "spark.sql.extensions": "org.apache.spark.sql.hudi.HoodieSparkSessionExtension",
}


def start(uri: str, hudi: str, scratch: Path) -> SparkSession:
    """A session on the metastore at `uri`, with Hudi's bundle."""
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    builder = SparkSession.builder
    for key, value in {**SETTINGS, "spark.jars": hudi, "spark.local.dir": str(scratch)}.items():
        builder = builder.config(key, value)
    spark = configure(builder, uri).getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def result_bytes(spark: SparkSession) -> int:
    """What tasks have sent to the driver so far, with their metrics; of the last thousand stages."""
    return sum(int(stage.resultSize()) for stage in stages(spark))
