"""Services that live on while tables are dropped and made again with another key."""

import threading
from typing import Any

import pytest

from lake.maintenance.decisions.policy import Policy
from lake.maintenance.executors.base import ArrowExecutor, Task
from lake.maintenance.planner import Planner
from lake.maintenance.queue import Queue
from lake.protocol.lake import TableReference
from lake.tables.lake import LakeClient, LakeTable
from tests.lake.maintenance.conftest import commits, merge_on_read
from tests.lake.maintenance.test_service import compactions, decisions, jobs, serving
from tests.lake.tables.keyed.histories import COLUMNS, rows_of
from tests.support import builders
from tests.support.server import MetastoreServer
from tests.support.waiting import wait_until

OTHER_KEY = {"primary-key": "v,part", "table-type": "merge-on-read", "compaction.delta-commits": "3"}
"""The rows of `four_rows` have one `id` and four `v`."""


def make_again(lake: LakeClient, table: LakeTable) -> LakeTable:
    database = table.named.database or ""
    specs = [f"{name}:{kind}" for name, kind in COLUMNS.items()][:-1]
    made = builders.table(database, "t", keys=("part",), sd=builders.parquet(*specs), parameters=OTHER_KEY)
    lake.call(lambda client: client.drop_table(database, "t", True))
    lake.call(lambda client: client.create_table(made))
    return lake.table(f"{database}.t")


def four_rows(table: LakeTable) -> None:
    for number in range(4):
        table.upsert(rows_of([{"id": 1, "part": "x", "v": number, "a": None, "b": None}]))


def count(table: LakeTable) -> int:
    return int(table.scan().to_arrow().num_rows)


def test_a_service_compacts_by_the_key_of_the_table_that_is_there(server: MetastoreServer, lake: LakeClient) -> None:
    old = merge_on_read(lake, compaction__delta_commits="3")
    with serving(server):
        commits(old, 4)
        wait_until(lambda: compactions(old) == 1, what="the compaction of the first table")
        new = make_again(lake, old)
        four_rows(new)
        wait_until(lambda: compactions(new) == 1, what="the compaction of the second table")
    assert count(new) == 4


def test_a_plan_that_runs_while_its_table_is_made_again(server: MetastoreServer, lake: LakeClient) -> None:
    old = merge_on_read(lake, compaction__delta_commits="3")
    tried: list[BaseException] = []
    made: list[LakeTable] = []

    class Replacing(ArrowExecutor):
        def run(self, task: Task, stop: threading.Event) -> str:
            if not made:
                made.append(make_again(lake, old))
                four_rows(made[0])
                with pytest.raises(Exception) as error:
                    super().run(task, stop)
                tried.append(error.value)
                raise error.value
            return super().run(task, stop)

    with LakeClient(server.uri) as own, serving(server, Replacing(own)):
        commits(old, 4)
        wait_until(lambda: bool(tried), what="the attempt at the first table's plan")
        wait_until(lambda: compactions(made[0]) == 1, what="the compaction of the second table")
        wait_until(lambda: [each.state for each in jobs(made[0])] == ["succeeded"], what="the end of its job")
    assert type(tried[0]).__name__ == "TableReplaced"
    assert count(made[0]) == 4


def test_decisions_about_the_dropped_table_are_not_those_about_the_new_one(
    server: MetastoreServer, lake: LakeClient
) -> None:
    old = merge_on_read(lake, compaction__delta_commits="2")
    commits(old, 4)
    made: list[LakeTable] = []

    class Slow(Queue):
        def facts(self, table: TableReference, policy: Policy, order: bytes | None) -> Any:
            found = super().facts(table, policy, order)
            made.append(make_again(lake, old))
            return found

    assert Planner(Slow(lake, "test"), {}).look(old.named) == []
    assert decisions(made[0]) == []
    assert jobs(made[0]) == []
