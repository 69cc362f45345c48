"""`read` of keyed tables: what it decides when it is called, and what it raises."""

import pyarrow as pa
import pytest

from lake.tables.lake import LakeTable
from tests.lake.spark.conftest import NUMBERS
from tests.lake.spark.lake import Lake
from tests.spark.session import SparkError


@pytest.fixture
def customers(lake: Lake) -> LakeTable:
    """A table of eight buckets whose row 1 is updated by each of three commits."""
    name = f"r{next(NUMBERS)}"
    properties = {"primary-key": "id", "bucket": "8", "table-type": "merge-on-read"}
    table = lake.table(name, "id BIGINT, name STRING", **properties)
    for number in range(3):
        upsert(table, *([(id, "a") for id in range(20)] if number == 0 else [(1, f"b{number}")]))
    return table


def upsert(table: LakeTable, *rows: tuple[int, str]) -> None:
    table.upsert(pa.table({"id": [id for id, _ in rows], "name": [name for _, name in rows]}))


def test_a_dataframe_is_of_what_its_call_found(lake: Lake, customers: LakeTable) -> None:
    """Also as a view, and where Spark plans it for the first time after later writes."""
    before = f"""
t = {customers.name!r}
frames = [
    read(spark, t).where("id = 1"),
    read(spark, t, as_of=2).where("id = 1"),
    read(spark, t, incremental=(1, None)),
    read(spark, t, incremental=(1, None), changes=True).where("_change_type = 'update_postimage'"),
    read(spark, t, incremental=(1, None), changes="all").where("_change_type = 'update_postimage'"),
]
for number, each in enumerate(frames):
    each.createOrReplaceTempView(f"frame_{{number}}")
result = [frames[0]._jdf.queryExecution().toString().count("buckets: 1")]
"""
    assert lake.run(before)[0] > 0, "the condition says the bucket"
    upsert(customers, (1, "later"))
    found = lake.run("""
result = []
for number in range(5):
    rows = spark.table(f"frame_{number}")
    result.append(sorted(row.name for row in rows.union(rows).collect()))
    spark.catalog.dropTempView(f"frame_{number}")
""")
    assert found == [["b2"] * 2, ["b1"] * 2, ["b2"] * 2, ["b2"] * 2, ["b1", "b1", "b2", "b2"]]
    assert lake.run(f"result = [row.name for row in read(spark, {customers.name!r}).where('id = 1').collect()]") == [
        "later"
    ]


def test_what_is_raised_is_the_metastores(lake: Lake, customers: LakeTable) -> None:
    customers.upsert(pa.table({"id": [2], "name": ["c"]}))
    planned = lake.run(f"""
from lake.spark import plan_compaction, run_plan
result = plan_compaction(spark, {customers.name!r}).instant.timestamp
run_plan(spark, {customers.name!r}, result)
""")
    assert customers.details(planned, "commit").instant.position == 5
    customers.clean(customers.plan_clean(keep_commits=1))
    oldest = customers.position().oldest_readable
    for options, expected in [
        ({"as_of": 1}, rf"SnapshotGone: .*oldest that can be read is position {oldest}"),
        ({"incremental": (1, None)}, "SnapshotGone: .*changes after position 1"),
        ({"incremental": (1, 3), "changes": True}, "SnapshotGone: .*changes after position 1"),
        ({"as_of": "20200101000000000"}, "NoSuchObjectException"),
        ({"as_of": 99}, "InvalidOperationException: .*no position 99"),
        ({"incremental": (0, 99)}, "InvalidOperationException: .*no position 99"),
        ({"incremental": (3, 2)}, "ValueError: .*position 3 is not before position 2"),
        ({"filter": "dt = 1"}, "MetaException"),
        ({"with_removed": True, "incremental": (5, None)}, "ValueError: .*has a primary key: changes=True"),
    ]:
        with pytest.raises(SparkError, match=expected):
            lake.ids(customers, **options)
    first = customers.reference
    lake.spark.sql(f"DROP TABLE {customers.name}")
    again = lake.table(customers.name.split(".")[1], "id BIGINT, name STRING", **{"primary-key": "id"})
    upsert(again, (7, "new"))
    code = "from lake.protocol.lake import TableReference\nresult = [row.name for row in read(spark, {}).collect()]"
    with pytest.raises(SparkError, match="TableReplaced"):
        lake.run(code.format(first))
    assert lake.run(code.format(again.reference)) == ["new"]
