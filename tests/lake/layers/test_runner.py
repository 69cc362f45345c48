"""Refreshes of layers on a running server: consistent, once, whatever dies or comes in between."""

import json
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from lake.client.lake_types import Moment
from lake.layers.compiler.checks import ExpectationFailed
from lake.layers.errors import BadDefinition, RefreshLost
from lake.layers.runner.records import Record, state_of
from lake.layers.runner.results import LayersFailed
from lake.layers.runner.runner import NoSource
from lake.layers.runner.status import status_of
from lake.protocol.errors import UserError
from lake.tables.compaction import plan_compaction, run_compaction
from lake.tables.lake import LakeClient
from tests.lake.layers.shop import ORDERS, QUERIES, Shop, how, rows_of
from tests.support.server import MetastoreServer

FIRST = dict.fromkeys(QUERIES, "full")
NOTHING = dict.fromkeys(QUERIES, "unchanged")
USUAL = {"details": "incremental", "revenue": "by group", "best": "by group"}


def filled(shop: Shop) -> None:
    shop.order((1, 1, 5, "d1"), (2, 1, 7, "d1"), (3, 2, 9, "d2"), (4, None, 9, "d2"))
    shop.know((1, "Oslo"), (2, "Rome"))


def test_layers_follow_their_sources(shop: Shop) -> None:
    filled(shop)
    runner = shop.runner()
    said: list[str] = []
    runner.progress = said.append
    first = runner.refresh()
    computed = [f"{number} of 3 tables: {shop.database}.{name}, full" for number, name in enumerate(QUERIES, 1)]
    assert said == [*computed, "writing 3 tables"]
    assert how(first.layers) == FIRST
    assert {each.why for each in first.layers} == {"first refresh"}
    shop.check()
    assert how(runner.refresh().layers) == NOTHING
    shop.know((2, "Oslo"))
    second = runner.refresh()
    assert how(second.layers) == USUAL
    assert second.layers[0].changed == {"updated": 1}
    assert second.layers[1].changed == {"inserted": 1, "deleted": 1}
    shop.check()
    shop.unorder((2, "d1"), (4, "d2"))
    assert runner.refresh().layers[0].changed == {"deleted": 2}
    shop.check()
    moments = {shop.client.table(name).position().moment for name in second.instants}
    assert len(second.instants) == 3
    assert len(moments) == 1, "all complete at one moment"


