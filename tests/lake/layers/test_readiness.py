"""Partitions of layers turn ready when those of their sources are, unless their rows aren't as expected."""

import pytest

from lake.layers.applying.beside import apply_beside
from lake.layers.applying.planning import plan_of
from lake.layers.errors import BadDefinition
from lake.layers.runner.runner import Runner
from lake.tables.lake import LakeTable
from tests.lake.client.test_readiness import commit, reopen
from tests.lake.layers.shop import Shop, rows_of

EVENTS = {"id": "bigint", "n": "bigint", "dt": "string"}
OPEN = {"primary-key": "id,dt", "partition.commit.mode": "manual"}
LAYERS = """
CREATE MATERIALIZED VIEW plain PARTITIONED BY (dt) AS SELECT id, n, dt FROM events;
CREATE MATERIALIZED VIEW sums PARTITIONED BY (day) TBLPROPERTIES ('readiness' = 'sources') AS
  SELECT p.dt AS day, CAST(sum(p.n) AS BIGINT) AS n, count(v.id) AS visits FROM plain p
  LEFT JOIN visits v ON p.dt = v.dt AND p.id = v.id GROUP BY p.dt;
CREATE MATERIALIZED VIEW top PARTITIONED BY (day) TBLPROPERTIES ('readiness' = 'sources') AS
  SELECT day, n * 2 AS n FROM sums
"""


def source(shop: Shop, name: str) -> LakeTable:
    return shop.table(name, EVENTS, OPEN, ["dt"])


def ready(shop: Shop, name: str) -> list[str]:
    return sorted(shop.client.table(f"{shop.database}.{name}").partitions(ready=True))


def waiting(runner: Runner, layer: str) -> dict[str, str]:
    turned = runner.refresh().turned
    return {**next(each.waiting for name, each in turned.items() if name.endswith(f".{layer}"))}


def test_partitions_turn_ready_with_those_of_their_sources(shop: Shop) -> None:
    events, visits = source(shop, "events"), source(shop, "visits")
    events.upsert(rows_of([(1, 5, "d1"), (2, 6, "d2")], EVENTS))
    runner = shop.runner(LAYERS)
    assert waiting(runner, "sums") == {
        "day=d1": f"{shop.database}.events has uncommitted partitions of dt=d1",
        "day=d2": f"{shop.database}.events has uncommitted partitions of dt=d2",
    }
    assert shop.rows("sums") == [], "its rows are hidden"
    commit(events, "dt=d1")
    assert waiting(runner, "sums")["day=d1"] == f"{shop.database}.visits has no partition of dt=d1 yet"
    visits.upsert(rows_of([(1, 1, "d1")], EVENTS))
    commit(visits, "dt=d1")
    assert [*waiting(runner, "sums")] == ["day=d2"]
    assert (ready(shop, "sums"), ready(shop, "top")) == (["day=d1"], ["day=d1"])
    assert shop.rows("sums") == [(5, 1, "d1")], "with all rows of the partition that is ready"
    assert shop.rows("top") == [(10, "d1")]
    reopen(events, "dt=d1")
    assert len(waiting(runner, "top")) == 2
    assert (ready(shop, "sums"), ready(shop, "top")) == ([], [])
    commit(events, "dt=d1")
    runner.refresh()
    assert ready(shop, "top") == ["day=d1"]


def test_partitions_are_held_back(shop: Shop) -> None:
    events = source(shop, "events")
    events.upsert(rows_of([(1, 5, "d1"), (2, -6, "d2"), (3, 1, "d2")], EVENTS))
    commit(events, "dt=d1", "dt=d2")
    runner = shop.runner(
        "CREATE MATERIALIZED VIEW good (CONSTRAINT positive EXPECT (n > 0) ON VIOLATION HOLD PARTITION)"
        " PARTITIONED BY (dt) AS SELECT id, n, dt FROM events"
    )
    assert waiting(runner, "good") == {"dt=d2": "rows don't meet positive"}
    assert ready(shop, "good") == ["dt=d1"]
    assert waiting(runner, "good") == {"dt=d2": "rows don't meet positive"}, "it stays so without a change"
    events.upsert(rows_of([(4, -1, "d1")], EVENTS))
    assert [*waiting(runner, "good")] == ["dt=d1", "dt=d2"], "a wrong row takes a partition back"
    events.upsert(rows_of([(4, 1, "d1"), (2, 6, "d2")], EVENTS))
    assert not waiting(runner, "good")
    assert ready(shop, "good") == ["dt=d1", "dt=d2"]


