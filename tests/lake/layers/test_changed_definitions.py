"""Definitions that change: what has other rows is computed again, and what has the same isn't."""

import json
import random
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal

import pyarrow as pa
import pytest

from lake.cli.pipeline_changes import print_differences, print_plan
from lake.layers.applying.differing import Sample, differences_of
from lake.layers.applying.planning import LayerPlan, Reading, plan_of
from lake.layers.compiler.graph import graph_of
from lake.layers.definitions.projects import read_project
from lake.layers.runner import records
from lake.layers.runner.definitions import definition_of
from lake.layers.runner.records import Kept, Record, state_of
from lake.layers.runner.results import LayerResult
from lake.tables.keyed.changes import CHANGE_TYPE
from tests.lake.layers import duck_lake
from tests.lake.layers.projects import write_project
from tests.lake.layers.shop import Shop, how
from tests.support.long_runs import share_of

TEXT = "CREATE MATERIALIZED VIEW big AS SELECT o.id, o.dt, o.amount + o.cust AS total FROM orders o WHERE o.amount > 5"
SAME = [
    TEXT.replace("SELECT", "SELECT /* sums */\n  ").replace("WHERE", "-- large ones\nWHERE"),
    TEXT.replace("o.", "orders.").replace("orders o", "ORDERS"),
    TEXT.replace("o.amount > 5", "(5 < o.amount)").replace("o.amount + o.cust", "o.cust + o.amount"),
]
DERIVED = [
    "CREATE MATERIALIZED VIEW big AS SELECT o.i AS id, o.d AS dt, o.a + o.c AS total FROM"
    " (SELECT id AS i, dt AS d, amount AS a, cust AS c FROM orders) o WHERE o.a > 5",
    "CREATE MATERIALIZED VIEW big AS WITH w AS (SELECT id AS k, dt AS day, amount AS n, cust AS owner FROM orders)"
    " SELECT k AS id, day AS dt, n + owner AS total FROM w WHERE n > 5",
    "CREATE TEMPORARY VIEW named AS SELECT id AS i, dt AS d, amount AS a, cust AS c FROM orders;"
    "CREATE MATERIALIZED VIEW big AS SELECT i AS id, d AS dt, a + c AS total FROM named WHERE 5 < a",
]
OTHER = [
    TEXT.replace("> 5", ">= 5"),
    TEXT.replace("+ o.cust", "- o.cust"),
    TEXT.replace("o.amount + o.cust", "o.cust + o.cust"),
    f"{TEXT} AND o.dt IS NOT NULL",
]


def filled(shop: Shop) -> None:
    shop.order((1, 1, 5, "d1"), (2, 1, 7, "d1"), (3, 2, 9, "d2"), (4, None, 9, "d2"))
    shop.know((1, "Oslo"), (2, "Rome"))


def refreshed(shop: Shop, text: str) -> LayerResult:
    [result] = shop.runner(text).refresh().layers
    return result


def test_changes_that_rows_do_not_depend_on_compute_nothing(shop: Shop) -> None:
    filled(shop)
    refreshed(shop, TEXT)
    for text in SAME:
        assert refreshed(shop, text).how == "unchanged", text
    result = refreshed(shop, DERIVED[0])
    assert (result.how, result.changed) == ("full", {}), "another plan, with the same rows"
    shop.order((5, 3, 8, "d2"), (1, 1, 1, "d1"))
    result = refreshed(shop, DERIVED[1])
    assert (result.how, result.changed) == ("incremental", {"inserted": 1})
    assert refreshed(shop, DERIVED[2]).how == "unchanged"
    assert shop.rows("big") == [(2, "d1", 8), (3, "d2", 11), (4, "d2", None), (5, "d2", 11)]


@pytest.mark.long
def test_changes_that_rows_may_depend_on(shop: Shop) -> None:
    filled(shop)
    for text in OTHER:
        refreshed(shop, TEXT)
        result = refreshed(shop, text)
        assert (result.how, result.why) == ("full", "the definition has changed"), text
    refreshed(shop, f"{TEXT} AND o.dt < 'd2'")
    assert shop.rows("big") == [(2, "d1", 8)]


