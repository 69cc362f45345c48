"""What Spark tells of the stages that a session has run."""

from typing import Any

from pyspark.sql import SparkSession


def stages(spark: SparkSession) -> list[Any]:
    """The last thousand stages, as Spark's objects (`org.apache.spark.status.api.v1.StageData`)."""
    context: Any = spark.sparkContext
    jvm = context._jvm
    found = (
        context._jsc.sc()
        .statusStore()
        .stageList(None, False, False, context._gateway.new_array(jvm.double, 0), jvm.java.util.ArrayList())
    )
    return [found.apply(number) for number in range(found.size())]
