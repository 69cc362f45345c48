"""A Spark session for each side: the same settings, and what the side's documentation asks for."""

import os
from pathlib import Path

from pyspark.sql import SparkSession

from lake.spark import configure

SETTINGS = {
    "spark.master": "local[2]",
    "spark.driver.memory": "4g",
    "spark.sql.shuffle.partitions": "8",
    "spark.driver.host": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.serializer": "org.apache.spark.serializer.KryoSerializer",
    "spark.sql.session.timeZone": "UTC",
}

_HUDI = {
    "spark.kryo.registrator": "org.apache.spark.HoodieSparkKryoRegistrar",
    "spark.sql.extensions": "org.apache.spark.sql.hudi.HoodieSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.hudi.catalog.HoodieCatalog",
}

_PAIMON = {
    "spark.sql.extensions": "org.apache.paimon.spark.extensions.PaimonSparkSessionExtensions",
    "spark.sql.catalog.paimon": "org.apache.paimon.spark.SparkCatalog",
    "spark.sql.defaultCatalog": "paimon",
}


def start(side: str, uri: str, jar: str, home: Path) -> SparkSession:
    """A session for `ours`, on the metastore at `uri`, or for `hudi` or `paimon`, with their `jar`."""
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    settings = {**SETTINGS, "spark.local.dir": str(home / "scratch")}
    if side != "ours":
        warehouse = str(home / "warehouse")
        settings |= {"spark.jars": jar, "spark.sql.warehouse.dir": warehouse}
        settings |= _HUDI if side == "hudi" else {**_PAIMON, "spark.sql.catalog.paimon.warehouse": f"file:{warehouse}"}
    builder = SparkSession.builder
    for key, value in settings.items():
        builder = builder.config(key, value)
    spark = (configure(builder, uri) if side == "ours" else builder).getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark
