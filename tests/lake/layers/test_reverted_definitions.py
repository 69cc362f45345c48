"""The latest change of definitions is taken back, with rows that are current with the sources."""

import random
import signal
import subprocess
import sys
from collections.abc import Callable, Collection
from pathlib import Path

import pytest

from lake.cli.pipeline_changes import print_plan, print_revert
from lake.client.lake_types import Moment
from lake.layers.applying.beside import apply_beside
from lake.layers.applying.planning import plan_of, reverted_in
from lake.layers.errors import BadDefinition
from lake.layers.runner.claims import DefinedElsewhere
from lake.layers.runner.results import LayersFailed
from lake.layers.runner.runner import Runner
from lake.layers.undo.restore import apply_restore, plan_restore
from lake.layers.undo.revert import CannotRevert, apply_revert, plan_revert, write_back
from lake.layers.undo.rollback import Rollback
from lake.tables.keyed.changes import CHANGE_TYPE
from tests.lake.layers.duck_lake import DuckEngine
from tests.lake.layers.shop import ORDERS, Shop, how, ordered, rows_of
from tests.lake.layers.test_applied_definitions import at, forget_claims
from tests.lake.layers.test_changed_definitions import CHAIN, MEANINGS, SAME, TEXT, Order, filled
from tests.support.long_runs import share_of
from tests.support.server import MetastoreServer

FIRST, SECOND = CHAIN.format(5), CHAIN.format(8)


def rows_by(shop: Shop, least: int, but: Collection[int] = ()) -> None:
    """Raises AssertionError unless the layers are those of the sources by `amount > least`, `but` some orders that they
    haven't read."""
    orders = [each for each in shop.rows("orders") if each[0] not in but]
    big = ordered((id, dt, amount) for id, _, amount, dt in orders if amount is not None and amount > least)
    assert shop.rows("big") == big
    sums: dict[str, int] = {}
    for _, dt, amount in big:
        sums[dt] = sums.get(dt, 0) + amount
    assert shop.rows("sums") == sorted(sums.items())


def clean(shop: Shop, layer: str) -> None:
    """Deletes files of all states of a layer but the latest."""
    lake = shop.client.table(f"{shop.database}.{layer}")
    lake.clean(lake.plan_clean(keep_commits=1))


def changed(shop: Shop) -> None:
    """The second definition is applied to what the first one has made, and the sources go on."""
    filled(shop)
    shop.runner(FIRST).refresh()
    shop.order((5, 1, 6, "d3"))
    shop.runner(FIRST).refresh()
    shop.runner(SECOND).refresh()
    shop.order((1, 1, 9, "d1"), (8, 2, 7, "d3"))
    shop.unorder((2, "d1"))
    shop.runner(SECOND).refresh()
    shop.order((9, 2, 8, "d1"))


def test_logic_and_rows_of_before_come_back_by_increments(shop: Shop, capsys: pytest.CaptureFixture[str]) -> None:
    changed(shop)
    big = shop.client.table(f"{shop.database}.big")
    position, before = big.position().position, shop.rows("big")
    runner = shop.runner(SECOND)
    revert = plan_revert(runner)
    [only] = revert.layers
    assert (only.layer, revert.why_whole) == (f"{shop.database}.big", None)
    assert [each.layer for each in revert.restored] == [f"{shop.database}.{name}" for name in ("big", "sums")]
    print_revert(revert)
    assert "SELECT id, dt, amount FROM orders WHERE amount > 5\n" in capsys.readouterr().out
    assert big.position().position == position, "nothing is written yet"
    done = apply_revert(runner, revert)
    assert how(done.layers) == {"big": "incremental", "towns": "unchanged", "sums": "by group"}
    rows_by(shop, 5)
    net = big.changes(position).to_arrow().to_pylist()
    came = {(row["id"], row["dt"], row["amount"]) for row in net if row[CHANGE_TYPE] in ("insert", "update_postimage")}
    gone = {(row["id"], row["dt"], row["amount"]) for row in net if row[CHANGE_TYPE] in ("delete", "update_preimage")}
    assert (came, gone) == ({*shop.rows("big")} - {*before}, {*before} - {*shop.rows("big")})
    shop.order((3, 1, 1, "d2"))
    assert how(runner.refresh().layers)["big"] == "incremental", "the runner keeps to it"
    rows_by(shop, 5)