def test_records_of_a_later_version(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    filled(shop)
    metadata = Record.metadata

    def of_later_version(record: Record) -> bytes:
        found = json.loads(metadata(record))
        found["pipeline"]["added"] = 1
        return json.dumps(found).encode()

    with monkeypatch.context() as patch:
        patch.setattr(Record, "metadata", of_later_version)
        shop.runner().refresh()
    with pytest.raises(UserError, match="refreshed by a later version than this one"):
        shop.runner().refresh()


def test_each_moment_is_the_answer_for_one_state_of_the_sources(shop: Shop) -> None:
    rng = random.Random(5)
    runner = shop.runner()
    moments: list[tuple[Moment, Moment]] = []
    for number in range(6):
        for _ in range(rng.randint(1, 2)):
            shop.order(*((id, rng.randint(1, 4), rng.randint(0, 5), f"d{id % 2}") for id in rng.sample(range(9), 3)))
        if number % 2:
            shop.know((rng.randint(1, 4), rng.choice(["Oslo", "Rome"])))
            shop.unorder((rng.randint(0, 8), f"d{rng.randint(0, 1)}"))
        done = runner.refresh()
        shop.check()
        after = {shop.client.table(name).position().moment or 0 for name in done.instants}
        moments.append((done.moment, Moment(max(after, default=0))))
    assert len({after for _, after in moments}) > 4
    for read, after in moments:
        for name in QUERIES:
            assert shop.rows(name, after) == shop.answer(name, read), "it is the answer for exactly what was read"


def test_nothing_is_left_by_a_refresh_that_fails_at_any_stage(shop: Shop) -> None:
    filled(shop)
    shop.runner().refresh()
    before = {name: shop.rows(name) for name in QUERIES}
    shop.order((5, 2, 1, "d2"))
    for stage in ("computed", "begun", "written"):
        runner = shop.runner()

        def fail(reached: str, stage: str = stage) -> None:
            if reached == stage:
                raise RuntimeError(stage)

        runner.pause = fail
        with pytest.raises(RuntimeError, match=stage):
            runner.refresh()
        assert {name: shop.rows(name) for name in QUERIES} == before
    assert how(shop.runner().refresh().layers) == USUAL
    shop.check()


KILLED = """
import os, signal, sys
from pathlib import Path
from lake.tables.lake import LakeClient
from lake.layers.compiler.graph import graph_of
from lake.layers.definitions.projects import read_project
from tests.lake.layers.duck_lake import runner
uri, project, stage = sys.argv[1:]
with LakeClient(uri) as client:
    made = runner(graph_of(read_project(Path(project))), client)
    made.pause = lambda reached: os.kill(os.getpid(), signal.SIGKILL) if reached == stage else None
    made.refresh()
"""


LONG = pytest.mark.long


@pytest.mark.parametrize("stage", [pytest.param("begun", marks=LONG), "written", pytest.param("completed", marks=LONG)])
def test_a_refresh_that_is_killed(shop: Shop, metastore_server: MetastoreServer, stage: str) -> None:
    filled(shop)
    shop.runner().refresh()
    shop.order((5, 2, 1, "d2"))
    before = {name: shop.rows(name) for name in QUERIES}
    command = [sys.executable, "-c", KILLED, metastore_server.uri, str(shop.directory), stage]
    root = Path(__file__).parents[3]
    killed = subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=120)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    if stage != "completed":
        assert {name: shop.rows(name) for name in QUERIES} == before
    assert how(shop.runner().refresh().layers) == (NOTHING if stage == "completed" else USUAL)
    shop.check()


@pytest.mark.long
@pytest.mark.parametrize("stage", ["computed", pytest.param("begun", marks=LONG), "written"])
def test_of_two_runners_one_looks_again(shop: Shop, stage: str) -> None:
    filled(shop)
    shop.runner().refresh()
    shop.order((5, 2, 1, "d2"))
    slow, quick = shop.runner(), shop.runner()
    overtaken = []

    def overtake(reached: str) -> None:
        if reached == stage and not overtaken:
            shop.order((6, 1, 2, "d1"), (5, 2, 4, "d2"))
            overtaken.append(quick.refresh())

    slow.pause = overtake
    result = slow.refresh()
    assert how(overtaken[0].layers) == USUAL
    assert how(result.layers) == NOTHING
    shop.check()


def test_a_runner_whose_changes_touch_nothing_loses_too(shop: Shop) -> None:
    """Its record would say that it had read what the other runner undid."""
    filled(shop)
    shop.runner().refresh()
    shop.order((1, 1, 6, "d1"))
    slow, quick = shop.runner(), shop.runner()
    begun = []

    def overtake(reached: str) -> None:
        if reached == "computed" and not begun:
            begun.append(True)
            shop.order((1, 1, 5, "d1"))
            quick.refresh()

    slow.pause = overtake
    slow.refresh()
    shop.check()


@pytest.mark.long
def test_a_runner_that_is_always_overtaken_gives_up(shop: Shop) -> None:
    filled(shop)
    slow = shop.runner()
    amounts = iter(range(100))

    def overtake(reached: str) -> None:
        if reached == "computed":
            shop.order((1, 1, next(amounts), "d1"))
            shop.runner().refresh()
            shop.order((2, 1, next(amounts), "d1"))

    shop.order((1, 1, 77, "d1"))
    slow.pause = overtake
    with pytest.raises(RefreshLost, match="another"):
        slow.refresh()
    shop.runner().refresh()
    shop.check()


def test_a_source_that_is_made_anew(shop: Shop) -> None:
    filled(shop)
    runner = shop.runner()
    runner.refresh()
    shop.client.call(lambda thrift: thrift.drop_table(shop.database, "customers", True))
    shop.customers = shop.table("customers", {"id": "bigint", "city": "string"}, {"primary-key": "id"})
    shop.know((1, "Bonn"))
    result = runner.refresh()
    assert how(result.layers) == {"details": "full", "revenue": "by group", "best": "by group"}
    assert result.layers[0].why == f"{shop.database}.customers has been made anew"
    shop.check()


