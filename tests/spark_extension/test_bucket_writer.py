"""Buckets of keyed tables that the extension writes have what the Python writer writes."""

import random
from collections.abc import Iterator
from typing import Any

import pytest

from tests.spark.session import SparkError, SparkSession
from tests.support.long_runs import share_of

#: The values of each column beside the key, as SQL writes them.
VALUES: dict[str, tuple[str, list[str]]] = {
    "a": ("INT", ["0", "1", "2", "3"]),
    "b": ("STRING", ["'x'", "'é'", "''"]),
    "c": ("DOUBLE", ["1.5D", "-2.0D", "double('NaN')", "0.0D", "-0.0D"]),
    "d": ("DECIMAL(9, 2)", ["1.25BD", "-2.00BD"]),
    "e": ("DATE", ["date'1500-01-01'", "date'0001-01-01'", "date'2024-02-29'"]),
    "f": ("TIMESTAMP", ["timestamp'1500-01-01 00:00:00.123456Z'", "timestamp'1889-05-05 01:02:03.5Z'"]),
    "h": ("ARRAY<INT>", ["array()", "array(1, NULL)"]),
    "i": ("MAP<STRING, DOUBLE>", ["map()", "map('x', 1.0D, 'y', double('NaN'))", "map('x', NULL)"]),
    "j": ("STRUCT<X: INT, y: ARRAY<STRUCT<z: STRING>>>", ["named_struct('X', 1, 'y', array(named_struct('z', 'q')))"]),
    "l": ("BINARY", ["X'00ff'", "X''"]),
    "m": ("BOOLEAN", ["true", "false"]),
    "n": ("DECIMAL(38, 10)", ["12345678901234567890.0123456789BD"]),
    "o": ("TINYINT", ["1Y", "-7Y"]),
    "p": ("FLOAT", ["1.5F", "float('NaN')"]),
}

ENGINES: dict[str, dict[str, str]] = {
    "deduplicate": {},
    "sequence": {"sequence.field": "a,b", "tombstone.time-retained": "1 d"},
    "first-row": {"merge-engine": "first-row", "ignore-delete": "true"},
    "partial-update": {"merge-engine": "partial-update", "fields.a.sequence-group": "b,c,i", "ignore-delete": "true"},
    "removing": {"merge-engine": "partial-update", "partial-update.remove-record-on-delete": "true"},
    "aggregation": {
        "merge-engine": "aggregation",
        "ignore-delete": "true",
        "fields.a.aggregate-function": "sum",
        "fields.b.aggregate-function": "max",
        "fields.c.aggregate-function": "first_value",
        "fields.d.aggregate-function": "sum",
        "fields.f.aggregate-function": "min",
        "fields.m.aggregate-function": "bool_or",
    },
    "other aggregation": {
        "merge-engine": "aggregation",
        "fields.a.aggregate-function": "min",
        "fields.i.aggregate-function": "last_value",
        "fields.j.aggregate-function": "first_non_null_value",
        "fields.m.aggregate-function": "bool_and",
        "fields.o.aggregate-function": "sum",
        "fields.p.aggregate-function": "sum",
    },
    "lookup": {"changelog-producer": "lookup"},
    "lookup by sequence": {"changelog-producer": "lookup", "sequence.field": "a"},
    "lookup of sums": {
        "merge-engine": "aggregation",
        "ignore-delete": "true",
        "changelog-producer": "lookup",
        "fields.a.aggregate-function": "sum",
    },
    "table-wide": {"primary-key": "k,k2"},
    "table-wide by sequence": {"primary-key": "k,k2", "sequence.field": "a", "changelog-producer": "lookup"},
    "families": {"column-families": "one:c,h;two:d", "table-type": "copy-on-write", "changelog-producer": "lookup"},
    "families by sequence": {"column-families": "one:b", "table-type": "copy-on-write", "sequence.field": "a"},
}


#: Those that the ordinary run takes.
SAMPLE = {
    ("deduplicate", "copy-on-write"),
    ("sequence", "merge-on-read"),
    ("lookup by sequence", "copy-on-write"),
    ("families", "copy-on-write"),
}


