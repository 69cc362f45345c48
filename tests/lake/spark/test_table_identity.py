"""Sessions and streams that live on while tables are dropped and made again with other columns and another key."""

from pathlib import Path

import pytest

from lake.tables.lake import LakeTable
from tests.lake.spark.lake import Lake
from tests.lake.spark.test_streams import CUSTOMERS, Source, keyed, source, state, written
from tests.spark.session import SparkError

__all__ = ["source"]


def make_again(lake: Lake, table: LakeTable, columns: str = CUSTOMERS, key: str = "id,dt") -> LakeTable:
    lake.spark.sql(f"DROP TABLE {table.name}")
    lake.spark.sql(
        f"CREATE TABLE {table.name} ({columns}) USING parquet PARTITIONED BY (dt)"
        f" TBLPROPERTIES ('primary-key' = '{key}')"
    )
    return lake.client.table(table.name)


def test_a_session_reads_and_writes_the_table_that_is_there(lake: Lake) -> None:
    table = keyed(lake, "k")
    written_first = f"""
write(spark.createDataFrame([(1, "a", 1, "x")], {CUSTOMERS!r}), {table.name!r}, operation="upsert")
"""
    lake.run(written_first)
    assert lake.ids(table) == [1]
    new = make_again(lake, table, "id BIGINT, name STRING, weight DOUBLE, dt STRING", "name,dt")
    found = lake.run(
        f"""
columns = "id BIGINT, name STRING, weight DOUBLE, dt STRING"
for id in (1, 2):
    write(spark.createDataFrame([(id, "a", 0.5, "x")], columns), {table.name!r}, operation="upsert")
result = [read(spark, {table.name!r}).columns, [list(row) for row in read(spark, {table.name!r}).collect()]]
"""
    )
    assert found == [["id", "name", "weight", "dt"], [[2, "a", 0.5, "x"]]]
    assert state(new) == {2: "a"}


def test_positions_of_an_earlier_table_are_refused_beside_the_name(lake: Lake, tmp_path: Path) -> None:
    """A reference, which has the id, may ask for what was before the table's first position."""
    table = keyed(lake, "k")
    row = f"""write(spark.createDataFrame([(1, "a", 1, "x")], {CUSTOMERS!r}), {table.name!r}, operation="upsert")"""
    lake.run(f"{row}\n{row}")
    new = make_again(lake, table)
    lake.run(row)
    reads = {
        "as of": f"read(spark, {table.name!r}, as_of={{0}})",
        "incremental": f"read(spark, {table.name!r}, incremental=({{0}}, None))",
        "changes": f"read(spark, {table.name!r}, incremental=(0, {{0}}), changes=True)",
        "increments": f"for_each_increment(spark, {table.name!r}, print, {str(tmp_path / 'i')!r}, since={{0}})",
        "SQL": f"spark.sql(\"SELECT * FROM lake_changes('{table.name}', {{0}})\")",
        "SQL, up to": f"spark.sql(\"SELECT * FROM lake_changes('{table.name}', 0, {{0}})\")",
        "stream": (
            f"read_stream(spark, {table.name!r}, since={{0}}).writeStream.format('noop').trigger(availableNow=True)"
            f".option('checkpointLocation', {str(tmp_path / 's')!r}).start().awaitTermination()"
        ),
    }
    imports = "from lake.spark import for_each_increment, read_stream\n"
    for what, code in reads.items():
        for earlier in (1, 2):
            with pytest.raises(SparkError, match=f"position {earlier} is of a table that had the name"):
                lake.run(imports + code.format(earlier))
                pytest.fail(f"{what} took the position of another table for one of this")
    assert lake.ids(table, as_of=0) == []
    assert lake.ids(table, as_of=3) == [1]
    by_id = f"TableReference(database={lake.database!r}, table='k', id={new.id})"
    count = f"from lake.protocol.lake import TableReference\nresult = read(spark, {by_id}, as_of=2).count()"
    assert lake.run(count) == 0


def test_a_stream_into_a_table_ends_with_it(lake: Lake, source: Source) -> None:
    table = keyed(lake, "k")
    source.arrive((1, "a", 1))
    assert written(lake, table, source, operation="upsert") == [[0, 1, True]]
    new = make_again(lake, table)
    source.arrive((2, "b", 1))
    with pytest.raises(SparkError, match=r"is of a query into another table .* Start the query with a new checkpoint"):
        written(lake, new, source, operation="upsert")
    assert state(new) == {}
    source.checkpoint += "-2"
    assert [each[1:] for each in written(lake, new, source, operation="upsert")] == [[1, True], [1, True]]
    assert state(new) == {1: "a", 2: "b"}


def test_a_stream_that_writes_meanwhile_ends_with_its_table(lake: Lake, source: Source) -> None:
    table = keyed(lake, "k")
    for number in range(3):
        source.arrive((number, "a", 1))
    with pytest.raises(SparkError, match="TableReplaced"):
        lake.run(
            f"""
from lake.spark import write_stream
def again(number, written):
    if number == 0:
        spark.sql("DROP TABLE {table.name}")
        spark.sql("CREATE TABLE {table.name} ({CUSTOMERS}) USING parquet PARTITIONED BY (dt)"
                  " TBLPROPERTIES ('primary-key' = 'name,dt')")
stream = spark.readStream.schema({CUSTOMERS!r}).option("maxFilesPerTrigger", 1).json({str(source.directory)!r})
write_stream(stream, {table.name!r}, {source.checkpoint!r}, operation="upsert", after_batch=again,
             trigger={{"availableNow": True}}).awaitTermination()
"""
        )
    assert state(lake.client.table(table.name)) == {}


@pytest.mark.parametrize(
    "knows", [pytest.param(True, id="id"), pytest.param(False, id="position", marks=pytest.mark.long)]
)
def test_increments_are_of_one_table(lake: Lake, table: LakeTable, tmp_path: Path, knows: bool) -> None:
    """Also with checkpoints from before these had the id."""
    code = f"""
from lake.spark import for_each_increment
result = []
def take(rows, batch):
    result.append(sorted(row.id for row in rows.collect()))
for_each_increment(spark, {table.name!r}, take, {str(tmp_path / "c")!r}, available_now=True)
"""
    lake.write(table, "rows_of([1, 2])")
    assert lake.run(code) == [[1, 2]]
    kept = tmp_path / "c" / "stream.json"
    if not knows:
        kept.write_text(kept.read_text().replace(f'"id": {table.id}', '"id": null'))
        (tmp_path / "c" / ".stream.json.crc").unlink()
        assert lake.run(code) == []
    lake.spark.sql(f"DROP TABLE {table.name}")
    new = lake.table("t", "id BIGINT, name STRING, dt STRING", "dt")
    lake.write(new, "rows_of([3])")
    with pytest.raises(SparkError, match=r"of another table that had the name .* Give a new directory"):
        lake.run(code)
    assert lake.run(code.replace(str(tmp_path / "c"), str(tmp_path / "d"))) == [[3]]
