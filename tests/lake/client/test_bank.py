"""A bank of two tables: money moves between accounts, by several writers at once, and none is lost or made."""

import random
import threading
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pytest

from lake.client.lake_types import Moment
from lake.protocol.lake import InstantConflict
from lake.tables.compaction import plan_compaction, run_compaction
from lake.tables.lake import LakeClient, LakeTable
from tests.lake.client.conftest import NewTable
from tests.support.server import MetastoreServer

ACCOUNTS = 6
BALANCE = 100
COLUMNS = {"id": "bigint", "balance": "bigint"}
SCHEMA = pa.schema([("id", pa.int64()), ("balance", pa.int64())])


def now(tables: list[LakeTable]) -> Moment:
    """A moment that all tables have reached."""
    return Moment(max(each.position().moment or 0 for each in tables))


def total(tables: list[LakeTable], at: Moment) -> int:
    return sum(sum(each.scan(as_of=at).to_arrow().column("balance").to_pylist()) for each in tables)


def rows(ids: dict[int, int]) -> pa.Table:
    return pa.table({"id": list(ids), "balance": list(ids.values())}, schema=SCHEMA)


def transfer(client: LakeClient, tables: list[LakeTable], dice: random.Random) -> bool:
    """Moves money from one account to another, unless somebody else was quicker; whether it did."""
    at = now(tables)
    places = dice.sample([(table, id) for table in range(2) for id in range(ACCOUNTS)], 2)
    found = [tables[table].lookup([{"id": id}], as_of=at).column("balance")[0].as_py() for table, id in places]
    amount = dice.randint(1, 50)
    changes: list[dict[int, int]] = [{}, {}]
    for (table, id), balance, sign in zip(places, found, (-1, 1), strict=True):
        changes[table][id] = balance + sign * amount
    try:
        client.write_together(
            [(table, rows(change), "upsert") for table, change in zip(tables, changes, strict=True) if change],
            based_on=at,
        )
    except InstantConflict:
        return False
    return True


@pytest.mark.parametrize(
    "kinds",
    [
        pytest.param(("copy-on-write", "merge-on-read"), id="both"),
        pytest.param(("merge-on-read", "merge-on-read"), id="merge-on-read", marks=pytest.mark.long),
    ],
)
def test_the_total_never_moves(new_table: NewTable, metastore_server: MetastoreServer, kinds: tuple[str, str]) -> None:
    made = [new_table({"primary-key": "id", "bucket": "3", "table-type": kind}, COLUMNS, False) for kind in kinds]
    names = [each.name for each in made]
    with LakeClient(metastore_server.uri) as client:
        everybody = rows(dict.fromkeys(range(ACCOUNTS), BALANCE))
        client.write_together([(client.table(name), everybody, "upsert") for name in names])
    stop = threading.Event()
    moved = []

    def work(seed: int) -> None:
        dice = random.Random(seed)
        with LakeClient(metastore_server.uri) as client:
            tables = [client.table(name) for name in names]
            done = 0
            while done < 5 and not stop.is_set():
                done += transfer(client, tables, dice)
            moved.append(done)

    def read() -> int:
        seen = 0
        with LakeClient(metastore_server.uri) as client:
            tables = [client.table(name) for name in names]
            while not stop.is_set():
                assert total(tables, now(tables)) == 2 * ACCOUNTS * BALANCE
                seen += 1
                for each in tables:
                    planned = plan_compaction(each, min_log_files=3)
                    if planned.instant is not None:
                        try:
                            run_compaction(each, planned.instant.timestamp)
                        except InstantConflict:
                            continue
        return seen

    with ThreadPoolExecutor() as pool:
        reader = pool.submit(read)
        try:
            for each in [pool.submit(work, seed) for seed in range(4)]:
                each.result(timeout=240)
        finally:
            stop.set()
        assert reader.result(timeout=60) > 0
    assert moved == [5, 5, 5, 5]
    for position in range(1, made[0].position().position + 1):
        instant = next(each for each in made[0].instants(states=["completed"]) if each.position == position)
        assert total(made, Moment(instant.moment or 0)) == 2 * ACCOUNTS * BALANCE