def test_a_layer_that_is_dropped_is_made_again(shop: Shop) -> None:
    filled(shop)
    runner = shop.runner()
    runner.refresh()
    shop.client.call(lambda thrift: thrift.drop_table(shop.database, "revenue", True))
    result = runner.refresh()
    assert how(result.layers) == {"details": "unchanged", "revenue": "full", "best": "full"}
    shop.check()


def test_compactions_change_nothing(shop: Shop) -> None:
    filled(shop)
    runner = shop.runner()
    runner.refresh()
    shop.know((2, "Bonn"))
    planned = plan_compaction(shop.customers, min_log_files=1)
    assert planned.instant is not None
    run_compaction(shop.customers, planned.instant.timestamp)
    assert runner.refresh().layers[0].changed == {"updated": 1}
    shop.check()


def test_a_source_that_is_rolled_back(shop: Shop) -> None:
    filled(shop)
    runner = shop.runner()
    runner.refresh()
    shop.order((1, 1, 50, "d1"))
    runner.refresh()
    last = max(shop.orders.instants(states=["completed"]), key=lambda each: each.position or 0)
    shop.orders.roll_back(last)
    assert how(runner.refresh().layers) == USUAL
    assert (1, 5, "Oslo", "d1") in shop.rows("details")
    shop.check()


def test_rows_that_others_changed_are_put_right(shop: Shop) -> None:
    filled(shop)
    runner = shop.runner()
    runner.refresh()
    details = shop.client.table(f"{shop.database}.details")
    details.delete(rows_of([(1, "d1")], {"id": "bigint", "dt": "string"}))
    result = runner.refresh()
    assert result.layers[0].why == "somebody else has changed the table"
    shop.check()
    last = state_of(details).instant
    assert last is not None
    details.roll_back(last)
    assert runner.refresh().layers[0].how == "full"
    shop.check()


def test_a_definition_that_changes(shop: Shop) -> None:
    filled(shop)
    text = "CREATE MATERIALIZED VIEW big AS SELECT id, dt, amount FROM orders WHERE amount > {}"
    shop.runner(text.format(5)).refresh()
    assert [row[0] for row in shop.rows("big")] == [2, 3, 4]
    result = shop.runner(text.format(8)).refresh()
    assert result.layers[0].why == "the definition has changed"
    assert result.layers[0].changed == {"deleted": 1}
    with pytest.raises(
        BadDefinition, match=r"layers\.sql:1: .*big has other columns now \(-amount bigint\): DROP TABLE"
    ):
        shop.runner("CREATE MATERIALIZED VIEW big AS SELECT id, dt FROM orders").refresh()
    with pytest.raises(BadDefinition, match=r"big was keyed by id,dt, and is by dt now: DROP TABLE"):
        shop.runner(
            "CREATE MATERIALIZED VIEW big AS SELECT max(id) AS id, dt, max(amount) AS amount FROM orders GROUP BY dt"
        ).refresh()
    with pytest.raises(BadDefinition, match=r"big was partitioned by nothing, and is by dt now: DROP TABLE"):
        shop.runner("CREATE MATERIALIZED VIEW big PARTITIONED BY (dt) AS SELECT id, dt, amount FROM orders").refresh()


def test_full_refreshes_write_differences_alone(shop: Shop) -> None:
    filled(shop)
    runner = shop.runner()
    runner.refresh()
    result = runner.refresh(["revenue"])
    assert how(result.layers) == {"details": "unchanged", "revenue": "full", "best": "unchanged"}
    assert result.layers[1].changed == {}
    with pytest.raises(BadDefinition, match="the project has no table x"):
        runner.refresh(["x"])


