"""A change of each kind at a real Postgres, applied, held, amended and approved."""

import pytest

from tests.lake.capture.schema_changes.known_cases import POSTGRES, Checked
from tests.lake.capture.shop import Source


@pytest.mark.long
def test_known_cases(source: Source) -> None:
    source.run("DROP PUBLICATION shop")
    source.run("CREATE PUBLICATION shop FOR ALL TABLES WITH (publish_via_partition_root = true)")
    for table, case in POSTGRES.items():
        source.run(f"CREATE TYPE mood_{table} AS ENUM ('x', 'y')")
        parts = " PARTITION BY RANGE (id)" if table == "attached" else ""
        source.run(f"CREATE TABLE {table} (id int PRIMARY KEY, {case.columns.format(t=table)}){parts}")
        if parts:
            source.run(f"CREATE TABLE {table}_0 PARTITION OF {table} FOR VALUES FROM (0) TO (10)")
        source.run(f"INSERT INTO {table} VALUES {case.first}")
    source.capture()
    for table, case in POSTGRES.items():
        for each in case.run.format(t=table).split("; "):
            source.run(each)
            if each.startswith("INSERT"):
                source.capture()  # so that no catalog is ahead of the log
    source.capture()
    for table, case in POSTGRES.items():
        checked = Checked(source.client, source.into, f"public.{table}", case)
        checked.check(lambda table=table: source.run(f"SELECT * FROM {table}"))  # type: ignore[misc]
