"""Definitions that are changed from a day on: earlier days keep the rows and the query that they had."""

import json
import random
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import duckdb
import pytest

from lake.cli.pipeline_changes import print_plan
from lake.layers.applying.differing import differences_of
from lake.layers.applying.planning import Computes, LayerPlan, Other, plan_of, reverted_in
from lake.layers.applying.restating import CannotRestate, apply_whole, restate
from lake.layers.compiler.deltas import Step
from lake.layers.compiler.texts.restated import MOST_PARTS, Part, Restated, value_of
from lake.layers.compiler.texts.written import Written
from lake.layers.errors import BadDefinition, BadQuery
from lake.layers.runner.claims import DefinedElsewhere
from lake.layers.runner.records import state_of
from lake.layers.runner.results import LayerResult
from lake.layers.runner.runner import Runner
from lake.layers.undo.restore import apply_restore, plan_restore, rolling_back
from lake.layers.undo.revert import CannotRevert, apply_revert, plan_revert, write_back
from lake.tables.keyed.changes import CHANGE_TYPE
from lake.tables.keyed_writes import committed
from tests.lake.client.test_readiness import commit
from tests.lake.layers.duck_lake import DuckEngine
from tests.lake.layers.duck_sql import duck_text
from tests.lake.layers.shop import Shop, how, ordered, rows_of
from tests.lake.layers.test_applied_definitions import forget_claims
from tests.lake.layers.test_readiness import ready
from tests.support.long_runs import share_of
from tests.support.server import MetastoreServer

JOINED = [
    "SELECT o.id, o.dt, o.amount, c.city FROM orders o LEFT JOIN customers c ON o.cust = c.id",
    "SELECT o.id, o.dt, o.amount * 2 AS amount, c.city FROM orders o JOIN customers c ON o.cust = c.id",
    "SELECT id, dt, amount, 'all' AS city FROM orders WHERE amount > 5",
]
"""Queries whose rows are known by visible columns."""
GROUPED = [
    "SELECT dt, cust, count(*) AS n FROM orders GROUP BY dt, cust",
    "SELECT dt, cust, count(*) AS n FROM orders WHERE amount > 5 GROUP BY dt, cust",
    "SELECT dt, cust, max(amount) AS n FROM orders GROUP BY dt, cust",
]
"""By a column that may be NULL: the table has a key of its own, of columns that are seen."""
HIDDEN = [
    "SELECT dt, amount FROM orders",
    "SELECT dt, amount + 1 AS amount FROM orders WHERE amount > 5",
    "SELECT o.dt, o.amount FROM orders o LEFT SEMI JOIN customers c ON o.cust = c.id",
]
"""By a column that isn't selected."""
FAMILIES = {"joined": JOINED, "grouped": GROUPED, "hidden": HIDDEN}
DISTINCT = [
    "SELECT dt, amount FROM orders EXCEPT SELECT dt, amount FROM orders WHERE amount = 9",
    "SELECT dt, amount FROM orders EXCEPT SELECT dt, amount FROM orders WHERE cust = 1",
    "SELECT dt, amount FROM orders WHERE amount > 4 INTERSECT SELECT dt, amount FROM orders WHERE cust > 1",
]
"""Computed as a whole: all of it, whenever the sources have changed."""
UNITED = [
    "SELECT dt, cust, count(*) AS n FROM"
    " (SELECT dt, cust FROM orders UNION ALL SELECT 'd2' AS dt, id AS cust FROM customers) GROUP BY dt, cust",
    "SELECT dt, cust, count(*) + 1 AS n FROM (SELECT dt, cust FROM orders WHERE amount > 5"
    " UNION ALL SELECT 'd1' AS dt, id AS cust FROM customers) GROUP BY dt, cust",
    "SELECT dt, cust, count(*) AS n FROM (SELECT coalesce(o.dt, 'd2') AS dt, coalesce(o.cust, c.id) AS cust"
    " FROM orders o FULL JOIN customers c ON o.cust = c.id) GROUP BY dt, cust",
]
"""Rows of several tables, which their groups tell apart."""
RANDOM = {**FAMILIES, "distinct": DISTINCT, "united": UNITED}
ABOVE = ";\nCREATE MATERIALIZED VIEW days AS SELECT dt, count(*) AS n FROM sales GROUP BY dt"

Parts = Sequence[tuple[str, str | None]]
"""Queries, each until a day; the last one for all days from there on."""


def text_of(query: str, partitioned: str = "PARTITIONED BY (dt) ") -> str:
    return f"CREATE MATERIALIZED VIEW sales {partitioned}AS {query}{ABOVE}"


def filled(shop: Shop) -> None:
    shop.order((1, 1, 5, "d1"), (2, 1, 7, "d1"), (3, 2, 9, "d2"), (4, None, 9, "d2"), (5, 2, 3, "d3"), (6, 9, 8, "d3"))
    shop.know((1, "Oslo"), (2, "Rome"))