def test_what_can_not_be_refreshed(shop: Shop) -> None:
    filled(shop)
    view = "CREATE MATERIALIZED VIEW a {} AS {}"
    shop.table("plain", ORDERS, {})
    for text, error, message in [
        (view.format("", "SELECT * FROM nowhere"), NoSource, r"there is no table .*\.nowhere, which .*\.a reads"),
        (view.format("", "SELECT x FROM orders"), BadDefinition, r"layers\.sql:1: .*`x`"),
        (view.format("", "SELECT id, sum(amount) AS s FROM orders GROUP BY dt"), BadDefinition, "id.*GROUP BY"),
        (view.format("", "SELECT id, amount + 1 FROM orders"), BadDefinition, "column 2, .*amount.*, needs a name"),
        (view.format("", "SELECT id, dt AS id FROM orders"), BadDefinition, "two columns id"),
        (view.format("", "SELECT id FROM orders LIMIT 3"), BadDefinition, "LIMIT without ORDER BY"),
        (
            view.format("", "SELECT id, row_number() OVER (PARTITION BY dt ORDER BY amount) AS r FROM orders"),
            BadDefinition,
            r"row_number has no total order.*: add id, dt to its ORDER BY",
        ),
        (
            view.format(
                "TBLPROPERTIES (refresh_policy = 'incremental_strict')", "SELECT count(DISTINCT dt) AS n FROM orders"
            ),
            BadDefinition,
            "it can't be computed by increments: an aggregate over all rows",
        ),
        (
            view.format("TBLPROPERTIES ('primary-key' = 'dt')", "SELECT id, dt FROM orders"),
            BadDefinition,
            "primary-key is dt",
        ),
        (
            view.format("TBLPROPERTIES ('merge-engine' = 'x')", "SELECT id, dt FROM orders"),
            BadDefinition,
            "isn't for layers",
        ),
        (view.format("PARTITIONED BY (x)", "SELECT id, dt FROM orders"), BadDefinition, "the query has no column x"),
        (view.format("", "SELECT * FROM plain"), NoSource, "has no timeline"),
        ("CREATE MATERIALIZED VIEW plain AS SELECT * FROM orders", BadDefinition, "isn't a layer"),
    ]:
        with pytest.raises(error, match=message):
            shop.runner(text).refresh()


def test_keys_and_partitions_of_tables(shop: Shop) -> None:
    filled(shop)
    shop.order((9, 9, 9, "d1"))
    shop.runner(
        "CREATE MATERIALIZED VIEW by_day PARTITIONED BY (dt) AS SELECT dt, id, amount FROM orders;"
        "CREATE MATERIALIZED VIEW moves PARTITIONED BY (city) AS SELECT id, city FROM customers;"
        "CREATE MATERIALIZED VIEW cities AS SELECT DISTINCT city FROM customers;"
        "CREATE MATERIALIZED VIEW of_day PARTITIONED BY (dt) AS SELECT dt, count(*) AS n FROM orders GROUP BY dt;"
        "CREATE MATERIALIZED VIEW days TBLPROPERTIES ('primary-key' = 'dt')"
        " AS SELECT dt, max(id) AS m FROM orders GROUP BY dt"
    ).refresh()
    keys = {
        name: shop.client.table(f"{shop.database}.{name}").schema().properties["primary-key"]
        for name in ("by_day", "moves", "cities", "of_day", "days")
    }
    assert keys == {"by_day": "id,dt", "moves": "id", "cities": "_row_key", "of_day": "_row_key,dt", "days": "dt"}
    assert shop.rows("of_day") == [(2, "d2"), (3, "d1")]


