"""Refreshes of one runner while sources and layers are dropped and made again under their names."""

import pytest

from lake.tables.lake import LakeTable
from tests.lake.layers import duck_lake
from tests.lake.layers.shop import ORDERS, Shop, how, rows_of
from tests.lake.layers.test_runner import NOTHING, filled


def drop(shop: Shop, table: LakeTable) -> None:
    database, name = table.named.database, table.named.table
    shop.client.call(lambda opened: opened.drop_table(database, name, True))


def make_again(shop: Shop, *, key: str = "id,dt") -> None:
    """Other orders under the same name; as many instants as `filled` makes."""
    drop(shop, shop.orders)
    shop.orders = shop.table("orders", ORDERS, {"primary-key": key, "bucket": "3"}, ["dt"])


def test_a_source_that_was_made_again_without_rows_is_read_as_a_whole(shop: Shop) -> None:
    filled(shop)
    runner = shop.runner()
    runner.refresh()
    make_again(shop)
    assert how(runner.refresh().layers)["details"] == "full"
    shop.check()
    assert how(runner.refresh().layers) == NOTHING
    shop.order((9, 1, 5, "d1"))
    assert how(runner.refresh().layers)["details"] == "incremental"
    shop.check()


def test_a_source_that_had_no_rows_was_made_again(shop: Shop) -> None:
    shop.know((1, "Oslo"))
    runner = shop.runner()
    runner.refresh()
    make_again(shop)
    shop.order((9, 1, 4, "d1"))
    runner.refresh()
    shop.check()


@pytest.mark.sampled(4)
@pytest.mark.parametrize("stage", ["computed", "written"])
@pytest.mark.parametrize("name", ["orders", "details"])
def test_tables_that_are_made_again_during_a_refresh(shop: Shop, stage: str, name: str) -> None:
    """Whatever the refresh does, the next one has the right rows."""
    filled(shop)
    runner = shop.runner()
    runner.refresh()
    shop.order((1, 2, 8, "d1"))
    done: list[str] = []

    def replace(reached: str) -> None:
        if reached == stage and not done:
            done.append(reached)
            if name == "orders":
                make_again(shop)
                shop.order((9, 2, 4, "d1"))
            else:
                drop(shop, shop.client.table(f"{shop.database}.{name}"))
                shop.runner().refresh()

    runner.pause = replace
    runner.refresh()
    assert done
    runner.refresh()
    shop.check()
    assert how(runner.refresh().layers) == NOTHING


def test_names_that_are_alike_but_for_the_dot(shop: Shop) -> None:
    one = shop.table("more_orders", {"id": "bigint", "amount": "bigint"}, {"primary-key": "id"})
    other = duck_lake.create_table(
        shop.client, f"{shop.database}_more", "orders", {"id": "bigint", "amount": "bigint"}, {"primary-key": "id"}
    )
    columns = {"id": "bigint", "amount": "bigint"}
    one.upsert(rows_of([(1, 10), (2, 20)], columns))
    other.upsert(rows_of([(1, 11), (2, 22)], columns))
    text = (
        "CREATE MATERIALIZED VIEW both AS SELECT a.id, a.amount, b.amount AS other"
        f" FROM more_orders a JOIN {shop.database}_more.orders b ON a.id = b.id"
    )
    shop.runner(text).refresh()
    assert shop.rows("both") == [(1, 10, 11), (2, 20, 22)]
    other.upsert(rows_of([(1, 12)], columns))
    one.upsert(rows_of([(2, 21)], columns))
    shop.runner(text).refresh()
    assert shop.rows("both") == [(1, 10, 12), (2, 21, 22)]
