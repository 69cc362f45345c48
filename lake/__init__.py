"""What programs and engines import to use a lake metastore.

`lake.tables` reads and writes lake tables in Arrow, `lake.spark` in PySpark. `lake.subscriptions` follows events.
`lake.layers` are tables computed from one another, `lake.capture` brings the changes of databases, and
`lake.maintenance` is the table management service. `lake.protocol` has what clients and the server agree on. None of
it needs the server's packages or a database.
"""

__version__ = "0.2.0"