def answer(shop: Shop, parts: Parts) -> list[tuple[Any, ...]]:
    """What queries come to, each for its days, by DuckDB alone."""
    connection = duckdb.connect()
    for each in (shop.orders, shop.customers):
        connection.register(each.name.partition(".")[2], each.scan(include_uncommitted=True).to_arrow())
    texts, low = [], None
    for query, until in parts:
        conditions = [f"dt >= '{low}'"] if low else []
        conditions += [f"dt < '{until}'"] if until else []
        texts.append(f"SELECT * FROM ({query}) WHERE {' AND '.join(conditions) or 'true'}")
        low = until
    return ordered(connection.execute(" UNION ALL ".join(texts).replace("LEFT SEMI", "SEMI")).fetchall())


def check(shop: Shop, *parts: tuple[str, str | None]) -> None:
    """Raises AssertionError unless the layers are the answers of queries for their days."""
    rows = shop.client.table(f"{shop.database}.sales").scan().to_arrow()
    columns = [name for name in rows.column_names if not name.startswith("_")]
    order = ", ".join(columns)
    found = ordered(zip(*(rows.column(name).to_pylist() for name in columns), strict=True))
    assert found == answer(shop, [(f"SELECT {order} FROM ({query})", until) for query, until in parts])
    days: dict[str, int] = {}
    for each in rows.column("dt").to_pylist():
        days[each] = days.get(each, 0) + 1
    assert shop.rows("days") == ordered(days.items())


def from_day(shop: Shop, query: str, day: str, others: str = "") -> Runner:
    """A runner that applies a query from a day on, beside `others`; it has been planned."""
    runner = shop.runner(text_of(query) + others)
    restate(runner, day)
    plan_of(runner)
    return runner


def result_of(results: Sequence[LayerResult]) -> LayerResult:
    return next(each for each in results if each.layer.endswith(".sales"))


def plan_for(plans: Sequence[LayerPlan]) -> LayerPlan:
    return next(each for each in plans if each.layer.endswith(".sales"))


def feed(shop: Shop, position: int) -> tuple[list[str], list[str]]:
    """The rows that went and that came in the table since a position, with their hidden keys."""
    found = shop.client.table(f"{shop.database}.sales").changes(position).to_arrow().to_pylist()
    gone, came = [], []
    for each in found:
        row = repr(sorted((name, value) for name, value in each.items() if name in columns_of(each)))
        (gone if each[CHANGE_TYPE] in ("delete", "update_preimage") else came).append(row)
    return sorted(gone), sorted(came)


def columns_of(row: dict[str, Any]) -> set[str]:
    return {name for name in row if not name.startswith("_") or name == "_row_key"}


def stored(shop: Shop) -> list[str]:
    rows = shop.client.table(f"{shop.database}.sales").scan().to_arrow().to_pylist()
    return sorted(repr(sorted((name, row[name]) for name in columns_of(row))) for row in rows)


def hidden_keys(rows: Sequence[str]) -> set[str]:
    """The hidden keys of the first day's rows."""
    return {row.partition("), ")[0] for row in rows if "'d1'" in row and row.startswith("[('_row_key'")}


@pytest.mark.parametrize(
    "family", [each if each == "joined" else pytest.param(each, marks=pytest.mark.long) for each in FAMILIES]
)
def test_a_query_that_changes_from_a_day_on(shop: Shop, family: str) -> None:
    old, new, _ = FAMILIES[family]
    filled(shop)
    shop.runner(text_of(old)).refresh()
    shop.order((7, 1, 20, "d1"))  # the refresh has to bring it, too, by the query of before
    sales = shop.client.table(f"{shop.database}.sales")
    position, before = sales.position().position, stored(shop)
    runner = from_day(shop, new, "d2")
    result = result_of(runner.refresh().layers)
    assert (result.how, result.why) == ("restated", "another definition where dt >= d2")
    check(shop, (old, "d2"), (new, None))
    gone, came = feed(shop, position)
    assert not {*gone} & {*came}, "what stays isn't written"
    assert sorted([*(each for each in before if each not in gone), *came]) == stored(shop)
    assert hidden_keys(before) <= hidden_keys(stored(shop)), "with the keys that they had"

    later = shop.runner(text_of(new.replace(" FROM", " /* since d2 */ FROM", 1)))
    assert result_of(later.refresh().layers).how == "unchanged", "it is what the table has"
    assert plan_for(plan_of(later)).changes == (Other.FORMATTING,)
    assert differences_of(later) == []
    shop.order((8, 2, 30, "d1"), (9, 1, 30, "d3"), (3, 1, 1, "d2"))
    shop.unorder((1, "d1"))
    shop.know((2, "Bergen"), (9, "Lima"))
    assert result_of(later.refresh().layers).how != "full"
    check(shop, (old, "d2"), (new, None))
    state = state_of(sales)
    assert state.record is not None and state.record.complete and state.is_ours
    assert json.loads(state.record.metadata())["pipeline"]["restated"], "which releases refuse that don't know it"


