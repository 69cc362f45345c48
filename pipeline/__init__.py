"""Jobs that write lake tables: an order-change stream into hourly partitions that become ready by event time.

    python -m pipeline.generate   writes the stream as files, at a pace
    python -m pipeline.orders     writes the stream into a table
    python -m pipeline.proof      compares the table with what was generated

They use what any program outside the server may use: metastore.client, metastore.spark and eventbus.
"""
