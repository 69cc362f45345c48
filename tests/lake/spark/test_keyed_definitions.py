"""Spark's own tables with a primary key: how they are made and altered, and what is refused of that."""

import pytest

from lake.client.lake_types import Completion, DataFile
from tests.lake.spark.lake import Lake

COLUMNS = "Id BIGINT, name STRING, amount DECIMAL(10, 2), tags ARRAY<STRING>, at TIMESTAMP, dt STRING"


@pytest.mark.parametrize("form", ["USING parquet", "STORED AS PARQUET"])
def test_tables_of_spark(lake: Lake, form: str) -> None:
    name = f"{lake.database}.t"
    partitioned = "PARTITIONED BY (dt)" if form.startswith("USING") else ""
    key = "dt,ID" if partitioned else "ID"
    create = f"CREATE TABLE {name} ({COLUMNS}) {form} {partitioned} TBLPROPERTIES ('primary-key' = '%s', bucket = '2')"
    with pytest.raises(Exception, match="the table has no column missing"):
        lake.spark.sql(create % f"{key},missing")
    lake.spark.sql(create % key)
    lake.spark.sql(f"ALTER TABLE {name} SET TBLPROPERTIES (bucket = '4')")
    with pytest.raises(Exception, match="bucket=none"):
        lake.spark.sql(f"ALTER TABLE {name} SET TBLPROPERTIES (bucket = 'none')")
    table = lake.client.table(name)
    with table.writing() as writing:
        at, day = writing.instant.timestamp, "dt=2026-01-01" if partitioned else ""
        writing.complete(Completion(added=[DataFile(day, "bucket-00000", at, f"{writing.path}/a.parquet", size=1)]))
    with pytest.raises(Exception, match="bucket can't be changed"):
        lake.spark.sql(f"ALTER TABLE {name} SET TBLPROPERTIES (bucket = '8')")
    with pytest.raises(Exception, match="primary-key can't be changed"):
        lake.spark.sql(f"ALTER TABLE {name} UNSET TBLPROPERTIES ('primary-key')")
    lake.spark.sql(f"ALTER TABLE {name} ADD COLUMNS (more INT)")
    lake.spark.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ('table-type' = 'merge-on-read')")
    lake.spark.sql(f"ALTER TABLE {name} RENAME TO {lake.database}.u")
    assert [each.name for each in lake.client.table(f"{lake.database}.u").schema().columns][-1] == "more"


def test_what_spark_is_refused(lake: Lake) -> None:
    """Spark tries a second time, with its columns hidden from Hive: the message is about them all the same."""
    for columns, keys, message in (
        ("id BIGINT, at TIMESTAMP_NTZ", "id", "a keyed table has columns of Hive's types"),
        ("id BIGINT, v INTERVAL DAY TO SECOND", "id", "a keyed table has columns of Hive's types"),
        ("id BIGINT, amount DOUBLE", "id,amount", "the column amount is double"),
        ("id BIGINT, tags MAP<STRING, INT>", "tags", "the column tags is map<"),
    ):
        with pytest.raises(Exception, match=message):
            lake.table("z", columns, **{"primary-key": keys})
    columns = "id BINARY, c CHAR(3), d VARCHAR(3), col ARRAY<STRING>"
    with pytest.raises(Exception, match="no CHAR in its key"):
        lake.table("z", columns, **{"primary-key": "id,c"})
    lake.table("z", columns, **{"primary-key": "id,d"})