@pytest.mark.long
def test_hidden_keys_stay_what_they_were_made_of(shop: Shop) -> None:
    """Rows are known by texts of columns that the query may call otherwise."""
    filled(shop)
    text = (
        "CREATE MATERIALIZED VIEW sums AS"
        " SELECT {0} AS town, count(*) AS n FROM (SELECT city AS {0} FROM customers) GROUP BY {0}"
    )
    refreshed(shop, text.format("d"))
    before = shop.client.table(f"{shop.database}.sums").scan().to_arrow().to_pylist()
    assert refreshed(shop, text.format("zz")).how == "unchanged"
    shop.know((9, "Oslo"))
    assert refreshed(shop, text.format("zz")).changed == {"updated": 1}
    now = shop.client.table(f"{shop.database}.sums").scan().to_arrow().to_pylist()
    assert [each["_row_key"] for each in now] == [each["_row_key"] for each in before]


def test_settings_that_rows_depend_on(shop: Shop) -> None:
    filled(shop)

    def refresh(settings: Mapping[str, str]) -> LayerResult:
        files = {"layers.sql": TEXT}
        write_project(shop.directory, files, name=shop.database, database=shop.database, settings=settings)
        graph = graph_of(read_project(shop.directory))
        [result] = duck_lake.runner(graph, shop.client).refresh().layers
        return result

    refresh({})
    assert refresh({"spark.sql.shuffle.partitions": "3", "spark.executor.memory": "1g"}).how == "unchanged"
    assert refresh({"spark.sql.session.timeZone": "Asia/Tokyo"}).why == "the definition has changed"
    assert refresh({"spark.sql.session.timeZone": "Asia/Tokyo"}).how == "unchanged"


def test_hidden_keys_that_are_made_of_a_layers_groups(shop: Shop) -> None:
    """No definition but that of the groups changes. The rows of what reads them are known by what they are by."""
    filled(shop)
    few = ";\nCREATE MATERIALIZED VIEW few AS SELECT cust, n FROM groups WHERE n < 9"
    text = "CREATE MATERIALIZED VIEW groups AS SELECT {0}, count(*) AS n FROM orders GROUP BY {0}" + few
    shop.runner(text.format("cust")).refresh()
    assert shop.rows("few") == [(1, 2), (2, 1), (None, 1)]
    runner = shop.runner(text.format("amount, cust"))
    assert [each.changes for each in plan_of(runner)] == [("columns", "query"), ("key",)]
    assert how(runner.refresh().layers) == {"groups": "full", "few": "full"}
    assert shop.rows("few") == [(1, 1), (1, 1), (2, 1), (None, 1)]
    shop.order((5, 1, 7, "d9"))
    assert how(runner.refresh().layers)["few"] != "full"
    assert shop.rows("few") == [(1, 1), (1, 2), (2, 1), (None, 1)]


def test_types_of_columns_that_are_read(shop: Shop) -> None:
    """The same text means something else then, also of rows that nobody has touched since."""
    columns = {"id": "bigint", "price": "decimal(10,2)"}
    prices = shop.table("prices", columns, {"primary-key": "id"})
    rows = pa.table({"id": [1], "price": pa.array([Decimal("2.5")], pa.decimal128(10, 2))})
    prices.upsert(rows)
    text = "CREATE MATERIALIZED VIEW shown AS SELECT id, CAST(price AS STRING) AS price FROM prices"
    refreshed(shop, text)
    assert shop.rows("shown") == [(1, "2.50")]
    altered = prices.describe()
    altered.sd.cols[1].type = "decimal(12,4)"
    shop.client.call(lambda thrift: thrift.alter_table(shop.database, "prices", altered))
    [plan] = plan_of(shop.runner(text))
    assert (plan.changes, plan.computes) == (("types",), "all")
    result = refreshed(shop, text)
    assert (result.how, result.changed) == ("full", {"updated": 1})
    assert shop.rows("shown") == [(1, "2.5000")]
    assert refreshed(shop, text).how == "unchanged"


def test_names_in_quarantines(shop: Shop) -> None:
    filled(shop)
    text = (
        "CREATE MATERIALIZED VIEW checked (CONSTRAINT {0} EXPECT (amount < 9) ON VIOLATION QUARANTINE ROW)"
        " AS SELECT id, dt, amount FROM orders"
    )
    shop.runner(text.format("cheap")).refresh()
    found = how(shop.runner(text.format("small")).refresh().layers)
    assert found == {"checked": "unchanged", "checked_quarantine": "full"}
    assert {row[3] for row in shop.rows("checked_quarantine")} == {"small"}


