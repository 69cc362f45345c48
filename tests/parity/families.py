"""The generated scripts by what they are about."""

from collections.abc import Sequence
from typing import Any

from hypothesis import strategies as st

from tests.parity import authorisation, others, statistics, transactions
from tests.parity.calls import Call, Script
from tests.parity.partitions import KEY_SETS, Keys, partition_calls, setup
from tests.parity.tables import database_calls, table_calls
from tests.parity.values import Strategy
from tests.support.builders import database, external_table, table, view
from tests.support.builders import storage as plain_storage


def calls(one: Strategy) -> Strategy:
    """Many calls; lists of lists, as they shrink as well as a list but are longer."""
    return st.lists(st.lists(one, min_size=1, max_size=4), min_size=1, max_size=8).map(
        lambda groups: [call for group in groups for call in group]
    )


DATABASE = [Call("create_database", database("N_a"))]
SOME_TABLES = [
    *DATABASE,
    Call("create_table", table("N_a", "t")),
    Call("create_table", table("N_a", "u", keys=("ds",))),
]
MORE_TABLES = [
    *SOME_TABLES,
    Call("create_database", database("N_b")),
    Call("create_table", external_table("N_a", "e", sd=plain_storage(location="SIDE/e"))),
    Call("create_table", view("N_a", "v")),
    Call("append_partition", "N_a", "u", ["a"]),
    Call("put_file", "N_a.db/t/f"),
    Call("put_file", "N_a.db/u/ds=a/f"),
]


@st.composite
def partition_scripts(draw: Any) -> Script:
    keys: Keys = draw(st.sampled_from(KEY_SETS))
    return [*setup(keys), *draw(calls(partition_calls(keys)))]


def after(beginnings: list[Script], one: Strategy, end: Sequence[Call] = ()) -> Strategy:
    return st.builds(lambda first, rest: [*first, *rest, *end], st.sampled_from(beginnings), calls(one))


FAMILIES: dict[str, Strategy] = {
    "databases": after([[], DATABASE], database_calls()),
    "tables": after([DATABASE, SOME_TABLES, MORE_TABLES], table_calls()),
    "partitions": partition_scripts(),
    "statistics": after([statistics.SETUP], statistics.statistics_calls(), statistics.LAST_READS),
    "privileges": after([authorisation.SETUP], authorisation.privilege_calls(), authorisation.LAST_READS),
    "transactions": after([transactions.SETUP], transactions.transaction_calls(), transactions.LAST_READS),
    "others": after([others.SETUP], others.other_calls(), others.LAST_READS),
}