@pytest.mark.long
def test_the_files_definition_is_applied_again_only_if_somebody_says_so(
    shop: Shop, capsys: pytest.CaptureFixture[str]
) -> None:
    changed(shop)
    apply_revert(shop.runner(SECOND), plan_revert(shop.runner(SECOND)))
    runner = shop.runner(SECOND)
    for refused in (
        runner.refresh,
        runner.compile,
        lambda: runner.refresh([f"{shop.database}.big"]),
        lambda: plan_restore(runner, Moment(1)),
        lambda: Rollback(runner, "orders", shop.orders.position().last_completed or ""),
    ):
        with pytest.raises(BadDefinition, match=r"layers.sql:1: \w+\.big was reverted to an earlier definition at 20"):
            refused()
    shop.order((4, 1, 1, "d2"))
    assert how(shop.runner(FIRST).refresh().layers)["big"] == "incremental", "a file that has the earlier one is right"
    assert how(shop.runner(FIRST.replace("> 5", "> /* euros */ 5")).refresh().layers)["big"] == "unchanged"
    rows_by(shop, 5)
    plans = plan_of(runner)
    assert [each.changes for each in plans] == [("query", "reverted before"), (), ()]
    print_plan(plans)
    assert "query, reverted before" in capsys.readouterr().out
    assert how(runner.refresh(reverted=reverted_in(plans)).layers)["big"] == "full"
    rows_by(shop, 8)
    assert how(shop.runner(FIRST).refresh().layers)["big"] == "full", "it is forgotten"


def test_nothing_is_reverted_while_somebody_applies_another_definition(shop: Shop) -> None:
    changed(shop)
    shop.runner(SECOND).refresh()
    rows_by(shop, 8)
    lakes = [shop.client.table(f"{shop.database}.{name}") for name in ("big", "sums")]
    runner = shop.runner(CHAIN.format(7))

    def revert() -> None:
        other, before = shop.runner(SECOND), [each.position().position for each in lakes]
        with pytest.raises(DefinedElsewhere, match="big gets another definition already"):
            apply_revert(other, plan_revert(other))
        assert [each.position().position for each in lakes] == before, "nothing is rolled back"
        assert how(shop.runner(SECOND).refresh().layers)["big"] == "unchanged", "nor is it marked"

    runner.pause = at("computed", revert)
    runner.refresh()
    rows_by(shop, 7)
    again = shop.runner(CHAIN.format(7))
    apply_revert(again, plan_revert(again))
    rows_by(shop, 8)


def test_what_is_applied_again_is_no_longer_reverted_though_others_fail(shop: Shop) -> None:
    changed(shop)
    apply_revert(shop.runner(SECOND), plan_revert(shop.runner(SECOND)))
    days = ";\nCREATE MATERIALIZED VIEW numbers AS SELECT id, dt, CAST(dt AS BIGINT) AS n FROM orders"
    runner = shop.runner(SECOND + days)
    named = reverted_in(plan_of(runner))
    with pytest.raises(LayersFailed, match="numbers failed"):
        runner.refresh(reverted=named)
    rows_by(shop, 8)
    again = shop.runner(SECOND)
    apply_revert(again, plan_revert(again))
    rows_by(shop, 5)