def cases() -> Iterator[Any]:
    for engine, properties in ENGINES.items():
        for kind in ("copy-on-write", "merge-on-read"):
            if properties.get("table-type", kind) == kind:
                marks = [] if (engine, kind) in SAMPLE else [pytest.mark.long]
                yield pytest.param(engine, kind, marks=marks)


@pytest.fixture(params=[1, pytest.param(share_of(300), marks=pytest.mark.long)], ids=["sample", "many"])
def histories(request: pytest.FixtureRequest) -> int:
    return int(request.param)


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("engine", "kind"), cases())
def test_files_are_those_of_the_python_writer(
    spark: SparkSession, database: str, engine: str, kind: str, histories: int
) -> None:
    for number in range(histories):
        seed = random.randrange(1 << 32)
        print(f"seed {seed}")
        compare(spark, f"{database}.t{number}", {"table-type": kind, **ENGINES[engine]}, random.Random(seed))


def compare(spark: SparkSession, table: str, properties: dict[str, str], chance: random.Random) -> None:
    properties = {"primary-key": "k,k2,dt", **properties}
    listed = ", ".join(f"'{key}' = '{value}'" for key, value in properties.items())
    columns = ", ".join(f"{name} {kind}" for name, (kind, _) in VALUES.items())
    for name in (f"{table}_java", f"{table}_python"):
        spark.sql(
            f"CREATE TABLE {name} (k STRING, {columns}, k2 DATE, dt STRING) USING parquet PARTITIONED BY (dt) "
            f"TBLPROPERTIES ({listed})"
        )
    steps = [(batch(properties, chance), chance.choice(["java", "java", "python"])) for _ in range(5)]
    if "column-families" not in properties:
        other = "merge-on-read" if properties["table-type"] == "copy-on-write" else "copy-on-write"
        flip = f"ALTER TABLE {{}} SET TBLPROPERTIES ('table-type' = '{other}')"
        steps.insert(chance.randrange(1, 8), (flip, "both"))
    steps.insert(chance.randrange(1, 8), ("ALTER TABLE {} ADD COLUMNS (z INT)", "both"))
    code = f"""
from tests.spark_extension.bucket_writes import differences
event_time = {chance.choice(["e", "f"])!r}
result = differences(spark, "{table}_java", "{table}_python", {steps!r}, event_time)
"""
    assert spark.python(code) == []


def batch(properties: dict[str, str], chance: random.Random) -> str:
    """A query of some rows with what is to become of them."""
    versioned = "sequence.field" in properties
    keys = [(chance.randrange(6), chance.randrange(2)) for _ in range(chance.randrange(1, 9))]
    if chance.random() < 0.8:
        keys = [*dict.fromkeys(keys)]
    rows = []
    lacks_key = chance.random() < 0.1
    kinds = chance.choice([["insert"], ["insert", "insert", "delete"], ["insert", "insert", "delete"], ["delete"]])
    for key, place in keys:
        kind = chance.choice(kinds)
        cells = [f"'k{key}'", f"date_add(date'1582-10-01', {key})", f"'d{place}'", f"'{kind}'"]
        for name, (of, values) in VALUES.items():
            has_value = versioned and name in "ab" and kind == "insert" and chance.random() < 0.99
            cells.append(f"CAST({chance.choice(values if has_value else [*values, 'NULL'])} AS {of})")
        if lacks_key:  # in one partition, so that both writers find it first
            cells[chance.randrange(2)], cells[2] = "NULL", "'d0'"
        rows.append(f"({', '.join(cells)})")
    names = ", ".join(["k", "k2", "dt", "_change_type", *VALUES])
    return f"SELECT * FROM VALUES {', '.join(rows)} AS t({names})"


def made(spark: SparkSession, table: str, properties: str) -> None:
    spark.sql(
        f"CREATE TABLE {table} (k INT, v TIMESTAMP) USING parquet TBLPROPERTIES ('primary-key' = 'k', {properties})"
    )


