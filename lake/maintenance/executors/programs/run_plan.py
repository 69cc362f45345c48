"""The program that spark-submit runs for one attempt at a plan. It exits with 0 if the plan is completed."""

import argparse
import signal
import sys
from types import FrameType


def main() -> int:
    """Runs the plan that the command line names."""
    parser = argparse.ArgumentParser(description="Runs one plan of a table service.")
    for name in ("uri", "table", "instant", "tag"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--table-id", type=int)
    given = parser.parse_args()
    signal.signal(signal.SIGTERM, _leave)

    from pyspark.sql import SparkSession

    from lake.client.references import reference
    from lake.spark import configure, run_plan

    spark = configure(SparkSession.builder.appName(given.tag), given.uri).getOrCreate()
    try:
        table = reference(given.table).replace(id=given.table_id)
        done = run_plan(spark, table, given.instant, uri=given.uri)
        print(f"{given.tag}: {given.table} is at position {done.instant.position}", flush=True)
        return 0
    finally:
        spark.stop()


def _leave(number: int, _frame: FrameType | None) -> None:
    """Ends the program in order: the plan is requested again."""
    sys.exit(128 + number)


if __name__ == "__main__":
    sys.exit(main())