def test_tables_of_before_that_nobody_refreshes_any_more(shop: Shop) -> None:
    filled(shop)
    of = "CREATE MATERIALIZED VIEW big AS SELECT id, dt, amount FROM {}"
    paid = ";\nCREATE MATERIALIZED VIEW paid AS SELECT id, dt, amount FROM orders WHERE amount > 5"
    shop.runner(of.format("paid") + paid).refresh()
    shop.runner(of.format("orders")).refresh()
    with pytest.raises(CannotRevert, match=r"big read \w+\.paid before, which the project doesn't make any more"):
        plan_revert(shop.runner(of.format("orders")))
    runner = shop.runner(of.format("orders") + paid)
    shop.order((7, 1, 20, "d3"))
    apply_revert(runner, plan_revert(runner))
    assert shop.rows("big") == [(2, "d1", 7), (3, "d2", 9), (4, "d2", 9), (7, "d3", 20)]


@pytest.mark.long
def test_a_revert_is_not_undone_by_who_began_before_it(shop: Shop) -> None:
    changed(shop)
    slow = shop.runner(SECOND)
    slow.refresh()
    shop.order((1, 1, 12, "d1"))
    begun = []

    def overtake(reached: str) -> None:
        if reached == "computed" and not begun:
            begun.append(True)
            apply_revert(shop.runner(SECOND), plan_revert(shop.runner(SECOND)))

    slow.pause = overtake
    with pytest.raises(BadDefinition, match="was reverted"):
        slow.refresh()
    rows_by(shop, 5)


@pytest.mark.long
def test_tables_whose_files_of_before_are_gone_are_computed_as_a_whole(shop: Shop) -> None:
    changed(shop)
    shop.runner(SECOND).refresh()
    clean(shop, "sums")
    revert = plan_revert(shop.runner(SECOND), ["big"])
    assert (revert.restored, revert.why_whole) == ((), f"{shop.database}.sums has lost the files of that state")
    done = apply_revert(shop.runner(SECOND), revert)
    assert how(done.layers) == {"big": "full", "towns": "unchanged", "sums": "by group"}
    rows_by(shop, 5)
    with pytest.raises(BadDefinition, match="was reverted"):
        shop.runner(SECOND).refresh()


@pytest.mark.long
def test_which_layers_are_reverted(shop: Shop) -> None:
    filled(shop)
    text = f"{TEXT};\nCREATE MATERIALIZED VIEW other AS {TEXT.partition(' AS ')[2]}"
    both = text.replace("> 5", ">= 5")
    shop.runner(text).refresh()
    with pytest.raises(CannotRevert, match="no definition has changed"):
        plan_revert(shop.runner(text))
    with pytest.raises(CannotRevert, match=r"other: it has had no other definition"):
        plan_revert(shop.runner(text), ["other"])
    shop.order((1, 1, 5, "d2"))
    respelled = text.replace("SELECT o.id", "SELECT /* key */ o.id")
    shop.runner(respelled).refresh()
    with pytest.raises(CannotRevert, match="no definition has changed"):
        plan_revert(shop.runner(respelled))
    shop.runner(both).refresh()
    names = [each.layer for each in plan_revert(shop.runner(both)).layers]
    assert names == [f"{shop.database}.{name}" for name in ("big", "other")], "both at one moment"
    apply_revert(shop.runner(both), plan_revert(shop.runner(both), ["other"]))
    assert len(shop.rows("big")) == len(shop.rows("other")) + 2
    [again] = plan_revert(shop.runner(both)).layers
    assert (again.layer, again.since) == (f"{shop.database}.other", None), "repeated, it is the same"
    assert how(apply_revert(shop.runner(both), plan_revert(shop.runner(both))).layers) == {
        "big": "unchanged",
        "other": "unchanged",
    }
    apply_revert(shop.runner(both), plan_revert(shop.runner(both), ["big"]))
    assert shop.rows("big") == shop.rows("other")


