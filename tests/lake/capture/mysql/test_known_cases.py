"""A change of each kind at a real MariaDB, applied, held, amended and approved."""

import pytest

from tests.lake.capture.mysql.conftest import Source
from tests.lake.capture.schema_changes.known_cases import MARIADB, Checked


@pytest.mark.long
def test_known_cases(source: Source) -> None:
    for table, case in MARIADB.items():
        parts = " PARTITION BY RANGE (id) (PARTITION o VALUES LESS THAN (10), PARTITION p VALUES LESS THAN MAXVALUE)"
        parts = parts if table == "exchanged" else ""
        source.run(f"CREATE TABLE {table} (id int PRIMARY KEY, {case.columns}){parts}")
        source.run(f"INSERT INTO {table} VALUES {case.first}")
    source.capture()
    for table, case in MARIADB.items():
        for each in case.run.format(t=table).split("; "):
            source.run(each)
    source.capture()
    for table, case in MARIADB.items():
        checked = Checked(source.client, source.into, f"{source.name}.{table}", case)
        checked.check(lambda table=table: source.run(f"SELECT * FROM {table}"))  # type: ignore[misc]
