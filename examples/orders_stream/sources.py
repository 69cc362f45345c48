"""Where the stream comes from: each source gives JSON lines, `orders` makes rows of them."""

from pathlib import Path

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from examples.orders_stream.stream import OrderStream
from lake.protocol.errors import UserError

SCHEMA = "id BIGINT, order_id BIGINT, status STRING, cents BIGINT, shard STRING, at BIGINT"


def files(spark: SparkSession, directory: Path, most_files: int) -> DataFrame:
    """The lines of files that appear in a directory, at most so many files per batch."""
    directory.mkdir(parents=True, exist_ok=True)
    return spark.readStream.option("maxFilesPerTrigger", most_files).text(str(directory))


def rate(spark: SparkSession, stream: OrderStream, rows_per_second: int) -> DataFrame:
    """The stream's rows as time goes by: Spark's `rate` counts, and each number is the row of that number."""
    line = sf.udf(lambda number: stream.order(number).as_json(), "string")
    counted = spark.readStream.format("rate").option("rowsPerSecond", rows_per_second).load()
    return counted.select(line("value").alias("value"))


def kafka(spark: SparkSession, servers: str, topic: str) -> DataFrame:
    """The values of a Kafka topic's records. Raises UserError if Spark hasn't its Kafka package."""
    source = spark.readStream.format("kafka").option("kafka.bootstrap.servers", servers).option("subscribe", topic)
    try:
        records = source.option("startingOffsets", "earliest").load()
    except AnalysisException as error:
        if "kafka" not in str(error).lower():
            raise
        scala = spark._jvm.scala.util.Properties.versionNumberString().rpartition(".")[0]  # type: ignore[union-attr]
        package = f"org.apache.spark:spark-sql-kafka-0-10_{scala}:{spark.version}"
        raise UserError(f"Spark hasn't its Kafka package; give it with --packages {package}") from None
    return records.select(sf.col("value").cast("string").alias("value"))


def orders(lines: DataFrame) -> DataFrame:
    """The table's columns out of JSON lines. A line that is none ends the query: nothing is left out unnoticed."""
    row = sf.from_json(sf.col("value"), SCHEMA, {"mode": "FAILFAST"})
    return lines.select(row.alias("row")).select(
        "row.id",
        "row.order_id",
        "row.status",
        (sf.col("row.cents") / 100).cast("decimal(12,2)").alias("amount"),
        "row.shard",
        sf.timestamp_millis("row.at").alias("event_time"),
    )