@pytest.mark.long
def test_expectations_that_change(shop: Shop) -> None:
    filled(shop)
    text = "CREATE MATERIALIZED VIEW c (CONSTRAINT e EXPECT ({}) {}) AS SELECT id, dt, amount FROM orders"
    refreshed(shop, text.format("amount < 9", "ON VIOLATION DROP ROW"))
    assert refreshed(shop, text.format("9 > /* few */ amount", "ON VIOLATION DROP ROW")).how == "unchanged"
    assert refreshed(shop, text.format("amount < 8", "ON VIOLATION DROP ROW")).how == "full"
    assert refreshed(shop, text.format("amount < 8", "")).changed == {"inserted": 2}


def test_records_of_releases_that_kept_no_definitions(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """Then the digest of the text is all that is known."""
    filled(shop)
    metadata = Record.metadata

    def of_release(record: Record) -> bytes:
        found = json.loads(metadata(record))
        assert found["pipeline"].keys() == {
            *("project", "number", "definition", "sources", "how", "changed", "expected", "taken", "estimated")
        }, "0.1.0 takes no other fields for its own"
        del found["defined"]
        return json.dumps(found).encode()

    with monkeypatch.context() as patch:
        patch.setattr(Record, "metadata", of_release)
        refreshed(shop, TEXT)
    assert refreshed(shop, TEXT).how == "unchanged"
    assert refreshed(shop, SAME[0]).how == "unchanged"
    assert refreshed(shop, SAME[1]).why == "the definition has changed"
    assert refreshed(shop, SAME[2]).how == "unchanged", "now it is known"


@pytest.mark.long
def test_where_definitions_are_kept(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each in one record of some: it can be long."""
    filled(shop)
    monkeypatch.setattr(records, "KEPT_FOR", 3)
    lake = shop.client.table(f"{shop.database}.big")
    kept = []
    for amount in range(6, 12):
        shop.order((1, 1, amount, "d1"))
        refreshed(shop, TEXT if amount < 11 else OTHER[0])
        record = state_of(lake).record
        assert record is not None and record.kept is not None
        kept.append((record.kept.number, record.kept.definition is not None))
        defined = definition_of(lake, record)
        assert defined is not None and defined.digest == record.kept.digest
        if amount == 9:
            with monkeypatch.context() as patch:
                patch.setattr(Kept, "content", lambda *_: None)
                [plan] = plan_of(shop.runner(SAME[0]))
                assert plan.changes == ("unknown",), "its instant is gone"
    assert kept == [(1, True), (1, False), (1, False), (4, True), (4, False), (6, True)]
    instant = state_of(lake).instant
    assert instant is not None
    lake.roll_back(instant)
    assert refreshed(shop, OTHER[0]).why == "the definition has changed", "the table is back at the one before"


CHAIN = (
    "CREATE MATERIALIZED VIEW big AS SELECT id, dt, amount FROM orders WHERE amount > {};\n"
    "CREATE MATERIALIZED VIEW towns AS SELECT city, count(*) AS n FROM customers GROUP BY city;\n"
    "CREATE MATERIALIZED VIEW sums AS SELECT dt, sum(amount) AS amount FROM big GROUP BY dt"
)


def planned(shop: Shop, text: str) -> dict[str, LayerPlan]:
    return {each.layer.partition(".")[2]: each for each in plan_of(shop.runner(text))}


def test_a_plan(shop: Shop) -> None:
    filled(shop)
    first = planned(shop, CHAIN.format(5))
    assert [each.changes for each in first.values()] == [("new",)] * 3
    assert [(each.computes, each.rows) for each in first.values()] == [("all", 4), ("all", 2), ("all", 0)]
    shop.runner(CHAIN.format(5)).refresh()
    same = CHAIN.format("/* euros */ 5").replace("city, count", "CITY,\n count")
    shop.order((7, 1, 8, "d3"))
    plans = planned(shop, same)
    assert [each.changes for each in plans.values()] == [("formatting",), ("formatting",), ()]
    assert {each.computes for each in plans.values()} == {"nothing"}
    other = CHAIN.format(8).replace("AS SELECT city", "TBLPROPERTIES ('bucket' = '2') AS SELECT city")
    big, towns, sums = planned(shop, other).values()
    assert (big.changes, big.computes, big.below) == (("query",), "all", (f"{shop.database}.sums",))
    assert [each for each in big.difference if each[0] != " "] == ["-  amount > 5", "+  amount > 8"]
    files = [*shop.orders.snapshot()]
    assert [*big.reads] == [Reading(f"{shop.database}.orders", 5, sum(each.size for each in files))]
    assert (towns.changes, towns.computes, towns.rewrites, towns.asks) == (("properties",), "all", True, True)
    assert towns.keeps == {}, "which is rewritten"
    assert (sums.changes, sums.computes, sums.reads) == ((), "what follows", ())
    wider = planned(shop, CHAIN.format(5).replace("id, dt, amount FROM", "id, dt, amount * 2.0 AS amount FROM"))
    assert (wider["big"].rewrites, wider["big"].asks, wider["big"].changes) == (True, True, ("columns", "query"))
    assert (wider["sums"].rewrites, wider["sums"].changes) == (True, ("columns", "types", "rewritten below"))
    keyed = planned(shop, CHAIN.format(5).replace("AS SELECT id", "PARTITIONED BY (dt) AS SELECT id"))["big"]
    assert "big was partitioned by nothing, and is by dt now" in (keyed.refused or "")
    assert how(shop.runner(CHAIN.format(5)).refresh().layers)["big"] == "incremental", "nothing was written"


def test_a_difference(shop: Shop) -> None:
    filled(shop)
    shop.runner(CHAIN.format(5)).refresh()
    assert differences_of(shop.runner(CHAIN.format(5))) == []
    positions = {name: shop.client.table(f"{shop.database}.{name}").position().position for name in ("big", "sums")}
    shop.order((8, 1, 100, "d3"))
    text = CHAIN.format(8).replace("id, dt, amount FROM", "id, dt, amount + 1 AS amount FROM")
    big, sums = differences_of(shop.runner(text))
    assert big.counts == {"updated": 2, "deleted": 1}, "of the rows that the sources had then"
    assert big.samples == (
        *(Sample({"id": id, "dt": "d2", "amount": 9}, {"id": id, "dt": "d2", "amount": 10}) for id in (3, 4)),
        Sample({"id": 2, "dt": "d1", "amount": 7}, None),
    )
    assert sums.counts == {"updated": 1, "deleted": 1}
    assert sums.read == {}
    [bounded] = differences_of(shop.runner(text), ["big"], 1)
    assert (bounded.counts, len(bounded.samples)) == (big.counts, 2)
    [above] = differences_of(shop.runner(text), ["sums"])
    assert above == sums, "what it reads is as it would be"
    [unchanged] = differences_of(shop.runner(text), ["towns"])
    assert (unchanged.counts, unchanged.samples) == ({}, ())
    now = {name: shop.client.table(f"{shop.database}.{name}").position().position for name in positions}
    assert now == positions, "nothing was written"
    expected = {each.layer: each.counts for each in (big, sums)}
    shop.unorder((8, "d3"))
    done = {each.layer: each.changed for each in shop.runner(text).refresh().layers if each.layer in expected}
    assert done == expected


@pytest.mark.long
def test_differences_of_tables_with_other_columns_and_keys(shop: Shop) -> None:
    filled(shop)
    text = "CREATE MATERIALIZED VIEW big AS SELECT id, dt, amount, cust FROM orders"
    shop.runner(text).refresh()
    other = text.replace("amount, cust", "CAST(amount AS STRING) AS amount, cust + 1 AS cust, 'x' AS fresh")
    [found] = differences_of(shop.runner(other))
    assert (found.counts, found.uncompared) == ({"updated": 3}, ("amount", "fresh")), "one is NULL"
    grouped = text.replace("id, dt, amount, cust FROM orders", "dt, max(id) AS id FROM orders GROUP BY dt")
    [found] = differences_of(shop.runner(grouped))
    assert (found.counts, found.rows) == (None, (4, 2))
    [found] = differences_of(shop.runner(text.replace("VIEW big", "VIEW small")))
    assert found.counts == {"inserted": 4}


def test_what_is_printed(shop: Shop, capsys: pytest.CaptureFixture[str]) -> None:
    filled(shop)
    shop.runner(CHAIN.format(5)).refresh()
    runner = shop.runner(CHAIN.format(8).replace("id, dt, amount FROM", "id, dt, amount + 1 AS amount FROM"))
    print_plan(plan_of(runner))
    print_differences(differences_of(runner))
    out = capsys.readouterr().out
    assert "-  amount > 5\n+  amount > 8\n" in out
    assert "~ id=3, dt=d2, amount=9 -> 10\n" in out
    assert "- id=2, dt=d1, amount=7\n" in out
    json.dumps([each.as_json() for each in (*plan_of(runner), *differences_of(runner))], default=str)
    print_plan(plan_of(shop.runner(CHAIN.format(5))))
    assert capsys.readouterr().err == "no definition has changed\n"


Order = tuple[int, int | None, int | None, str]
MEANINGS: list[tuple[Sequence[str], Callable[[Order], tuple[int | None, bool]]]] = [
    ([TEXT, *SAME, *DERIVED], lambda row: (plus(row[2], row[1]), (row[2] or 0) > 5)),
    ([OTHER[0]], lambda row: (plus(row[2], row[1]), (row[2] or 0) >= 5)),
    ([OTHER[2]], lambda row: (plus(row[1], row[1]), (row[2] or 0) > 5)),
    ([f"{TEXT} AND o.dt < 'd2'"], lambda row: (plus(row[2], row[1]), (row[2] or 0) > 5 and row[3] < "d2")),
]
"""Definitions that mean the same, and by a row the total that they have, and whether they have it."""
ABOVE = "\n;CREATE MATERIALIZED VIEW sums AS SELECT dt, count(*) AS n, sum(total) AS total FROM big GROUP BY dt"


def plus(one: int | None, other: int | None) -> int | None:
    return None if one is None or other is None else one + other


@pytest.mark.long
@pytest.mark.parametrize("seed", range(share_of(100)))
def test_random_changes_of_definitions(shop: Shop, seed: int) -> None:
    """With changes of the sources between them, and rollbacks: rows and changes are those of the definition of now."""
    rng = random.Random(seed)
    orders: dict[tuple[int, str], Order] = {}
    shop.know((1, "Oslo"))
    big = shop.client.table(f"{shop.database}.big")
    before: list[tuple[object, ...]] = []
    position = 0
    for _ in range(12):
        if rng.random() < 0.6:
            ids = rng.sample(range(8), rng.randint(1, 3))
            rows = [(id, rng.choice([None, 1, 2]), rng.choice([None, 4, 5, 6, 9]), f"d{id % 3}") for id in ids]
            shop.order(*rows)
            orders |= {(row[0], row[3]): row for row in rows}
        if rng.random() < 0.2 and orders:
            gone = rng.choice([*orders])
            shop.unorder(gone)
            del orders[gone]
        texts, meaning = rng.choice(MEANINGS[:1] * 3 + MEANINGS[1:])
        runner = shop.runner(rng.choice(texts) + ABOVE)
        runner.refresh()
        found = [(row[0], row[3], *meaning(row)) for row in orders.values()]
        wanted = sorted([(id, dt, total) for id, dt, total, is_there in found if is_there], key=repr)
        assert sorted(shop.rows("big"), key=repr) == wanted
        sums: dict[str, list[int | None]] = {}
        for _, dt, total in wanted:
            sums.setdefault(dt, []).append(total)
        known = {dt: [each for each in totals if each is not None] for dt, totals in sums.items()}
        expected = [(dt, len(sums[dt]), sum(known[dt]) if known[dt] else None) for dt in sorted(sums)]
        assert shop.rows("sums") == expected
        changes = [] if position == big.position().position else big.changes(position).to_arrow().to_pylist()
        rows_of_changes = {
            kind: [(each["id"], each["dt"], each["total"]) for each in changes if (each[CHANGE_TYPE] in kinds)]
            for kind, kinds in (("old", ("delete", "update_preimage")), ("new", ("insert", "update_postimage")))
        }
        assert not {*rows_of_changes["old"]} & {*rows_of_changes["new"]}, "what stays isn't written"
        left = {*before} - {*rows_of_changes["old"]} | {*rows_of_changes["new"]}
        assert left == {*wanted}
        before, position = [*wanted], big.position().position
        instant = state_of(big).instant
        if rng.random() < 0.15 and instant is not None and instant.position == position:
            big.roll_back(instant)
            before, position = shop.rows("big"), big.position().position
