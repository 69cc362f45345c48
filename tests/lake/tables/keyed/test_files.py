"""Files of keyed tables: what lies where an instant wrote, and isn't among its files, is removed."""

from pathlib import Path

import pyarrow as pa
import pytest

from lake.protocol.formats.keyed_table import KeyedTable
from lake.tables.buckets import Bucket, BucketWriter, Layout
from lake.tables.keyed.wide_types import narrowed

TABLE = KeyedTable(key=("id",))
ROWS = pa.table({"id": [1, 2]})


def test_files_of_attempts_that_were_not_taken_are_removed(tmp_path: Path) -> None:
    directory = tmp_path / "t/.instants/1.commit"
    writer = BucketWriter(Layout(TABLE, ROWS.schema, f"file:{tmp_path}/t"), "1", f"file:{directory}", "x/1.commit")
    bucket = Bucket("day=2026-01-01 00%3A00", "bucket-00000")
    taken = writer.write(bucket, ROWS, [])
    writer.write(bucket, ROWS, [])  # a task that died after it had written
    (directory / "_SUCCESS").touch()
    writer.remove_others(taken)
    left = sorted(str(each.relative_to(directory)) for each in directory.rglob("*") if each.is_file())
    assert left == sorted(["_SUCCESS", taken[0].path.removeprefix("x/1.commit/")])


def test_without_a_directory_there_is_nothing_to_remove(tmp_path: Path) -> None:
    writer = BucketWriter(Layout(TABLE, ROWS.schema, f"file:{tmp_path}"), "1", f"file:{tmp_path}/none", "none")
    writer.remove_others([])


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_a_bucket_may_have_more_than_2_gib_of_texts(tmp_path: Path) -> None:
    """Takes 10 GiB of memory, and little room."""
    schema = pa.schema([("id", pa.int64()), ("doc", pa.large_string()), ("l", pa.large_list(pa.large_string()))])
    layout = Layout(TABLE, schema, f"file:{tmp_path}")
    bucket, text, files = Bucket("", "bucket-00000"), "x" * 8_500_000, []
    for number in range(3):
        writer = BucketWriter(layout, str(number), f"file:{tmp_path}/{number}", str(number))
        ids = [number * 100 + row for row in range(90)]
        columns = [ids, [f"{id}{text}" for id in ids], [[text[:1000], str(id)] for id in ids]]
        files = writer.write(bucket, pa.table(columns, schema=schema), files)
    found = narrowed(layout.read(files).rows.select(["id", "doc", "l"]))
    assert found.nbytes > 2 * 2**30
    assert pa.types.is_string(found.schema.field("doc").type)
    assert found.column("doc").slice(269, 1)[0].as_py() == f"289{text}"
    assert found.column("l").slice(269, 1)[0].as_py() == [text[:1000], "289"]