def test_tables_of_earlier_rows_that_nobody_refreshes_any_more(shop: Shop) -> None:
    filled(shop)
    of = "CREATE MATERIALIZED VIEW sales PARTITIONED BY (dt) AS SELECT id, dt, amount FROM {}"
    paid = ";\nCREATE MATERIALIZED VIEW paid AS SELECT id, dt, amount FROM orders WHERE amount > 5"
    shop.runner(of.format("paid") + paid).refresh()
    with pytest.raises(
        CannotRestate, match=r"sales: what it was before reads \w+\.paid, which the project doesn't make"
    ):
        restate(shop.runner(of.format("orders")), "d2")
    runner = shop.runner(of.format("orders") + paid)
    restate(runner, "d2")
    runner.refresh()
    wanted = [(2, "d1", 7), (3, "d2", 9), (4, "d2", 9), (5, "d3", 3), (6, "d3", 8)]
    assert sorted((row[0], row[2], row[1]) for row in shop.rows("sales")) == wanted
    with pytest.raises(BadDefinition, match=r"earlier rows, which reads \w+\.paid.* nobody refreshes it"):
        shop.runner(of.format("orders")).refresh()
    whole = shop.runner(of.format("orders"))
    apply_whole(whole, [f"{shop.database}.sales"])
    plan_of(whole)
    whole.refresh()
    assert len(shop.rows("sales")) == 6


