"""Sinks get what flows append: each instant as one batch, in order, again after a failure, with the same number."""

import itertools
import json
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from lake.cli import main
from lake.cli.commands import pipeline as pipeline_commands
from lake.layers.compiler.graph import graph_of
from lake.layers.definitions.projects import read_project
from lake.layers.runner.results import RefreshResult
from lake.layers.runner.runner import Runner
from lake.layers.runner.sinks import DELIVERED, SinkFailed, undelivered
from lake.layers.runner.status import status_of
from lake.protocol.hive import EnvironmentContext, Table
from lake.tables.lake import LakeClient, LakeTable
from tests.lake.layers import duck_lake
from tests.lake.layers.projects import write_project
from tests.lake.layers.shop import Shop

PROJECT = """
import json
from pathlib import Path

from lake import layers as dp

@dp.foreach_batch_sink(name="{name}")
def deliver(rows, number):
    file = Path("{directory}")
    if (file / "broken").exists():
        raise OSError("no route to host")
    with (file / "{name}").open("a") as log:
        print(json.dumps([number, sorted((row["id"], row["amount"]) for row in rows)]), file=log)

@dp.append_flow(target="{name}")
def large_{name}():
    return spark.sql("SELECT id, dt, amount FROM STREAM(orders) WHERE amount > 5")
"""


class Sinks:
    """A project whose sinks append what they get to files."""

    def __init__(self, shop: Shop, *names: str) -> None:
        self.shop = shop
        self.files = shop.directory
        texts = {f"{name}.py": PROJECT.format(name=name, directory=shop.directory) for name in names}
        write_project(shop.directory, texts, name=shop.database, database=shop.database)

    def runner(self) -> Runner:
        return duck_lake.runner(graph_of(read_project(self.files)), self.shop.client)

    def got(self, name: str) -> list[tuple[int, list[list[int]]]]:
        """The batches that a sink got."""
        file = self.files / name
        return [tuple(json.loads(line)) for line in file.read_text().splitlines()] if file.exists() else []

    def table(self, name: str) -> Any:
        return self.shop.client.table(f"{self.shop.database}.{name}")

    def break_them(self) -> Path:
        """Has all sinks fail until the file is gone."""
        file = self.files / "broken"
        file.touch()
        return file


def rows_got(sinks: Sinks, name: str) -> list[list[list[int]]]:
    return [rows for _, rows in sinks.got(name)]


def test_a_sink_gets_what_is_new(shop: Shop) -> None:
    sinks = Sinks(shop, "mail")
    shop.order((1, 1, 9, "d1"), (2, 1, 3, "d1"))
    runner = sinks.runner()
    name = f"{shop.database}.mail"
    assert runner.refresh().delivered == {name: 1}
    shop.order((2, 1, 7, "d1"), (3, 1, 8, "d2"))  # one is large now, one is new
    assert runner.refresh().delivered == {name: 1}
    assert runner.refresh().delivered == {name: 0}
    shop.order((1, 1, 10, "d1"))  # an update comes as the row that it is now
    shop.unorder((3, "d2"))  # a delete isn't delivered
    assert runner.refresh().delivered == {name: 1}
    assert rows_got(sinks, "mail") == [[[1, 9]], [[2, 7], [3, 8]], [[1, 10]]]
    numbers = [number for number, _ in sinks.got("mail")]
    assert numbers == sorted(set(numbers))


def test_a_sink_that_fails_gets_its_batches_later_and_others_get_theirs(shop: Shop) -> None:
    sinks = Sinks(shop, "mail")
    shop.order((1, 1, 9, "d1"))
    sinks.runner().refresh()
    broken = sinks.break_them()
    for id in (2, 3):
        shop.order((id, 1, 9, "d1"))
        with pytest.raises(SinkFailed, match=r"mail didn't take batch .* no route to host"):
            sinks.runner().refresh()
    assert [each.undelivered for each in status_of(sinks.runner().graph, shop.client)] == [2]
    [status] = status_of(sinks.runner().graph, shop.client)
    assert "lacks 2 of its batches" in (status.trouble or "")
    broken.unlink()
    assert sinks.runner().refresh().delivered == {f"{shop.database}.mail": 2}
    assert rows_got(sinks, "mail") == [[[1, 9]], [[2, 9]], [[3, 9]]]
    [status] = status_of(sinks.runner().graph, shop.client)
    assert (status.undelivered, status.trouble) == (0, None)


def test_one_sink_that_fails_keeps_nothing_from_another(shop: Shop) -> None:
    sinks = Sinks(shop, "archive", "mail")
    runner = sinks.runner()
    failing = next(each for each in runner.graph.nodes if each.name.endswith(".archive"))
    assert failing.sink is not None

    def fail(rows: Any, number: int) -> None:
        raise OSError("no route to host")

    object.__setattr__(failing.sink, "function", fail)
    shop.order((1, 1, 9, "d1"))
    with pytest.raises(SinkFailed, match=r"archive didn't take"):
        runner.refresh()
    assert rows_got(sinks, "mail") == [[[1, 9]]]


