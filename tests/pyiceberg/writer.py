"""A writer in a process of its own: `python -m tests.pyiceberg.writer URI NAMESPACE TABLE WRITER COUNT`.

Appends `COUNT` times three rows of its own to the table, and leaves conflicts to PyIceberg. Prints "ready" when it has
loaded the table, and begins once it reads a line.
"""

import sys

import pyarrow as pa
from pyiceberg.catalog.hive import HiveCatalog


def main(uri: str, namespace: str, table_name: str, writer: str, count: str) -> None:
    catalog = HiveCatalog(
        writer,
        uri=uri,
        **{"lock-check-min-wait-time": "0.02", "lock-check-max-wait-time": "0.1", "lock-check-retries": "100"},
    )
    table = catalog.load_table((namespace, table_name))
    print("ready", flush=True)
    sys.stdin.readline()
    for number in range(int(count)):
        table.append(pa.table({"writer": [writer] * 3, "number": pa.array([number] * 3, pa.int32())}))


if __name__ == "__main__":
    main(*sys.argv[1:])