def test_what_becomes_of_it_is_shown(
    shop: Shop, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    old, new, other = JOINED
    filled(shop)
    shop.runner(text_of(old)).refresh()
    whole = plan_for(plan_of(shop.runner(text_of(new))))
    assert (whole.computes, whole.since, whole.rows) == (Computes.ALL, None, 8)
    runner = shop.runner(text_of(new))
    assert restate(runner, "d3") == [f"{shop.database}.sales"]
    plans = plan_of(runner)
    found = plan_for(plans)
    assert (found.computes, found.since, found.changes) == (Computes.RANGE, ("dt", "d3"), ("query",))
    assert found.rows == 4, "two orders of that day, and the customers"
    assert found.below == (f"{shop.database}.days",)
    print_plan(plans)
    assert "dt >= d3" in capsys.readouterr().out
    computed, run = list[str](), DuckEngine.run

    def noted(engine: DuckEngine, steps: Sequence[Step]) -> None:
        computed.extend(duck_text(each.query) for each in steps)
        run(engine, steps)

    monkeypatch.setattr(DuckEngine, "run", noted)
    shown, above = differences_of(runner)
    assert (shown.counts, above.counts) == ({"updated": 1, "deleted": 1}, {"updated": 1})
    assert {(each.before or {}).get("dt") for each in (*shown.samples, *above.samples)} == {"d3"}
    assert computed
    assert not any("LEFT JOIN" in each for each in computed), "the query of earlier days isn't computed"
    before = shop.client.table(f"{shop.database}.sales").position()
    assert before.position == 1, "nothing is written"
    assert result_of(runner.refresh().layers).changed == shown.counts

    refused = shop.runner(text_of(other))
    for call in (refused.refresh, refused.compile, shop.runner(text_of(old)).refresh):
        with pytest.raises(
            BadDefinition, match=r"sales was restated from dt = d3 on, and is defined otherwise now \(query\)"
        ):
            call()
    again = plan_for(plan_of(refused))
    assert (again.computes, again.changes) == (Computes.ALL, ("query", "restated before"))
    check(shop, (old, "d3"), (new, None))
    assert result_of(refused.refresh().layers).how == "full", "it has been planned"
    check(shop, (other, None))
    assert result_of(shop.runner(text_of(other)).refresh().layers).how == "unchanged"


@pytest.mark.long
def test_parts_that_follow_each_other(shop: Shop) -> None:
    one, two, three = JOINED
    filled(shop)
    shop.runner(text_of(one)).refresh()
    from_day(shop, two, "d2").refresh()
    result = result_of(from_day(shop, three, "d3").refresh().layers)
    assert result.how == "restated"
    check(shop, (one, "d2"), (two, "d3"), (three, None))
    shop.order((8, 2, 30, "d1"), (9, 1, 30, "d2"), (10, 1, 30, "d3"))
    shop.runner(text_of(three)).refresh()
    check(shop, (one, "d2"), (two, "d3"), (three, None))
    runner = shop.runner(text_of(three))
    with pytest.raises(CannotRestate, match="no query has changed"):
        restate(runner, "d1")
    restate(runner, "d2", ["sales"])
    assert result_of(runner.refresh().layers).how == "restated", "earlier than before"
    check(shop, (one, "d2"), (three, None))
    runner = shop.runner(text_of(three))
    apply_whole(runner, ["sales"])
    assert plan_for(plan_of(runner)).changes == ("query", "restated before")
    runner.refresh()
    check(shop, (three, None))
    assert result_of(shop.runner(text_of(one)).refresh().layers).how == "full", "nothing is left of the parts"


@pytest.mark.long
def test_the_way_back(shop: Shop) -> None:
    old, new, other = JOINED
    filled(shop)
    shop.runner(text_of(old)).refresh()
    from_day(shop, new, "d2").refresh()
    shop.order((8, 2, 30, "d1"), (9, 1, 30, "d3"))
    shop.runner(text_of(new)).refresh()
    shop.order((10, 2, 30, "d2"))
    runner = shop.runner(text_of(new))
    revert = plan_revert(runner)
    assert revert.why_whole is None
    assert result_of(apply_revert(runner, revert).layers).how == "incremental"
    check(shop, (old, None))
    with pytest.raises(BadDefinition, match="was reverted"):
        shop.runner(text_of(new)).refresh()
    assert how(shop.runner(text_of(old)).refresh().layers)["sales"] == "unchanged"

    runner = from_day(shop, new, "d3")
    reverted = reverted_in(plan_of(runner))
    assert result_of(runner.refresh(reverted=reverted).layers).how == "restated"
    whole = shop.runner(text_of(other))
    plan_of(whole)
    whole.refresh()
    check(shop, (other, None))
    files = shop.graph(text_of(other))
    runner = shop.runner(text_of(other))
    revert = plan_revert(runner)
    apply_revert(runner, revert)
    check(shop, (old, "d3"), (new, None))
    assert write_back(files, revert) == {f"{shop.database}.sales": None}
    assert new in (shop.directory / "transformations" / "layers.sql").read_text()
    shop.order((11, 2, 30, "d1"), (12, 2, 30, "d3"))
    shop.runner(text_of(new)).refresh()
    check(shop, (old, "d3"), (new, None))


def test_another_layer_is_reverted_while_a_file_would_end_its_parts(shop: Shop) -> None:
    """The refresh would be refused, once tables are rolled back."""
    old, new, other = JOINED
    filled(shop)
    big = ";\nCREATE MATERIALIZED VIEW big AS SELECT id, dt, amount FROM orders WHERE amount > {}"
    shop.runner(text_of(old) + big.format(5)).refresh()
    from_day(shop, new, "d2", big.format(5)).refresh()
    shop.runner(text_of(new) + big.format(8)).refresh()
    revert = plan_revert(shop.runner(text_of(new) + big.format(8)))
    assert ([each.layer for each in revert.layers], revert.applies) == ([f"{shop.database}.big"], [])
    runner = shop.runner(text_of(other) + big.format(8))
    with pytest.raises(CannotRevert, match=r"another definition of \w+\.sales, which nobody has applied"):
        plan_revert(runner)


def test_tables_that_are_rolled_back_keep_their_parts(shop: Shop) -> None:
    """Also if who rolls them back is killed before they are refreshed."""
    old, new, _ = JOINED
    filled(shop)
    first = shop.runner(text_of(old)).refresh()
    from_day(shop, new, "d2").refresh()
    shop.order((7, 1, 20, "d1"))
    runner = shop.runner(text_of(new))
    restore = plan_restore(runner, first.completed)
    committed([rolling_back(runner.table(each.layer), each.instants) for each in restore.layers], 20.0)
    assert plan_for(plan_of(shop.runner(text_of(new)))).computes is Computes.ALL
    assert result_of(shop.runner(text_of(new)).refresh().layers).how == "full"
    check(shop, (old, "d2"), (new, None))
    later = shop.runner(text_of(new))
    apply_restore(later, plan_restore(later, first.completed))
    check(shop, (old, "d2"), (new, None))


def test_what_is_below_a_revert_keeps_its_parts(shop: Shop) -> None:
    old, new, _ = JOINED
    filled(shop)
    shop.runner(text_of(old)).refresh()
    whole = shop.runner(text_of(new))
    plan_of(whole)
    whole.refresh()
    text = text_of(new).replace("count(*) AS n", "count(*) * 10 AS n")
    runner = shop.runner(text)
    restate(runner, "d2", ["days"], by="dt")
    plan_of(runner)
    runner.refresh()
    runner = shop.runner(text)
    apply_revert(runner, plan_revert(runner, ["sales"]))
    assert shop.rows("days") == [("d1", 2), ("d2", 20), ("d3", 20)]


def test_who_is_refused(shop: Shop) -> None:
    """Each with the reason, before anything is written."""
    filled(shop)
    old = JOINED[0]
    with pytest.raises(CannotRestate, match="sales was never refreshed"):
        restate(shop.runner(text_of(old)), "d2", ["sales"])
    shop.runner(text_of(old)).refresh()
    latest = "SELECT max(id) AS id, '' AS city, max(amount) AS amount, max(dt) AS dt FROM orders GROUP BY cust"
    for query, message in [
        ("SELECT id, dt, amount FROM orders", "it has other columns"),
        (old.replace("o.amount", "CAST(o.amount AS STRING) AS amount"), "it has other columns"),
        (latest, "it has other columns"),
        (old, "no query has changed"),
    ]:
        with pytest.raises(CannotRestate, match=message):
            restate(shop.runner(text_of(query)), "d2")
    for day, by, message in [("", None, "isn't a string"), ("d2", "city", None), ("d2", "town", "no such column")]:
        runner = shop.runner(text_of(JOINED[1]))
        if message is None:
            with pytest.raises(CannotRestate, match="a row may be of one city by the query of before"):
                restate(runner, day, by=by)
        else:
            with pytest.raises(CannotRestate, match=message):
                restate(runner, day, by=by)
    expected = text_of(JOINED[1]).replace("sales PART", "sales (CONSTRAINT e EXPECT (amount > 0)) PART")
    with pytest.raises(CannotRestate, match="its expectations have changed, too"):
        restate(shop.runner(expected), "d2")
    with pytest.raises(CannotRestate, match="days can't be restated from d2: neither is it partitioned"):
        restate(shop.runner(text_of(old)), "d2", ["days"])
    assert shop.client.table(f"{shop.database}.sales").position().position == 1


@pytest.mark.parametrize(
    "query",
    [
        "SELECT dt, amount FROM orders UNION ALL SELECT 'd2' AS dt, id AS amount FROM customers",
        "SELECT coalesce(o.dt, 'd2') AS dt, o.amount FROM orders o FULL JOIN customers c ON o.cust = c.id",
    ],
    ids=["union all", "full join"],
)
def test_rows_that_their_tables_tell_apart_are_refused(shop: Shop, query: str) -> None:
    """What such rows are known by says of which table they are, and not of which day."""
    filled(shop)
    shop.runner(text_of(query)).refresh()
    before = shop.rows("sales")
    runner = shop.runner(text_of(query.replace("amount", "amount + 1", 1).replace(" FROM", " AS amount FROM", 1)))
    with pytest.raises(CannotRestate, match=r"the rows of its parts aren't known by the same .* Apply it to all rows"):
        restate(runner, "d2")
    assert shop.rows("sales") == before
    assert how(shop.runner(text_of(query)).refresh().layers)["sales"] == "unchanged"


@pytest.mark.long
def test_expectations_and_quarantines(shop: Shop) -> None:
    old, new, _ = JOINED
    filled(shop)

    def text(query: str) -> str:
        constraints = (
            "CONSTRAINT cheap EXPECT (amount < 16) ON VIOLATION QUARANTINE ROW,"
            " CONSTRAINT known EXPECT (city IS NOT NULL) ON VIOLATION DROP ROW, CONSTRAINT big EXPECT (amount > 5)"
        )
        return text_of(query).replace("VIEW sales", f"VIEW sales ({constraints})")

    shop.runner(text(old)).refresh()
    shop.order((7, 1, 20, "d1"))
    runner = shop.runner(text(new))
    restate(runner, "d2")
    results = runner.refresh().layers
    assert {name: each for name, each in how(results).items() if name != "days"} == {
        "sales": "restated",
        "sales_quarantine": "restated",
    }
    assert result_of(results).expected == {"cheap": 2, "known": 0, "big": 0}, "of the rows that were computed"
    kept = "amount < 16 AND city IS NOT NULL"
    check(shop, (f"SELECT * FROM ({old}) WHERE {kept}", "d2"), (f"SELECT * FROM ({new}) WHERE {kept}", None))
    apart = [(f"SELECT dt, id FROM ({query}) WHERE amount >= 16", until) for query, until in ((old, "d2"), (new, None))]
    quarantine = shop.client.table(f"{shop.database}.sales_quarantine")
    rows = quarantine.scan().to_arrow().select(["dt", "id"])
    assert ordered(zip(*(rows.column(each).to_pylist() for each in ("dt", "id")), strict=True)) == answer(shop, apart)
    shop.order((8, 1, 20, "d1"), (9, 1, 20, "d3"))
    results = shop.runner(text(new)).refresh().layers
    check(shop, (f"SELECT * FROM ({old}) WHERE {kept}", "d2"), (f"SELECT * FROM ({new}) WHERE {kept}", None))
    failing = text(new).replace("big EXPECT (amount > 5)", "big EXPECT (amount > 5) ON VIOLATION FAIL UPDATE")
    with pytest.raises(BadDefinition, match=r"defined otherwise now \(expectations\)"):
        shop.runner(failing).refresh()


def test_partitions_wait_for_the_sources_of_their_rows(shop: Shop) -> None:
    """Those of earlier days have been published, and stay so; later ones don't wait for what has their rows no more."""
    columns, open_ones = {"id": "bigint", "dt": "string"}, {"primary-key": "id,dt", "partition.commit.mode": "manual"}
    legacy, shiny = (shop.table(name, columns, open_ones, ["dt"]) for name in ("legacy", "shiny"))
    legacy.upsert(rows_of([(1, "d1"), (2, "d2"), (3, "d2")], columns))
    commit(legacy, "dt=d1", "dt=d2")

    def text(source: str) -> str:
        above = "CREATE MATERIALIZED VIEW {} PARTITIONED BY (dt) TBLPROPERTIES ('readiness' = 'sources') AS SELECT {}"
        return (
            f"CREATE MATERIALIZED VIEW below AS SELECT id, dt FROM {source};"
            f"{above.format('sales', 'id, dt FROM ' + source)};"
            f"{above.format('days', 'dt, count(*) AS n FROM below GROUP BY dt')}"
        )

    shop.runner(text("legacy")).refresh()
    for layer in ("sales", "days"):
        assert ready(shop, layer) == ["dt=d1", "dt=d2"]
    shiny.upsert(rows_of([(2, "d2"), (4, "d3")], columns))
    runner = shop.runner(text("shiny"))
    restate(runner, "d2", by="dt")
    plan_of(runner)
    turned = runner.refresh().turned
    for layer in ("sales", "days"):
        assert ready(shop, layer) == ["dt=d1"]
        waiting = next(each.waiting for name, each in turned.items() if name.endswith(f".{layer}"))
        assert waiting == {
            f"dt={day}": f"{shop.database}.shiny has uncommitted partitions of dt={day}" for day in ("d2", "d3")
        }
    commit(shiny, "dt=d2", "dt=d3")
    shop.runner(text("shiny")).refresh()
    for layer in ("sales", "days"):
        assert ready(shop, layer) == ["dt=d1", "dt=d2", "dt=d3"]
    assert shop.rows("days") == [(1, "d1"), (1, "d2"), (1, "d3")]


@pytest.mark.long
def test_what_was_before_cannot_be_computed_any_more(shop: Shop) -> None:
    old, new, _ = JOINED
    other = shop.table("towns", {"id": "bigint", "city": "string"}, {"primary-key": "id"})
    filled(shop)
    shop.runner(text_of(old.replace("customers", "towns"))).refresh()
    from_day(shop, new, "d2").refresh()
    database, _, name = other.name.partition(".")
    shop.client.call(lambda thrift: thrift.drop_table(database, name, False))
    runner = shop.runner(text_of(new))
    with pytest.raises(
        Exception, match=r"there is no table \w+\.towns, .*apply --whole \w+\.sales gives all rows this one"
    ):
        runner.refresh()
    apply_whole(runner, ["sales"])
    plan_of(runner)
    runner.refresh()
    check(shop, (new, None))


def test_a_definition_that_was_applied_since_is_not_lost(shop: Shop) -> None:
    """Somebody else applies one between the look at what a table is and the plan."""
    old, new, other = JOINED
    filled(shop)
    shop.runner(text_of(old)).refresh()
    runner = shop.runner(text_of(new))
    restate(runner, "d2")
    whole = shop.runner(text_of(other))
    plan_of(whole)
    whole.refresh()
    with pytest.raises(DefinedElsewhere, match="has applied another definition"):
        plan_of(runner)
    check(shop, (other, None))


def test_the_second_of_two_is_refused(shop: Shop) -> None:
    old, new, _ = JOINED
    filled(shop)
    shop.runner(text_of(old)).refresh()
    first, second = from_day(shop, new, "d2"), from_day(shop, new, "d3")
    said = []

    def overtake(reached: str) -> None:
        if reached == "computed" and not said:
            with pytest.raises(DefinedElsewhere, match="gets another definition already"):
                second.refresh()
            said.append(True)
            shop.order((7, 1, 20, "d1"))
            assert how(shop.runner(text_of(old)).refresh().layers)["sales"] == "incremental", (
                "it is refreshed meanwhile"
            )

    first.pause = overtake
    assert result_of(first.refresh().layers).how == "restated"
    check(shop, (old, "d2"), (new, None))
    with pytest.raises(DefinedElsewhere, match="has applied another definition"):
        second.refresh()
    with pytest.raises((BadDefinition, DefinedElsewhere)):
        shop.runner(text_of(old)).refresh()
    check(shop, (old, "d2"), (new, None))


KILLED = """
import os, signal, sys
from pathlib import Path
from lake.tables.lake import LakeClient
from lake.layers.compiler.graph import graph_of
from lake.layers.definitions.projects import read_project
from lake.layers.applying.restating import restate
from tests.lake.layers.duck_lake import runner
uri, project, stage = sys.argv[1:]
with LakeClient(uri) as client:
    made = runner(graph_of(read_project(Path(project))), client)
    restate(made, "d2")
    made.pause = lambda reached: os.kill(os.getpid(), signal.SIGKILL) if reached == stage else None
    made.refresh()
"""
STAGES = ["computed", "begun", "written", "completed"]


@pytest.mark.long
@pytest.mark.parametrize("stage", STAGES)
def test_one_that_is_killed(shop: Shop, metastore_server: MetastoreServer, stage: str) -> None:
    old, new, _ = JOINED
    filled(shop)
    shop.runner(text_of(old)).refresh()
    shop.order((7, 1, 20, "d1"))
    shop.project(text_of(new))
    command = [sys.executable, "-c", KILLED, metastore_server.uri, str(shop.directory), stage]
    root = Path(__file__).parents[3]
    killed = subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=120)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    if stage != "completed":
        shop.runner(text_of(old)).refresh()
        check(shop, (old, None))
        forget_claims(shop)
        from_day(shop, new, "d2").refresh()
    check(shop, (old, "d2"), (new, None))
    assert result_of(shop.runner(text_of(new)).refresh().layers).how in ("unchanged", "incremental")


