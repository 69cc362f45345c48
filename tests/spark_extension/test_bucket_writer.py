"""Buckets of keyed tables that the extension writes have what the Python writer writes."""

import random

import pytest

from tests.spark.session import SparkSession
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


@pytest.fixture(params=[1, pytest.param(share_of(200), marks=pytest.mark.long)], ids=["sample", "many"])
def histories(request: pytest.FixtureRequest) -> int:
    return int(request.param)


@pytest.mark.parametrize("kind", ["copy-on-write", "merge-on-read"])
@pytest.mark.parametrize("engine", ENGINES)
def test_files_are_those_of_the_python_writer(
    spark: SparkSession, database: str, engine: str, kind: str, histories: int
) -> None:
    properties = {"table-type": kind, **ENGINES[engine]}
    if properties["table-type"] != kind:
        pytest.skip("the engine goes with the other type only")
    for number in range(histories):
        seed = random.randrange(1 << 32)
        print(f"seed {seed}")
        compare(spark, f"{database}.t{number}", properties, random.Random(seed))


def compare(spark: SparkSession, table: str, properties: dict[str, str], chance: random.Random) -> None:
    properties = {"primary-key": "k,k2,dt", **properties}
    listed = ", ".join(f"'{key}' = '{value}'" for key, value in properties.items())
    columns = ", ".join(f"{name} {kind}" for name, (kind, _) in VALUES.items())
    for name in (f"{table}_java", f"{table}_python"):
        spark.sql(
            f"CREATE TABLE {name} (k STRING, {columns}, k2 DATE, dt STRING) USING parquet PARTITIONED BY (dt) "
            f"TBLPROPERTIES ({listed})"
        )
    batches = [batch(properties, chance) for _ in range(6)]
    code = f"""
from tests.spark_extension.bucket_writes import differences
result = differences(spark, "{table}_java", "{table}_python", {batches!r}, event_time={chance.choice(["e", "f"])!r})
"""
    assert spark.python(code) == []


def batch(properties: dict[str, str], chance: random.Random) -> str:
    """A query of some rows with what is to become of them."""
    versioned = "sequence.field" in properties
    keys = [(chance.randrange(6), chance.randrange(2)) for _ in range(chance.randrange(1, 9))]
    if chance.random() < 0.8:
        keys = [*dict.fromkeys(keys)]
    rows = []
    kinds = chance.choice([["insert"], ["insert", "insert", "delete"], ["insert", "insert", "delete"], ["delete"]])
    for key, place in keys:
        kind = chance.choice(kinds)
        cells = [f"'k{key}'", f"date_add(date'1582-10-01', {key})", f"'d{place}'", f"'{kind}'"]
        for name, (of, values) in VALUES.items():
            has_value = versioned and name in "ab" and kind == "insert"
            cells.append(f"CAST({chance.choice(values if has_value else [*values, 'NULL'])} AS {of})")
        rows.append(f"({', '.join(cells)})")
    names = ", ".join(["k", "k2", "dt", "_change_type", *VALUES])
    return f"SELECT * FROM VALUES {', '.join(rows)} AS t({names})"