@pytest.mark.long
def test_the_query_of_before_is_written_into_its_file(shop: Shop) -> None:
    filled(shop)
    shop.runner(FIRST).refresh()
    second = f"-- revenue\n{SECOND};\nCREATE MATERIALIZED VIEW other AS {TEXT.partition(' AS ')[2]} /* all */"
    shop.runner(second).refresh()
    runner = shop.runner(second)
    files, revert = runner.graph, plan_revert(runner, ["big"])
    apply_revert(runner, revert)
    assert write_back(files, revert) == {f"{shop.database}.big": None}
    text = (shop.directory / "transformations/layers.sql").read_text()
    assert text == second.replace("> 8", "> 5"), "nothing else of the file is another"
    assert how(shop.runner(text).refresh().layers)["big"] == "unchanged"
    twice = f"{text}\n-- SELECT id, dt, amount FROM orders WHERE amount > 5"
    [reason] = write_back(shop.runner(twice).graph, revert).values()
    assert reason == "its query is 2 times in transformations/layers.sql"


@pytest.mark.long
def test_a_quarantine_comes_back_with_its_table(shop: Shop) -> None:
    filled(shop)
    text = "CREATE MATERIALIZED VIEW checked ({}) AS SELECT id, dt, amount FROM orders"
    cheap = text.format("CONSTRAINT cheap EXPECT (amount < 9) ON VIOLATION QUARANTINE ROW")
    small = text.format("CONSTRAINT cheap EXPECT (amount < 6) ON VIOLATION QUARANTINE ROW")
    shop.runner(cheap).refresh()
    shop.runner(small).refresh()
    with pytest.raises(CannotRevert, match="is a quarantine"):
        plan_revert(shop.runner(small), ["checked_quarantine"])
    shop.order((9, 1, 100, "d1"))
    revert = plan_revert(shop.runner(small))
    assert {each.layer for each in revert.restored} == {
        f"{shop.database}.{x}" for x in ("checked", "checked_quarantine")
    }
    done = apply_revert(shop.runner(small), revert)
    assert how(done.layers) == {"checked": "incremental", "checked_quarantine": "incremental"}
    assert [row[0] for row in shop.rows("checked")] == [1, 2]
    assert [row[0] for row in shop.rows("checked_quarantine")] == [3, 4, 9]


@pytest.mark.long
def test_what_can_not_be_reverted(shop: Shop) -> None:
    columns = {"lsn": "bigint", "id": "bigint", "op": "string", "city": "string"}
    shop.table("raw", columns, {"primary-key": "lsn"})
    flow = (
        "CREATE STREAMING TABLE latest; CREATE FLOW f AS AUTO CDC INTO latest FROM STREAM(raw) KEYS (id)"
        " APPLY AS DELETE WHEN op = '{}' SEQUENCE BY lsn COLUMNS * EXCEPT (op, lsn)"
    )
    shop.runner(flow.format("D")).refresh()
    with pytest.raises(CannotRevert, match="no such table"):
        plan_revert(shop.runner(f"{flow.format('D')};{TEXT}"), ["big"])
    shop.order((1, 1, 5, "d1"))
    shop.runner(flow.format("E")).refresh()
    changed = shop.runner(flow.format("E"))
    with pytest.raises(CannotRevert, match="latest applies a log"):
        plan_revert(changed)


KILLED = """
import os, signal, sys
from pathlib import Path
from lake.tables.lake import LakeClient
from lake.layers.compiler.graph import graph_of
from lake.layers.definitions.projects import read_project
from lake.layers.undo.revert import apply_revert, plan_revert
from tests.lake.layers.duck_lake import runner
uri, project, stage = sys.argv[1:]
with LakeClient(uri) as client:
    made = runner(graph_of(read_project(Path(project))), client)
    made.pause = lambda reached: os.kill(os.getpid(), signal.SIGKILL) if reached == stage else None
    apply_revert(made, plan_revert(made))
"""
STAGES = ["rolled back", "computed", "begun", "written", "completed"]


