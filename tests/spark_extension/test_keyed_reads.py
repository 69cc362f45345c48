"""What plain SQL reads of keyed tables with other columns, conditions and plans than the everyday ones."""

from tests.spark.session import SparkSession
from tests.spark_extension.test_keyed_select import write


def create(spark: SparkSession, table: str, columns: str, partitioned: str = "", **properties: str) -> None:
    """Makes a merge-on-read table whose key is the column `id`, unless the properties say another."""
    given = {"primary-key": "id", "table-type": "merge-on-read", **properties}
    listed = ", ".join(f"'{name}' = '{value}'" for name, value in given.items())
    spark.sql(f"CREATE TABLE {table} ({columns}) USING parquet {partitioned} TBLPROPERTIES ({listed})")


def test_conditions_that_only_spark_evaluates(spark: SparkSession, database: str) -> None:
    """A function of Python's on a partition column can't be evaluated where partitions are chosen."""
    table = f"{database}.t"
    create(spark, table, "id BIGINT, dt STRING", "PARTITIONED BY (dt)", **{"primary-key": "id,dt"})
    write(spark, table, "id bigint, dt string", [(1, "d1"), (2, "d2")])
    code = f"""
spark.udf.register("is_first", lambda day: day == "d1", "boolean")
result = [row.id for row in spark.sql("SELECT id FROM {table} WHERE is_first(dt) AND dt < 'd9'").collect()]
"""
    assert spark.python(code) == [1]