@pytest.mark.long
@pytest.mark.parametrize("family", RANDOM)
@pytest.mark.parametrize("seed", range(share_of(10)))
def test_random_histories(shop: Shop, family: str, seed: int) -> None:
    """Of sources, definitions from days on, whole ones, and ways back: rows are always those of each day's query."""
    rng = random.Random(seed)
    queries = RANDOM[family]
    filled(shop)
    stands: list[list[tuple[str, str | None]]] = [[(queries[0], None)]]
    shop.runner(text_of(queries[0])).refresh()
    for _ in range(10):
        if rng.random() < 0.7:
            ids = rng.sample(range(12), 3)
            shop.order(*((id, rng.choice([None, 1, 2, 3]), rng.choice([4, 5, 6, 9]), f"d{id % 4}") for id in ids))
        if rng.random() < 0.3:
            shop.know((rng.randint(1, 3), rng.choice(["Oslo", "Rome", "Lima"])))
        if rng.random() < 0.3:
            id = rng.randrange(12)
            shop.unorder((id, f"d{id % 4}"))
        parts, what = stands[-1], rng.random()
        runner = shop.runner(text_of(parts[-1][0]))
        if what < 0.35:
            query, day = rng.choice(queries), f"d{rng.randint(1, 3)}"
            made = restated_parts(parts, query, day)
            if query != parts[-1][0] and len(made) == 1:
                with pytest.raises(CannotRestate, match="nothing would be left that it was before"):
                    from_day(shop, query, day)
                runner.refresh()
            elif query != parts[-1][0]:
                runner = from_day(shop, query, day)
                runner.refresh(reverted=reverted_in(plan_of(runner)))
                stands.append(made)
            else:
                runner.refresh()
        elif what < 0.45:
            query = rng.choice(queries)
            runner = shop.runner(text_of(query))
            apply_whole(runner, ["sales"])
            runner.refresh(reverted=reverted_in(plan_of(runner)))
            if parts != [(query, None)]:
                stands.append([(query, None)])
        elif what < 0.55 and len(stands) > 1:
            apply_revert(runner, plan_revert(runner))
            stands = [stands[-2]]
        else:
            runner.refresh()
        try:
            check(shop, *stands[-1])
        except AssertionError as error:
            raise AssertionError(f"{what} of {stands}") from error