@pytest.mark.long
@pytest.mark.parametrize("stage", STAGES)
def test_a_revert_that_is_killed(shop: Shop, metastore_server: MetastoreServer, stage: str) -> None:
    changed(shop)
    shop.project(SECOND)
    command = [sys.executable, "-c", KILLED, metastore_server.uri, str(shop.directory), stage]
    root = Path(__file__).parents[3]
    killed = subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=120)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    with pytest.raises(BadDefinition, match="was reverted"):
        shop.runner(SECOND).refresh()
    forget_claims(shop)
    apply_revert(shop.runner(SECOND), plan_revert(shop.runner(SECOND)))
    rows_by(shop, 5)
    apply_revert(shop.runner(SECOND), plan_revert(shop.runner(SECOND)))
    rows_by(shop, 5)


def end() -> None:
    raise KeyboardInterrupt


def killed(runner: Runner, stage: str, do: Callable[[], object]) -> None:
    """Ends what is done with a runner at a stage, which must be reached."""
    runner.pause = at(stage, end)
    with pytest.raises(KeyboardInterrupt):
        do()


@pytest.mark.long
def test_steps_of_a_revert_at_which_it_ends(shop: Shop) -> None:
    changed(shop)
    for stage in STAGES:
        runner = shop.runner(SECOND)
        revert = plan_revert(runner)
        killed(runner, stage, lambda runner=runner, revert=revert: apply_revert(runner, revert))  # type: ignore[misc]
        with pytest.raises(BadDefinition, match="was reverted"):
            shop.runner(SECOND).refresh()
        [only] = plan_revert(shop.runner(SECOND)).layers
        assert (only.layer, only.since) == (f"{shop.database}.big", None), stage
    rows_by(shop, 5)


@pytest.mark.long
def test_steps_of_a_revert_without_a_rollback_at_which_it_ends(shop: Shop) -> None:
    changed(shop)
    shop.runner(SECOND).refresh()
    clean(shop, "sums")
    for stage in STAGES:
        runner = shop.runner(SECOND)
        revert = plan_revert(runner)
        assert revert.why_whole is not None
        killed(runner, stage, lambda runner=runner, revert=revert: apply_revert(runner, revert))  # type: ignore[misc]
        if stage == "completed":
            break
        shop.order((6, 1, 7, "d1"))
        assert how(shop.runner(SECOND).refresh().layers)["big"] in ("incremental", "unchanged"), "nothing is changed"
        rows_by(shop, 8)
    rows_by(shop, 5)
    with pytest.raises(BadDefinition, match="was reverted"):
        shop.runner(SECOND).refresh()


@pytest.mark.parametrize("beside", [False, pytest.param(True, marks=pytest.mark.long)])
def test_steps_of_what_is_applied_after_a_revert_at_which_it_ends(shop: Shop, beside: bool) -> None:
    changed(shop)
    apply_revert(shop.runner(SECOND), plan_revert(shop.runner(SECOND)))
    third = CHAIN.format(7)
    for stage in ("computed", "begun", "written", *(["beside", "cut over"] if beside else ["completed"])):
        runner = shop.runner(third)
        plan = plan_of(runner)
        assert reverted_in(plan) == [f"{shop.database}.big"]
        killed(
            runner,
            stage,
            lambda runner=runner, plan=plan: (  # type: ignore[misc]
                apply_beside(runner, plan) if beside else runner.refresh(reverted=reverted_in(plan))
            ),
        )
        if stage not in ("completed", "cut over"):
            with pytest.raises(BadDefinition, match="was reverted"):
                shop.runner(third).refresh()
            [only] = plan_revert(shop.runner(third)).layers
            assert only.since is None, "it stays reverted"
            rows_by(shop, 5)
    rows_by(shop, 7)
    assert how(shop.runner(third).refresh().layers)["big"] == "unchanged"
    assert how(shop.runner(FIRST).refresh().layers)["big"] == "full", "nothing is reverted any more"
    shop.runner(third).refresh()
    apply_revert(shop.runner(third), plan_revert(shop.runner(third)))
    rows_by(shop, 5)


