"""What an increment reads of tables: the partitions and buckets of the values that it needs."""

from datetime import date
from typing import Any

import pytest

from lake.client.lake_types import Column, Schema
from lake.layers.runner.pruning import Within, prunable, within
from lake.tables.lake import LakeTable
from tests.lake.layers.duck_lake import DuckEngine
from tests.lake.layers.shop import Shop, rows_of

LAYERS = """
CREATE MATERIALIZED VIEW wide PARTITIONED BY (dt) TBLPROPERTIES ('bucket' = '2') AS
  SELECT o.id, o.amount, c.city, o.dt FROM orders o LEFT JOIN customers c ON o.cust = c.id;
CREATE MATERIALIZED VIEW sums PARTITIONED BY (dt) AS SELECT dt, CAST(sum(amount) AS BIGINT) AS n FROM wide GROUP BY dt
"""


def schema(columns: dict[str, str], keys: dict[str, str], **properties: str) -> Schema:
    given = {name.replace("_", "-"): value for name, value in properties.items()}
    return Schema(
        version=1,
        columns=[Column(name, kind) for name, kind in columns.items()],
        keys=[Column(name, kind) for name, kind in keys.items()],
        properties=given,
        input_format="parquet",
    )


ORDERS = schema({"id": "bigint", "at": "timestamp", "n": "int"}, {"dt": "date"}, primary_key="id,dt", bucket="4")


@pytest.mark.parametrize(
    ("columns", "found"),
    [(["dt"], ("dt",)), (["id"], ("id",)), (["n", "dt", "id"], ("dt", "id")), (["n"], ()), ([], ())],
)
def test_columns_that_say_where_rows_are(columns: list[str], found: tuple[str, ...]) -> None:
    assert prunable(ORDERS, columns) == found


def test_some_columns_of_a_key_may_say_where_rows_are() -> None:
    lines = schema(
        {"ord": "bigint", "nr": "int"},
        {},
        primary_key="ord,nr",
        bucket="4",
        bucket_key="ord",
        table_type="copy-on-write+bucket-key",
    )
    assert prunable(lines, ["ord"]) == prunable(lines, ["nr", "ord"]) == ("ord",)
    assert prunable(lines, ["nr"]) == ()
    found = within(lines, ["ord"], [{"ord": 7}])
    assert found is not None
    assert (found.partitions, len(found.groups or ())) == (None, 1)


def test_times_are_not_the_same_everywhere() -> None:
    by_time = schema({"at": "timestamp"}, {}, primary_key="at", bucket="4")
    assert prunable(by_time, ["at"]) == ()
    assert prunable(schema({"id": "bigint"}, {}), ["id"]) == (), "it has no key"


def test_where_rows_are() -> None:
    day = date(2026, 1, 31)
    assert within(ORDERS, ["dt"], [{"dt": day}, {"dt": None}]) == Within(frozenset({"dt=2026-01-31"}), None)
    assert within(ORDERS, ["dt"], []) == Within(frozenset(), None)
    found = within(ORDERS, ["dt", "id"], [{"dt": day, "id": 7}])
    assert found is not None
    assert found.partitions == {"dt=2026-01-31"}
    assert len(found.groups or ()) == 1


@pytest.mark.parametrize("value", ["7", 7.5, 2**70, [7]])
def test_values_of_other_types_are_anywhere(value: Any) -> None:
    assert within(ORDERS, ["id"], [{"id": value}]) is None


def test_an_increment_reads_the_partitions_that_changes_touch(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    shop.order(*((id, id % 3, id, f"d{id % 5}") for id in range(40)))
    shop.know(*((id, "Oslo") for id in range(3)))
    runner = shop.runner(LAYERS)
    runner.refresh()
    read: list[tuple[str, Within | None]] = []
    bind = DuckEngine.bind_state

    def bind_state(self: DuckEngine, name: str, lake: LakeTable, position: int, part: Within | None = None) -> None:
        read.append((lake.name.partition(".")[2], part))
        bind(self, name, lake, position, part)

    monkeypatch.setattr(DuckEngine, "bind_state", bind_state)
    shop.order((7, 1, 100, "d2"))
    changed = {each.layer.partition(".")[2]: each.changed for each in runner.refresh().layers}
    assert changed == {"wide": {"updated": 1}, "sums": {"updated": 1}}
    whole = {name for name, part in read if part is None}
    assert whole <= {"wide", "customers"}, "the whole of its state is named, and not read; they have one file group"
    touched = {name: part for name, part in read if part is not None}
    assert touched["wide"].partitions == {"dt=d2"}
    assert touched["sums"].partitions == {"dt=d2"}
    assert "customers" not in touched
    assert (2 + 100 + 12 + 17 + 22 + 27 + 32 + 37, "d2") in shop.rows("sums")


ONE_PARTITION_EACH = """
CREATE MATERIALIZED VIEW cars AS SELECT nr, size FROM raw WHERE kind = 'car' AND size > 1;
CREATE MATERIALIZED VIEW boats AS
  SELECT nr, size FROM (SELECT * FROM raw WHERE kind IN ('boat', 'ship')) AS afloat WHERE kind <> 'ship'
  UNION ALL SELECT nr, size FROM raw WHERE 'ship' = kind;
CREATE MATERIALIZED VIEW most AS SELECT kind, max(size) AS size FROM raw GROUP BY kind;
CREATE MATERIALIZED VIEW ranked AS
  SELECT nr, place FROM (SELECT nr, kind, rank() OVER (PARTITION BY size ORDER BY nr) AS place FROM raw)
  WHERE kind = 'car'
"""


def test_changes_of_other_partitions_than_a_layer_reads_are_not_looked_at(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    columns = {"nr": "bigint", "size": "bigint", "kind": "string"}
    raw = shop.table("raw", columns, {"primary-key": "nr,kind"}, ["kind"])
    raw.upsert(rows_of([(1, 5, "car"), (2, 6, "boat"), (3, 7, "ship")], columns))
    runner = shop.runner(ONE_PARTITION_EACH)
    runner.refresh()
    looked: list[str] = []
    run = DuckEngine.run
    monkeypatch.setattr(
        DuckEngine, "run", lambda engine, steps: (looked.extend(x.name for x in steps), run(engine, steps))
    )

    def refreshed() -> dict[str, int]:
        looked.clear()
        results = runner.refresh().layers
        names = [each.layer.partition(".")[2] for each in results]
        computed = {name for name in names if any(f"_{name}_" in step for step in looked)}
        return {name: sum(x.changed.values()) for name, x in zip(names, results, strict=True) if name in computed}

    raw.upsert(rows_of([(4, 5, "ship")], columns))
    assert refreshed() == {"boats": 1, "most": 0, "ranked": 0}
    raw.upsert(rows_of([(0, 5, "car")], columns))
    assert refreshed() == {"cars": 1, "most": 0, "ranked": 2}
    assert refreshed() == {}
    raw.delete(rows_of([(3, "ship")], {"nr": "bigint", "kind": "string"}))
    assert refreshed() == {"boats": 1, "most": 1, "ranked": 0}
    assert shop.rows("boats") == [(2, 6), (4, 5)]
    assert shop.rows("cars") == [(0, 5), (1, 5)]
    assert shop.rows("ranked") == [(0, 1), (1, 2)]
