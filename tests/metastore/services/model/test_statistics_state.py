"""COLUMN_STATS_ACCURATE, as Hive's StatsSetupConst reads and writes it."""

import pytest

from metastore.services.model.statistics_state import accurate_columns, mark_columns, unmark_columns

KEY = "COLUMN_STATS_ACCURATE"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (None, '{"COLUMN_STATS":{"a":"true","b":"true"}}'),
        ("{}", '{"COLUMN_STATS":{"a":"true","b":"true"}}'),
        ('{"BASIC_STATS":"true"}', '{"BASIC_STATS":"true","COLUMN_STATS":{"a":"true","b":"true"}}'),
        (
            '{"COLUMN_STATS":{"é":"true","a":"true"},"BASIC_STATS":"true"}',
            '{"BASIC_STATS":"true","COLUMN_STATS":{"a":"true","b":"true","é":"true"}}',
        ),
        ('{"BASIC_STATS":"false","COLUMN_STATS":{"a":"false"}}', '{"COLUMN_STATS":{"a":"false","b":"true"}}'),
        ("TRUE", '{"BASIC_STATS":"true","COLUMN_STATS":{"a":"true","b":"true"}}'),  # before Hive 2
        ("false", '{"COLUMN_STATS":{"a":"true","b":"true"}}'),
        ("[1]", '{"COLUMN_STATS":{"a":"true","b":"true"}}'),
        ('{"COLUMN_STATS":7}', '{"COLUMN_STATS":{"a":"true","b":"true"}}'),
        ("[" * 100_000, '{"COLUMN_STATS":{"a":"true","b":"true"}}'),
    ],
)
def test_marking_columns(before: str | None, after: str) -> None:
    parameters = {} if before is None else {KEY: before}
    mark_columns(parameters, ["b", "a"])
    assert parameters == {KEY: after}


def test_unmarking_columns_leaves_the_rest() -> None:
    parameters = {KEY: '{"BASIC_STATS":"true","COLUMN_STATS":{"a":"true","b":"true"}}', "x": "y"}
    unmark_columns(parameters, ["a", "c"])
    assert parameters == {KEY: '{"BASIC_STATS":"true","COLUMN_STATS":{"b":"true"}}', "x": "y"}
    assert accurate_columns(parameters) == {"b"}


def test_unmarking_where_nothing_was_said_says_nothing() -> None:
    parameters: dict[str, str] = {}
    unmark_columns(parameters, ["a"])
    assert parameters == {}
