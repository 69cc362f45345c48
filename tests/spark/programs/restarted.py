"""What `configure` does where Spark is running already. Prints JSON; runs with the package that PYTHONPATH names."""

import json
import os
from pathlib import Path
from typing import Any

import session

if __name__ == "__main__":
    parser = session.parser()
    parser.add_argument("--table", required=True)
    options = parser.parse_args()
    descriptor = session.private_stdout()
    stock = session.builder(options.scratch, session.stock(options.uri, options.warehouse)).getOrCreate()
    from lake.spark import configure, jar
    from lake.spark.reading import read_table

    seen: dict[str, Any] = {"package": str(Path(jar.__file__).parent)}

    def total(frame: Any) -> Any:
        return frame.groupBy().sum("id").collect()[0][0]

    hinted = f"SELECT /*+ includeUnCommit(true) */ * FROM {options.table}"
    stock.sql("SET spark.sql.hive.manageFilesourcePartitions=false")
    seen["without the extension"] = {
        "hint": total(stock.sql(hinted)),
        "table": total(stock.table(options.table)),
        "table of Hive": total(stock.table(f"{options.table}_hive")),
        "reader": total(read_table(stock, options.table)),
        "reader of all": total(read_table(stock, options.table, include_uncommitted=True)),
    }
    try:
        configure(session.builder(options.scratch, {}), options.uri, warehouse_dir=options.warehouse)
    except Exception as error:
        seen["while it runs"] = f"{type(error).__name__}: {error}"
    stock.stop()
    builder = session.builder(options.scratch, {"spark.sql.extensions": "an.other.Extension"})
    configured = configure(builder, options.uri, warehouse_dir=options.warehouse, keep_listings=True)
    restarted = configured.getOrCreate()
    seen["extensions"] = restarted.conf.get("spark.sql.extensions")
    seen["jar"] = restarted.conf.get("spark.jars")
    seen["with the extension"] = {"hint": total(restarted.sql(hinted)), "table": total(restarted.table(options.table))}
    seen["grown"] = {}
    for table in (options.table, f"{options.table}_hive"):
        before = total(restarted.sql(hinted.replace(options.table, table)))
        restarted.sql(f"INSERT INTO {table} PARTITION (dt = 'open') VALUES (100, 'o')")
        seen["grown"][table] = [before, total(restarted.sql(hinted.replace(options.table, table)))]
    # A second call finds what it needs.
    configure(session.builder(options.scratch, {}), options.uri, warehouse_dir=options.warehouse)
    restarted.stop()
    with os.fdopen(descriptor, "w") as out:
        out.write(json.dumps(seen))