def test_expectations(shop: Shop) -> None:
    filled(shop)
    text = (
        "CREATE MATERIALIZED VIEW checked (CONSTRAINT cheap EXPECT (amount < 9) ON VIOLATION DROP ROW,"
        " CONSTRAINT owned EXPECT (cust > 0), CONSTRAINT sane EXPECT (amount < 100) ON VIOLATION FAIL UPDATE)"
        " AS SELECT id, dt, cust, amount FROM orders"
    )
    runner = shop.runner(text)
    [result] = runner.refresh().layers
    assert result.expected == {"cheap": 2, "owned": 1, "sane": 0}
    assert [row[0] for row in shop.rows("checked")] == [1, 2]
    shop.order((1, 1, 20, "d1"), (3, 2, 3, "d2"), (7, None, 1, "d1"))
    [result] = runner.refresh().layers
    assert (result.how, result.expected) == ("incremental", {"cheap": 1, "owned": 1, "sane": 0})
    assert [row[0] for row in shop.rows("checked")] == [2, 3, 7]
    shop.order((8, 1, 100, "d1"), (2, 1, 1, "d1"))
    with pytest.raises(
        ExpectationFailed, match=r"checked: 1 rows don't meet sane \(amount < 100\): nothing is written"
    ):
        runner.refresh()
    assert [row[3] for row in shop.rows("checked") if row[0] == 2] == [7]
    [status] = status_of(runner.graph, shop.client)
    assert status.expected == {"cheap": 1, "owned": 1, "sane": 0}


def test_many_expectations(shop: Shop) -> None:
    """More than a number has bits, those at its ends among them."""
    filled(shop)
    special = {62: "id <> 1", 63: "id <> 2", 126: "cust > 0", 129: "id <> 3"}
    actions = dict.fromkeys(special, "ON VIOLATION QUARANTINE ROW") | {126: "ON VIOLATION DROP ROW"}
    constraints = ", ".join(
        f"CONSTRAINT e{number} EXPECT ({special.get(number, f'amount <> {number}')}) {actions.get(number, '')}"
        for number in range(130)
    )
    runner = shop.runner(f"CREATE MATERIALIZED VIEW checked ({constraints}) AS SELECT id, dt, cust, amount FROM orders")
    results = {each.layer.partition(".")[2]: each for each in runner.refresh().layers}
    missed = {name: count for name, count in results["checked"].expected.items() if count}
    assert missed == {"e5": 1, "e7": 1, "e9": 2, "e62": 1, "e63": 1, "e126": 1, "e129": 1}
    assert shop.rows("checked") == []
    assert [(row[0], row[4]) for row in shop.rows("checked_quarantine")] == [
        (1, "e5,e62"),
        (2, "e7,e63"),
        (3, "e9,e129"),
    ]


def test_rows_in_quarantine(shop: Shop) -> None:
    filled(shop)
    runner = shop.runner(
        "CREATE MATERIALIZED VIEW checked (CONSTRAINT cheap EXPECT (amount < 9) ON VIOLATION QUARANTINE ROW,"
        " CONSTRAINT owned EXPECT (cust > 0) ON VIOLATION QUARANTINE ROW, CONSTRAINT odd EXPECT (amount % 2 = 1))"
        " AS SELECT id, dt, cust, amount FROM orders;\n"
        "CREATE MATERIALIZED VIEW sums AS SELECT dt, CAST(sum(amount) AS BIGINT) AS amount FROM checked GROUP BY dt"
    )
    results = {each.layer.partition(".")[2]: each for each in runner.refresh().layers}
    assert results["checked"].expected == {"cheap": 2, "owned": 1, "odd": 0}
    assert results["checked_quarantine"].changed == {"inserted": 2}
    assert [row[0] for row in shop.rows("checked")] == [1, 2]
    wrong = [(3, "d2", 2, 9, "cheap"), (4, "d2", None, 9, "cheap,owned")]
    assert shop.rows("checked_quarantine") == wrong
    shop.order((3, 2, 3, "d2"), (1, 1, 10, "d1"))
    results = {each.layer.partition(".")[2]: each for each in runner.refresh().layers}
    assert {each.how for each in results.values()} == {"incremental", "by group"}
    assert [row[0] for row in shop.rows("checked")] == [2, 3], "a row that was put right comes back"
    assert [row[0] for row in shop.rows("checked_quarantine")] == [1, 4]
    assert shop.rows("sums") == [("d1", 7), ("d2", 3)]