def restated_parts(parts: Parts, query: str, day: str) -> list[tuple[str, str | None]]:
    found: list[tuple[str, str | None]] = []
    for each, until in parts:
        if until is None or until >= day:
            found.append((each, day))
            break
        found.append((each, until))
    found.append((query, None))
    return [each for each, after in zip(found, [*found[1:], None], strict=True) if after is None or after[0] != each[0]]


def test_a_union_of_ranges_has_the_key_of_its_branches(shop: Shop) -> None:
    filled(shop)
    text = (
        "CREATE MATERIALIZED VIEW sales TBLPROPERTIES ('primary-key' = 'id,dt') AS"
        " SELECT id, dt, amount FROM orders WHERE dt < 'd2' OR dt IS NULL"
        " UNION ALL SELECT id, dt, amount * 2 AS amount FROM orders WHERE 'd2' {} dt"
    )
    assert result_of(shop.runner(text.format("<=")).refresh().layers).changed == {"inserted": 6}
    shop.order((1, 1, 6, "d1"), (3, 1, 6, "d2"))
    result = result_of(shop.runner(text.format("<=")).refresh().layers)
    assert (result.how, result.changed) == ("incremental", {"updated": 2})
    assert {row for row in shop.rows("sales") if row[0] in (1, 3)} == {(1, "d1", 6), (3, "d2", 12)}
    with pytest.raises(BadDefinition, match="primary-key is id, dt, and what tells the rows apart is branch"):
        shop.runner(text.format(">=")).compile()