@pytest.mark.long
@pytest.mark.parametrize("stage", ["computed", "written"])
def test_a_revert_that_ended_is_not_undone_by_who_began_before_it(shop: Shop, stage: str) -> None:
    """Once tables are rolled back, an increment of what they had would be wrong."""
    changed(shop)
    slow = shop.runner(SECOND)
    slow.refresh()
    shop.order((1, 1, 12, "d1"))

    def revert() -> None:
        runner = shop.runner(SECOND)
        plan = plan_revert(runner)
        killed(runner, "rolled back", lambda: apply_revert(runner, plan))
        forget_claims(shop)

    slow.pause = at(stage, revert)
    with pytest.raises(BadDefinition, match="was reverted"):
        slow.refresh()
    apply_revert(shop.runner(SECOND), plan_revert(shop.runner(SECOND)))
    rows_by(shop, 5)


@pytest.mark.long
def test_rollbacks_beside_reverts(shop: Shop) -> None:
    """One to a moment before a revert leaves it in force, one to a moment before another definition keeps that."""
    changed(shop)
    big = shop.client.table(f"{shop.database}.big")
    during = Moment(big.position().moment or 0)
    apply_revert(shop.runner(SECOND), plan_revert(shop.runner(SECOND)))
    shop.order((3, 1, 11, "d2"))
    shop.runner(FIRST).refresh()
    runner = shop.runner(FIRST)
    apply_restore(runner, plan_restore(runner, during))
    rows_by(shop, 5)
    with pytest.raises(BadDefinition, match="was reverted"):
        shop.runner(SECOND).refresh()
    third, before = CHAIN.format(7), Moment(big.position().moment or 0)
    runner = shop.runner(third)
    runner.refresh(reverted=reverted_in(plan_of(runner)))
    shop.order((3, 1, 12, "d2"))
    runner.refresh()
    runner = shop.runner(third)
    apply_restore(runner, plan_restore(runner, before))
    rows_by(shop, 7)
    [only] = plan_revert(shop.runner(third)).layers
    assert only.since is not None


@pytest.mark.long
def test_a_source_that_gets_a_column_after_a_revert(shop: Shop) -> None:
    """The definitions say the same of another source."""
    changed(shop)
    apply_revert(shop.runner(SECOND), plan_revert(shop.runner(SECOND)))
    engine = DuckEngine(shop.client)
    engine.add_columns(shop.orders, {"note": "string"})
    engine.close()
    shop.orders = shop.client.table(shop.orders.name)
    late = rows_of([(7, 1, 20, "d3", "late")], {**ORDERS, "note": "string"})
    shop.orders.upsert(late)
    with pytest.raises(BadDefinition, match="was reverted"):
        shop.runner(SECOND).refresh()
    assert how(shop.runner(FIRST).refresh().layers)["big"] == "incremental"
    with pytest.raises(BadDefinition, match="was reverted"):
        shop.runner(SECOND).refresh()
    [only] = plan_revert(shop.runner(SECOND)).layers
    assert only.since is None
    named = reverted_in(plan_of(shop.runner(SECOND)))
    shop.runner(SECOND).refresh(reverted=named)
    [only] = plan_revert(shop.runner(SECOND)).layers
    assert only.since is not None


def test_edits_of_files_that_nobody_has_applied(shop: Shop, capsys: pytest.CaptureFixture[str]) -> None:
    filled(shop)
    other = ";\nCREATE MATERIALIZED VIEW other AS SELECT id, dt, amount FROM orders WHERE amount > {}"
    shop.runner(FIRST + other.format(5)).refresh()
    shop.runner(SECOND + other.format(5)).refresh()
    assert (plan_revert(shop.runner(SECOND + other.format("/* euros */ 5"))).applies) == []
    edited = CHAIN.format(7) + other.format(8) + other.format(5).replace("other", "fresh")
    runner = shop.runner(edited)
    files, revert = runner.graph, plan_revert(runner)
    assert (revert.unapplied, [each.layer for each in revert.layers]) == ([f"{shop.database}.big"],) * 2
    assert {each.layer.partition(".")[2]: each.changes for each in revert.applies} == {
        "other": ("query",),
        "fresh": ("new",),
    }
    assert revert.as_json()["applies"][f"{shop.database}.other"] == ["query"]
    print_revert(revert)
    err = capsys.readouterr().err
    assert f"{shop.database}.big: its file has yet another definition, which nobody has applied" in err
    assert f"{shop.database}.other: its file has another definition (query), which nobody has applied" in err
    apply_revert(runner, revert)
    rows_by(shop, 5)
    assert shop.rows("other") == [(3, "d2", 9), (4, "d2", 9)]
    [reason] = write_back(files, revert).values()
    assert reason == "transformations/layers.sql has yet another definition, which nobody has applied"


