"""Values at the limits of Arrow, Parquet and Python, written and read without Spark: in both kinds of keyed tables."""

from decimal import Decimal

import pyarrow as pa
import pytest

from lake.tables.compaction import plan_compaction, run_compaction
from lake.tables.keyed import wide_types
from lake.tables.keyed.changes import CHANGE_TYPE
from lake.tables.keyed.errors import UnfitRows
from lake.tables.keyed_tables import changed_rows
from lake.tables.lake import LakeTable
from tests.lake.client.conftest import NewTable

YEAR_10000, YEAR_0 = 253402300800000000, -62167219200000001
"""Microseconds since 1970."""

_TIME = pa.timestamp("us", "UTC")


def both_kinds(
    new_table: NewTable, columns: dict[str, str], key: str = "id", partitioned: bool = False
) -> list[LakeTable]:
    return [
        new_table({"primary-key": key, "bucket": "1", "table-type": kind}, columns, partitioned)
        for kind in ("copy-on-write", "merge-on-read")
    ]


def compact(table: LakeTable) -> None:
    if (plan := plan_compaction(table)).instant is not None:
        run_compaction(table, plan.instant.timestamp)


def as_read(rows: pa.Table) -> list[str]:
    """Rows as texts: Python has no times after the year 9999."""
    return sorted(rows.slice(number, 1).to_string(preview_cols=100) for number in range(rows.num_rows))


def test_times_that_python_does_not_have(new_table: NewTable) -> None:
    kinds = {
        "id": "timestamp",
        "day": "date",
        "s": "struct<at:timestamp,l:array<date>>",
        "l": "array<timestamp>",
        "m": "map<string,struct<day:date>>",
        "dt": "string",
    }

    def rows(number: int, *times: int) -> pa.Table:
        days = pa.array([each // 86_400_000_000 for each in times], pa.int32()).cast(pa.date32())
        at = pa.array(times).cast(_TIME)
        offsets = pa.array(range(len(times) + 1), pa.int32())
        structs = pa.StructArray.from_arrays([at, pa.ListArray.from_arrays(offsets, days)], ["at", "l"])
        keys = pa.array([f"k{number}"] * len(times))
        maps = pa.MapArray.from_arrays(offsets, keys, pa.StructArray.from_arrays([days], ["day"]))
        lists = pa.ListArray.from_arrays(offsets, at)
        dt = pa.array(["x"] * len(times))
        return pa.table([at, days, structs, lists, maps, dt], names=[*kinds])

    for table in both_kinds(new_table, kinds, key="id,day,dt", partitioned=True):
        first, other = rows(1, YEAR_0, YEAR_10000, 0), rows(2, YEAR_10000)
        table.upsert(first)
        for changed in (other, other, first.slice(2)):  # the second and the third change nothing
            table.upsert(changed)
        expected = as_read(pa.concat_tables([first.slice(0, 1), other, first.slice(2)]))
        for _ in range(2):
            assert as_read(table.scan().to_arrow()) == expected
            compact(table)
        changes = changed_rows(table, 1, 2)
        assert sorted(changes.column(CHANGE_TYPE).to_pylist()) == ["update_postimage", "update_preimage"]
        assert table.lookup(
            [{"id": first.column("id")[2].as_py(), "day": first.column("day")[2].as_py(), "dt": "x"}]
        ).num_rows
        with pytest.raises(UnfitRows, match="the key id=10000-01-01"):
            table.upsert(pa.concat_tables([rows(1, YEAR_10000), rows(2, YEAR_10000)]))
        assert table.upsert(rows(3, YEAR_0, YEAR_10000), event_time="id").files[0].max_event_time is not None


def test_dates_of_partitions_have_four_digits(new_table: NewTable) -> None:
    [table, _] = both_kinds(new_table, {"id": "bigint", "day": "date"}, key="id,day", partitioned=True)
    for days in (2_932_897, -719_529):
        with pytest.raises(
            UnfitRows, match="the column day partitions the table: its dates are of the years 1 to 9999"
        ):
            table.upsert(pa.table({"id": [1], "day": pa.array([days], pa.int32()).cast(pa.date32())}))


def test_texts_are_as_long_as_columns_say(new_table: NewTable) -> None:
    for table in both_kinds(new_table, {"id": "bigint", "c": "char(3)", "v": "varchar(3)"}):
        with pytest.raises(UnfitRows, match="the column v takes 3 characters"):
            table.upsert(pa.table({"id": [1], "v": ["abcd"]}))
        with pytest.raises(UnfitRows, match="the column c is string, and values of double don't fit"):
            table.upsert(pa.table({"id": [1], "c": [1.5]}))
        table.upsert(pa.table({"id": [1], "c": ["a"], "v": ["abc  "]}))
        assert table.scan().to_arrow().to_pylist() == [{"id": 1, "c": "a  ", "v": "abc"}]


def test_buckets_are_read_and_written_in_pieces(new_table: NewTable, monkeypatch: pytest.MonkeyPatch) -> None:
    """As those with more than 2 GiB of texts are."""
    monkeypatch.setattr(wide_types, "PIECE_BYTES", 1000)
    kinds = {"id": "string", "doc": "string", "l": "array<struct<t:string,b:binary>>", "m": "map<string,decimal(38,2)>"}

    def rows(start: int, text: str) -> pa.Table:
        ids = [f"{number:03}" for number in range(start, start + 50)]
        lists = pa.array(
            [[{"t": text, "b": id.encode()}] * (number % 3) for number, id in enumerate(ids)],
            pa.list_(pa.struct([("t", pa.string()), ("b", pa.binary())])),
        )
        maps = pa.array([[(id, Decimal("1.50"))] for id in ids], pa.map_(pa.string(), pa.decimal128(38, 2)))
        return pa.table({"id": ids, "doc": [id + text * 10 for id in ids], "l": lists, "m": maps})

    for table in both_kinds(new_table, kinds):
        table.upsert(rows(0, "a"))
        table.upsert(rows(25, "b"))
        wanted = pa.concat_tables([rows(0, "a").slice(0, 25), rows(25, "b")]).to_pylist()
        for _ in range(2):
            found = table.scan().to_arrow()
            assert found.schema.field("doc").type == pa.string()
            assert found.sort_by("id").to_pylist() == wanted
            assert max(each.num_rows for each in found.to_batches()) < 75
            compact(table)
        assert table.lookup([{"id": "030"}]).column("doc").to_pylist() == ["030" + "b" * 10]
        assert changed_rows(table, 1, 2).num_rows == 25 * 2 + 25