def test_parts() -> None:
    parts = Restated("day", "date", [Part("SELECT 1 AS day -- one", {})])
    two = parts.restated(Written.parsed("SELECT 2 AS day"), "2026-01-10")
    assert [each.text for each in two.queries()] == [
        "SELECT * FROM (\nSELECT 1 AS day -- one\n) AS part WHERE (`day` < DATE '2026-01-10' OR `day` IS NULL)",
        "SELECT * FROM (\nSELECT 2 AS day\n) AS part WHERE `day` >= DATE '2026-01-10'",
    ]
    three = two.restated(Written.parsed("SELECT 3 AS day"), "2026-02-01")
    assert three.queries()[1].text.endswith("WHERE `day` >= DATE '2026-01-10' AND `day` < DATE '2026-02-01'")
    assert [each.until for each in three.restated(Written.parsed("SELECT 4 AS day"), "2026-01-15").parts] == [
        "2026-01-10",
        "2026-01-15",
        None,
    ]
    again = three.restated(Written.parsed("SELECT  1 /* as before */ AS day"), "2025-12-31")
    assert [each.query for each in again.parts] == ["SELECT 1 AS day -- one"], "what is the same is one"
    assert Restated.of_json(three.as_json()) == Restated("day", "date", [*three.parts])
    many = parts
    for number in range(2, MOST_PARTS + 1):
        many = many.restated(Written.parsed(f"SELECT {number} AS day"), f"2026-01-{number:02}")
    with pytest.raises(BadQuery, match="it consists of 8 queries already"):
        many.restated(Written.parsed("SELECT 99 AS day"), "2026-01-31")