def test_auto_cdc(shop: Shop) -> None:
    columns = {"lsn": "bigint", "id": "bigint", "op": "string", "city": "string"}
    raw = shop.table("raw", columns, {"primary-key": "lsn"})
    flow = (
        "CREATE FLOW {0} AS AUTO CDC INTO {1} FROM STREAM(raw) KEYS (id) APPLY AS DELETE WHEN op = 'D' SEQUENCE BY lsn"
    )
    runner = shop.runner(
        "CREATE STREAMING TABLE latest; CREATE STREAMING TABLE versions;"
        + flow.format("f", "latest")
        + " COLUMNS * EXCEPT (op, lsn);"
        + flow.format("g", "versions")
        + " COLUMNS (id, city) STORED AS SCD TYPE 2"
    )
    raw.upsert(rows_of([(1, 1, "I", "Oslo"), (4, 2, "I", "Rome"), (5, 1, "U", "Bonn")], columns))
    runner.refresh()
    assert shop.rows("latest") == [(1, "Bonn"), (2, "Rome")]
    raw.upsert(rows_of([(6, 1, "D", None), (3, 1, "U", "late"), (7, 2, "U", "Kiel")], columns))
    results = runner.refresh().layers
    assert {each.how for each in results} == {"by group"}
    assert results[0].changed == {"updated": 1, "deleted": 1}
    assert shop.rows("latest") == [(2, "Kiel")]
    raw.upsert(rows_of([(2, 1, "U", "later")], columns))
    runner.refresh()
    assert shop.rows("latest") == [(2, "Kiel")], "a late change of a deleted key brings nothing back"
    versions = shop.client.table(f"{shop.database}.versions").scan().to_arrow()
    found = sorted(versions.select(["id", "city", "__start_at", "__end_at"]).to_pylist(), key=repr)
    assert [tuple(each.values()) for each in found] == [
        (1, "Bonn", 5, 6),
        (1, "Oslo", 1, 2),
        (1, "late", 3, 5),
        (1, "later", 2, 3),
        (2, "Kiel", 7, None),
        (2, "Rome", 4, 7),
    ]


def test_auto_cdc_from_a_layer_whose_key_is_hidden(shop: Shop) -> None:
    columns = {"nr": "bigint", "lsn": "bigint", "id": "bigint", "city": "string"}
    raw = shop.table("raw", columns, {"primary-key": "nr"})
    runner = shop.runner(
        "CREATE MATERIALIZED VIEW changes AS SELECT id, lsn, city FROM raw;"
        "CREATE STREAMING TABLE latest;"
        "CREATE FLOW f AS AUTO CDC INTO latest FROM STREAM(changes) KEYS (id) SEQUENCE BY lsn"
    )
    raw.upsert(rows_of([(1, 1, 1, "Oslo"), (2, 4, 1, "Rome"), (3, 4, 1, "Bonn")], columns))
    runner.refresh()
    [first] = shop.rows("latest")
    assert first in [(1, 4, "Rome"), (1, 4, "Bonn")], "one of those with the same sequence"
    raw.upsert(rows_of([(4, 3, 1, "late"), (5, 1, 2, "Kiel")], columns))
    assert "full" not in {each.how for each in runner.refresh().layers}
    assert shop.rows("latest") == [first, (2, 1, "Kiel")], "and always the same one"


def test_flows_that_append_to_one_table(shop: Shop) -> None:
    shop.know((1, "Oslo"), (2, "Rome"))
    shop.order((1, 1, 5, "d1"), (2, 2, 7, "d1"))
    runner = shop.runner(
        "CREATE STREAMING TABLE names AS SELECT id, city AS name FROM STREAM(customers);"
        "CREATE FLOW orders_too AS INSERT INTO names BY NAME SELECT dt AS name, id FROM STREAM orders WHERE amount > 5;"
        "CREATE MATERIALIZED VIEW counts AS SELECT name, count(*) AS n FROM names GROUP BY name"
    )
    runner.refresh()
    assert shop.rows("names") == [(1, "Oslo"), (2, "Rome"), (2, "d1")]
    shop.know((2, "Bonn"))
    shop.order((3, 2, 9, "d1"))
    assert how(runner.refresh().layers) == {"names": "incremental", "counts": "by group"}
    assert shop.rows("names") == [(1, "Oslo"), (2, "Bonn"), (2, "d1"), (3, "d1")], "an update is one here, too"
    assert shop.rows("counts") == [("Bonn", 1), ("Oslo", 1), ("d1", 2)]