def test_layers_that_changed_after_a_revert(shop: Shop) -> None:
    """A revert without names is of these, once the definitions of before are in the files."""
    filled(shop)
    other = ";\nCREATE MATERIALIZED VIEW other AS SELECT id, dt, amount FROM orders WHERE amount > {}"
    shop.runner(FIRST + other.format(5)).refresh()
    shop.runner(SECOND + other.format(5)).refresh()
    apply_revert(shop.runner(SECOND + other.format(5)), plan_revert(shop.runner(SECOND + other.format(5))))
    rows_by(shop, 5)
    text = FIRST + other.format(8)
    shop.runner(text).refresh()
    revert = plan_revert(shop.runner(text))
    assert {each.layer.partition(".")[2] for each in revert.layers if each.since is not None} == {"other"}
    apply_revert(shop.runner(text), revert)
    rows_by(shop, 5)
    assert shop.rows("other") == shop.rows("big")
    again = plan_revert(shop.runner(text))
    assert [each.since for each in again.layers] == [None, None], "repeated, it goes no further back"


@pytest.mark.long
@pytest.mark.parametrize("seed", range(share_of(100)))
def test_random_reverts(shop: Shop, seed: int) -> None:
    """After each, rows are those of the definition before, over the sources of now."""
    rng = random.Random(seed)
    orders: dict[tuple[int, str], Order] = {}
    stands: list[int] = []
    above = "\n;CREATE MATERIALIZED VIEW sums AS SELECT dt, count(*) AS n, sum(total) AS total FROM big GROUP BY dt"
    reverted = False
    texts = [[TEXT, *SAME], *(each for each, _ in MEANINGS[1:])]
    for _ in range(12):
        if rng.random() < 0.7:
            ids = rng.sample(range(8), rng.randint(1, 3))
            rows = [(id, rng.choice([None, 1, 2]), rng.choice([None, 4, 5, 6, 9]), f"d{id % 3}") for id in ids]
            shop.order(*rows)
            orders |= {(row[0], row[3]): row for row in rows}
        if rng.random() < 0.2 and orders:
            gone = rng.choice([*orders])
            shop.unorder(gone)
            del orders[gone]
        if rng.random() < 0.4 and len(stands) > 1 and not reverted:
            runner = shop.runner(rng.choice(texts[stands[-1]]) + above)
            if rng.random() < 0.2:
                clean(shop, "big")
            apply_revert(runner, plan_revert(runner))
            del stands[-1]
            reverted = True
        else:
            new = stands[-1] if stands and rng.random() < 0.4 else rng.randrange(len(MEANINGS))
            runner = shop.runner(rng.choice(texts[new]) + above)
            if not orders:
                continue
            named = reverted_in(plan_of(runner))
            runner.refresh(reverted=named)
            reverted = reverted and not named
            if not stands or new != stands[-1]:
                stands.append(new)
        meaning = MEANINGS[stands[-1]][1]
        found = [(row[0], row[3], *meaning(row)) for row in orders.values()]
        wanted = sorted([(id, dt, total) for id, dt, total, is_there in found if is_there], key=repr)
        assert sorted(shop.rows("big"), key=repr) == wanted, (seed, stands)
        assert sorted((row[0], row[1]) for row in shop.rows("sums")) == sorted(
            {(dt, sum(row[1] == dt for row in wanted)) for _, dt, _ in wanted}
        )