def test_partitions_are_held_back_by_who_goes_on_after_a_kill(shop: Shop) -> None:
    """Of rows that somebody has written who hadn't come to reopen their partition."""
    events = source(shop, "events")
    events.upsert(rows_of([(1, 5, "d1"), (2, 6, "d2")], EVENTS))
    commit(events, "dt=d1", "dt=d2")
    text = (
        "CREATE MATERIALIZED VIEW good (CONSTRAINT positive EXPECT (n > 0) ON VIOLATION HOLD PARTITION)"
        " PARTITIONED BY (dt) AS SELECT id, n, dt FROM events"
    )
    shop.runner(text).refresh()
    assert ready(shop, "good") == ["dt=d1", "dt=d2"]
    events.upsert(rows_of([(3, -1, "d1")], EVENTS))

    def end(stage: str) -> None:
        if stage == "completed":
            raise KeyboardInterrupt

    for _ in range(2):
        runner = shop.runner(text)
        runner.pause = end
        with pytest.raises(KeyboardInterrupt):
            runner.refresh()
        events.upsert(rows_of([(4, 1, "d2")], EVENTS))
    shop.runner(text).refresh()
    assert waiting(shop.runner(text), "good") == {"dt=d1": "rows don't meet positive"}
    assert ready(shop, "good") == ["dt=d2"]


def test_partitions_that_another_expectation_holds_back(shop: Shop) -> None:
    """Of rows that stay as they are."""
    events = source(shop, "events")
    events.upsert(rows_of([(1, 5, "d1"), (2, 6, "d2")], EVENTS))
    commit(events, "dt=d1", "dt=d2")
    text = (
        "CREATE MATERIALIZED VIEW good (CONSTRAINT positive EXPECT (n > {}) ON VIOLATION HOLD PARTITION)"
        " PARTITIONED BY (dt) AS SELECT id, n, dt FROM events"
    )
    shop.runner(text.format(0)).refresh()
    assert ready(shop, "good") == ["dt=d1", "dt=d2"]
    shop.runner(text.format(5)).refresh()
    assert ready(shop, "good") == ["dt=d2"]
    shop.runner(text.format(0)).refresh()
    assert ready(shop, "good") == ["dt=d1", "dt=d2"]
    runner = shop.runner(text.format(5))
    apply_beside(runner, plan_of(runner))
    assert ready(shop, "good") == ["dt=d2"]


@pytest.mark.parametrize(
    ("head", "message"),
    [
        ("TBLPROPERTIES ('readiness' = 'sources')", "only partitions turn ready: PARTITIONED BY"),
        ("TBLPROPERTIES ('readiness' = 'soon')", "readiness=soon: expected none or sources"),
        ("(CONSTRAINT c EXPECT (n > 0) ON VIOLATION HOLD PARTITION)", "only partitions turn ready"),
        (
            "PARTITIONED BY (dt) TBLPROPERTIES ('readiness' = 'sources', 'partition.commit.mode' = 'event-time')",
            "leave partition.commit.mode out",
        ),
    ],
)
def test_what_can_not_turn_ready(shop: Shop, head: str, message: str) -> None:
    source(shop, "events")
    with pytest.raises(BadDefinition, match=message):
        shop.runner(f"CREATE MATERIALIZED VIEW a {head} AS SELECT id, n, dt FROM events").refresh()
