"""Jobs that write lake tables: an order-change stream into hourly partitions that become ready by event time.

    python -m examples.orders_stream.generate   writes the stream as files, at a pace
    python -m examples.orders_stream.orders     writes the stream into a table
    python -m examples.orders_stream.proof      compares the table with what was generated

They use what any program outside the server may use: lake.client, lake.spark and eventbus.
"""
