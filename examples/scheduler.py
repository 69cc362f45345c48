"""A tiny scheduler: runs a Spark SQL for a partition as soon as the partitions that it needs are ready.

    python examples/scheduler.py --uri thrift://localhost:9083 \\
        --needs shop.orders --needs shop.payments --needs shop.visits --makes shop.daily --sql \\
        "INSERT INTO shop.daily PARTITION (dt)
         SELECT o.customer, sum(p.amount), count(v.id), o.dt
         FROM shop.orders o JOIN shop.payments p USING (dt, customer) JOIN shop.visits v USING (dt, customer)
         WHERE o.dt = :dt GROUP BY o.customer, o.dt"

The tables have the same partition keys; their values are the statement's parameters. Nothing is remembered here: an
event only says when to look, and what to do follows from what is in the metastore. So it may crash anywhere, and a
second one under the same name goes on where the first stopped. It runs once for a partition: one that is opened again
later, and changes, is left to people.
"""

import argparse
from collections.abc import Callable, Sequence

from lake.protocol.connection.thrift_client import ThriftClient
from lake.protocol.formats.partition_names import parse_name
from lake.protocol.hive import NoSuchObjectException
from lake.subscriptions import Event, Subscription, subscribe

TYPES = ("COMMIT_PARTITIONS", "ADD_PARTITIONS")  # ADD_PARTITIONS: born ready, in tables without a commit mode


class Scheduler:
    """Looks, with each event, at the partitions that it is about. `run` gets a partition's name and values by key."""

    def __init__(
        self, uri: str, needs: Sequence[str], makes: str, run: Callable[[str, dict[str, str]], object]
    ) -> None:
        self._uri, self._needs, self._makes, self._run = uri, needs, makes, run

    def subscription(self, group: str) -> Subscription:
        return subscribe(self._uri, tables=self._needs, types=TYPES, group=group, start="earliest")

    def handle(self, event: Event) -> list[str]:
        """Runs what is due; the names of the partitions that were made."""
        ready = [each["name"] for each in event.payload["partitions"] if each["ready"]]
        with ThriftClient.from_uri(self._uri) as client:
            due = [name for name in ready if self._is_due(client, name)]
        for name in due:
            self._run(name, parse_name(name))
        return due

    def _is_due(self, client: ThriftClient, partition: str) -> bool:
        return all(_is_ready(client, table, partition) for table in self._needs) and not _is_ready(
            client, self._makes, partition
        )


def _is_ready(client: ThriftClient, table: str, partition: str) -> bool:
    """Whether a partition is there and visible: then it is complete."""
    database, _, name = table.partition(".")
    try:
        client.get_partition_by_name(database, name, partition)
    except NoSuchObjectException:
        return False
    return True


def main() -> None:
    parser = argparse.ArgumentParser(description="Runs a Spark SQL when the partitions that it needs are ready.")
    parser.add_argument("--uri", default="thrift://localhost:9083")
    parser.add_argument("--needs", action="append", required=True, metavar="DB.TABLE")
    parser.add_argument("--makes", required=True, metavar="DB.TABLE")
    parser.add_argument("--sql", required=True, help="the keys' values are its parameters, such as :dt")
    parser.add_argument("--group", default="scheduler")
    parser.add_argument("--count", type=int, help="end after so many runs")
    arguments = parser.parse_args()

    from pyspark.sql import SparkSession

    from lake.spark import configure

    builder = configure(SparkSession.builder.appName(arguments.group), arguments.uri)
    spark = builder.config("hive.exec.dynamic.partition.mode", "nonstrict").getOrCreate()

    def run(partition: str, values: dict[str, str]) -> None:
        spark.sql(arguments.sql, args=values)
        print(f"made {arguments.makes} {partition}", flush=True)

    scheduler = Scheduler(arguments.uri, arguments.needs, arguments.makes, run)
    runs = 0
    with scheduler.subscription(arguments.group) as events:
        for event in events:
            runs += len(scheduler.handle(event))
            events.acknowledge(event)
            if arguments.count is not None and runs >= arguments.count:
                return


if __name__ == "__main__":
    main()