@pytest.mark.parametrize(
    ("kind", "since", "values"),
    [
        ("string", "d2", {"d1": 0, "d2": 1, "d10": 0, "__HIVE_DEFAULT_PARTITION__": 0}),
        ("date", "2026-01-10", {"2026-01-09": 0, "2026-01-10": 1, "__HIVE_DEFAULT_PARTITION__": 0, "soon": None}),
        ("timestamp", "2026-01-10", {"2026-01-09 23:59:59.9": 0, "2026-01-10 00:00:00": 1}),
        ("int", "9", {"10": 1, "9": 1, "8": 0, "-9": 0}),
    ],
)
def test_partitions_of_parts(kind: str, since: str, values: dict[str, int | None]) -> None:
    parts = Restated("p", kind, [Part("SELECT 1 AS p", {})]).restated(Written.parsed("SELECT 2 AS p"), since)
    assert {value: parts.number_of(value) for value in values} == values
    assert [value for value in values if parts.is_latest(value)] == [each for each in values if values[each] != 0]


def test_views_of_parts_are_their_own() -> None:
    views = {"big": "SELECT * FROM some", "some": "SELECT * FROM orders"}
    parts = Restated("dt", "string", [Part("SELECT * FROM big", views)])
    first, second = parts.restated(Written.parsed("SELECT * FROM big"), "it's").queries()
    assert first.text.startswith(
        "WITH `some` AS (\nSELECT * FROM orders\n), `big` AS (\nSELECT * FROM some\n) SELECT *"
    )
    assert first.text.endswith(r"WHERE (`dt` < 'it\'s' OR `dt` IS NULL)")
    assert (first.reads("shop"), second.reads("shop")) == ({"shop.orders"}, {"shop.big"})


@pytest.mark.parametrize(
    ("kind", "text", "found"),
    [
        ("date", "20260131", "2026-01-31"),
        ("date", "2026-02-30", None),
        ("timestamp", "2026-01-31", "2026-01-31 00:00:00"),
        ("timestamp", "2026-01-31T00:00:00Z", None),
        ("int", "020", "20"),
        ("bigint", "2026-01-31", None),
        ("int", "2147483648", None),
        ("tinyint", "-128", "-128"),
        ("string", "d1", "d1"),
        ("string", "", None),
        ("double", "1", None),
    ],
)
def test_values(kind: str, text: str, found: str | None) -> None:
    if found is None:
        with pytest.raises(BadQuery, match="isn't a"):
            value_of(kind, text)
    else:
        assert value_of(kind, text) == found