def test_a_batch_that_comes_again_has_its_number_and_rows(shop: Shop) -> None:
    """A runner that dies between a delivery and its note leaves the note as it was."""
    sinks = Sinks(shop, "mail")
    shop.order((1, 1, 9, "d1"))
    sinks.runner().refresh()
    shop.order((2, 1, 9, "d1"))
    sinks.runner().refresh()
    table = sinks.table("mail")
    set_delivered(shop.client, table, "0")
    assert len(undelivered(table)) == 2
    shop.order((3, 1, 9, "d1"))
    sinks.runner().refresh()
    first, second, again, once_more, third = sinks.got("mail")
    assert [again, once_more] == [first, second]
    assert third[1] == [[3, 9]]


def test_a_batch_can_be_left_out(shop: Shop) -> None:
    sinks = Sinks(shop, "mail")
    shop.order((1, 1, 9, "d1"))
    broken = sinks.break_them()
    with pytest.raises(SinkFailed):
        sinks.runner().refresh()
    broken.unlink()
    table = sinks.table("mail")
    [position] = undelivered(table)
    set_delivered(shop.client, table, str(position))
    shop.order((2, 1, 9, "d1"))
    sinks.runner().refresh()
    assert rows_got(sinks, "mail") == [[[2, 9]]]


def test_a_note_that_is_no_position(shop: Shop) -> None:
    sinks = Sinks(shop, "mail")
    shop.order((1, 1, 9, "d1"))
    sinks.runner().refresh()
    set_delivered(shop.client, sinks.table("mail"), "x")
    with pytest.raises(SinkFailed, match=r"is 'x', and that is no position"):
        sinks.runner().refresh()


def test_without_a_note_all_is_delivered_again(shop: Shop) -> None:
    sinks = Sinks(shop, "mail")
    shop.order((1, 1, 9, "d1"))
    sinks.runner().refresh()
    table = sinks.table("mail")
    set_delivered(shop.client, table, None)
    shop.order((2, 1, 9, "d1"))
    sinks.runner().refresh()
    assert rows_got(sinks, "mail") == [[[1, 9]], [[1, 9]], [[2, 9]]]
    assert undelivered(table) == []


def test_nothing_is_noted_in_a_table_that_was_made_again_meanwhile(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    sinks = Sinks(shop, "mail")
    shop.order((1, 1, 9, "d1"))
    sinks.runner().refresh()
    shop.order((2, 1, 9, "d1"))
    table = sinks.table("mail")
    before = table.describe()
    describe = LakeTable.describe

    def late(read: LakeTable) -> Table:
        found = describe(read)
        if read.name == table.name and sum(map(len, rows_got(sinks, "mail"))) == 2:
            monkeypatch.setattr(LakeTable, "describe", describe)
            shop.client.call(lambda opened: opened.drop_table(shop.database, "mail", True))
            shop.client.call(lambda opened: opened.create_table(before.replace(id=None)))
        return found

    monkeypatch.setattr(LakeTable, "describe", late)
    sinks.runner().refresh()  # it begins again with the table that has the name now
    # The position of the lost table's batch, 2, is noted nowhere. The new table's own first one is 3.
    assert sinks.table("mail").describe().parameters[DELIVERED] == "3"
    assert rows_got(sinks, "mail")[-1] == [[1, 9], [2, 9]]


def set_delivered(client: LakeClient, table: Any, value: str | None) -> None:
    database, _, name = table.name.partition(".")
    altered = table.describe()
    altered.parameters.pop(DELIVERED)
    if value is not None:
        altered.parameters[DELIVERED] = value
    client.call(
        lambda thrift: thrift.alter_table_with_environment_context(database, name, altered, EnvironmentContext({}))
    )


def test_a_sink_that_fails_ends_one_run_but_not_a_series(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    sinks = Sinks(shop, "mail")
    sinks.break_them()
    shop.order((1, 1, 9, "d1"))
    runner = sinks.runner()
    monkeypatch.setattr(pipeline_commands, "_runner", lambda graph, uri: nullcontext(runner))
    command = ["pipeline", "run", str(sinks.files)]
    once = CliRunner().invoke(main, [*command, "--once"])
    assert once.exit_code == 1
    assert "mail didn't take batch" in once.output
    calls = itertools.count()
    refresh = runner.refresh

    def refresh_thrice(full: tuple[str, ...]) -> RefreshResult:
        if next(calls) == 3:
            raise EndOfTest
        return refresh(full)

    monkeypatch.setattr(runner, "refresh", refresh_thrice)
    again = CliRunner().invoke(main, [*command, "--every", "10ms"])
    assert isinstance(again.exception, EndOfTest)
    assert again.output.count("mail didn't take batch") == 3


class EndOfTest(Exception):
    pass
