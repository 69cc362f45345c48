"""What Postgres does must not depend on how much there is of what isn't asked for."""

from pathlib import Path

from metastore.services import Metastore
from metastore.settings import Settings
from metastore.store import Database, migrations, partitions
from metastore.wire.hive import Partition
from tests.support import builders

DB, TABLE = "d", "t"


def test_partitions_elsewhere_are_found_without_a_look_at_the_others(postgres_url: str, tmp_path: Path) -> None:
    migrations.upgrade(postgres_url)
    opened = Metastore.open(Settings(database_url=postgres_url, data_dir=tmp_path))
    opened.databases.create(builders.database(DB))
    opened.tables.create(builders.view(DB, TABLE, keys=("ds",)), {})
    opened.partitions.add(
        DB, TABLE, [Partition(dbName=DB, tableName=TABLE, values=[str(number)]) for number in range(3_000)], {}
    )
    opened.close()
    database = Database(postgres_url)
    with database.write() as tx:
        # As if they lay in the table's directory, but for one.
        tx.exec_driver_sql("UPDATE partitions SET path = CASE WHEN name = 'ds=7' THEN 'elsewhere' ELSE name END")
        tx.exec_driver_sql("ANALYZE partitions")
        assert partitions.elsewhere(tx, 1) == [("elsewhere", None)]
        prepared = "SELECT name FROM pg_prepared_statements WHERE statement LIKE '%%IS DISTINCT FROM%%'"
        name = tx.exec_driver_sql(prepared).scalar_one()
        plan = "\n".join(tx.exec_driver_sql(f"EXPLAIN EXECUTE {name} ('{{1}}')").scalars())
    database.close()
    assert "partitions_elsewhere_idx" in plan