def test_flows_with_other_columns_are_refused(shop: Shop) -> None:
    runner = shop.runner(
        "CREATE STREAMING TABLE names AS SELECT id FROM orders;"
        "CREATE FLOW more AS INSERT INTO names BY NAME SELECT id, city FROM customers"
    )
    with pytest.raises(BadDefinition, match="not all of its flows have a column city"):
        runner.refresh()


def test_the_status(shop: Shop, client: LakeClient) -> None:
    filled(shop)
    runner = shop.runner()
    assert {each.trouble for each in status_of(runner.graph, client)} == {
        "the table isn't there: the next refresh makes it"
    }
    runner.refresh()
    assert [each.behind for each in status_of(runner.graph, client)] == [0, 0, 0]
    shop.order((1, 1, 1, "d1"))
    shop.know((5, "Kiel"))
    details = status_of(runner.graph, client)[0]
    assert (details.behind, details.number, details.how, details.trouble) == (2, 1, "full", None)
    assert details.since is not None
    client.call(lambda thrift: thrift.drop_table(shop.database, "customers", True))
    assert status_of(runner.graph, client)[0].trouble == f"there is no table {shop.database}.customers"


def test_a_layer_that_fails_stops_only_those_that_read_it(shop: Shop) -> None:
    """It fails as it is computed, or as its rows are written; either way all others complete, at one moment."""
    filled(shop)
    text = (
        "CREATE MATERIALIZED VIEW much AS SELECT id, id * 9223372036854775807 AS n FROM customers WHERE city = 'Oslo';"
        "CREATE MATERIALIZED VIEW over AS SELECT n, count(*) AS c FROM much GROUP BY n;"
        "CREATE MATERIALIZED VIEW keyed PARTITIONED BY (city) AS SELECT id, city FROM customers;"
        "CREATE MATERIALIZED VIEW above AS SELECT id FROM keyed;"
        "CREATE MATERIALIZED VIEW a AS SELECT id, amount FROM orders;"
        "CREATE MATERIALIZED VIEW b AS SELECT amount, count(*) AS n FROM a GROUP BY amount"
    )
    shop.know((1, "1"), (2, None))
    runner = shop.runner(text)
    with pytest.raises(LayersFailed) as failed:
        runner.refresh()
    done = dict.fromkeys(("much", "over", "a", "b"), "full")
    assert how(failed.value.result.layers) == {**done, "keyed": "failed", "above": "skipped"}
    assert f"{shop.database}.keyed failed: " in str(failed.value)
    assert "by WHERE, or give them a value by coalesce" in str(failed.value)
    assert shop.rows("keyed") == []
    assert len(shop.rows("b")) == 3
    shop.know((2, "Oslo"))
    shop.order((9, 1, 1, "d1"))
    with pytest.raises(LayersFailed, match=r"much failed: .*Left as they were, since they read it: .*over"):
        runner.refresh()
    assert len(shop.rows("keyed")) == len(shop.rows("above")) == 2
    assert len(shop.rows("b")) == 4
    moments = {shop.client.table(f"{shop.database}.{name}").position().moment for name in ("keyed", "a", "b")}
    assert len(moments) == 1
    shop.know((2, "2"), (1, "Oslo"))
    assert how(runner.refresh().layers)["over"] == "by group"


def test_a_further_branch_of_a_union_leaves_the_rows_of_others_as_they_are(shop: Shop) -> None:
    filled(shop)
    text = "CREATE MATERIALIZED VIEW u AS SELECT id, dt FROM orders UNION ALL SELECT id, city FROM customers"
    shop.runner(text).refresh()
    further = f"{text} UNION ALL SELECT amount AS id, 'a' FROM orders UNION ALL SELECT id, dt FROM orders WHERE id < 2"
    [found] = shop.runner(further).refresh().layers
    assert (found.how, found.changed) == ("full", {"inserted": 5})
    [found] = shop.runner(text).refresh().layers
    assert found.changed == {"deleted": 5}
