"""Layers of tables that are computed from one another, each refresh from what has changed.

A project is a directory with a `spark-pipeline.yml` and definitions in SQL and Python, as `spark-pipelines init` makes
one. `metastore pipeline run DIR` brings its tables up to date. What can be imported from here is for definitions:

    from lake import layers as dp

    @dp.materialized_view
    def revenue():
        return spark.sql("SELECT city, sum(amount) AS amount FROM shop.orders GROUP BY city")
"""

from lake.layers.definitions.python_files import (
    append_flow,
    create_auto_cdc_flow,
    create_sink,
    create_streaming_table,
    expect,
    expect_or_drop,
    expect_or_fail,
    expect_or_hold,
    expect_or_quarantine,
    foreach_batch_sink,
    materialized_view,
    table,
    temporary_view,
)

__all__ = [
    "append_flow",
    "create_auto_cdc_flow",
    "create_sink",
    "create_streaming_table",
    "expect",
    "expect_or_drop",
    "expect_or_fail",
    "expect_or_hold",
    "expect_or_quarantine",
    "foreach_batch_sink",
    "materialized_view",
    "table",
    "temporary_view",
]