@pytest.mark.long
def test_files_say_their_calendar_and_have_no_checksums(spark: SparkSession, database: str) -> None:
    table = f"{database}.t"
    made(spark, table, "'bucket' = '1'")
    code = f"""
import pathlib
import pyarrow.parquet as pq
from lake.spark.session_client import lake_table
from tests.spark_extension.bucket_writes import write_by_java
with_settings = {{
    "spark.sql.parquet.compression.codec": "gzip",
    "spark.sql.parquet.outputTimestampType": "INT96",
    "spark.sql.parquet.datetimeRebaseModeInWrite": "LEGACY",
}}
for key, value in with_settings.items():
    spark.conf.set(key, value)
batch = spark.sql("SELECT 1 AS k, timestamp'1500-01-01 00:00:00Z' AS v, 'insert' AS _change_type")
write_by_java(spark, {table!r}, batch)
for key in with_settings:
    spark.conf.unset(key)
snapshot = lake_table(spark, {table!r}, None).snapshot()
(file,) = snapshot
path = pathlib.Path(f"{{snapshot.location}}/{{file.path}}".removeprefix("file:"))
found = pq.ParquetFile(path)
column = found.metadata.row_group(0).column(1)
result = {{
    "calendar": found.metadata.metadata[b"writer.date.proleptic"].decode(),
    "legacy": b"org.apache.spark.legacyDateTime" in found.metadata.metadata,
    "compression": column.compression,
    "type": str(found.schema_arrow.field("v").type),
    "physical": column.physical_type,
    "beside": sorted(each.suffix for each in path.parent.iterdir()),
    "sizes": [file.size == path.stat().st_size, file.rows],
    "rows": [str(row.v) for row in spark.sql("SELECT v FROM {table} WHERE v < '1501-01-01'").collect()],
}}
"""
    assert spark.python(code) == {
        "calendar": "true",
        "legacy": False,
        "compression": "SNAPPY",
        "type": "timestamp[us, tz=UTC]",
        "physical": "INT64",
        "beside": [".parquet"],
        "sizes": [True, 1],
        "rows": ["1500-01-01 00:00:00"],
    }


def test_files_have_field_ids_in_all_columns_or_in_none(spark: SparkSession, database: str) -> None:
    """Readers that go by field ids find nothing else, and parts of nested columns have no ids."""
    spark.sql(f"CREATE TABLE {database}.flat (k INT, v INT) USING parquet TBLPROPERTIES ('primary-key' = 'k')")
    spark.sql(f"CREATE TABLE {database}.deep (k INT, v ARRAY<INT>) USING parquet TBLPROPERTIES ('primary-key' = 'k')")
    spark.sql(f"INSERT INTO {database}.flat VALUES (1, 2)")
    spark.sql(f"INSERT INTO {database}.deep VALUES (1, array(2))")
    code = f"""
import pyarrow.parquet as pq
from lake.spark.session_client import lake_table
result = []
for name in ("flat", "deep"):
    snapshot = lake_table(spark, f"{database}.{{name}}", None).snapshot()
    (file,) = snapshot
    schema = pq.read_schema(f"{{snapshot.location}}/{{file.path}}".removeprefix("file:"))
    result.append({{each.name: int((each.metadata or {{}}).get(b"PARQUET:field_id", b"-1")) for each in schema}})
"""
    assert spark.python(code) == [
        {"k": 1, "v": 2, "_metastore_instant": 2_000_000_001},
        {"k": -1, "v": -1, "_metastore_instant": -1},
    ]


def test_replaced_rows_are_not_merged(spark: SparkSession, database: str) -> None:
    table = f"{database}.t"
    made(spark, table, "'changelog-producer' = 'lookup'")
    code = f"""
from tests.spark_extension.bucket_writes import state, write_by_java
for key, replaces in ((1, False), (2, True)):
    batch = spark.sql(f"SELECT {{key}} AS k, CAST(NULL AS TIMESTAMP) AS v, 'insert' AS _change_type")
    write_by_java(spark, {table!r}, batch, replaces=replaces)
result = [row.k for row in spark.sql("SELECT k FROM {table}").collect()]
"""
    assert spark.python(code) == [2]


def test_a_changelog_of_the_input_needs_pre_images(spark: SparkSession, database: str) -> None:
    table = f"{database}.t"
    made(spark, table, "'changelog-producer' = 'input'")
    code = f"""
from tests.spark_extension.bucket_writes import write_by_java
write_by_java(spark, {table!r}, spark.sql("SELECT 1 AS k, CAST(NULL AS TIMESTAMP) AS v, 'insert' AS _change_type"))
"""
    with pytest.raises(SparkError, match="UnfitRows: changelog-producer=input takes merges alone"):
        spark.python(code)
