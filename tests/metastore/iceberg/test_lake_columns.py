"""What the names of partitions and of columns in files say, and what of it is refused."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import orc

from metastore.iceberg.errors import RestError
from metastore.iceberg.shown import orc_footers
from metastore.iceberg.shown.footer_cache import Footers
from metastore.iceberg.shown.footers import ORC, PARQUET, Footer
from metastore.iceberg.shown.lake_columns import LakeColumns, hive_columns, lake_columns
from metastore.warehouse import Warehouse
from tests.support import builders


def columns_by(kind: str) -> LakeColumns:
    sd = builders.parquet("id:bigint")
    return lake_columns(builders.table("d", "t", keys=(f"p:{kind}",), sd=sd, parameters={}))


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        ("tinyint", "-128", -128),
        ("smallint", "32767", 32767),
        ("int", "-2147483648", -(1 << 31)),
        ("bigint", "9223372036854775807", (1 << 63) - 1),
        ("date", "1970-01-03", 2),
        ("string", "1_0", "1_0"),
    ],
)
def test_values_of_partitions(kind: str, text: str, value: int | str) -> None:
    assert columns_by(kind).partition_values(f"p={text}") == (value,)


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("int", "99999999999"),
        ("int", "1_0"),
        ("int", " 1"),
        ("int", "\u0661"),
        ("bigint", "1" * 30),
        ("bigint", "1" * 10_000),
        ("bigint", "9223372036854775808"),
        ("tinyint", "300"),
        ("smallint", "-32769"),
        ("date", "20240101"),
        ("date", "2024-W01-1"),
        ("date", "2024-02-30"),
    ],
)
def test_values_that_hive_reads_otherwise_are_refused(kind: str, text: str) -> None:
    with pytest.raises(RestError, match="has a value that is no") as error:
        columns_by(kind).partition_values(f"p={text}")
    assert error.value.status == 400


def footer_of(folder: Path, table: pa.Table, format: str) -> Footer:
    file = folder / "f"
    (pq.write_table if format == PARQUET else orc.write_table)(table, str(file))
    return Footers(Warehouse(f"file:{folder}")).of(f"file:{file}", file.stat().st_size, 0, format)


@pytest.mark.parametrize("format", [PARQUET, ORC])
@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("struct<abc:int>", {"abc": 1}),
        ("array<struct<abc:int>>", [{"abc": 1}]),
        ("struct<x:struct<abc:int>>", {"x": {"abc": 1}}),
    ],
)
def test_parts_in_another_case_are_refused(tmp_path: Path, kind: str, value: object, format: str) -> None:
    columns = hive_columns(builders.table("d", "t", sd=builders.parquet(f"s:{kind}"), parameters={}), format)
    columns.check_names("f", footer_of(tmp_path, pa.table({"s": [value]}), format))
    spoilt = pa.table({"s": [_renamed(value)]})
    with pytest.raises(RestError, match="the part Abc of the column s"):
        columns.check_names("f", footer_of(tmp_path, spoilt, format))


def _renamed(value: object) -> object:
    if isinstance(value, list):
        return [_renamed(each) for each in value]
    if isinstance(value, dict):
        return {"Abc" if key == "abc" else key: _renamed(each) for key, each in value.items()}
    return value


def test_large_orc_footers_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = pa.table({f"column_{number}": [number] for number in range(500)})
    assert footer_of(tmp_path, table, ORC).rows == 1
    monkeypatch.setattr(orc_footers, "MAX_FOOTER", 10_000)
    with pytest.raises(RestError, match="no footer that can be read"):
        footer_of(tmp_path, table, ORC)
